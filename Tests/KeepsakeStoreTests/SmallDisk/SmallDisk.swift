#if os(Linux)
import Foundation
import TestSupport
import Testing

/// A file system of a few MiB, for tests that fill it: a tmpfs in a mount namespace that only one child process sees, so that nothing is
/// left behind, however that ends.
///
/// The child is this test program again, told by its environment to run one test there.
enum SmallDisk {
  /// In the child: where the file system is mounted.
  static let variable = "KEEPSAKE_TEST_SMALL_DISK"
  static let mebibytes = 4

  static var mounted: URL? { ProcessInfo.processInfo.environment[variable].map { URL(fileURLWithPath: $0) } }

  /// Runs a test on a file system of its own. Nil if it passed, else what it printed.
  static func run(_ test: String) throws -> String? {
    let folder = try TemporaryFolder()
    let script = "mount -t tmpfs -o size=\(mebibytes)m keepsake \"$\(variable)\" && exec \"$@\""
    let (status, output) = try execute(
      ["unshare", "-m", "--propagation", "private", "sh", "-ec", script, "sh"]
        + [CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", test],
      [variable: folder.url.path])
    return status == 0 && output.contains("1 test") ? nil : output
  }

  /// In the child: may it be written?
  static func remount(_ option: String) throws {
    let (status, output) = try execute(["mount", "-o", "remount,\(option)", try #require(mounted).path], [:])
    try #require(status == 0, "\(output)")
  }

  private static func execute(_ command: [String], _ environment: [String: String]) throws -> (status: Int32, output: String) {
    let ended = try ChildProcess.run(URL(fileURLWithPath: "/usr/bin/env"), command, environment: environment)
    return (ended.status, ended.text + ended.errors)
  }
}
#endif
