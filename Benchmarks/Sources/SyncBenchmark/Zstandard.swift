import BenchmarkKit
import Foundation

/// The program `zstd`, whose patches are the measure of what a change has to cost.
enum Zstandard {
  /// How many bytes `zstd -3 --patch-from` needs.
  static func patch(from old: Data, to new: Data, in folder: URL) throws -> Int {
    let (base, next) = (folder.appending(path: "base"), folder.appending(path: "next"))
    try old.write(to: base)
    try new.write(to: next)
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["zstd", "-3", "-q", "-c", "--patch-from=\(base.path)", next.path]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let patch = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    try BenchmarkError.require(
      process.terminationStatus == 0 && !patch.isEmpty,
      "zstd, which is needed for the comparison, failed (Debian: zstd)")
    return patch.count
  }
}
