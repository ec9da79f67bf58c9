#if Cloud
import Foundation
import KeepsakePlatform
/// What a process on this machine has used so far, from /proc: on Linux only.
struct ServerProcessor: Sendable, Encodable {
  /// Of all of its threads, in user and kernel mode.
  var seconds: Double
  /// The memory that it uses now, and the most that it has used so far.
  var memoryBytes: Int64
  var peakMemoryBytes: Int64

  /// - Throws: A `CommandFailure` if there is no such process, or no /proc.
  init(of process: Int32) throws {
    let folder = "/proc/\(process)"
    func text(_ name: String) throws -> String {
      do {
        return try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)
      } catch {
        throw CommandFailure(
          .noInput, "\(folder)/\(name) can't be read", next: "check --server-pid; it is of use on Linux only")
      }
    }
    // The name in parentheses may have spaces; after it, the state is the third field.
    let stat = try text("stat")
    let fields = stat[(stat.lastIndex(of: ")") ?? stat.startIndex)...].split(separator: " ").dropFirst()
    let times = fields.dropFirst(11).prefix(2).compactMap { Double($0) }
    guard times.count == 2 else { throw CommandFailure(.data, "\(folder)/stat can't be understood") }
    seconds = (times[0] + times[1]) / Double(max(1, sysconf(Int32(_SC_CLK_TCK))))
    let status = try text("status")
    func kibibytes(_ key: String) -> Int64 {
      let line = status.split(separator: "\n").first { $0.hasPrefix(key + ":") }
      return line.flatMap { Int64($0.filter(\.isNumber)) } ?? 0
    }
    (memoryBytes, peakMemoryBytes) = (kibibytes("VmRSS") << 10, kibibytes("VmHWM") << 10)
  }
}
#endif
