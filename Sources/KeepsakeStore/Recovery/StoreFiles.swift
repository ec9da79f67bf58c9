import Foundation
import KeepsakePlatform

/// A database and its two alternating copies.
protocol BackupFiles: Sendable {
  var folder: URL { get }
  var database: URL { get }
  /// The write-ahead log.
  var log: URL { get }
  /// Two names. Once there was a complete copy, one of them always has one.
  var backups: [URL] { get }
  /// Where the next copy is written.
  var partialBackup: URL { get }
  /// Records that something was wrong while the database was open: the next opening checks everything.
  var suspicion: URL { get }
}

extension BackupFiles {
  /// The existing backups, newest first.
  var presentBackups: [URL] {
    backups.filter(StoreFiles.exists).map { ($0, StoreFiles.modified($0)) }.sorted { $0.1 > $1.1 }.map(\.0)
  }
}

/// The files in a store's folder, and what can be checked before SQLite touches any of them.
struct StoreFiles: BackupFiles {
  let folder: URL

  var database: URL { folder.appendingPathComponent(Store.databaseName) }
  var log: URL { folder.appendingPathComponent(Store.databaseName + "-wal") }
  var journal: URL { folder.appendingPathComponent(Store.databaseName + "-journal") }
  var partialBackup: URL { folder.appendingPathComponent("backup.partial") }
  var backups: [URL] { ["backup-1.sqlite", "backup-2.sqlite"].map(folder.appendingPathComponent) }
  /// Where a new database is built from what can be read.
  var workshop: URL { folder.appendingPathComponent("recovering") }
  /// Exists while the new database is complete and still has to replace the old one.
  var intent: URL { folder.appendingPathComponent("recovery") }
  var suspicion: URL { folder.appendingPathComponent("suspect") }
  var damaged: URL { folder.appendingPathComponent("damaged") }

  static func exists(_ url: URL) -> Bool { SystemCall.isThere(url.path) }

  /// Returns when a file was last written, in nanoseconds since 1970; 0 if there is none.
  static func modified(_ url: URL) -> Int64 { FileStatus(at: url.path)?.modified.nanoseconds ?? 0 }

  // MARK: Before opening

  /// Returns what is wrong with the files, judging by their headers and the log's checksums; nil if nothing is.
  ///
  /// - Throws: `newerFormat` or `misuse`, with nothing changed.
  func damageAtFirstSight() throws -> String? {
    let file = try RawFile(database)
    let log = try WriteAheadLog.read(log, defaultPageSize: PageScanner.pageSize(of: file))
    guard let file, file.size > 0 else {
      // SQLite creates the file before it writes the first page: an empty one on its own is a store that was never
      // begun.
      return log.state == .empty && presentBackups.isEmpty ? nil : "the database is missing or empty"
    }
    // A journal that was left behind contains the correct first page; SQLite restores it.
    if Self.exists(journal), log.state != .damaged { return nil }
    var header = file.bytes(at: 0, count: 100)
    if log.state == .sound, let frame = log.frames.lastIndex(of: 1) { header = log.page(inFrame: frame) }
    guard let header else { return "the database is cut off within its header, or can't be read" }
    if let damage = try Self.damage(inHeader: header, at: database) { return damage }
    return log.state == .damaged ? "the write-ahead log is damaged: SQLite would ignore what was saved last" : nil
  }

  /// Returns what is wrong with the header, by the bounds that SQLite's format sets and the narrower ones of a store.
  private static func damage(inHeader header: [UInt8], at url: URL) throws -> String? {
    guard header.starts(with: Array("SQLite format 3\0".utf8)) else {
      return "the file at \(url.path) is not a database, or its first page is damaged"
    }
    let application = header.word(at: 68)
    let version = Int32(bitPattern: header.word(at: 60))
    let expected = UInt32(bitPattern: Schema.applicationID)
    if application != expected, application != 0 {
      let differing = (0..<4).count { (application ^ expected) >> (UInt32($0) * 8) & 0xFF != 0 }
      // The mark of another program differs in more than one byte.
      guard differing == 1 else { throw StoreError(.misuse, "the database at \(url.path) belongs to another program") }
      return "the header's application id is damaged"
    }
    if application == expected {
      if Schema.isNewer(version) { try Schema.refuse(version: version, at: url) }
      guard version > 0, version <= Schema.currentVersion else { return "the header has the invalid format \(version)" }
    }
    let isSound =
      (1...2).contains(header[18]) && (1...2).contains(header[19]) && header[20] == 0 && header[21] == 64
      && header[22] == 32
      && header[23] == 32 && header.word(at: 44) <= 4 && header.word(at: 52) == 0 && header.word(at: 56) <= 1
      && header.word(at: 64) == 0
    let pageSize = header.half(at: 16)
    guard isSound, pageSize == 1 || pageSize >= 512 && pageSize & (pageSize - 1) == 0 else {
      return "the header of the database is damaged"
    }
    return nil
  }

  // MARK: Steps on files

  /// Returns a new folder in `damaged`, named after the time.
  static func newDamagedFolder(in damaged: URL) -> URL {
    let name = Date().formatted(
      Date.ISO8601FormatStyle(dateSeparator: .dash, timeSeparator: .omitted, timeZoneSeparator: .omitted))
    var folder = damaged.appendingPathComponent(name)
    var count = 1
    while exists(folder) {
      count += 1
      folder = damaged.appendingPathComponent("\(name)-\(count)")
    }
    return folder
  }

  /// Moves a file of the store's folder into a new folder in `damaged`, durably, and returns that folder.
  func setAside(_ name: String) throws -> URL {
    try Self.makeFolder(damaged)
    let aside = Self.newDamagedFolder(in: damaged)
    try Self.makeFolder(aside)
    try Self.moveIfPresent(folder.appendingPathComponent(name), to: aside.appendingPathComponent(name))
    try AtomicFile.syncFolder(aside.path)
    try AtomicFile.syncFolder(folder.path)
    return aside
  }

  /// Renames `from` to `to` if it exists.
  static func moveIfPresent(_ from: URL, to: URL) throws {
    guard exists(from) else { return }
    guard SystemCall.renameFile(from.path, to.path) == 0 else {
      throw StoreError(errorNumber: errno, doing: "moving \(from.path)")
    }
  }

  static func remove(_ url: URL) throws {
    guard exists(url) else { return }
    do {
      try FileManager.default.removeItem(at: url)
    } catch {
      throw StoreError(.io, "\(url.path) can't be removed", cause: error)
    }
  }

  static func makeFolder(_ url: URL) throws {
    try StoreFolder.create(url)
    // Also if it was there: an attempt that was interrupted may have created it.
    try AtomicFile.syncFolder(url.deletingLastPathComponent().path)
  }

  static func sync(_ url: URL) throws {
    let file = SystemCall.openFile(url.path, .syncing)
    guard file >= 0 else { throw StoreError(errorNumber: errno, doing: "opening \(url.path)") }
    defer { SystemCall.closeFile(file) }
    try AtomicFile.sync(file, path: url.path)
  }

  /// Copies what can be read of a file, with zeros in place of what the disk can't read. Does nothing if there is no
  /// file.
  static func copyReadable(_ from: URL, to: URL) throws {
    guard let source = try RawFile(from) else { return }
    let target = SystemCall.openFile(to.path, .emptying, mode: 0o600)
    guard target >= 0 else { throw StoreError(errorNumber: errno, doing: "creating \(to.path)") }
    let handle = FileHandle(fileDescriptor: target, closeOnDealloc: true)
    let step = 1 << 20
    do {
      for offset in stride(from: 0, to: source.size, by: step) {
        let count = min(step, source.size - offset)
        if let bytes = source.bytes(at: offset, count: count) {
          try handle.write(contentsOf: bytes)
        } else {
          // It contains a sector that can't be read.
          for part in stride(from: offset, to: offset + count, by: 512) {
            let size = min(512, offset + count - part)
            try handle.write(contentsOf: source.bytes(at: part, count: size) ?? [UInt8](repeating: 0, count: size))
          }
        }
      }
      try handle.close()
    } catch let error as CocoaError where error.code == .fileWriteOutOfSpace {
      throw StoreError(
        .diskFull, "the disk has no space to recover the store at \(from.path): nothing was changed", cause: error)
    } catch {
      throw StoreError(.io, "\(from.path) can't be copied", cause: error)
    }
  }
}
