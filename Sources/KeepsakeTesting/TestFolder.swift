import Foundation
import Keepsake
import KeepsakeStore

/// The folder with the data of a world's devices; removed when nothing uses it any more.
final class TestFolder: Sendable {
  let url = FileManager.default.temporaryDirectory.appendingPathComponent(
    "keepsake-world-\(UUID().uuidString)", isDirectory: true)

  // Errors don't matter: the folder is in the system's temporary folder.
  deinit { try? FileManager.default.removeItem(at: url) }

  /// A location in the folder that isn't used yet.
  func newPlace() -> URL { url.appendingPathComponent(UUID().uuidString, isDirectory: true) }

  /// Copies a device's folder in the state that a crash leaves. Throws `StoreError`, with nothing left of the copy.
  ///
  /// - Parameter afterPart: Called after each part of a log.
  static func copy(_ from: URL, to: URL, afterPart: () -> Void = {}) throws {
    do {
      try copyFolder(from, to: to, afterPart)
    } catch {
      try? FileManager.default.removeItem(at: to)
      let isFull = (error as? CocoaError)?.code == .fileWriteOutOfSpace
      throw StoreError(
        isFull ? .diskFull : .io, "the data of a test device can't be copied from \(from.path) to \(to.path)",
        cause: error)
    }
  }

  private static func copyFolder(_ from: URL, to: URL, _ afterPart: () -> Void) throws {
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
          try copyFolder(source, to: target, afterPart)
        } else if name.hasSuffix("-wal") {
          try copyLog(source, to: target, afterPart)
        } else {
          try files.copyItem(at: source, to: target)
        }
      } catch {
        // Ignores files that exist only briefly, such as one that is about to replace another.
        guard !files.fileExists(atPath: source.path) else { throw error }
      }
    }
  }

  /// Copies a log up to its last commit. While a game writes to it, the rest isn't what a crash leaves: new frames come
  /// into the place of old ones during the copy, so that it would have some of both.
  private static func copyLog(_ source: URL, to target: URL, _ afterPart: () -> Void) throws {
    while true {
      let reading = try LogIndex.read(beside: source)
      if reading == .changing { continue }
      let before = try header(of: source)
      // Without an index, no game has the log open, and it doesn't change.
      let length = reading.usable.map { $0.committedLength(header: before) ?? 0 }
      try copyBytes(of: source, upTo: length, to: target, afterPart)
      // Copied again if it was restarted meanwhile: a write restarts a log whose commits are all in the database.
      let salts = try LogIndex.read(beside: source).usable?.salts
      let isSame = try before == header(of: source) && salts == reading.usable?.salts
      if isSame, reading.usable.map({ counts($0, header: before) }) ?? true { return }
      try FileManager.default.removeItem(at: target)
    }
  }

  /// Returns whether an index counts the frames of the log with this header. A restarted log keeps its old header until
  /// the first write, when nothing of it counts any more.
  private static func counts(_ index: LogIndex, header: Data) -> Bool {
    index.committedFrames == 0 || header.dropFirst(16).prefix(8).elementsEqual(index.salts)
  }

  /// Copies what a file contains, up to its end or to `count` bytes. On Linux, FileManager's copy never returns if the
  /// file becomes shorter meanwhile, as a log does that is restarted.
  private static func copyBytes(
    of source: URL, upTo count: Int?, to target: URL, _ afterPart: () -> Void
  ) throws {
    let input = try FileHandle(forReadingFrom: source)
    defer { try? input.close() }  // Only read from: closing can lose nothing.
    try Data().write(to: target, options: .withoutOverwriting)
    let output = try FileHandle(forWritingTo: target)
    do {
      var left = count ?? .max
      while left > 0, let part = try input.read(upToCount: min(left, 1 << 20)), !part.isEmpty {
        try output.write(contentsOf: part)
        left -= part.count
        afterPart()
      }
    } catch {
      try? output.close()  // The first error says what happened.
      throw error
    }
    try output.close()
  }

  /// Returns SQLite's header of a write-ahead log, which changes when the log is restarted.
  private static func header(of log: URL) throws -> Data {
    let file = try FileHandle(forReadingFrom: log)
    defer { try? file.close() }  // Only read from: closing can lose nothing.
    return try file.read(upToCount: 32) ?? Data()
  }
}
