import CPeers
import Foundation

/// What a call takes of memory beyond what was held before it. In a process of its own, since a process's peak never
/// falls by itself.
public enum PeakMemory {
  /// The result of `body`, and by how many bytes the peak while it ran was above what was held when it began.
  public static func measure<Output>(_ body: () throws -> Output) throws -> (Output, extraBytes: Int) {
    // What building the value freed would count as there already, and hide what the call takes.
    return_unused_memory()
    // Sets the peak back to what is held now.
    try Data("5".utf8).write(to: URL(filePath: "/proc/self/clear_refs"))
    let before = try status("VmRSS")
    let output = try body()
    return (output, try status("VmHWM") - before)
  }

  /// A line of the kernel's own account of this process, in bytes.
  private static func status(_ key: String) throws -> Int {
    let text = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix(key + ":") }),
      let kibibytes = line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) })
    else { throw BenchmarkError(message: "The system doesn't tell \(key)") }
    return kibibytes << 10
  }
}
