import Foundation
import Keepsake

/// The folder with the data of a world's devices; removed when nothing uses it any more.
final class TestFolder: Sendable {
  let url = FileManager.default.temporaryDirectory.appendingPathComponent(
    "keepsake-world-\(UUID().uuidString)", isDirectory: true)

  // Errors don't matter: the folder is in the system's temporary folder.
  deinit { try? FileManager.default.removeItem(at: url) }

  /// A location in the folder that isn't used yet.
  func newPlace() -> URL { url.appendingPathComponent(UUID().uuidString, isDirectory: true) }

  /// Copies a device's folder in the state that a crash leaves. Throws `StoreError`, with nothing left of the copy.
  static func copy(_ from: URL, to: URL) throws {
    do {
      try copyFolder(from, to: to)
    } catch {
      try? FileManager.default.removeItem(at: to)
      let isFull = (error as? CocoaError)?.code == .fileWriteOutOfSpace
      throw StoreError(
        isFull ? .diskFull : .io, "the data of a test device can't be copied from \(from.path) to \(to.path)",
        cause: error)
    }
  }

  private static func copyFolder(_ from: URL, to: URL) throws {
    let files = FileManager.default
    try files.createDirectory(at: to, withIntermediateDirectories: true)
    // Sorted, so that a write-ahead log is copied after its database: the database can't change during the copy, but
    // the log can still grow.
    for name in try files.contentsOfDirectory(atPath: from.path).sorted() {
      // SQLite's shared memory beside a log belongs to the process that died; the next process creates its own.
      if name.hasSuffix("-shm") { continue }
      let (source, target) = (from.appendingPathComponent(name), to.appendingPathComponent(name))
      var isFolder: ObjCBool = false
      guard files.fileExists(atPath: source.path, isDirectory: &isFolder) else { continue }
      do {
        if isFolder.boolValue {
          try copyFolder(source, to: target)
        } else if name.hasSuffix("-wal") {
          try copyLog(source, to: target)
        } else {
          try files.copyItem(at: source, to: target)
        }
      } catch {
        // Ignores files that exist only briefly, such as one that is about to replace another.
        guard !files.fileExists(atPath: source.path) else { throw error }
      }
    }
  }

  /// Copies a log, again if it was restarted meanwhile. A write restarts a log whose commits are all in the database,
  /// and a copy with the old header before new commits is something that no crash leaves.
  private static func copyLog(_ source: URL, to target: URL) throws {
    while true {
      let before = try head(of: source)
      try copyBytes(of: source, to: target)
      if try before == head(of: source) { return }
      try FileManager.default.removeItem(at: target)
    }
  }

  /// Copies what a file contains, up to its end. On Linux, FileManager's copy never returns if the file becomes shorter
  /// meanwhile, as a log does that is restarted.
  private static func copyBytes(of source: URL, to target: URL) throws {
    let input = try FileHandle(forReadingFrom: source)
    defer { try? input.close() }  // Only read from: closing can lose nothing.
    try Data().write(to: target, options: .withoutOverwriting)
    let output = try FileHandle(forWritingTo: target)
    do {
      while let part = try input.read(upToCount: 1 << 20), !part.isEmpty { try output.write(contentsOf: part) }
    } catch {
      try? output.close()  // The first error says what happened.
      throw error
    }
    try output.close()
  }

  /// Returns SQLite's header of a write-ahead log, which changes when the log is restarted.
  private static func head(of log: URL) throws -> Data {
    let file = try FileHandle(forReadingFrom: log)
    defer { try? file.close() }  // Only read from: closing can lose nothing.
    return try file.read(upToCount: 32) ?? Data()
  }
}
