#if Cloud && PostgreSQL
import Dispatch
import Foundation
import HTTPTypes
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import Synchronization

/// A cloud in a PostgreSQL database: loads what decisions about containers read, and commits what they change, a round
/// trip each, for which nothing is locked in between. Any number of servers may do so at a time.
///
/// Everything is in rows, except large contents if the operator has them kept elsewhere.
final class PostgreSQLStorage: CloudStorage {
  struct State {
    /// The epoch that every bank has to reach.
    var epoch: UInt64 = 0
    /// Whether newer servers have changed the tables so that this one can't use them.
    var isOutdated = false
    /// Set if the players are spread over databases that this server doesn't know.
    var unknownShard: ServerError?
    /// Why the database couldn't be opened yet; nil once it is. Passing, whatever was wrong: devices try again.
    var unopened: PostgreSQLError?
    var isOpening = false
    /// Players whose devices are refused for now.
    var bans = Ban.All()
    /// How often that was begun, and which of these times it is of.
    var (begun, known): (UInt64, UInt64) = (0, 0)
  }
  let clock: @Sendable () -> Int64
  let logger: Logger
  let pool: PostgreSQLPool
  let outbox: WebhookOutbox?
  /// Of each endpoint, after which lane events are numbered next (`numberWebhooks`).
  let webhookTurns = Mutex<[String: Data]>([:])
  private let contents: [ContentPlace]?
  private let openedPlaces = Mutex<ContentPlaces?>(nil)
  let detailedDecisions: Int64
  let observer = Mutex<CommitObserver?>(nil)
  let newestSeqs = NewestSeqs(lifetimeSeconds: 60)
  let remembered: RememberedContainers
  /// What this database is among several over which the players are spread; nil for the only one.
  let binding: ShardBinding?
  /// The names of all of them; nil for who looks at no players.
  let knownShards: Set<String>?
  /// Whether a container is known to be here, so that nobody makes it anew.
  let mustExist = Mutex<(@Sendable (ContainerID) -> Bool)?>(nil)
  /// Whether it answered when it was last looked at.
  let isAnswering = Atomic(true)
  /// Whether another one of them knows bytes in the place that they share.
  let knownElsewhere = Mutex<(@Sendable ([ContentKey]) async throws -> Set<ContentKey>)?>(nil)
  /// What was known of the whole cloud when it was last looked at (`refresh`).
  let state = Mutex(State())

  /// Opens the database, and makes its tables if they aren't there. One that was set back to a backup begins a new
  /// epoch if that is said in it (`keepsake bank restored`); otherwise when a device shows it.
  ///
  /// - Parameters:
  ///   - contents: Where large contents are put, and behind it, where earlier ones are; nil for who touches none.
  ///   - detailedDecisions: Of how many decided operations of a player the details are kept, at least.
  ///   - webhooks: Backends that are told what happens.
  ///   - binding: What the database is among several ones; nil for the only one.
  ///   - shards: The names of all of them; nil for who looks at no players.
  ///   - unopened: Why the database can't be reached: it is opened once it can be (`refresh`). Until then, everything
  ///     that would use it fails. Nil to open it now.
  init(
    _ settings: PostgreSQLSettings, connections: Int, contents: [ContentPlace]? = [.rows],
    detailedDecisions: Int64 = ServerLimits.detailedDecisions, binding: ShardBinding? = nil, shards: Set<String>? = [],
    clock: @escaping @Sendable () -> Int64 = { 0 }, logger: Logger = Logger(label: "keepsake.server"),
    webhooks: [WebhookEndpoint] = [], unopened: PostgreSQLError? = nil
  ) async throws {
    (self.clock, self.logger, self.detailedDecisions) = (clock, logger, detailedDecisions)
    (self.binding, knownShards, self.contents) = (binding, shards, contents)
    outbox = webhooks.isEmpty ? nil : WebhookOutbox(webhooks)
    let pool = PostgreSQLPool(settings, connections: connections)
    self.pool = pool
    remembered = RememberedContainers { pool.connectionsMade }
    if let unopened {
      logger.warning(
        "This database can't be reached: who is in it is refused until it can be", metadata: ["error": "\(unopened)"])
      state.withLock { $0.unopened = unopened }
      isAnswering.store(false, ordering: .relaxed)
      return
    }
    do {
      try await open()
    } catch {
      await pool.finish()
      throw error
    }
  }

  private func open() async throws {
    if let binding, binding.isKnown { try await ShardBinding.require(binding, pool) }
    try await PostgreSQLSchema.prepare(pool, logger: logger)
    try await ShardBinding.check(binding, pool)
    if outbox != nil { _ = try await pool.runUntilDone([PostgreSQLSchema.requiringWebhooks]) }
    let places =
      if let contents {
        try await ContentPlaces.open(contents, pool: pool, clock: clock, logger: logger)
      } else {
        ContentPlaces([], rows: ContentRows(pool: pool, clock: clock))
      }
    do {
      try await learn()
      if let error = state.withLock(\.unknownShard) { throw error }
    } catch {
      try await places.shutDown()
      throw error
    }
    openedPlaces.withLock { $0 = places }
  }

  /// Opens a database that couldn't be reached when the server was started.
  func openIfNeeded() async throws {
    let (unopened, isFirst) = state.withLock { state in
      // One at a time.
      defer { state.isOpening = state.unopened != nil }
      return (state.unopened, !state.isOpening)
    }
    guard let unopened else { return }
    guard isFirst else { throw unopened }
    do {
      try await open()
      state.withLock { ($0.unopened, $0.isOpening) = (nil, false) }
      logger.notice("This database can be reached now: who is in it is served from now on")
    } catch {
      let reason =
        switch error {
        case is CancellationError: unopened
        case let error as PostgreSQLError where error.isPassing: error
        default: PostgreSQLError.unreachable(ErrorReason.text(error))
        }
      state.withLock { ($0.unopened, $0.isOpening) = (reason, false) }
      throw error
    }
  }

  /// Where large contents are.
  var places: ContentPlaces {
    get throws {
      guard let places = openedPlaces.withLock(\.self) else {
        throw state.withLock(\.unopened) ?? PostgreSQLError.unreachable("it is being opened")
      }
      return places
    }
  }

  func remembered(of container: ContainerID) -> RememberedContainers? { remembered }

  func load(_ reads: ReadSet, of container: ContainerID) async throws -> Snapshot {
    for attempt in 0..<PostgreSQLPool.attempts {
      var load = PostgreSQLLoad(container)
      load.add(reads)
      var snapshot = Snapshot(revision: 0, position: .start, known: reads)
      try load.read(try await read(load.statements), into: &snapshot)
      var following = PostgreSQLLoad(container)
      following.addFollowing(reads, snapshot, deletedMark: container.deletedMark)
      newestSeqs.note(snapshot.position.seq, of: container)
      guard following.statements.count > 1 else { return snapshot }
      let revision = snapshot.revision
      try following.read(try await read(following.statements), into: &snapshot)
      if snapshot.revision == revision { return snapshot }
      // Somebody has changed the container in between.
      try await PostgreSQLPool.pause(after: attempt)
    }
    throw PostgreSQLPool.crowded
  }

  /// Reads about a container.
  ///
  /// - Throws: `NotHere` if it lives in another database.
  func read(_ statements: [PostgreSQLStatement], of container: ContainerID) async throws -> [PostgreSQLRows] {
    guard isShard else { return try await read(statements) }
    var answers = try await read(statements + [PostgreSQLTransaction.fenced(container)])
    if answers.removeLast().first != nil { throw NotHere(container) }
    return answers
  }

  /// Whether everything of a player was deleted.
  func isDeleted(_ container: ContainerID) async throws -> Bool {
    let deleted = PostgreSQLStatement(PostgreSQLTransaction.deleted, [.bytes(container.deletedMark)])
    return try await read([deleted], of: container)[0].first != nil
  }

  /// Whether the players are spread over several databases, of which this is one.
  var isShard: Bool { binding != nil }
  /// Whether it is the one that says where each player lives.
  var isHome: Bool { binding?.name == ShardBinding.home }

  /// Reads again if something was in its way, and once more if the connection broke: that changes nothing.
  func read(_ statements: [PostgreSQLStatement]) async throws -> [PostgreSQLRows] {
    try requireCurrent()
    return try await pool.read(statements)
  }

  /// Runs a transaction whose statements don't depend on each other's answers, again if another one was in its way.
  ///
  /// - Throws: `PostgreSQLError`, after whose `unknownOutcome` it may have been done.
  func run(_ statements: [PostgreSQLStatement]) async throws -> [PostgreSQLRows] {
    try requireCurrent()
    return try await pool.runUntilDone(statements)
  }

  /// Runs `body` as a transaction whose statements depend on each other's answers, again if another one was in its way.
  ///
  /// - Throws: What `body` throws, with nothing changed; `PostgreSQLError`, after whose `unknownOutcome` it may have
  ///   been done.
  @discardableResult
  func transaction<Result: Sendable>(
    _ body: @escaping @Sendable (PostgreSQLTransaction) throws -> Result
  ) async throws -> Result {
    try requireCurrent()
    // Two that add the same row at a time are in each other's way, too.
    func isInTheWay(_ error: PostgreSQLError) -> Bool { error.isConflict || error.state == .uniqueViolation }
    let mustExist = mustExist.withLock(\.self)
    return try await pool.repeating(isInTheWay) {
      try await pool.transaction { transaction in
        let result = try body(transaction)
        for made in transaction.notes.values.compactMap(ContainerID.init(bytes:)) where mustExist?(made) == true {
          throw NotHere(made)
        }
        return result
      }
    }
  }

  /// Whether this server can't use the database any more, because of what newer or other servers have changed.
  var isOutdated: Bool { state.withLock { $0.isOutdated || $0.unknownShard != nil } }

  func requireCurrent() throws {
    let (isOutdated, unknownShard, unopened) = state.withLock { ($0.isOutdated, $0.unknownShard, $0.unopened) }
    if let unopened { throw unopened }
    if isOutdated { throw PostgreSQLSchema.outdated }
    if let unknownShard { throw unknownShard }
  }

  func commit(
    _ writes: WriteSet, of container: ContainerID, ifAt revision: UInt64, leaving: DeviceID?,
    auditing entry: AuditEntry?
  ) async throws -> Bool {
    try requireCurrent()
    let commit = try PostgreSQLCommit(
      writes, of: container, ifAt: revision, leaving: leaving, now: clock(),
      telling: PostgreSQLCommit.Telling(writes, by: outbox))
    let start = DispatchTime.now().uptimeNanoseconds
    func observe(hasFailed: Bool) {
      observer.withLock(\.self)?(1, Int64(DispatchTime.now().uptimeNanoseconds - start), hasFailed)
    }
    let answers: [PostgreSQLRows]
    do {
      answers = try await run(commit, auditing: entry, connections: writes.assumption?.connections)
      observe(hasFailed: false)
      if let position = writes.position { newestSeqs.note(position.seq, of: container) }
      if commit.hasEvents { outbox?.wake() }
    } catch {
      observe(hasFailed: true)
      guard let refusal = (error as? PostgreSQLCommit.Refusal)?.error else { throw error }
      if refusal.state == PostgreSQLCommit.sharedLeft { throw SharedLeft() }
      if refusal.state == PostgreSQLCommit.swept {
        throw APIError(
          .serviceUnavailable, .busy, "This content was sent too long ago; send it again.", retryAfterSeconds: 1)
      }
      let isTaken = (revision == 0 || writes.assumption != nil) && refusal.state == .uniqueViolation
      guard isTaken || refusal.state == .divisionByZero || refusal.isConflict else { throw refusal }
      // Others wait as long for the same container: not all at once.
      if refusal.isConflict { try await PostgreSQLPool.pause(after: 2) }
      return false
    }
    await packIfDue(container, after: commit, answers)
    return true
  }

  /// - Parameter connections: Nothing is done if more connections than these have been made.
  /// - Throws: `PostgreSQLCommit.Refusal` if the database has refused the commit: nothing was done.
  private func run(
    _ commit: PostgreSQLCommit, auditing entry: AuditEntry?, connections: Int?
  ) async throws -> [PostgreSQLRows] {
    // A row of the audit log is linked to the one before, which has to be read: that takes several round trips.
    if let entry { return try await transaction { try $0.run(commit, auditing: entry) } }
    do {
      return try await pool.run(commit.statements, ifConnectionsMade: connections)
    } catch {
      guard error.state != nil else { throw error }
      throw PostgreSQLCommit.Refusal(error: error)
    }
  }

  func close() async throws {
    await pool.finish()
    try await openedPlaces.withLock(\.self)?.shutDown()
  }
}

/// The database's clock, which is the same one for all servers.
enum DatabaseClock {
  /// Milliseconds since 1970, in SQL.
  static let now = "(extract(epoch FROM now()) * 1000)::bigint"
}
#endif
