#if Cloud && PostgreSQL
import Foundation
import GRDB
import KeepsakePlatform
import KeepsakePostgreSQL
import Logging

/// One run of a move from a data folder into PostgreSQL.
enum CloudMoveRun {
  private static let connections = 10
  /// A minute and more.
  private static let busyTries = 120_000
  static let lockName = "migrate.lock"

  static func settings(_ address: String) -> PostgreSQLSettings {
    var settings = PostgreSQLSettings(address)
    // Players with much take long to read, and large databases to count.
    (settings.statementSeconds, settings.answerSeconds) = (600, 660)
    settings.name = "keepsake migrate"
    return settings
  }

  /// Runs `body` with the pool; whatever it throws, the pool's connections are closed.
  static func with<Result>(
    _ request: CloudMove.Request, _ body: (PostgreSQLPool) async throws -> Result
  ) async throws -> Result {
    let pool = PostgreSQLPool(settings(request.address), connections: connections)
    do {
      let result = try await body(pool)
      await pool.finish()
      return result
    } catch {
      await pool.finish()
      throw error
    }
  }

  static func run(
    _ request: CloudMove.Request, logger: Logger, progress: @escaping CloudMoveProgress.Receiver
  ) async throws -> CloudMoveSummary {
    let name = CloudMove.name(of: request.address)
    let lock = try lock(request.data)
    defer { DataFolder.unlock(lock) }
    let source = try connect(request.data)
    let witness = DatabaseWitness(
      at: request.data.appendingPathComponent(DataFolder.witnessName), clock: request.clock, logger: logger)
    let seen = try witness.read()
    try await source.read { try check($0, seen) }
    return try await with(request) { pool in
      let before = try await CloudMoveState.read(pool)
      if before == nil {
        let mayHaveEnded = try await source.read { db in
          try CloudFence.target(in: db) != nil && ChangeCapture.mayHaveEnded(in: db)
        }
        guard !mayHaveEnded else { throw unknownMove(name) }
        try await PostgreSQLSchema.prepare(pool, logger: logger)
      } else if before?.step == .copying {
        try await requireSameTables(pool)
      }
      let wasMoving = try await source.read { try ChangeCapture.state(in: $0) } != nil
      let state = try await source.write { [isNew = before == nil] db in
        var state = try ChangeCapture.install(in: db, target: name)
        // What was copied was copied into another database, of the same name.
        if isNew { state.source = try ChangeCapture.renew(in: db) }
        return state
      }
      let isFinished: Bool
      do {
        isFinished = try await CloudMoveState.claim(pool, for: state.source, from: request.data.path)
      } catch let error as ServerError {
        // The folder may be moved to another database then, unless it is on its way to this one.
        if !wasMoving { try await source.write { try ChangeCapture.remove(in: $0) } }
        throw error
      }
      if isFinished {
        guard try await source.read({ try CloudFence.target(in: $0) }) != nil else {
          throw ServerError(
            .unusableFile,
            """
            The cloud has moved to \(name) from another copy of this folder. This one is older, and a second cloud: \
            let no server go on with it.
            """)
        }
        return CloudMoveSummary(isFinished: true, target: name)
      }
      let places = try await ContentPlaces.open(
        try ContentPlace.all(request.contents), pool: pool, clock: request.clock, logger: logger)
      let result: Result<CloudMoveSummary, any Error>
      do {
        let target = MovedContentTarget(pool: pool, places: places, clock: request.clock)
        let files = ContentFiles(folder: request.data.appendingPathComponent(DataFolder.contentsName))
        let mover = CloudMover(from: source, files, to: target, receiver: progress)
        result = .success(try await finish(request, mover, state.source, pool, name))
      } catch {
        result = .failure(error)
      }
      try await places.shutDown()
      try source.close()
      return try result.get()
    }
  }

  private static func finish(
    _ request: CloudMove.Request, _ mover: CloudMover, _ cloud: Data, _ pool: PostgreSQLPool, _ name: String
  ) async throws -> CloudMoveSummary {
    let source = mover.source
    try await sync(source)
    var fenced = try await source.read { try ChangeCapture.fenced(in: $0) }
    if fenced == nil {
      try await mover.copyAll()
      if request.isOnlyCopying {
        var summary = mover.summary
        summary.target = name
        return summary
      }
      let now = request.clock()
      // From its commit on, no process writes into this database, whatever it knows of all this.
      try await source.write { db in
        try refuseEvents(db)
        guard try ChangeCapture.isWhole(in: db), try ChangeCapture.state(in: db)?.isListed == true else {
          throw ServerError(.overloaded, "The folder's database was changed by another version.")
        }
        try CloudFence.build(in: db, target: name)
        try ChangeCapture.setFenced(now, in: db)
      }
      fenced = now
    } else if request.isOnlyCopying {
      throw ServerError(
        .unusableFile, "Play is stopped, since the last step has begun: leave out --only-copy, or use --abandon.")
    }
    try await mover.copyRest()
    // Before: from here on a database that knows nothing of the move isn't taken for one that was never told.
    try await source.write { try ChangeCapture.setEnding(in: $0) }
    try await CloudMoveState.finish(pool, cloud)
    var summary = mover.summary
    summary.stoppedMilliseconds = fenced.map { max(0, request.clock() - $0) }
    (summary.isFinished, summary.waiting, summary.target) = (true, 0, name)
    return summary
  }

  /// Has what is committed on the disk, from here on.
  private static func sync(_ source: DatabasePool) async throws {
    try await source.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA synchronous = FULL")
      try db.execute(sql: FullSync.databaseStatements)
    }
  }

  // MARK: The folder

  /// Keeps other runs from the folder; servers have a lock of their own.
  static func lock(_ data: URL) throws -> Int32 {
    let url = data.appendingPathComponent(lockName)
    let lock = open(url.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard lock >= 0 else {
      throw ServerError(.inputOutput, "\(url.path) can't be written.", cause: PrivateFile.systemError())
    }
    guard flock(lock, LOCK_EX | LOCK_NB) == 0 else {
      close(lock)
      throw ServerError(.folderInUse, "Another `keepsake migrate` is running on the data folder \(data.path).")
    }
    return lock
  }

  private static func connect(_ data: URL) throws -> DatabasePool {
    let database = try DataFolder.existingDatabase(in: data)
    var configuration = Configuration()
    configuration.label = "keepsake.move"
    // A server that commits without a pause leaves the lock for moments only, between which SQLite's own waiting looks
    // at it ten times a second.
    configuration.busyMode = .callback { tries in
      usleep(500)
      return tries < busyTries
    }
    configuration.maximumReaderCount = connections + 2
    do {
      return try DatabasePool(path: database.path, configuration: configuration)
    } catch {
      throw Schema.failure(error, opening: database)
    }
  }

  /// Throws if the folder's database can't be moved as it is.
  private static func check(_ db: Database, _ witness: DatabaseWitness.Reading) throws {
    try Schema.requireCurrent(db, evenMoved: true)
    if try CloudFence.target(in: db) != nil {
      // What is there was checked before it was built, and can't have changed.
      guard try ChangeCapture.state(in: db) != nil else {
        throw ServerError(.damaged, "The folder's database takes no changes, and nothing says why.")
      }
      return
    }
    let generation = try CloudNumber.generation.value(in: db)
    var isSetBack = try CloudNumber.isRestored.value(in: db) > 0
    if case .generation(let number) = witness, number > generation { isSetBack = true }
    guard !isSetBack else {
      throw ServerError(
        .unusableFile, "The database was set back to a backup, which a server must notice: run `keepsake serve` once.")
    }
    try refuseEvents(db)
  }

  /// What is still to be told to backends isn't moved.
  private static func refuseEvents(_ db: Database) throws {
    guard try Row.fetchOne(db, sql: "SELECT 1 FROM webhookEvent LIMIT 1") == nil else { throw undelivered }
  }

  static let undelivered = ServerError(
    .configuration,
    """
    The cloud has events for webhooks that aren't delivered, or were given up. They can't be moved: have them \
    delivered or removed first, and run the server without --webhook.
    """)

  static func requireSameTables(_ pool: PostgreSQLPool) async throws {
    let number = try await pool.runUntilDone([PostgreSQLSchema.reading])[0].first?.int(0)
    guard number == PostgreSQLSchema.number else {
      throw ServerError(
        .configuration, "The move was begun by another version of keepsake: go on with that one, or use --abandon.")
    }
  }

  private static func unknownMove(_ name: String) -> ServerError {
    ServerError(
      .unusableFile,
      """
      The folder takes no changes, since its cloud has moved to \(name), or was about to; and that database knows of \
      no move. It may be another one of the same name: nothing was changed.
      """)
  }

  // MARK: Giving up

  static func abandon(
    _ request: CloudMove.Request, logger: Logger, progress: @escaping CloudMoveProgress.Receiver
  ) async throws {
    let lock = try lock(request.data)
    defer { DataFolder.unlock(lock) }
    let source = try connect(request.data)
    let (state, isFenced) = try await source.read { db in
      try Schema.requireCurrent(db, evenMoved: true)
      return (try ChangeCapture.state(in: db), try CloudFence.target(in: db) != nil)
    }
    let name = CloudMove.name(of: request.address)
    if let state, state.target != name {
      throw ServerError(
        .configuration, "This cloud is being moved to \(state.target), and not to \(name): name that one.")
    }
    try await with(request) { pool in
      // From here on it can't be finished any more.
      var isThere = try await CloudMoveState.read(pool) != nil
      if isThere { isThere = try await CloudMoveState.abandon(pool, state?.source) }
      // The one that has the cloud may be another one.
      guard isThere || !isFenced else { throw unknownMove(name) }
      try await sync(source)
      // What says which move that is stays until nothing of it is left.
      try await source.write { db in
        try CloudFence.remove(in: db)
        if state != nil { try ChangeCapture.setOpen(in: db) }
      }
      if isThere { try await removeCopy(request, pool, logger, progress) }
      try await source.write { try ChangeCapture.remove(in: $0) }
      try source.close()
    }
  }

  private static func removeCopy(
    _ request: CloudMove.Request, _ pool: PostgreSQLPool, _ logger: Logger,
    _ progress: @escaping CloudMoveProgress.Receiver
  ) async throws {
    let places = try await ContentPlaces.open(
      try ContentPlace.all(request.contents), pool: pool, clock: request.clock, logger: logger)
    let result: Result<Void, any Error>
    do {
      result = .success(try await empty(pool, places, progress))
    } catch {
      result = .failure(error)
    }
    try await places.shutDown()
    try result.get()
    try await CloudMoveState.forget(pool)
  }

  /// Removes everything that was copied: bytes before the rows that say where they are.
  private static func empty(
    _ pool: PostgreSQLPool, _ places: ContentPlaces, _ progress: CloudMoveProgress.Receiver
  ) async throws {
    var removed = CloudMoveProgress(step: .removing)
    while true {
      let objects = try await pool.runUntilDone([
        PostgreSQLStatement("SELECT container, name, place FROM content_object LIMIT 100")
      ])[0]
      if objects.rows.isEmpty { break }
      for row in objects {
        let key = try ContentKey(try row.text(1), of: row.identifier(0))
        try await places.named(try row.text(2)).delete(key)
        _ = try await pool.runUntilDone([
          PostgreSQLStatement(
            "DELETE FROM content_object WHERE container = $1 AND name = $2",
            [.bytes(try row.bytes(0)), .bytes(try row.bytes(1))])
        ])
        removed.done += 1
        progress(removed)
      }
    }
    for table in MovedTable.ofPlayer + [.uses] {
      while true {
        let owners = try await pool.runUntilDone([
          PostgreSQLStatement("SELECT DISTINCT \(table.owner) FROM \(table.name) ORDER BY \(table.owner) LIMIT 100")
        ])[0].map { try $0.bytes(0) }
        if owners.isEmpty { break }
        _ = try await pool.runUntilDone([
          PostgreSQLStatement("DELETE FROM \(table.name) WHERE \(table.owner) = ANY($1)", [.list(owners)])
        ])
        removed.done += 1
        progress(removed)
        try Task.checkCancellation()
      }
    }
    for table in ["admin_key", "audit", "number", "content_place"] {
      _ = try await pool.runUntilDone([PostgreSQLStatement("DELETE FROM \(table)")])
    }
  }
}
#endif
