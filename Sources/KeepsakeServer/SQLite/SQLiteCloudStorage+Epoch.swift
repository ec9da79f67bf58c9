#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import Logging
import Synchronization

/// Finding out that the database was set back to a backup, and what happens then: every bank begins a new epoch.
extension SQLiteCloudStorage {
  /// Why every bank begins a new epoch.
  private enum Cause: String {
    case marked = "The database is a backup that was restored (`keepsake cloud restore`, `keepsake bank restored`)."
    case olderDatabase = "The database is older than its folder: a copy of it was put back."
    case damagedWitness = "The file `witness` of the data folder can't be read, so the database may be an older copy."
    case shown = "A device has a later statement of its bank: the data folder was set back, and nobody has said so."

    var message: Logger.Message {
      """
      \(rawValue) Players' money is frozen until their devices have shown what they were granted since; \
      `keepsake bank status` lists for which devices it waits.
      """
    }
  }

  /// Compares a database with its witness at the start, and begins a new epoch if it is a backup.
  ///
  /// - Parameter witness: Nil for a database that has none.
  /// - Returns: The epoch of all banks.
  static func begin(_ pool: DatabasePool, _ witness: DatabaseWitness?, now: Int64, logger: Logger) throws -> UInt64 {
    let seen = try witness?.read() ?? .missing
    let (epoch, generation, cause) = try pool.write { db -> (UInt64, UInt64, Cause?) in
      var generation = try CloudNumber.generation.value(in: db)
      var cause: Cause?
      switch seen {
      case .missing: break
      case .damaged: cause = .damagedWitness
      case .generation(let number):
        if number > generation { cause = .olderDatabase }
        generation = max(generation, number)
      }
      if try CloudNumber.isRestored.value(in: db) > 0 { cause = .marked }
      if witness != nil { try CloudNumber.generation.set(generation + 1, in: db) }
      let epoch =
        cause == nil ? try CloudNumber.bankEpoch.value(in: db) : try CloudNumber.beginEpoch(in: db, now: now)
      return (epoch, generation + 1, cause)
    }
    try witness?.write(generation)
    if let cause { logger.warning(cause.message, metadata: ["epoch": "\(epoch)"]) }
    return epoch
  }

  var bankEpoch: UInt64 { epoch.withLock { $0 } }

  func noticeRestore(by offer: WalletOffer, of container: ContainerID, rules: BankRules) async throws {
    // Only a store that was asked shows its statement.
    guard offer.proof != nil else { return }
    let snapshot = try await load(Self.reads(of: offer), of: container)
    // Of a deleted player's bank, nothing is left to compare with.
    if snapshot.isDeleted { throw APIError.retired }
    let shown = try CloudAcceptance.laterStatement(in: offer, rules: rules, in: SnapshotContainer(snapshot))
    guard let shown else { return }
    let now = clock()
    guard shown.epoch < CloudNumber.epoch(after: rules.epoch, now: now) else {
      // A player's bank may have a number of its own; the others' must not depend on it.
      logger.warning(
        "A device has a statement of a later epoch than the server's clock gives: only its player's bank is frozen.",
        metadata: ["epoch": "\(shown.epoch)"])
      return
    }
    let begun = try await committer.write(for: nil) { db -> UInt64? in
      // Another device may have shown one meanwhile.
      guard try CloudNumber.bankEpoch.value(in: db) == rules.epoch else { return nil }
      return try CloudNumber.beginEpoch(in: db, now: now)
    }
    guard let begun else { return }
    epoch.withLock { $0 = max($0, begun) }
    logger.warning(Cause.shown.message, metadata: ["epoch": "\(begun)"])
  }

  private static func reads(of offer: WalletOffer) -> ReadSet {
    var reads = ReadSet()
    (reads.bank.state, reads.bank.closedChains) = (true, [offer.chain])
    return reads
  }

  func frozenBanks(after container: ContainerID?, epoch: UInt64) async throws -> FrozenBanks {
    let page = try await reading { try BankPage(after: container, epoch: epoch, in: $0) }
    return FrozenBanks(
      containers: page.entries.filter(\.bank.isFrozen).map(\.container), unreadable: page.unreadable,
      next: page.next)
  }
}
#endif
