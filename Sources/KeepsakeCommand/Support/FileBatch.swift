#if Cloud
import ArgumentParser
import Foundation
import KeepsakeArchive

/// One call of a command for several files: each is reported, and one that fails doesn't stop the others.
///
/// For programs, it prints one object with `files`, in which each file has its `path` and its `result` or `error`.
struct FileBatch {
  /// What programs read; nil for people.
  private var json: JSONWriter?
  /// The highest of all files' exit statuses, which is the one of the command.
  private(set) var status: Int32 = 0
  private var count = 0

  init(json: Bool) {
    guard json else { return }
    var writer = JSONWriter()
    writer.beginObject()
    writer.key("files")
    writer.beginArray()
    self.json = writer
  }

  /// Does the work for one file.
  ///
  /// - Parameters:
  ///   - heading: What is printed above what `body` prints for people; nil for nothing.
  ///   - body: Returns what is printed: for programs one JSON value, for people lines, if there are any.
  mutating func add(_ path: String, heading: String? = nil, _ body: () throws -> Data) {
    if json == nil, let heading { Output.text((count > 0 ? "\n" : "") + heading) }
    count += 1
    do {
      let result = try body()
      if json == nil { Output.bytes(result) } else { write(path, "result", result) }
    } catch {
      let failure = CommandFailure(error).withoutInspectAdvice
      if json == nil {
        CommandRun.complain(of: failure)
      } else {
        write(path, "error", Data(Output.json(ErrorReport.Body(failure)).utf8))
      }
      status = max(status, failure.kind.rawValue)
    }
  }

  /// Writes the object of one file, its members in the order of their names.
  private mutating func write(_ path: String, _ name: String, _ value: Data) {
    json?.beginObject()
    for member in ["path", name].sorted() {
      json?.key(member)
      if member == name { json?.value(json: value) } else { json?.value(path) }
    }
    json?.end()
    if let bytes = json?.take() { Output.bytes(bytes) }
  }

  /// Ends what is printed.
  ///
  /// - Throws: `ExitCode` if a file failed.
  mutating func end() throws {
    json?.end()
    json?.end()
    if let bytes = json?.take() { Output.bytes(bytes + Data("\n".utf8)) }
    guard status == 0 else { throw ExitCode(status) }
  }
}
#endif
