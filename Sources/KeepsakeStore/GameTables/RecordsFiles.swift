package import Foundation

/// The files of the game's own tables in the folder of its data, and what can be checked before SQLite touches any of
/// them.
struct RecordsFiles: BackupFiles {
  let folder: URL

  var database: URL { folder.appendingPathComponent(RecordsDatabase.fileName) }
  var log: URL { folder.appendingPathComponent(RecordsDatabase.fileName + "-wal") }
  var journal: URL { folder.appendingPathComponent(RecordsDatabase.fileName + "-journal") }
  var backups: [URL] { ["records-backup-1.sqlite", "records-backup-2.sqlite"].map(folder.appendingPathComponent) }
  var partialBackup: URL { folder.appendingPathComponent("records-backup.partial") }
  /// Where a new database is built from what can be read.
  var workshop: URL { folder.appendingPathComponent("recovering-records") }
  /// Records that something was wrong while the tables were open: the next opening checks all of them.
  var suspicion: URL { folder.appendingPathComponent("records-suspect") }
  var damaged: URL { folder.appendingPathComponent("damaged") }
  var reserve: StoreReserve { StoreReserve(at: folder.appendingPathComponent("records-reserve")) }

  /// Whether there are any tables, or remains of some.
  var isPresent: Bool {
    StoreFiles.exists(database) || StoreFiles.exists(log) || !presentBackups.isEmpty || StoreFiles.exists(workshop)
  }

  static let headerBytes = 100
  private static let magic = Array("SQLite format 3\0".utf8)

  /// Returns what is wrong with the files, judging by the header and the log's checksums; nil if nothing is.
  func damageAtFirstSight() throws -> String? {
    let file = try RawFile(database)
    let log = try WriteAheadLog.read(log, defaultPageSize: PageScanner.pageSize(of: file))
    guard let file, file.size > 0 else {
      // SQLite creates the file before it writes the first page: an empty one on its own was never begun.
      return log.state == .empty && presentBackups.isEmpty ? nil : "the file is missing or empty"
    }
    // A journal that was left behind contains the correct first page; SQLite restores it.
    if StoreFiles.exists(journal), log.state != .damaged { return nil }
    var header = file.bytes(at: 0, count: Self.headerBytes)
    if log.state == .sound, let frame = log.frames.lastIndex(of: 1) { header = log.page(inFrame: frame) }
    guard let header, header.count >= Self.headerBytes else {
      return "the file is cut off within its header, or can't be read"
    }
    guard Self.isSound(header) else { return "the file is not a database, or its first page is damaged" }
    return log.state == .damaged ? "the write-ahead log is damaged: SQLite would ignore what was written last" : nil
  }

  /// Checks the bounds that SQLite's format sets. What a game may choose itself (its application id, its version, its
  /// vacuum mode) isn't checked.
  static func isSound(_ header: [UInt8]) -> Bool {
    let pageSize = header.half(at: 16)
    return header.starts(with: magic) && (1...2).contains(header[18]) && (1...2).contains(header[19])
      && header[21] == 64
      && header[22] == 32 && header[23] == 32 && header.word(at: 44) <= 4 && header.word(at: 56) <= 3
      && (pageSize == 1 || pageSize >= 512 && pageSize & (pageSize - 1) == 0)
  }
}

extension RecordsDatabase {
  /// Returns whether the data in a folder includes tables of the game's own, or remains of some. Opens nothing.
  package static func isPresent(in folder: URL) -> Bool { RecordsFiles(folder: folder).isPresent }
}
