#if Cloud
import ArgumentParser

/// The exit status of a command that is run with these arguments: 64 if they can't be parsed.
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
