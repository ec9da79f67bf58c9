import Foundation

/// Counts from outside how often a process waits for the disk.
enum DiskWaits {
  /// Runs this program's probe of that name, and returns how often it waited; nil where there is no strace, or tracing
  /// isn't permitted.
  static func count(_ probe: String) throws -> Int? {
    let strace = URL(filePath: "/usr/bin/strace")
    guard FileManager.default.isExecutableFile(atPath: strace.path), let program = Bundle.main.executableURL else {
      return nil
    }
    let log = FileManager.default.temporaryDirectory.appending(
      path: "keepsake-strace-\(ProcessInfo.processInfo.processIdentifier)")
    defer {
      // Only leaves a file behind among the temporary files.
      try? FileManager.default.removeItem(at: log)
    }
    let process = Process()
    process.executableURL = strace
    process.arguments = [
      "-f", "-qq", "-e", "trace=fsync,fdatasync,sync_file_range,msync,syncfs", "-o", log.path, program.path, "--probe",
      probe,
    ]
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { return nil }
    let lines = try String(contentsOf: log, encoding: .utf8).split(separator: "\n")
    return lines.count { $0.contains("sync") && !$0.contains("resumed") }
  }
}
