#if Cloud && PostgreSQL
import Foundation
import GRDB
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import Synchronization

/// Copies a cloud from PostgreSQL into the SQLite database of a data folder, while no server runs. The database is made
/// beside the folder's own, and takes its place when it is whole.
enum CloudReturn {
  private static let page: Int64 = 500

  static func run(
    _ request: CloudMove.Request, logger: Logger, progress: @escaping CloudMoveProgress.Receiver
  ) async throws -> CloudMoveSummary {
    try await CloudMoveRun.with(request) { pool in
      let state = try await CloudMoveState.read(pool)
      if let state, state.step == .left {
        try finish(state, request.data)
        return CloudMoveSummary(isFinished: true, target: request.data.path)
      }
      try refuseOwnCloud(request.data, state?.source)
      // Tables of a newer version would be left behind, and those of an older one be missing.
      if state == nil || state?.step == .finished {
        try await PostgreSQLSchema.prepare(pool, logger: logger)
      } else if state?.step == .leaving {
        try await CloudMoveRun.requireSameTables(pool)
      }
      let folder = try DataFolder(at: request.data, evenMoving: true)
      defer { folder.unlock() }
      let mark = try await leave(pool, state, folder, CloudMove.name(of: request.address))
      let places = try await ContentPlaces.open(
        try ContentPlace.all(request.contents), pool: pool, clock: request.clock, logger: logger)
      let result: Result<CloudMoveSummary, any Error>
      do {
        result = .success(try await copy(pool, places, folder, mark, request, logger, progress))
      } catch {
        result = .failure(error)
      }
      try await places.shutDown()
      return try result.get()
    }
  }

  /// Keeps all servers from the folder, and then from the database.
  private static func leave(
    _ pool: PostgreSQLPool, _ state: CloudMoveState?, _ folder: DataFolder, _ origin: String
  ) async throws -> ReturnMark {
    let found = try ReturnMark.read(folder.url)
    if let found, found.id == state?.mark {
      try await CloudMoveState.leave(pool, to: folder.url.path, found.id)
      return found
    }
    try refuseOthers(found, than: origin, folder.url)
    let mark = ReturnMark(id: ChangeCapture.randomID(), origin: origin)
    try mark.write(folder.url)
    do {
      try await CloudMoveState.leave(pool, to: folder.url.path, mark.id)
    } catch let error as ServerError {
      // Nothing was changed, unless it wasn't heard what was.
      if error.code != .overloaded { try ReturnMark.remove(folder.url) }
      throw error
    }
    return mark
  }

  /// Does what is left to do once the database says that the cloud is in the folder.
  private static func finish(_ state: CloudMoveState, _ data: URL) throws {
    guard let mark = try ReturnMark.read(data) else {
      guard state.place == data.path, try hasOwnCloud(data) else { throw CloudMoveState.elsewhere(state.place) }
      return
    }
    guard mark.id == state.mark else { throw CloudMoveState.elsewhere(state.place) }
    let folder = try DataFolder(at: data, evenMoving: true)
    defer { folder.unlock() }
    let moved = folder.url.appendingPathComponent(temporaryName)
    if FileStamp(of: moved) != nil {
      try refuseOwnCloud(data, state.source)
      try place(moved, folder)
    } else if try !hasOwnCloud(data) {
      throw ServerError(.damaged, "The cloud has gone to the data folder \(data.path), and isn't there.")
    }
    try ReturnMark.remove(data)
  }

  static func abandon(_ request: CloudMove.Request) async throws {
    let data = request.data
    // Nothing is done to a folder that has nothing to do with this.
    let lock = try ReturnMark.read(data) == nil ? nil : DataFolder.lock(data)
    defer { if let lock { DataFolder.unlock(lock) } }
    let mark = try ReturnMark.read(data)
    try await CloudMoveRun.with(request) { pool in
      let state = try await CloudMoveState.read(pool)
      if let mark, state?.mark != mark.id {
        // Killed before the database was told, if it is that one.
        try refuseOthers(mark, than: CloudMove.name(of: request.address), data)
        guard state?.step != .leaving else { throw CloudMoveState.elsewhere(state?.place) }
      }
      if state != nil { try await CloudMoveState.stay(pool) }
    }
    guard mark != nil else { return }
    // What was copied is of no use to anybody. The mark last: as long as anything is there, no server takes the folder.
    for name in ["", "-wal", "-shm", "-journal"].map({ temporaryName + $0 }) {
      try remove(data.appendingPathComponent(name))
    }
    try PrivateFile.sync(data, isFolder: true)
    try ReturnMark.remove(data)
  }

  static let temporaryName = DataFolder.movingName

  // MARK: Copying

  private static func copy(
    _ pool: PostgreSQLPool, _ places: ContentPlaces, _ folder: DataFolder, _ mark: ReturnMark,
    _ request: CloudMove.Request, _ logger: Logger, _ progress: CloudMoveProgress.Receiver
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
    let totals = try await queue.read { try MovedTotals(in: $0) }
    try await settle(queue, url, folder)
    try await CloudMoveState.fence(pool.settings, mark.id)
    // From here on the cloud is in the folder, whatever happens: another run does what is left.
    try await CloudMoveState.setLeft(pool, mark.id, totals)
    try place(url, folder)
    try ReturnMark.remove(folder.url)
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

  static func copyCloud(_ pool: PostgreSQLPool, _ queue: DatabaseQueue) async throws {
    for table in [MovedTable.adminKeys, .numbers, .audit] {
      // A transaction that only reads has done what it has to before its end is heard, and isn't done twice.
      let written = Mutex<Bool?>(nil)
      let same = try await pool.changing { transaction in
        if let same = written.withLock(\.self) { return same }
        let same = try queue.write { db in
          let names = Set(MovedTable.movedNumbers.map { MovedValue.bytes(Data($0.rawValue.utf8)) })
          let isMoved: (MovedRow) -> Bool = { table.name != MovedTable.numbers.name || names.contains($0[0]) }
          let local = SQLiteMovedRows(db)
          var writer = local
          var (copied, found) = (MovedDigest(), MovedDigest())
          try PostgreSQLMovedRows(transaction).rows(of: table, Data()) { row in
            guard isMoved(row) else { return }
            copied.add(row)
            try writer.add(row, to: table, Data())
          }
          try local.rows(of: table, Data()) { if isMoved($0) { found.add($0) } }
          copied.finish()
          found.finish()
          return copied == found
        }
        written.withLock { $0 = same }
        return same
      }
      guard same else {
        throw ServerError(.damaged, "What was read back of the whole cloud's rows isn't what was written.")
      }
    }
  }

  /// Has the copy on the disk, whole.
  private static func settle(_ queue: DatabaseQueue, _ url: URL, _ folder: DataFolder) async throws {
    try await queue.writeWithoutTransaction { db in
      let found = try String.fetchAll(db, sql: "PRAGMA quick_check(1)")
      guard found == ["ok"] else { throw ServerError(.damaged, "The new database is damaged.") }
      try db.execute(sql: "PRAGMA journal_mode = DELETE")
    }
    try queue.close()
    try PrivateFile.sync(url)
    try PrivateFile.sync(folder.contents, isFolder: true)
    try PrivateFile.sync(folder.url, isFolder: true)
  }
}
#endif
