#if Cloud && os(Linux)
import Foundation
import TestSupport
import Testing

/// A small disk for a device in the test's own process. The process must have a mount namespace of its own, so that
/// nothing is left behind: the test program is run again in one.
struct DeviceDisk: Sendable {
  private static let variable = "KEEPSAKE_TEST_DEVICE_DISK"
  /// What a child process prints when it has passed.
  static let passed = "the child came to its end"

  static var isChild: Bool { ProcessInfo.processInfo.environment[variable] != nil }

  /// Runs a suite in a child process that may mount disks, and returns what it printed.
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

  /// Unmounts the disk; to be called before the folder is removed.
  func unmount() async throws {
    try await Self.execute(["umount", "-l", folder.path])
  }

  private static func execute(_ command: [String]) async throws {
    let ended = try await onThread { try ChildProcess.run(URL(fileURLWithPath: "/usr/bin/env"), command) }
    try #require(ended.status == 0, "\(ended.errors)")
  }
}

/// A file that takes all free space of its disk, to the last byte.
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
