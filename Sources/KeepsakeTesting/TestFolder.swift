import Foundation
import Keepsake

/// Where a world keeps its devices' data; removed when nobody uses it any more.
final class TestFolder: Sendable {
  let url = FileManager.default.temporaryDirectory.appendingPathComponent("keepsake-world-\(UUID().uuidString)", isDirectory: true)

  // In the system's folder for what nobody misses.
  deinit { try? FileManager.default.removeItem(at: url) }

  /// A name in it that nothing has yet.
  func newPlace() -> URL { url.appendingPathComponent(UUID().uuidString, isDirectory: true) }

  /// Copies a device's folder as a crash leaves it. Throws `StoreError`, with nothing left of the copy.
  static func copy(_ from: URL, to: URL) throws {
    do {
      try copyFolder(from, to: to)
    } catch {
      try? FileManager.default.removeItem(at: to)
      let isFull = (error as? CocoaError)?.code == .fileWriteOutOfSpace
      throw StoreError(
        isFull ? .diskFull : .io, "the data of a test's device can't be copied from \(from.path) to \(to.path)", cause: error)
    }
  }

  private static func copyFolder(_ from: URL, to: URL) throws {
    let files = FileManager.default
    try files.createDirectory(at: to, withIntermediateDirectories: true)
    // A write-ahead log comes after its database: that one changes no more while it is held, this one still grows.
    for name in try files.contentsOfDirectory(atPath: from.path).sorted() {
      // SQLite's memory beside a log is of the process that died; the next one makes its own.
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
        // Files that are only there for a moment, such as one that is about to take another's place.
        guard !files.fileExists(atPath: source.path) else { throw error }
      }
    }
  }

  /// A log whose commits are all in the database begins anew while it is copied, if somebody writes: its old head before new commits is what no crash leaves.
  private static func copyLog(_ source: URL, to target: URL) throws {
    while true {
      let before = try head(of: source)
      try FileManager.default.copyItem(at: source, to: target)
      if try before == head(of: source) { return }
      try FileManager.default.removeItem(at: target)
    }
  }

  /// SQLite's header of a write-ahead log, which says since when it is the one that it is.
  private static func head(of log: URL) throws -> Data {
    let file = try FileHandle(forReadingFrom: log)
    defer { try? file.close() }  // Only read from: closing can lose nothing.
    return try file.read(upToCount: 32) ?? Data()
  }
}
