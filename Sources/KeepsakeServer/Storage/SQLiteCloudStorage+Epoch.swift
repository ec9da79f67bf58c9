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
    let shown = try await read(container) { storage in
      // Of a deleted player's bank, nothing is left to compare with.
      try storage.refuseRetired(nil)
      return try CloudAcceptance.laterStatement(in: offer, rules: rules, in: storage)
    }
    guard let shown else { return }
    let now = clock()
    guard shown.epoch < CloudNumber.epoch(after: rules.epoch, now: now) else {
      // A player's bank may have a number of its own; the others' must not depend on it.
      logger.warning(
        "A device has a statement of a later epoch than the server's clock gives: only its player's bank is frozen.",
        metadata: ["epoch": "\(shown.epoch)"])
      return
    }
    let begun = try await committer.write { db -> UInt64? in
      // Another device may have shown one meanwhile.
      guard try CloudNumber.bankEpoch.value(in: db) == rules.epoch else { return nil }
      return try CloudNumber.beginEpoch(in: db, now: now)
    }
    guard let begun else { return }
    epoch.withLock { $0 = max($0, begun) }
    logger.warning(Cause.shown.message, metadata: ["epoch": "\(begun)"])
  }

  // MARK: Releasing

  func releaseBank(of container: ContainerID, rules: BankRules) async throws -> UInt64? {
    let now = clock()
    return try await transaction(on: container) { storage in
      var source = SystemRandomNumberGenerator()
      let isReleased = try CloudAcceptance.releaseBank(now: now, rules: rules, in: &storage, using: &source)
      return isReleased ? try storage.position().seq : nil
    }
  }

  func releaseBanks(after container: ContainerID?, rules: BankRules) async throws -> ReleasedBanks {
    let page = try await pool.read { try BankPage(after: container, epoch: rules.epoch, in: $0) }
    let frozen = page.entries.filter(\.bank.isFrozen).map(\.container)
    // Together: they share their commits.
    let released = try await withThrowingTaskGroup(of: (ContainerID, UInt64)?.self) { group in
      for container in frozen {
        group.addTask {
          do {
            return try await self.releaseBank(of: container, rules: rules).map { (container, $0) }
          } catch let error as APIError where error.code == .retired {
            // Everything of the player was deleted meanwhile.
            return nil
          }
        }
      }
      return try await group.reduce(into: [ContainerID: UInt64]()) { all, one in
        if let one { all[one.0] = one.1 }
      }
    }
    return ReleasedBanks(seqs: released, unreadable: page.unreadable, next: page.next)
  }
}
#endif
