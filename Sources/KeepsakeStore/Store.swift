package import Foundation
package import KeepsakeReplication
import Synchronization

/// Everything that one player's game keeps on this device, in one folder: a SQLite database and a lock.
///
/// Writes are serial and durable: `write` returns when the data is on disk (`synchronous=FULL`, and a full flush of the
/// drive on Apple's systems). Reads see the last commit and run concurrently with a write, so that loading never waits
/// for the disk to finish another save. That is why this is a pool of connections over a write-ahead log and not a
/// single connection.
package final class Store: Sendable {
  /// The database's name in the store's folder.
  package static let databaseName = "store.sqlite"

  /// The folder.
  package let url: URL
  /// Minted on each opening; no other opening of this store or of a copy of it has the same.
  package let writer: WriterID

  let database: StoreDatabase
  private var context: StoreContext { database.context }
  var memory: ContentMemory { context.memory }
  let lock: StoreLock
  private let commits: CommitQueue
  private let closed = Mutex(false)

  /// Opens the store in the folder at `url`, or creates it.
  ///
  /// Damage is repaired first if possible and reported in `incidents`: what can be read goes into a new database, and
  /// the damaged files are set aside in the folder `damaged`.
  ///
  /// - Throws: `StoreError`: `inUse` if it is already open, `newerFormat` with nothing changed if a newer release wrote
  ///   it, `damaged` if nothing of it or its backups can be read; `otherSeal`, `wrongSecret` or `tampered`, with
  ///   nothing changed, if its seal isn't the requested one.
  package static func open(at url: URL, seal: SealRequest = .none, history: HistoryRules = .standard) throws -> Store {
    var random = SystemRandomNumberGenerator()
    return try open(at: url, seal: seal, history: history, writer: WriterID(using: &random))
  }

  /// Opens a store that will be removed after use: no backups of it are made.
  package static func openTemporary(at url: URL, history: HistoryRules = .standard) throws -> Store {
    var random = SystemRandomNumberGenerator()
    return try open(at: url, seal: .none, history: history, writer: WriterID(using: &random), backups: .off)
  }

  /// For tests that need to know the writer.
  package static func open(
    at url: URL, seal request: SealRequest = .none, history: HistoryRules = .standard, writer: WriterID
  ) throws -> Store {
    try open(at: url, seal: request, history: history, writer: writer, backups: .standard)
  }

  /// For tests that can't wait for a backup, and for stores that need none.
  static func open(
    at url: URL, seal request: SealRequest, history: HistoryRules = .standard, writer: WriterID, backups: BackupSchedule
  ) throws -> Store {
    try request.seal.check()
    try StoreFolder.create(url)
    let lock = try StoreLock(at: url.appendingPathComponent("lock"))
    do {
      return try open(at: url, lock, request, history, writer, backups)
    } catch {
      // All connections are closed, but may keep the lock for a moment.
      lock.release()
      throw error
    }
  }

  private static func open(
    at url: URL, _ lock: StoreLock, _ request: SealRequest, _ history: HistoryRules, _ writer: WriterID,
    _ backups: BackupSchedule
  ) throws -> Store {
    let (database, incidents) = try StoreError.translating("opening the store") {
      try StoreDatabase.open(StoreFiles(folder: url), lock: lock, seal: request, history: history, backups: backups)
    }
    let store = Store(url: url, writer: writer, database: database, lock: lock)
    do {
      if let mending = try store.write({ try begin(&$0) }) {
        store.database.report(StoreIncident(.rebuilt, mending.message))
      }
    } catch let error as StoreError where error.code == .diskFull {
      // With a full disk, the data can still be read. This is done before anything else is written.
      store.database.beforeNextWrite { [context = store.context, weak opened = store.database] database in
        var transaction = StoreTransaction(database, in: context)
        if let mending = try begin(&transaction) { opened?.report(StoreIncident(.rebuilt, mending.message)) }
        try History.prune(transaction)
      }
    } catch {
      try store.database.close()
      throw error
    }
    for incident in incidents { store.database.report(incident) }
    return store
  }

  /// Must run before anything else is written. Returns how the wallet was repaired, if that was necessary.
  private static func begin(_ transaction: inout StoreTransaction) throws -> WalletMending? {
    var random = SystemRandomNumberGenerator()
    let mending = try transaction.mendWallet()
    try DeviceCommit.opened(in: &transaction, using: &random)
    try History.sweep(transaction)
    return mending
  }

  private init(url: URL, writer: WriterID, database: StoreDatabase, lock: StoreLock) {
    self.url = url
    self.writer = writer
    self.database = database
    self.lock = lock
    commits = CommitQueue(database: database)
  }

  deinit {
    lock.willBeReleased()
    // A copy that is being made holds the folder's lock, and may take longer than anyone waits who opens it again.
    database.backup.stop()
  }

  /// Records that nobody uses the store any more, although it isn't closed: it ends when what was submitted is written,
  /// and opening its folder again in this process waits for that.
  package func willBeReleased() { lock.willBeReleased() }

  /// What the store encountered since it was opened and what it did about it, oldest first.
  package var incidents: [StoreIncident] { database.incidents }

  /// Why the last backup failed, if it did. Nothing else is wrong then; the next backup is made when it is due.
  package var backupFailure: StoreError? { database.backup.failure }

  /// Calls `observer` for each incident from now on, on the thread that notices it.
  package func onIncident(_ observer: @escaping @Sendable (StoreIncident) -> Void) { database.onIncident(observer) }

  /// Runs `body` on the store as of the last commit. Doesn't block writers and isn't blocked by any.
  package func read<Value>(_ body: (StoreTransaction) throws -> Value) throws -> Value {
    try StoreError.translating("reading") {
      try database.read { database in try body(StoreTransaction(database, in: context)) }
    }
  }

  /// Runs `body` in a transaction of its own and returns when it is durable. If it throws, nothing is changed.
  ///
  /// Blocks for one wait for the disk, and for the writes before it. Must not be called within another transaction.
  package func write<Value>(_ body: (inout StoreTransaction) throws -> Value) throws -> Value {
    defer { commits.checkpointIfDue() }
    return try StoreError.translating("writing") {
      do {
        return try database.write { database in
          var transaction = StoreTransaction(database, in: context)
          let value = try body(&transaction)
          try History.prune(transaction)
          return value
        }
      } catch {
        memory.forgetProven()
        throw error
      }
    }
  }

  /// Submits a commit of the game and returns immediately.
  ///
  /// Bytes are hashed and compressed off this thread. Waiting commits share a transaction but fail individually, in
  /// order: each continues from the lineage left by the ones before it that succeeded.
  ///
  /// - Parameters:
  ///   - finished: Called on the store's thread with the result, in the order of the commits, before anything that
  ///     waits for the commit continues.
  ///   - limit: How long this may block while 64 commits or 256 MiB are waiting; nil for no limit.
  /// - Throws: ``StoreError`` with `timedOut` after `limit`; the commit was not accepted then.
  package func submit(
    _ commit: GameCommit, finished: @escaping @Sendable (Result<GameCommit.Outcome, any Error>) -> Void = { _ in },
    within limit: Duration? = nil
  ) throws -> PendingCommit<GameCommit.Outcome> {
    try enqueue(commit.bytes, finished: finished, within: limit) { [writer] transaction, prepared, lineage in
      let outcome = try commit.apply(prepared, after: lineage, writer: writer, in: &transaction)
      lineage = outcome.lineage
      return outcome
    }
  }

  /// Submits a slot's move out of the cloud, or back. The result is the lineage that it leaves.
  package func submit(
    _ move: SlotMove, finished: @escaping @Sendable (Result<SaveLineage, any Error>) -> Void = { _ in }
  ) throws -> PendingCommit<SaveLineage> {
    try enqueue([], finished: finished, within: nil) { [writer] transaction, _, lineage in
      lineage = try move.apply(after: lineage, writer: writer, in: &transaction)
      return lineage
    }
  }

  /// Submits a commit that isn't the game's: `body` runs later, off this thread, in order with others, within a
  /// transaction in which the saves' bytes are already stored.
  package func submit<Value: Sendable>(
    _ saves: [SaveBytes] = [], finished: @escaping @Sendable (Result<Value, any Error>) -> Void = { _ in },
    within limit: Duration? = nil,
    _ body: @escaping @Sendable (inout StoreTransaction, [PreparedSave]) throws -> Value
  ) throws -> PendingCommit<Value> {
    try enqueue(saves, finished: finished, within: limit) { transaction, prepared, _ in try body(&transaction, prepared)
    }
  }

  private func enqueue<Value: Sendable>(
    _ saves: [SaveBytes], finished: @escaping @Sendable (Result<Value, any Error>) -> Void, within limit: Duration?,
    _ apply: @escaping @Sendable (inout StoreTransaction, [PreparedSave], inout SaveLineage) throws -> Value
  ) throws -> PendingCommit<Value> {
    let pending = PendingCommit<Value>()
    let outcome = CommitOutcome<Value>()
    let job = CommitQueue.Job(
      saves: saves,
      apply: { transaction, prepared, lineage in
        let value = try apply(&transaction, prepared, &lineage)
        outcome.value.withLock { $0 = value }
      },
      finish: { error in
        let result: Result<Value, any Error>
        if let error {
          result = .failure(error)
        } else if let value = outcome.value.withLock({ $0 }) {
          result = .success(value)
        } else {
          result = .failure(StoreError(.io, "a commit ended without a result"))
        }
        finished(result)
        pending.complete(result)
      })
    try commits.submit(job, until: limit.map { .now + $0 })
    return pending
  }

  /// What doesn't verify, reported as it is found. Nothing in a store without a seal.
  package var sealFindings: SealFindings { context.seal.findings }

  /// Returns how many rows were changed since the store was created, according to its ledger; nil without a seal. Only
  /// ever grows, unless an older copy of the store is restored, or the ledger was removed.
  package func changeCount() throws -> UInt64? {
    guard let key = context.seal.keys.first else { return nil }
    return try StoreError.translating("reading") {
      guard let ledger = try database.read({ try SealLedger.read(from: $0, key: key) }) else {
        throw SealFinding.rollback.error
      }
      return ledger.count
    }
  }

  /// Seals with the current secret everything that is still sealed with an earlier one. Costs a pass over the store and
  /// a write for each megabyte sealed; other writes may happen in between. If interrupted, the next call does the rest.
  package func reseal() throws {
    try requirePresence()
    try StoreError.translating("resealing") { try SealGate.reseal(database, context.seal, folder: url) }
  }

  /// Checks that the store's files are still the ones in its folder: only then does what is beside them belong to it.
  ///
  /// - Throws: `StoreError` with `removed` if they aren't, which is also reported as an incident.
  package func requirePresence() throws { try database.requirePresence() }

  /// Moves a file beside the database that can't be read into a new folder in `damaged`, durably, and reports that as
  /// an incident. Its name is free afterwards.
  ///
  /// - Parameters:
  ///   - name: The file's name in the store's folder.
  ///   - consequence: What is lost without it, as the end of a sentence for people.
  /// - Throws: `StoreError` with `removed` if the folder isn't the store's any more, or if the file can't be moved: it
  ///   is where it was then.
  package func setAside(_ name: String, because consequence: String) throws {
    try requirePresence()
    let folder = try StoreFiles(folder: url).setAside(name)
    database.report(
      StoreIncident(.setAside, "the file \(name) can't be read and is now in \(folder.path): \(consequence)"))
  }

  /// Whether the store is closed or being closed.
  package var isClosed: Bool { closed.withLock { $0 } }

  /// Waits until everything submitted so far is durable or has failed.
  package func drain(within limit: Duration? = nil) throws {
    let deadline = limit.map { ContinuousClock.now + $0 }
    try submit(within: limit) { _, _ in }.wait(within: deadline.map { $0 - .now })
  }

  /// Completes what was submitted and closes the store; then the folder can be opened again. Closing twice does
  /// nothing.
  ///
  /// - Throws: `timedOut` if that takes longer than `limit`; the commits then continue, and the store stays open until
  ///   they are done. `removed`, after closing, if the files aren't in the folder any more.
  package func close(within limit: Duration? = nil) throws {
    guard !closed.withLock({ $0 }) else { return }
    let deadline = limit.map { ContinuousClock.now + $0 }
    var removal: StoreError?
    do {
      try drain(within: limit)
    } catch let error as StoreError where error.code == .misuse && closed.withLock({ $0 }) {
      return  // Another call has closed it meanwhile.
    } catch var error as StoreError where error.code == .removed {
      // Nothing of the game's was in that commit.
      error.setMayBeCommitted(false)
      removal = error
    } catch let error as StoreError where [.damaged, .io, .diskFull, .notPermitted].contains(error.code) {
      // The disk or the database refuses every write. What was submitted has failed and reported that. A store in
      // trouble has to be closed before it can be opened again and repaired.
    }
    guard
      closed.withLock({ closed in
        defer { closed = true }
        return !closed
      })
    else { return }
    commits.close()
    defer { lock.release() }
    try StoreError.translating("closing the store") { try database.close(until: deadline) }
    if let removal { throw removal }
  }
}

/// The value that applying a commit returned, held until the transaction is durable.
private final class CommitOutcome<Value: Sendable>: Sendable {
  let value = Mutex<Value?>(nil)
}
