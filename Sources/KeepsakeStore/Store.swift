package import Foundation
package import KeepsakeReplication
import Synchronization

/// Everything that one player's game keeps on this device, in one folder: a SQLite database and a lock.
///
/// Writes are serial and durable: `write` returns when the disk has it (`synchronous=FULL`, and a full flush of the drive on
/// Apple's systems). Reads see the last commit and run beside a write, so that loading never waits for the disk to finish
/// another save: that is why it is a pool of connections over a write-ahead log and not a single one.
package final class Store: Sendable {
  /// The database's name in the store's folder.
  package static let databaseName = "store.sqlite"

  /// The folder.
  package let url: URL
  /// Minted at each opening; no other opening of this store or of a copy of it has the same.
  package let writer: WriterID

  let database: StoreDatabase
  private var context: StoreContext { database.context }
  var memory: ContentMemory { context.memory }
  private let lock: StoreLock
  private let commits: CommitQueue
  private let closed = Mutex(false)

  /// Opens the store in the folder at `url`, or makes it.
  ///
  /// Throws `StoreError`: `inUse` if another opener holds it, `newerFormat` with nothing touched if a newer release wrote
  /// it, `damaged` if nothing of it can be read and there is no backup; `otherSeal`, `wrongSecret` or `tampered`, with nothing
  /// touched, if its seal is not as asked for. Any other damage is repaired first, which `incidents` tells: what can be read goes
  /// into a new database, and the damaged files are set aside in the folder `damaged`.
  package static func open(at url: URL, seal: SealRequest = .none, history: HistoryRules = .standard) throws -> Store {
    var random = SystemRandomNumberGenerator()
    return try open(at: url, seal: seal, history: history, writer: WriterID(using: &random))
  }

  /// For tests that need to know the writer.
  package static func open(
    at url: URL, seal request: SealRequest = .none, history: HistoryRules = .standard, writer: WriterID
  ) throws -> Store {
    try open(at: url, seal: request, history: history, writer: writer, backups: .standard)
  }

  /// For tests that can't wait for a backup.
  static func open(
    at url: URL, seal request: SealRequest, history: HistoryRules = .standard, writer: WriterID, backups: BackupSchedule
  ) throws -> Store {
    try makeFolder(url)
    let lock = try StoreLock(at: url.appendingPathComponent("lock"))
    let (database, incidents) = try StoreError.translating("opening the store") {
      try StoreDatabase.open(StoreFiles(folder: url), seal: request, history: history, backups: backups)
    }
    let store = Store(url: url, writer: writer, database: database, lock: lock)
    do {
      if let mending = try store.write({ try begin(&$0) }) { store.database.report(StoreIncident(.rebuilt, mending.message)) }
    } catch let error as StoreError where error.code == .diskFull {
      // Whoever has no room left can still look at what is kept, and nothing is written before this is.
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

  /// Comes before anything else is written. Says how the wallet was mended, if it had to be.
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

  /// What the store met by itself since it was opened and what it did about it, oldest first.
  package var incidents: [StoreIncident] { database.incidents }

  /// Why the last backup failed, if it did. Nothing else is wrong then; the next one is tried when its time has come.
  package var backupFailure: StoreError? { database.backup.failure }

  /// Calls `observer` for each incident from now on, where it is noticed.
  package func onIncident(_ observer: @escaping @Sendable (StoreIncident) -> Void) { database.onIncident(observer) }

  /// Lends the store as it is after the last commit. Blocks no writer and is blocked by none.
  package func read<Value>(_ body: (StoreTransaction) throws -> Value) throws -> Value {
    try StoreError.translating("reading") {
      try database.read { database in try body(StoreTransaction(database, in: context)) }
    }
  }

  /// Runs `body` in a transaction of its own and returns when it is durable; nothing has happened if it throws.
  ///
  /// Blocks for one wait on the disk, and for the writes before it. Not to be called from within another transaction.
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

  /// Takes a commit of the game and returns at once.
  ///
  /// Bytes are hashed and compressed off this thread. Commits that wait share a transaction and fail apart, in order: each goes on from what
  /// those before it that succeeded left behind.
  ///
  /// - Parameters:
  ///   - finished: Called on the store's thread with the result, in the order of the commits, before whoever waits goes on.
  ///   - limit: For how long this may block while 64 commits or 256 MiB wait; nil for any time.
  /// - Throws: ``StoreError`` with `timedOut`, with nothing taken, after `limit`.
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

  /// The same for a slot that leaves the cloud, or comes back. Gives what it leaves behind.
  package func submit(
    _ move: SlotMove, finished: @escaping @Sendable (Result<SaveLineage, any Error>) -> Void = { _ in }
  ) throws -> PendingCommit<SaveLineage> {
    try enqueue([], finished: finished, within: nil) { [writer] transaction, _, lineage in
      lineage = try move.apply(after: lineage, writer: writer, in: &transaction)
      return lineage
    }
  }

  /// The same for a commit that isn't the game's: `body` runs later, off this thread, in order with others, within a transaction in which the
  /// saves' bytes are kept already.
  package func submit<Value: Sendable>(
    _ saves: [SaveBytes] = [], finished: @escaping @Sendable (Result<Value, any Error>) -> Void = { _ in }, within limit: Duration? = nil,
    _ body: @escaping @Sendable (inout StoreTransaction, [PreparedSave]) throws -> Value
  ) throws -> PendingCommit<Value> {
    try enqueue(saves, finished: finished, within: limit) { transaction, prepared, _ in try body(&transaction, prepared) }
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

  /// What doesn't verify, as it is found; nothing in a store without a seal.
  package var sealFindings: SealFindings { context.seal.findings }

  /// How many rows were changed since the store was made, as its ledger says; nil without a seal. Only ever grows, unless an
  /// older copy of the store is put back, or the ledger was taken out.
  package func changeCount() throws -> UInt64? {
    guard let key = context.seal.keys.first else { return nil }
    return try StoreError.translating("reading") {
      guard let ledger = try database.read({ try SealLedger.read(from: $0, key: key) }) else {
        throw SealFinding.rollback.error
      }
      return ledger.count
    }
  }

  /// Seals everything with the current secret that an earlier one still seals. Costs a pass over the store and a write for each
  /// megabyte that is sealed anew; others may write between. If it is interrupted, the next call does the rest.
  package func reseal() throws {
    try StoreError.translating("sealing anew") { try SealGate.reseal(database, context.seal, folder: url) }
  }

  /// Whether it was closed, or is just being.
  package var isClosed: Bool { closed.withLock { $0 } }

  /// Waits until everything that was submitted before is durable or has failed.
  package func drain(within limit: Duration? = nil) throws {
    let deadline = limit.map { ContinuousClock.now + $0 }
    try submit(within: limit) { _, _ in }.wait(within: deadline.map { $0 - .now })
  }

  /// Finishes what was submitted and closes the store; the folder can be opened again. Closing twice does nothing.
  ///
  /// Throws `timedOut` if that takes longer; the commits then go on, and the store stays open until they are done.
  package func close(within limit: Duration? = nil) throws {
    guard !closed.withLock({ $0 }) else { return }
    let deadline = limit.map { ContinuousClock.now + $0 }
    do {
      try drain(within: limit)
    } catch let error as StoreError where [.damaged, .io, .diskFull, .notPermitted].contains(error.code) {
      // The disk or the database refuses every write. What was submitted has failed and said so; a store in trouble has to be
      // closed before it can be opened again and repaired.
    }
    guard
      closed.withLock({ closed in
        defer { closed = true }
        return !closed
      })
    else { return }
    commits.close()
    try StoreError.translating("closing the store") { try database.close(until: deadline) }
    lock.release()
  }

  private static func makeFolder(_ url: URL) throws {
    var isFolder: ObjCBool = false
    if FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) {
      guard isFolder.boolValue else { throw StoreError(.misuse, "\(url.path) is a file, a store is a folder") }
      return
    }
    do {
      try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    } catch {
      throw StoreError(.notPermitted, "the folder \(url.path) can't be made", cause: error)
    }
    try AtomicFile.syncFolder(url.deletingLastPathComponent().path)
  }
}

/// What applying a commit gave, until the transaction around it is durable.
private final class CommitOutcome<Value: Sendable>: Sendable {
  let value = Mutex<Value?>(nil)
}
