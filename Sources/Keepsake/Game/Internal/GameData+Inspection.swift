package import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// What a device and its cloud still owe each other, as it stands in the store.
package struct SyncDebt: Hashable, Sendable {
  /// Commits that aren't certain in the cloud, refused ones included.
  package var waitingCommits: Int
  /// Why the cloud refused some of them.
  package var refusals: [Refusal]
  /// The bank doesn't know all that was done with the money.
  package var hasUnreportedMoney: Bool
  /// Came from the cloud, and waits for something before the game sees it; not what the game itself keeps back.
  package var staged: Int
  /// How far the cloud was heard.
  package var cursor: Cursor
}

/// For tests of games, which look from outside.
extension GameData {
  package var isClosed: Bool { closed.withLock { $0 } }

  /// What this device and its cloud owe each other. Throws `StoreError`.
  package func debt() throws -> SyncDebt {
    try core.store.read { transaction in
      let groups = try transaction.outbox(limit: try transaction.outboxCount())
      let facts = try transaction.facts()
      let wallet = try transaction.wallet().map { KeepsakeReplication.Wallet($0) }
      return SyncDebt(
        waitingCommits: groups.count, refusals: groups.flatMap(\.refusals), hasUnreportedMoney: wallet?.hasUnreportedOperations ?? false,
        staged: facts.hasArrivals ? 0 : try transaction.staged().count, cursor: facts.cursor)
    }
  }

  /// Returns when all that was captured and set is durable, or has failed and said so.
  package func commitEverything() async throws {
    try await preferences.flush()
    try await core.store.submit { _, _ in }.value
  }

  /// Returns when the game shows all that has come from its cloud into the store by now, and how its synchronization is.
  package func showEverything() async { await cloud.connection.waitForNotifications() }

  /// Runs `body` while the files of this data only grow: it can copy them one after the other, and has what a crash at one moment would leave.
  ///
  /// A reader holds the write-ahead log in place: nothing of it goes into the database meanwhile, and it isn't begun anew. What is
  /// being committed stands at the log's end, perhaps by half; SQLite leaves out what has no end when it opens such files.
  package func whileStill<Value>(_ body: () throws -> Value) throws -> Value {
    try core.store.read { transaction in
      // The reader has its place in the log from its first look on.
      _ = try transaction.facts()
      return try records.whileStill(body)
    }
  }
}
