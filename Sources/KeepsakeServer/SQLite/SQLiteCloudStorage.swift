#if Cloud
import Dispatch
import Foundation
import GRDB
import KeepsakePlatform
import KeepsakeReplication
import Logging
import Synchronization
// GRDB has a type of this name, too.
import struct KeepsakeReplication.Cursor

/// A cloud in one SQLite database: one writer that commits in groups, readers beside it (write-ahead log), and a wait
/// for the disk at each commit.
final class SQLiteCloudStorage: CloudStorage {
  let pool: DatabasePool
  let committer: GroupCommitter
  private let witness: DatabaseWitness?
  /// The epoch that every bank has to reach.
  let epoch: Mutex<UInt64>
  let files: ContentFiles
  let clock: @Sendable () -> Int64
  let logger: Logger
  /// Takes what a studio's backends are told; nil if there are none.
  let outbox: WebhookOutbox?
  let detailedDecisions: Int64
  /// Players whose devices are refused for now.
  let bans: Mutex<Ban.All>
  let newestSeqs = NewestSeqs()
  private let remembered = RememberedContainers(most: ServerLimits.rememberedContainersInSQLite) { 0 }
  private let readers = WorkThreads(
    running: ServerLimits.readers, waiting: ServerLimits.waitingReads, for: "reading")
  /// One for each of `readers`: to get one from a pool takes as long as to read a small row.
  private let readerConnections: [DatabaseQueue]
  private let fileQueue = DispatchQueue(label: "keepsake.cloud.files", attributes: .concurrent)

  /// Opens the database, and migrates an older one. One from a newer version is refused and not touched. One that was
  /// set back to a backup begins a new epoch.
  ///
  /// - Parameters:
  ///   - witness: The file that shows whether it was set back; nil for a database that has none.
  ///   - webhooks: Backends that are told what happens.
  ///   - detailedDecisions: Of how many decided operations of a player the details are kept, at least.
  init(
    database: URL, contents: URL, witness: URL? = nil, clock: @escaping @Sendable () -> Int64 = { 0 },
    logger: Logger = Logger(label: "keepsake.server"), webhooks: [WebhookEndpoint] = [],
    detailedDecisions: Int64 = ServerLimits.detailedDecisions
  ) throws {
    self.detailedDecisions = detailedDecisions
    let files = ContentFiles(folder: contents)
    self.files = files
    self.clock = clock
    self.logger = logger
    outbox = webhooks.isEmpty ? nil : WebhookOutbox(webhooks)
    let witness = witness.map { DatabaseWitness(at: $0, clock: clock, logger: logger) }
    self.witness = witness
    var configuration = Configuration()
    configuration.label = "keepsake.cloud"
    configuration.busyMode = .timeout(5)
    var reading = configuration
    reading.readonly = true
    do {
      if FileManager.default.fileExists(atPath: database.path) {
        try DatabaseQueue(path: database.path, configuration: reading).read(Schema.refuseNewer)
      }
      try Schema.prepare(database, configuration, files: files, logger: logger)
      pool = try DatabasePool(path: database.path, configuration: configuration)
      try pool.writeWithoutTransaction { db in
        // As many bytes as by default, in smaller pages.
        try db.execute(sql: "PRAGMA wal_autocheckpoint = \(4_096_000 / Schema.pageBytes)")
        // GRDB sets NORMAL with a write-ahead log: a power cut could then undo what a response has confirmed.
        try db.execute(sql: "PRAGMA synchronous = FULL")
        // What is deleted is overwritten: a player's data must not stay on pages that are free.
        try db.execute(sql: "PRAGMA secure_delete = ON")
        try db.execute(sql: FullSync.databaseStatements)
      }
      epoch = Mutex(try Self.begin(pool, witness, now: clock(), logger: logger))
      bans = Mutex(try pool.read(Ban.all))
      readerConnections = try (0..<ServerLimits.readers).map { [reading] _ in
        try DatabaseQueue(path: database.path, configuration: reading)
      }
    } catch {
      throw Schema.failure(error, opening: database)
    }
    committer = GroupCommitter(pool, witness: witness)
    try removeForgottenFiles()
    let old = clock().subtractingReportingOverflow(ExchangeRules.offerLifetimeMilliseconds).partialValue
    try pool.write { try $0.execute(sql: "DELETE FROM offerPart WHERE touched < ?", arguments: [old]) }
  }

  /// Removes files that were renamed into place but whose rows were never committed: they belong to nobody.
  private func removeForgottenFiles() throws {
    let names = try files.names()
    try pool.read { db in
      for name in names
      where try Row.fetchOne(db, sql: "SELECT 1 FROM content WHERE file = ?", arguments: [name]) == nil {
        try files.remove(name)
      }
    }
  }

  // MARK: Containers

  func load(_ reads: ReadSet, of container: ContainerID) async throws -> Snapshot {
    let snapshot = try await read(container) { try $0.snapshot(of: reads) }
    newestSeqs.note(snapshot.position.seq, of: container)
    return snapshot
  }

  func remembered(of container: ContainerID) -> RememberedContainers? { remembered }

  /// Forgets what is in memory of a container of which everything was deleted.
  func forgetDeleted(_ container: ContainerID) {
    newestSeqs.forget(container)
    remembered.end(container)
  }

  func newestSeq(of container: ContainerID) async throws -> UInt64 {
    if let known = newestSeqs[container] { return known }
    return try await position(of: container).seq
  }

  func commit(
    _ writes: WriteSet, of container: ContainerID, ifAt revision: UInt64, leaving: DeviceID?,
    auditing entry: AuditEntry?
  ) async throws -> Bool {
    let (files, now, encoded, outbox) = (files, clock(), try EncodedRows(writes), outbox)
    let detailed = detailedDecisions
    let events = try outbox.map { try WebhookEvents(writes, wants: $0.wants) }
    struct Outdated: Error {}
    do {
      let (removed, hasEvents) = try await committer.write(for: container, work: writes.work) { db in
        var rows = try SQLiteContainer(container, in: db, files: files, now: now)
        (rows.outbox, rows.detailedDecisions) = (outbox, detailed)
        // While the device is still known to be its player's.
        if let leaving { try Self.leaveShared(leaving, of: container, in: db) }
        // Thrown, so that what was written of it is undone.
        guard try rows.commit(writes, encoded, events, ifAt: revision) else { throw Outdated() }
        try entry?.append(in: db)
        return (rows.removedFiles, rows.hasEvents)
      }
      if hasEvents { outbox?.wake() }
      // After the commit: a rollback would still need them.
      await remove(removed)
      if let position = writes.position { newestSeqs.note(position.seq, of: container) }
      return true
    } catch is Outdated {
      return false
    }
  }

  /// Runs `body` in a transaction on a container's rows; durable when this returns. If `body` throws, everything it did
  /// is undone. Decisions that were made before, and that it contradicts, are made anew.
  func transaction<Result: Sendable>(
    on container: ContainerID, _ body: @escaping @Sendable (inout SQLiteContainer) throws -> Result
  ) async throws -> Result {
    try await erasingTransaction(on: container, committed: nil, body).result
  }

  /// Does the same, and says whether the files that nothing needs any more are gone.
  ///
  /// - Parameter committed: As of the committer.
  func erasingTransaction<Result: Sendable>(
    on container: ContainerID, committed: (@Sendable () -> Void)?,
    _ body: @escaping @Sendable (inout SQLiteContainer) throws -> Result
  ) async throws -> (result: Result, areFilesGone: Bool) {
    let (files, now) = (files, clock())
    let (result, removed) = try await committer.write(
      for: container, work: ServerLimits.workPerCommit, committed: committed
    ) { db in
      var rows = try SQLiteContainer(container, in: db, files: files, now: now)
      try rows.refuseRetired(nil)
      let before = db.totalChangesCount
      let result = try body(&rows)
      if db.totalChangesCount != before {
        try rows.run("UPDATE container SET revision = revision + 1 WHERE id = ?", [rows.id])
      }
      return (result, rows.removedFiles)
    }
    newestSeqs.forget(container)
    let areFilesGone = await remove(removed)
    return (result, areFilesGone)
  }

  /// Removes files. Those that can't be removed are removed at the next start.
  ///
  /// - Returns: Whether all are gone.
  @discardableResult
  private func remove(_ names: [String]) async -> Bool {
    guard !names.isEmpty else { return true }
    do {
      try await onFileQueue {
        var failure: (any Error)?
        for name in names {
          do { try self.files.remove(name) } catch { failure = error }
        }
        if let failure { throw failure }
      }
      return true
    } catch {
      logger.failure("The file of a content that is no longer needed can't be removed", error)
      return false
    }
  }

  func read<Result: Sendable>(
    _ container: ContainerID, _ body: @escaping @Sendable (SQLiteContainer) throws -> Result
  ) async throws -> Result {
    let (files, now) = (files, clock())
    return try await reading { try body(try SQLiteContainer(container, in: $0, files: files, now: now)) }
  }

  /// Runs `body` in a transaction that reads. GRDB's own asynchronous reading changes threads four times, which takes
  /// longer than most reads.
  func reading<Result: Sendable>(_ body: @escaping @Sendable (Database) throws -> Result) async throws -> Result {
    try await readers.run { [readerConnections] thread in try readerConnections[thread].read(body) }
  }

  func observeCommits(_ body: @escaping CommitObserver) { committer.observe(body) }

  var waitingCommits: Int { committer.waitingCount }

  /// Where each change waits, too.
  func probe() async throws { _ = try await pool.write { try Int.fetchOne($0, sql: "SELECT 1") } }

  // MARK: Contents

  func hasContent(_ hash: ContentHash, of container: ContainerID) async throws -> Bool {
    try await read(container) { try $0.hasContent(hash) }
  }

  func content(_ hash: ContentHash, of container: ContainerID) async throws -> KeptContent? {
    try await read(container) { try $0.keptContent(hash) }
  }

  func adopt(_ file: URL, as name: String, of container: ContainerID) async throws {
    try await onFileQueue { try self.files.adopt(file, as: name) }
  }

  func discard(_ name: String, of container: ContainerID) async throws {
    try await onFileQueue { try self.files.remove(name) }
  }

  /// Runs `work` off the threads that all requests share: waiting for the disk doesn't belong on them.
  private func onFileQueue(_ work: @escaping @Sendable () throws -> Void) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      fileQueue.async { continuation.resume(with: Result(catching: work)) }
    }
  }

  // MARK: Devices

  func recordDevice(_ device: DeviceRecord) async throws {
    let identity = device.identity
    let isFresh = try await reading { db in
      try Row.fetchOne(
        db.cachedStatement(sql: "SELECT 1 FROM device WHERE container = ? AND id = ? AND seen > ?"),
        arguments: [
          identity.container.bytes, identity.device.bytes, device.seenMilliseconds &- ServerLimits.visitMilliseconds,
        ]) != nil
    }
    if isFresh { return }
    try await committer.write(for: identity.container) { [outbox] in try Self.note(device, outbox, in: $0) }
    outbox?.wake()
  }

  /// - Parameter outbox: Takes that the device is new, if it is.
  static func note(_ device: DeviceRecord, _ outbox: WebhookOutbox?, in db: Database) throws {
    let identity = device.identity
    try outbox?.addDevice(identity, now: device.seenMilliseconds, in: db)
    try db.cachedStatement(
      sql: """
        INSERT INTO device (container, id, player, app, name, created, seen)
        SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
        WHERE NOT EXISTS (
          SELECT 1 FROM retired WHERE (container = ?1 AND device = ?2) OR (container = ?8 AND device = x'')
        )
        ON CONFLICT (container, id) DO UPDATE SET seen = excluded.seen
        """
    ).execute(
      arguments: [
        identity.container.bytes, identity.device.bytes, identity.player.bytes, identity.app.bytes,
        device.name.map { Data($0.utf8) }, device.createdMilliseconds, device.seenMilliseconds,
        identity.container.deletedMark,
      ])
  }

  func devices(of container: ContainerID) async throws -> [DeviceRecord] {
    try await reading { db in
      try Row.fetchAll(
        db, sql: "SELECT id, player, app, name, created, seen, setBack FROM device WHERE container = ? ORDER BY id",
        arguments: [container.bytes]
      ).map { row in
        guard let device = try DeviceID(bytes: row.decode(atIndex: 0)),
          let player = try PlayerID(bytes: row.decode(atIndex: 1))
        else {
          throw ServerError(.damaged, "A device's row can't be read.")
        }
        return DeviceRecord(
          identity: DeviceIdentity(
            device: device, player: player, container: container, app: AppID(bytes: try row.decode(atIndex: 2))),
          name: try row.decode(Data?.self, atIndex: 3).map { String(decoding: $0, as: UTF8.self) },
          createdMilliseconds: try row.decode(atIndex: 4), seenMilliseconds: try row.decode(atIndex: 5),
          setBack: try row.decode(Data?.self, atIndex: 6).flatMap { try Schema.decoded(DeviceSetBacks.self, $0).mark })
      }
    }
  }

  // MARK: Pairing

  func putPairing(_ pairing: Pairing, for device: DeviceID, now: Int64) async throws {
    try await committer.write(for: pairing.container) { db in
      // A device that was removed after its request arrived must not get a way back.
      guard try !Self.isRetired(device, of: pairing.container, in: db) else { throw APIError.retired }
      try db.execute(
        sql: "DELETE FROM pairing WHERE container = ? OR expires <= ?", arguments: [pairing.container.bytes, now])
      try db.execute(
        sql: "INSERT OR REPLACE INTO pairing (app, code, container, player, expires) VALUES (?, ?, ?, ?, ?)",
        arguments: [
          pairing.scope.bytes, pairing.code, pairing.container.bytes, pairing.player.bytes, pairing.expiresMilliseconds,
        ])
    }
  }

  func join(
    _ code: Data, by right: EntryRight, as device: DeviceID, name: String, now: Int64
  ) async throws -> DeviceIdentity? {
    defer { outbox?.wake() }
    return try await committer.write(for: nil) { [outbox] db in
      try Self.admit(right, in: db)
      let found = try Row.fetchOne(
        db, sql: "SELECT container, player, expires FROM pairing WHERE app = ? AND code = ?",
        arguments: [right.scope.bytes, code])
      guard let found else { return nil }
      try db.execute(sql: "DELETE FROM pairing WHERE app = ? AND code = ?", arguments: [right.scope.bytes, code])
      let expires: Int64 = try found.decode(atIndex: 2)
      guard expires > now else { return nil }
      guard let container = try ContainerID(bytes: found.decode(atIndex: 0)),
        let player = try PlayerID(bytes: found.decode(atIndex: 1))
      else {
        throw ServerError(.damaged, "A pairing code's row can't be read.")
      }
      guard try !Self.isRetired(device, of: container, in: db) else { return nil }
      let identity = DeviceIdentity(device: device, player: player, container: container, app: right.app)
      try Self.note(
        DeviceRecord(identity: identity, name: name, createdMilliseconds: now, seenMilliseconds: now), outbox, in: db)
      try Self.noteShared(identity, by: right, in: db)
      return identity
    }
  }

  func close() async throws {
    if let witness {
      do {
        if let generation = try await pool.write({ try witness.lastStep(in: $0) }) { witness.committed(generation) }
      } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT && CloudFence.isRefusal(error) {
        // The cloud is in another database: whatever is done to this one changes nothing.
      } catch {
        logger.failure("The generation of the database can't be raised", error)
      }
    }
    for connection in readerConnections { try connection.close() }
    // The last connection to close is a reader, which can't empty the write-ahead log. It is emptied here, so that one
    // file is enough for a backup of a stopped server.
    do {
      try await pool.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
    } catch let error as DatabaseError where error.resultCode == .SQLITE_BUSY {
      logger.notice("The database is being read, by a backup for instance: its write-ahead log stays beside it.")
    }
    try pool.close()
  }
}
#endif
