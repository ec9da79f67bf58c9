#if os(Linux)
import Foundation
import TestSupport
import Testing

/// A file system of a few MiB, for tests that fill it: a tmpfs in a mount namespace that only one child process sees,
/// so that nothing is left behind, however the process ends.
///
/// The child is this test program again, with an environment that makes it run one test there.
enum SmallDisk {
  /// In the child: where the file system is mounted.
  static let variable = "KEEPSAKE_TEST_SMALL_DISK"
  static let mebibytes = 4

  static var mounted: URL? { ProcessInfo.processInfo.environment[variable].map { URL(fileURLWithPath: $0) } }

  /// Runs the only test of a suite on a file system of its own. Nil if it ran and passed, else what it printed.
  static func run(_ suite: String) throws -> String? {
    let folder = try TemporaryFolder()
    let script = "mount -t tmpfs -o size=\(mebibytes)m keepsake \"$\(variable)\" && exec \"$@\""
    let (status, output) = try execute(
      ["unshare", "-m", "--propagation", "private", "sh", "-ec", script, "sh"]
        + [CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", suite],
      [variable: folder.url.path])
    return status == 0 && hasPassed(suite, output) ? nil : output
  }

  /// Whether a suite of one test ran and passed. The count alone doesn't say it: it includes tests that were skipped.
  static func hasPassed(_ suite: String, _ output: String) -> Bool {
    output.contains("Suite \(suite) passed after") && output.contains("Test run with 1 test in 1 suite passed after")
  }

  /// In the child: mounts the file system again with `option`, `ro` or `rw`.
  static func remount(_ option: String) throws {
    let (status, output) = try execute(["mount", "-o", "remount,\(option)", try #require(mounted).path], [:])
    try #require(status == 0, "\(output)")
  }

  private static func execute(_ command: [String], _ environment: [String: String]) throws -> (
    status: Int32, output: String
  ) {
    let ended = try ChildProcess.run(URL(fileURLWithPath: "/usr/bin/env"), command, environment: environment)
    return (ended.status, ended.text + ended.errors)
  }
}
#endif
