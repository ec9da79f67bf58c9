#if Cloud
import ArgumentParser
import Foundation

/// One call of a command for several files: each is reported, and one that fails doesn't stop the others.
///
/// For programs, it prints one object with `files`, in which each file has its `path` and its `result` or `error`.
struct FileBatch {
  private let json: Bool
  /// The highest of all files' exit statuses, which is the one of the command.
  private(set) var status: Int32 = 0
  private var count = 0

  init(json: Bool) {
    self.json = json
  }

  /// Does the work for one file.
  ///
  /// - Parameters:
  ///   - heading: What is printed above what `body` prints for people; nil for nothing.
  ///   - body: Returns what is printed: for programs one JSON value, for people lines, if there are any.
  mutating func add(_ path: String, heading: String? = nil, _ body: () throws -> Data) {
    if json {
      begin(path)
    } else if let heading {
      Output.text((count > 0 ? "\n" : "") + heading)
    }
    count += 1
    do {
      let result = try body()
      if json {
        let line = result.last == 0x0A ? result.dropLast() : result
        Output.bytes(Data("\"result\": ".utf8) + line + Data("}".utf8))
      } else {
        Output.bytes(result)
      }
    } catch {
      let failure = CommandFailure(error).withoutInspectAdvice
      if json {
        Output.bytes(Data("\"error\": \(Output.json(ErrorReport.Body(failure)))}".utf8))
      } else {
        CommandRun.complain(of: failure)
      }
      status = max(status, failure.kind.rawValue)
    }
  }

  private func begin(_ path: String) {
    Output.bytes(Data("\(count == 0 ? "{\"files\": [" : ",")\n{\"path\": \(Output.json(path)), ".utf8))
  }

  /// Ends what is printed.
  ///
  /// - Throws: `ExitCode` if a file failed.
  func end() throws {
    if json { Output.text("\n]}") }
    guard status == 0 else { throw ExitCode(status) }
  }
}
#endif
