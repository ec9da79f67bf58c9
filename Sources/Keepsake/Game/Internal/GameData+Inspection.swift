package import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// What a device and its cloud still have to exchange, according to the store.
package struct SyncDebt: Hashable, Sendable {
  /// Commits that aren't certain to be in the cloud, including refused ones.
  package var waitingCommits: Int
  /// The reasons why the cloud refused some of them.
  package var refusals: [Refusal]
  /// Whether there are wallet operations that the bank doesn't know yet.
  package var hasUnreportedMoney: Bool
  /// The number of changes received from the cloud that can't be shown to the game yet. Doesn't count changes that the
  /// game itself holds back.
  package var staged: Int
  /// How far this device has come in the cloud's changes.
  package var cursor: Cursor
}

/// For tests of games, which have no access to the internals.
extension GameData {
  package var isClosed: Bool { closed.withLock { $0 } }

  /// Returns what this device and its cloud still have to exchange. Throws `StoreError`.
  package func debt() throws -> SyncDebt {
    try core.store.read { transaction in
      let groups = try transaction.outbox(limit: try transaction.outboxCount())
      let facts = try transaction.facts()
      let wallet = try transaction.wallet().map { KeepsakeReplication.Wallet($0) }
      return SyncDebt(
        waitingCommits: groups.count, refusals: groups.flatMap(\.refusals),
        hasUnreportedMoney: wallet?.hasUnreportedOperations ?? false,
        staged: facts.hasArrivals ? 0 : try transaction.staged().count, cursor: facts.cursor)
    }
  }

  /// Waits until everything captured and set is durable, or has failed and reported its error.
  package func commitEverything() async throws {
    try await preferences.flush()
    try await core.store.submit { _, _ in }.value
  }

  /// Waits until the game shows everything that the store has received from the cloud so far, and the current sync
  /// status.
  package func showEverything() async { await cloud.connection.waitForNotifications() }

  /// Runs `body`, which can copy the files of this data one after the other: the copy is in the state that a crash at a
  /// single moment would leave.
  ///
  /// An open reader holds the write-ahead log in place. The log isn't restarted, what is moved into the database stays
  /// in the log too, and commits after the reader's first read aren't moved. A commit in progress may be only partly
  /// written at the end of the log; SQLite ignores such an incomplete end when it opens the files.
  package func whileStill<Value>(_ body: () throws -> Value) throws -> Value {
    try core.store.read { transaction in
      // A reader gets its position in the log at its first read.
      _ = try transaction.facts()
      return try records.whileStill(body)
    }
  }
}
