#if Cloud
package import Foundation
import GRDB
import KeepsakePlatform
import KeepsakeReplication

/// Makes backups of a cloud's data folder while its server runs, and verifies them.
package enum CloudBackup {
  /// Pages of the database that are copied between two reports of progress: a MiB.
  private static let pagesAtOnce: CInt = 256
  /// How often contents may vanish while what the database needs of them is copied. Each try takes milliseconds.
  private static let mostTries = 100

  /// Copies everything that a data folder needs into one file, and reads the file back.
  ///
  /// The database is of one moment, whatever the server commits meanwhile, and every content that it needs is in the
  /// backup. What the server had acknowledged before the call is in it. The file appears under its name when it is
  /// whole, verified and on the disk; only its owner may read it, because it has the secret that signs tokens. Needs
  /// room for the file and once more for the database. Costs one pass over the folder, and two over the file.
  ///
  /// - Parameters:
  ///   - data: The data folder of a server, which may be running.
  ///   - file: The file to write. A call that was killed leaves `FILE.new` and `FILE.new.sqlite`, which the next one
  ///     for the same file replaces.
  ///   - replacing: Whether a file that is there may be replaced.
  ///   - now: When this is: milliseconds since 1970.
  ///   - progress: Receives how far it has come.
  /// - Returns: What is in the backup.
  /// - Throws: A `BackupError`; a `ServerError` if the database can't be read, or is of an older or newer version.
  package static func make(
    of data: URL, to file: URL, replacing: Bool = false,
    now: Int64 = Int64(Date().timeIntervalSince1970 * 1000), progress: BackupProgress.Receiver = { _ in }
  ) throws -> BackupSummary {
    let database = try DataFolder.ownDatabase(in: data)
    guard replacing || !FileManager.default.fileExists(atPath: file.path) else {
      throw BackupError(.exists, "There is a file \(file.path) already.")
    }
    let beside = file.appendingPathExtension("new")
    // Emptied only when it is locked: another call may be writing it.
    let handle: FileHandle
    do {
      handle = try PrivateFile.openHandle(beside)
    } catch let error as ServerError {
      throw BackupError(.inputOutput, error.message, cause: error.cause)
    }
    // Also if the other one has just completed it: then this is no longer the file beside.
    guard flock(handle.fileDescriptor, LOCK_EX | LOCK_NB) == 0, PrivateFile.isFile(handle, at: beside) else {
      throw BackupError(.inUse, "Another backup is being written to \(file.path).")
    }
    let copy = beside.appendingPathExtension("sqlite")
    do {
      try PrivateFile.empty(handle, beside)
      try removeDatabase(copy)
      let writer = try BackupWriter(handle, path: beside.path, madeAtMilliseconds: now)
      try write(data, database, copy, to: writer, progress)
      try removeDatabase(copy)
      let sums = try writer.finish()
      var summary = try verify(handle, beside.path, writer.summary.fileBytes, sums, progress)
      summary.lostContents = writer.summary.lostContents
      try PrivateFile.move(beside, to: file)
      return summary
    } catch {
      // The first failure is the one to report; the next call for this file replaces what can't be removed.
      try? removeDatabase(copy)
      try? FileManager.default.removeItem(at: beside)
      throw error is CancellationError ? BackupError(.stopped, "The backup was stopped.") : error
    }
  }

  /// Reads a backup from its first byte to its last. Writes nothing.
  ///
  /// - Parameter progress: Receives how far it has come.
  /// - Returns: What is in the backup.
  /// - Throws: A `BackupError` if it isn't a whole backup, or can't be read.
  package static func verify(_ file: URL, progress: BackupProgress.Receiver = { _ in }) throws -> BackupSummary {
    try verify(try open(file), file.path, nil, nil, progress)
  }

  /// Opens a backup for reading.
  static func open(_ file: URL) throws -> FileHandle {
    do {
      return try FileHandle(forReadingFrom: file)
    } catch {
      throw BackupError(.inputOutput, "The backup \(file.path) can't be read.", cause: error)
    }
  }

  /// - Parameters:
  ///   - size: How many bytes it should have; nil for what the file system says.
  ///   - sums: The hash of the list of its hashes, if it is known.
  static func verify(
    _ handle: FileHandle, _ path: String, _ size: Int64?, _ sums: ContentHash?, _ progress: BackupProgress.Receiver
  ) throws -> BackupSummary {
    // What is on the disk counts, and not what is still in memory. Where the system doesn't follow this advice, it is
    // read from memory.
    if sums != nil { SystemCall.forgetCached(handle.fileDescriptor) }
    return try withoutActuallyEscaping(progress) { progress in
      var progressed = BackupProgress(step: .verifying, doneBytes: 0, totalBytes: size)
      let reader = BackupReader(handle, path: path, sink: NoSink()) {
        progressed.doneBytes = $0
        try progress(progressed)
      }
      try reader.read()
      guard sums == nil || reader.sums == sums, size == nil || reader.summary.fileBytes == size else {
        throw BackupError(.damaged, "The backup \(path) was read back otherwise than it was written.")
      }
      return reader.summary
    }
  }

  // MARK: Writing

  private static func write(
    _ data: URL, _ database: URL, _ copy: URL, to writer: BackupWriter, _ progress: BackupProgress.Receiver
  ) throws {
    let files = ContentFiles(folder: data.appendingPathComponent(DataFolder.contentsName, isDirectory: true))
    var copied: Set<String> = []
    var done = BackupProgress(step: .contents, doneBytes: 0, totalBytes: nil)
    func append(_ name: String) throws -> Bool {
      if copied.contains(name) { return true }
      guard BackupLayout.isContent(name[...]) else { return true }
      let isThere = try writer.append(
        BackupLayout.contentsPrefix + name, file: files.folder.appendingPathComponent(name)
      ) {
        done.doneBytes += $0
        try progress(done)
      }
      if isThere { copied.insert(name) }
      return isThere
    }
    // Most contents first, while the server may add and remove some: those that are removed before their turn aren't
    // needed by the database as it will be then.
    for name in try files.names() { _ = try append(name) }
    var missing: Set<String> = []
    try copyDatabase(database, to: copy, progress) { names in
      // A file is in its place before its row is committed, and is removed after its row. So all are here, unless a row
      // was removed since this moment: then another moment is taken, at which it isn't needed. What is needed then,
      // too, was lost before; a cloud lives with that, and devices send it again.
      let absent = Set(try names.filter { try !append($0) })
      defer { missing = absent }
      return absent.isSubset(of: missing)
    }
    writer.lost(missing.count)
    for name in DataFolder.keptNames {
      guard let bytes = try PrivateFile.read(data.appendingPathComponent(name)) else { continue }
      try writer.append(name, bytes)
    }
    guard try writer.append(DataFolder.databaseName, file: copy, receive: { _ in }) else {
      throw BackupError(.inputOutput, "The copy of the database at \(copy.path) is gone.")
    }
  }

  /// Copies the database as it is at one moment.
  ///
  /// - Parameter accept: Called at that moment with the names of the contents' files that the database needs. If it
  ///   returns false, another moment is taken.
  private static func copyDatabase(
    _ database: URL, to copy: URL, _ progress: BackupProgress.Receiver, accept: ([String]) throws -> Bool
  ) throws {
    var configuration = Configuration()
    configuration.label = "keepsake.backup"
    configuration.readonly = true
    configuration.busyMode = .timeout(5)
    do {
      let source = try DatabaseQueue(path: database.path, configuration: configuration)
      defer { try? source.close() }
      for _ in 0..<mostTries {
        // A transaction: everything in it reads the same moment, while the server goes on.
        let isCopied = try source.read { db in
          try Schema.requireCurrent(db)
          guard try accept(try BackedUpDatabase.contentFiles(in: db)) else { return false }
          try copyPages(of: db, to: copy, progress)
          return true
        }
        if isCopied { return }
      }
    } catch let error as DatabaseError {
      throw Schema.failure(error, opening: database)
    }
    throw BackupError(
      .unsettled, "Contents are being removed faster than they can be copied: try again, or stop the server before.")
  }

  private static func copyPages(of db: Database, to copy: URL, _ progress: BackupProgress.Receiver) throws {
    // SQLite keeps the permissions of a file that exists.
    try PrivateFile.createHandle(copy).close()
    let pageBytes = try Int64.fetchOne(db, sql: "PRAGMA page_size") ?? 0
    var done = BackupProgress(step: .database, doneBytes: 0, totalBytes: nil)
    do {
      let target = try DatabaseQueue(path: copy.path)
      try target.writeWithoutTransaction { copy in
        // If this is interrupted, the copy is worthless anyway.
        try copy.execute(sql: "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        try withoutActuallyEscaping(progress) { progress in
          try db.backup(to: copy, pagesPerStep: pagesAtOnce) { step in
            done = BackupProgress(
              step: .database, doneBytes: Int64(step.completedPageCount) * pageBytes,
              totalBytes: Int64(step.totalPageCount) * pageBytes)
            // What the last report throws would be ignored.
            if !step.isCompleted { try progress(done) }
          }
        }
      }
      try progress(done)
      try target.close()
      try BackedUpDatabase.finish(copy)
    } catch let error as DatabaseError where error.resultCode != .SQLITE_CORRUPT {
      throw BackupError(.inputOutput, "The copy of the database can't be written to \(copy.path).", cause: error)
    }
  }

  private static func removeDatabase(_ url: URL) throws {
    for ending in ["", "-wal", "-shm", "-journal"] {
      let path = url.path + ending
      guard FileManager.default.fileExists(atPath: path) else { continue }
      do {
        try FileManager.default.removeItem(atPath: path)
      } catch {
        throw BackupError(
          .inputOutput, "The file \(path), which is left of another backup, can't be removed.", cause: error)
      }
    }
  }
}
#endif
