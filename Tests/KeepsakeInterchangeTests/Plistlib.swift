import Foundation
import TestSupport
import Testing

/// Python's plistlib as a second reader: it shares no code with Foundation or with this package.
enum Plistlib {
  enum Answer {
    case tree(String)
    case refused(String)
  }

  /// Returns plistlib's result for each file, in their order.
  static func read(_ files: [URL]) throws -> [Answer] {
    try withFolder { folder in
      let process = Process()
      process.executableURL = URL(filePath: "/usr/bin/env")
      process.arguments = ["python3", script.path, folder.path]
      let (input, output) = (Pipe(), Pipe())
      process.standardInput = input
      process.standardOutput = output
      try process.run()
      // The script responds after it has read all names, so that neither process waits for the other.
      try input.fileHandleForWriting.write(contentsOf: Data(files.map { $0.path + "\n" }.joined().utf8))
      try input.fileHandleForWriting.close()
      let lines = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self).split(
        separator: "\n")
      process.waitUntilExit()
      try #require(
        process.terminationStatus == 0 && lines.count == files.count,
        "plistlib gave \(lines.count) results for \(files.count) files")
      return try lines.enumerated().map { number, line in
        guard line == "ok" else { return .refused(String(line)) }
        return .tree(try String(contentsOf: folder.appending(path: "\(number).json"), encoding: .utf8))
      }
    }
  }

  /// Returns plistlib's result for each of these contents, in their order.
  static func read(_ bytes: [Data]) throws -> [Answer] {
    try withFolder { folder in
      let files = bytes.indices.map { folder.appending(path: "\($0).plist") }
      for (file, data) in zip(files, bytes) { try data.write(to: file) }
      return try read(files)
    }
  }

  static func withFolder<Result>(_ body: (URL) throws -> Result) throws -> Result {
    let folder = TemporaryFolder.url("interchange")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    return try body(folder)
  }

  private static let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "tree.py")
}
