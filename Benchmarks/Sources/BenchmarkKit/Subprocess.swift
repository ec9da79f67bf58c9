public import Foundation

/// This program once more, for what needs a process of its own.
public enum Subprocess {
  /// What it printed on standard output.
  public static func run(_ arguments: [String]) throws -> Data {
    guard let executable = Bundle.main.executableURL else {
      throw BenchmarkError(message: "The system doesn't tell this program's own file")
    }
    let process = Process()
    process.executableURL = executable
    process.arguments = arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    try BenchmarkError.require(
      process.terminationStatus == 0, "The process for \(arguments.joined(separator: " ")) failed")
    return output
  }
}
