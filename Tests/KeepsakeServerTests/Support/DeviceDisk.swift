#if Cloud && os(Linux)
import Foundation
import TestSupport
import Testing

/// A small disk for a device in the test's own process: only where that process has a mount namespace of its own, so
/// that nothing is left behind. For it the test program runs once more.
struct DeviceDisk: Sendable {
  private static let variable = "KEEPSAKE_TEST_DEVICE_DISK"
  /// What a child prints that came to its end.
  static let passed = "the child came to its end"

  static var isChild: Bool { ProcessInfo.processInfo.environment[variable] != nil }

  /// Runs a suite in a child that may mount disks; what it printed.
  static func runChild(_ suite: String) async throws -> String {
    try await onThread {
      let ended = try PrivateMounts.run(
        [CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", suite],
        environment: [variable: "1"])
      return ended.text + ended.errors
    }
  }

  let folder: URL

  /// Mounts a disk of this size over `folder`.
  init(at folder: URL, mebibytes: Int) async throws {
    self.folder = folder
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try await Self.execute(["mount", "-t", "tmpfs", "-o", "size=\(mebibytes)m", "keepsake", folder.path])
  }

  /// Before the folder is removed.
  func unmount() async throws {
    try await Self.execute(["umount", "-l", folder.path])
  }

  private static func execute(_ command: [String]) async throws {
    let ended = try await onThread { try ChildProcess.run(URL(fileURLWithPath: "/usr/bin/env"), command) }
    try #require(ended.status == 0, "\(ended.errors)")
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
