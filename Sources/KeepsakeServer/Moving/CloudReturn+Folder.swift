#if Cloud && PostgreSQL
import Foundation
import GRDB

/// The folder into which a cloud goes.
extension CloudReturn {
  // MARK: What is there

  /// What is in the folder where the cloud is to go.
  private enum Occupant {
    case nothing, cloud
    /// What is left of a cloud that has moved, or is about to, with what tells it apart.
    case movedCloud(Data?)
  }

  /// Throws if the folder has a cloud, or what is left of another one than the one that has moved into the database: it
  /// would be replaced.
  static func refuseOwnCloud(_ data: URL, _ source: Data?) throws {
    switch try occupant(of: data) {
    case .nothing: return
    case .movedCloud(let found?) where found == source: return
    case .movedCloud:
      throw ServerError(
        .unusableFile,
        """
        The data folder \(data.path) has a cloud that has moved, or is about to, into another database than this one: \
        name an empty folder, or a new one.
        """)
    case .cloud:
      throw ServerError(
        .unusableFile, "The data folder \(data.path) has a cloud of its own: name an empty folder, or a new one.")
    }
  }

  /// Whether the folder has a cloud that isn't in another database.
  static func hasOwnCloud(_ data: URL) throws -> Bool {
    if case .cloud = try occupant(of: data) { true } else { false }
  }

  private static func occupant(of data: URL) throws -> Occupant {
    let database = data.appendingPathComponent(DataFolder.databaseName)
    // Until it is emptied for the first time, everything may be in the log.
    let files = [database, data.appendingPathComponent(DataFolder.databaseName + "-wal")]
    guard files.contains(where: { FileStamp(of: $0).map { $0.size > 0 } ?? false }) else { return .nothing }
    var configuration = Configuration()
    configuration.readonly = true
    let queue: DatabaseQueue
    do {
      queue = try DatabaseQueue(path: database.path, configuration: configuration)
    } catch {
      throw Schema.failure(error, opening: database)
    }
    let occupant = try queue.read { db -> Occupant in
      if try CloudFence.target(in: db) != nil { return .movedCloud(try ChangeCapture.state(in: db)?.source) }
      return try db.tableExists("container") ? .cloud : .nothing
    }
    try queue.close()
    return occupant
  }

  /// Throws if another database's cloud is being moved into the folder: what was copied may be all there is of it.
  static func refuseOthers(_ mark: ReturnMark?, than origin: String, _ data: URL) throws {
    let isCopied = FileStamp(of: data.appendingPathComponent(temporaryName)) != nil
    guard isCopied || (mark != nil && mark?.origin != origin) else { return }
    throw ServerError(
      .unusableFile,
      """
      Another cloud is being moved into the data folder \(data.path), from \(mark?.origin ?? "an unknown database"): \
      name that one, or another folder.
      """)
  }

  // MARK: Changing it

  /// Puts the copy in the place of the folder's database, which is a cloud that is elsewhere, or empty.
  static func place(_ url: URL, _ folder: DataFolder) throws {
    if let stamp = FileStamp(of: folder.database), stamp.size > 0 {
      // What keeps servers from it may still be in its log, which mustn't go before it.
      let old = try DatabaseQueue(path: folder.database.path)
      try old.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = DELETE") }
      try old.close()
    }
    // Of the database that was here: without it, neither means anything.
    try remove(folder.witness)
    for name in ["-wal", "-shm", "-journal"] {
      try remove(folder.url.appendingPathComponent(DataFolder.databaseName + name))
    }
    try PrivateFile.move(url, to: folder.database)
  }

  static func remove(_ url: URL) throws {
    do {
      try FileManager.default.removeItem(at: url)
    } catch CocoaError.fileNoSuchFile, CocoaError.fileReadNoSuchFile {
      // There was none.
    } catch {
      throw ServerError(.inputOutput, "\(url.path) can't be removed.", cause: error)
    }
  }
}
#endif
