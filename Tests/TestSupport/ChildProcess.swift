package import Foundation

/// A program that a test starts and waits for.
package enum ChildProcess {
  package struct Ended: Sendable {
    /// The exit status, or the negative number of the signal.
    package let status: Int32
    package let output: Data
    package let errors: String

    package var text: String { String(decoding: output, as: UTF8.self) }
  }

  /// Runs a program and waits until it ends. Blocks the thread.
  ///
  /// - Parameters:
  ///   - input: What it can read from its standard input.
  ///   - environment: Variables to add to the environment of the tests.
  package static func run(
    _ executable: URL, _ arguments: [String] = [], input: Data = Data(), environment: [String: String] = [:]
  ) throws -> Ended {
    // Files rather than pipes, so that neither side waits for the other if that is slower.
    let folder = TemporaryFolder.url("child")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let files = ["input", "output", "errors"].map { folder.appending(path: $0) }
    try input.write(to: files[0])
    for file in files.dropFirst() { try Data().write(to: file) }
    let process = Process()
    process.executableURL = executable
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardInput = try FileHandle(forReadingFrom: files[0])
    process.standardOutput = try FileHandle(forWritingTo: files[1])
    process.standardError = try FileHandle(forWritingTo: files[2])
    try process.run()
    process.waitUntilExit()
    let status = process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    return Ended(
      status: status, output: try Data(contentsOf: files[1]), errors: try String(contentsOf: files[2], encoding: .utf8))
  }
}

#if os(Linux)
/// Returns copies of this process's descriptors of an open file: what a child process has open until it runs its own
/// program. The caller closes them.
package func copiedDescriptors(of file: URL) throws -> [Int32] {
  let path = file.resolvingSymlinksInPath().path
  let folder = "/proc/self/fd"
  return try FileManager.default.contentsOfDirectory(atPath: folder).compactMap(Int32.init).filter {
    (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)")) == path
  }.map { dup($0) }
}
#endif
