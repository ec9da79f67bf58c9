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

  /// Copies a log up to its last commit. While a game writes to it, the rest isn't what a crash leaves: new frames come
  /// into the place of old ones during the copy, so that it would have some of both.
  private static func copyLog(_ source: URL, to target: URL) throws {
    while true {
      let index = try LogIndex(beside: source)
      let before = try head(of: source)
      // Without an index, no game has it open, and it doesn't change.
      let count = index.map { $0.bytes(header: before) }
      try copyBytes(of: source, upTo: count, to: target)
      // Copied again if it was restarted meanwhile: a write restarts a log whose commits are all in the database.
      let isSame = try before == head(of: source) && LogIndex(beside: source)?.salts == index?.salts
      if isSame, index.map({ $0.belongs(to: before) }) ?? true { return }
      try FileManager.default.removeItem(at: target)
    }
  }

  /// Copies what a file contains, up to its end or to `count` bytes. On Linux, FileManager's copy never returns if the
  /// file becomes shorter meanwhile, as a log does that is restarted.
  private static func copyBytes(of source: URL, upTo count: Int?, to target: URL) throws {
    let input = try FileHandle(forReadingFrom: source)
    defer { try? input.close() }  // Only read from: closing can lose nothing.
    try Data().write(to: target, options: .withoutOverwriting)
    let output = try FileHandle(forWritingTo: target)
    do {
      var left = count ?? .max
      while left > 0, let part = try input.read(upToCount: min(left, 1 << 20)), !part.isEmpty {
        try output.write(contentsOf: part)
        left -= part.count
      }
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

/// SQLite's index beside a write-ahead log, as far as it says what has been committed. The file begins with two copies
/// of a header of 48 bytes, in the machine's byte order (https://sqlite.org/walformat.html#the_wal_index_file_format).
private struct LogIndex {
  /// The number of frames up to the last commit.
  private let frames: Int
  /// The log's generation, as in its own header; new ones from when it is restarted.
  let salts: Data

  /// Reads the index; nil if there is none, or none that was ever used.
  init?(beside log: URL) throws {
    let url = URL(fileURLWithPath: String(log.path.dropLast("-wal".count)) + "-shm")
    while true {
      guard FileManager.default.fileExists(atPath: url.path) else { return nil }
      let file = try FileHandle(forReadingFrom: url)
      defer { try? file.close() }  // Only read from: closing can lose nothing.
      guard let header = try file.read(upToCount: 96), header.count == 96, header[12] != 0 else { return nil }
      // Different while a commit writes them.
      guard header[..<48].elementsEqual(header[48...]) else { continue }
      frames = header.withUnsafeBytes { Int($0.loadUnaligned(fromByteOffset: 16, as: UInt32.self)) }
      salts = Data(header[32..<40])
      return
    }
  }

  /// The length of the log up to the last commit, by the log's own header.
  func bytes(header: Data) -> Int {
    guard header.count == 32 else { return 0 }
    let pageSize = header[8..<12].reduce(0) { $0 << 8 | Int($1) }
    return frames == 0 ? 0 : 32 + frames * (24 + pageSize)
  }

  /// Whether the index counts the frames of the log with this header. A restarted log keeps its old header until the
  /// first write, when nothing of it counts any more.
  func belongs(to header: Data) -> Bool { frames == 0 || header.dropFirst(16).prefix(8).elementsEqual(salts) }
}
