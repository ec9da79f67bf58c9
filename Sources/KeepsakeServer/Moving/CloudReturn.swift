#if Cloud && PostgreSQL
import Foundation
import GRDB
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging

/// Copies a cloud from PostgreSQL into the SQLite database of a data folder, while no server runs. The database is made
/// beside the folder's own, and takes its place when it is whole.
enum CloudReturn {
  private static let page: Int64 = 500

  static func run(
    _ request: CloudMove.Request, logger: Logger, progress: @escaping CloudMoveProgress.Receiver
  ) async throws -> CloudMoveSummary {
    try refuseOwnCloud(request.data)
    let folder = try DataFolder(at: request.data)
    defer { folder.unlock() }
    return try await CloudMoveRun.with(request) { pool in
      if try await CloudMoveState.read(pool) == nil {
        try await PostgreSQLSchema.prepare(pool, logger: logger)
        let events = PostgreSQLStatement("SELECT 1::bigint FROM webhook_event LIMIT 1")
        guard try await pool.runUntilDone([events])[0].first == nil else { throw CloudMoveRun.undelivered }
      }
      if try await CloudMoveState.leave(pool, to: request.data.path) {
        return CloudMoveSummary(isFinished: true, target: request.data.path)
      }
      let places = try await ContentPlaces.open(
        try ContentPlace.all(request.contents), pool: pool, clock: request.clock, logger: logger)
      let result: Result<CloudMoveSummary, any Error>
      do {
        result = .success(try await copy(pool, places, folder, request, logger, progress))
      } catch {
        result = .failure(error)
      }
      try await places.shutDown()
      return try result.get()
    }
  }

  static func abandon(_ request: CloudMove.Request) async throws {
    try await CloudMoveRun.with(request) { pool in
      guard try await CloudMoveState.read(pool) != nil else { return }
      try await CloudMoveState.stay(pool)
    }
    // What was copied is of no use to anybody.
    for name in ["", "-wal", "-shm", "-journal"].map({ temporaryName + $0 }) {
      try remove(request.data.appendingPathComponent(name))
    }
  }

  static let temporaryName = DataFolder.databaseName + ".moving"

  /// Throws if the folder has a cloud that isn't in another database: it would be replaced.
  private static func refuseOwnCloud(_ data: URL) throws {
    let database = data.appendingPathComponent(DataFolder.databaseName)
    var configuration = Configuration()
    configuration.readonly = true
    guard let stamp = FileStamp(of: database), stamp.size > 0 else { return }
    let queue: DatabaseQueue
    do {
      queue = try DatabaseQueue(path: database.path, configuration: configuration)
    } catch {
      throw Schema.failure(error, opening: database)
    }
    let isElsewhere = try queue.read { db in
      if try CloudFence.target(in: db) != nil { return true }
      return try !db.tableExists("container")
    }
    try queue.close()
    guard isElsewhere else {
      throw ServerError(
        .unusableFile, "The data folder \(data.path) has a cloud of its own: name an empty folder, or a new one.")
    }
  }

  private static func remove(_ url: URL) throws {
    do {
      try FileManager.default.removeItem(at: url)
    } catch CocoaError.fileNoSuchFile, CocoaError.fileReadNoSuchFile {
      // There was none.
    } catch {
      throw ServerError(.inputOutput, "\(url.path) can't be removed.", cause: error)
    }
  }

  // MARK: Copying

  private static func copy(
    _ pool: PostgreSQLPool, _ places: ContentPlaces, _ folder: DataFolder, _ request: CloudMove.Request,
    _ logger: Logger, _ progress: CloudMoveProgress.Receiver
  ) async throws -> CloudMoveSummary {
    let url = folder.url.appendingPathComponent(temporaryName)
    for name in ["", "-wal", "-shm", "-journal"] {
      try remove(folder.url.appendingPathComponent(temporaryName + name))
    }
    try PrivateFile.create(url)
    let files = ContentFiles(folder: folder.contents)
    try Schema.prepare(url, Configuration(), files: files, logger: logger)
    let queue = try DatabaseQueue(path: url.path)
    // Until it is whole, it is of no use.
    try await queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = OFF") }
    let total = try await count("container", pool)
    var summary = CloudMoveSummary(target: request.data.path)
    let start = ContinuousClock.now
    for table in MovedTable.ofPlayer + [.uses] {
      var last: Data?
      while true {
        let owners = try await owners(of: table, after: last, pool)
        for owner in owners {
          try Task.checkCancellation()
          // It came with another table.
          let tables = table.name == MovedTable.uses.name ? [MovedTable.uses] : MovedTable.ofPlayer
          if tables.count > 1, table.name != "container", try await isThere(owner, before: table, queue) { continue }
          let fetched = try await fetch(owner, tables, pool, places, files, folder)
          try await copy(owner, tables, fetched, pool, queue, &summary)
          summary.contents += fetched.count
          summary.contentBytes += fetched.bytes
          let seconds = (ContinuousClock.now - start).components.seconds
          progress(
            CloudMoveProgress(
              step: .copying, done: summary.copied, total: max(Int(total), summary.copied),
              bytes: summary.bytes + summary.contentBytes, seconds: Double(max(1, seconds))))
        }
        guard let end = owners.last else { break }
        last = end
      }
    }
    try await copyCloud(pool, queue)
    try await compare(pool, queue)
    try await finish(queue, url, folder)
    try await CloudMoveState.setLeft(pool)
    summary.isFinished = true
    return summary
  }

  private static func count(_ table: String, _ pool: PostgreSQLPool) async throws -> Int64 {
    try await pool.runUntilDone([PostgreSQLStatement("SELECT count(*) FROM \(table)")])[0].first?.int(0) ?? 0
  }

  private static func owners(
    of table: MovedTable, after last: Data?, _ pool: PostgreSQLPool
  ) async throws -> [Data] {
    let statement = PostgreSQLStatement(
      """
      SELECT DISTINCT \(table.owner) FROM \(table.name) WHERE $1::bytea IS NULL OR \(table.owner) > $1::bytea
      ORDER BY \(table.owner) LIMIT $2
      """, [.bytes(last), .int(page)])
    return try await pool.runUntilDone([statement])[0].map { try $0.bytes(0) }
  }

  /// Whether an owner has rows in a table that was looked through before this one.
  private static func isThere(_ owner: Data, before table: MovedTable, _ queue: DatabaseQueue) async throws -> Bool {
    try await queue.read { db in
      for earlier in MovedTable.ofPlayer.prefix(while: { $0.name != table.name })
      where earlier.layout == .plain || earlier.layout == .containers {
        let found = try Row.fetchOne(
          db.cachedStatement(sql: "SELECT 1 FROM \(earlier.local) WHERE \(earlier.localOwner) = ? LIMIT 1"),
          arguments: [owner])
        if found != nil { return true }
      }
      return false
    }
  }

  private static func copy(
    _ owner: Data, _ tables: [MovedTable], _ fetched: MovedContents.Arrived, _ pool: PostgreSQLPool,
    _ queue: DatabaseQueue, _ summary: inout CloudMoveSummary
  ) async throws {
    let digest = try await pool.changing { transaction in
      try queue.write { db in
        var reader = PostgreSQLMovedRows(transaction, lost: fetched.lost, arrived: fetched.names)
        try reader.prefetch(owner, tables)
        var writer = SQLiteMovedRows(db)
        return try MovedDigest.copying(owner, tables, from: reader, to: &writer)
      }
    }
    let found = try await queue.read { try MovedDigest.of(owner, tables, in: SQLiteMovedRows($0)) }
    guard found == digest else {
      throw ServerError(.damaged, "What was read back of a player isn't what was written.")
    }
    summary.copied += 1
    summary.rows += digest.rows
    summary.bytes += digest.bytes
  }

  // MARK: Large contents

  /// Fetches the large contents of a container as files, compares them, and has them on the disk.
  private static func fetch(
    _ owner: Data, _ tables: [MovedTable], _ pool: PostgreSQLPool, _ places: ContentPlaces, _ files: ContentFiles,
    _ folder: DataFolder
  ) async throws -> MovedContents.Arrived {
    var arrived = MovedContents.Arrived()
    guard tables.count > 1 else { return arrived }
    for content in try await named(owner, pool) {
      guard let container = ContainerID(bytes: owner), let place = content.place,
        try await fetch(ContentKey(content.name, of: container), content.count, places.named(place), files, folder)
      else {
        arrived.lost.insert(Data(content.name.utf8))
        continue
      }
      arrived.names.insert(Data(content.name.utf8))
      arrived.count += 1
      arrived.bytes += content.count
    }
    return arrived
  }

  struct NamedContent: Sendable {
    var name: String
    var count: Int
    /// Nil if nothing says where it is.
    var place: String?
  }

  /// Returns the large contents that a container's rows name.
  static func named(_ owner: Data, _ pool: PostgreSQLPool) async throws -> [NamedContent] {
    let statement = PostgreSQLStatement(
      """
      SELECT file, content.size, place FROM content
      LEFT JOIN content_object ON content_object.container = content.container AND content_object.name = file
      WHERE content.container = $1 AND file IS NOT NULL
      """, [.bytes(owner)])
    return try await pool.runUntilDone([statement])[0].map { row in
      NamedContent(
        name: try row.text(0), count: Int(try row.int(1)),
        place: try row.optionalBytes(2).map { String(decoding: $0, as: UTF8.self) })
    }
  }

  private static func fetch(
    _ key: ContentKey, _ count: Int, _ storage: any ContentStorage, _ files: ContentFiles, _ folder: DataFolder
  ) async throws -> Bool {
    guard let hash = try await MovedContentTarget.hash(of: key, count: count, in: storage) else { return false }
    let there = files.folder.appendingPathComponent(key.name)
    if FileManager.default.fileExists(atPath: there.path), try MovedContentTarget.hash(of: there) == hash {
      return true
    }
    let incoming = folder.incoming.appendingPathComponent("moving-\(key.name)")
    try remove(incoming)
    guard try await MovedContentTarget.fetch(key, count, in: storage, to: incoming) else { return false }
    guard try MovedContentTarget.hash(of: incoming) == hash else {
      throw ServerError(.damaged, "A large content isn't the same where it was put: \(key.name).")
    }
    try files.adopt(incoming, as: key.name)
    return true
  }

  // MARK: The whole cloud's

  private static func copyCloud(_ pool: PostgreSQLPool, _ queue: DatabaseQueue) async throws {
    for table in [MovedTable.adminKeys, .numbers, .audit] {
      let same = try await pool.changing { transaction in
        try queue.write { db in
          let names = Set(MovedTable.movedNumbers.map { MovedValue.bytes(Data($0.rawValue.utf8)) })
          let isMoved: (MovedRow) -> Bool = { table.name != MovedTable.numbers.name || names.contains($0[0]) }
          let local = SQLiteMovedRows(db)
          var writer = local
          var (written, found) = (MovedDigest(), MovedDigest())
          try PostgreSQLMovedRows(transaction).rows(of: table, Data()) { row in
            guard isMoved(row) else { return }
            written.add(row)
            try writer.add(row, to: table, Data())
          }
          try local.rows(of: table, Data()) { if isMoved($0) { found.add($0) } }
          written.finish()
          found.finish()
          return written == found
        }
      }
      guard same else {
        throw ServerError(.damaged, "What was read back of the whole cloud's rows isn't what was written.")
      }
    }
  }

  /// Throws if the database has changed meanwhile: a server is still running on it.
  private static func compare(_ pool: PostgreSQLPool, _ queue: DatabaseQueue) async throws {
    func refuse(_ isSame: Bool) throws {
      guard isSame else {
        throw ServerError(
          .folderInUse, "The database has changed while it was copied: stop all servers, and run the command again.")
      }
    }
    let sum = "count(*), coalesce(sum(revision), 0)"
    let there = try await pool.runUntilDone([
      PostgreSQLStatement("SELECT count(*), coalesce(sum(revision), 0)::bigint FROM container")
    ])[0].first
    let here = try await queue.read { db in
      try Row.fetchOne(db, sql: "SELECT \(sum) FROM container").map { row in
        (try row.decode(Int64.self, atIndex: 0), try row.decode(Int64.self, atIndex: 1))
      }
    }
    try refuse(try here?.0 == there?.int(0) && here?.1 == there?.int(1))
    for table in MovedTable.ofCloud where table.name != MovedTable.numbers.name {
      let here = try await queue.read { try Int64.fetchOne($0, sql: "SELECT count(*) FROM \(table.local)") }
      try refuse(here == (try await count(table.name, pool)))
    }
  }

  /// Puts the new database in place of the folder's.
  private static func finish(_ queue: DatabaseQueue, _ url: URL, _ folder: DataFolder) async throws {
    try await queue.writeWithoutTransaction { db in
      let found = try String.fetchAll(db, sql: "PRAGMA quick_check(1)")
      guard found == ["ok"] else { throw ServerError(.damaged, "The new database is damaged.") }
      try db.execute(sql: "PRAGMA journal_mode = DELETE")
    }
    try queue.close()
    try PrivateFile.sync(url)
    try PrivateFile.sync(folder.contents, isFolder: true)
    // Of the database that was here: without its own database, neither means anything.
    try remove(folder.witness)
    for name in ["-wal", "-shm", "-journal"] {
      try remove(folder.url.appendingPathComponent(DataFolder.databaseName + name))
    }
    try PrivateFile.move(url, to: folder.database)
  }
}
#endif
