#if Cloud && os(Linux)
import Foundation
import Testing

/// A small disk for a device in the test's own process: only where that process has a mount namespace of its own, so that nothing is left
/// behind. For it the test program runs once more.
struct DeviceDisk: Sendable {
  private static let variable = "KEEPSAKE_TEST_DEVICE_DISK"
  /// What a child prints that came to its end.
  static let passed = "the child came to its end"

  static var isChild: Bool { ProcessInfo.processInfo.environment[variable] != nil }

  /// Runs a suite in a child that may mount disks; what it printed.
  static func runChild(_ suite: String) async throws -> String {
    try await execute(
      ["unshare", "-m", "--propagation", "private", CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", suite],
      [variable: "1"]
    ).output
  }

  let folder: URL

  /// Mounts a disk of this size over `folder`.
  init(at folder: URL, mebibytes: Int) async throws {
    self.folder = folder
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let (status, output) = try await Self.execute(["mount", "-t", "tmpfs", "-o", "size=\(mebibytes)m", "keepsake", folder.path], [:])
    try #require(status == 0, "\(output)")
  }

  /// Before the folder is removed.
  func unmount() async throws {
    let (status, output) = try await Self.execute(["umount", "-l", folder.path], [:])
    try #require(status == 0, "\(output)")
  }

  private static func execute(_ command: [String], _ environment: [String: String]) async throws -> (status: Int32, output: String) {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(
          with: Result {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments = command
            process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
            let pipe = Pipe()
            process.standardOutput = pipe
            process.standardError = pipe
            try process.run()
            let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
            process.waitUntilExit()
            return (process.terminationStatus, String(decoding: output, as: UTF8.self))
          })
      }
    }
  }
}

/// A file that takes whatever room is left on its disk, to the last byte.
struct Ballast: Sendable {
  let file: URL

  func fill() throws {
    try Data().write(to: file)
    let handle = try FileHandle(forWritingTo: file)
    for size in [65_536, 4_096, 512, 1] {
      do {
        while true { try handle.write(contentsOf: Data(count: size)) }
      } catch {
        // Full.
      }
    }
    try handle.close()
  }

  func remove() throws { try FileManager.default.removeItem(at: file) }
}
#endif
