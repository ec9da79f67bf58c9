#if Cloud
import ArgumentParser

/// What a script sees of a command that is run with these words: 64 where they can't be understood.
func status<Command: AsyncParsableCommand>(of command: Command.Type, _ arguments: [String]) async -> Int32 {
  do {
    var parsed = try command.parse(arguments)
    try await parsed.run()
    return 0
  } catch let code as ExitCode {
    return code.rawValue
  } catch {
    return 64
  }
}
#endif
