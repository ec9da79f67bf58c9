#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import Logging
import Synchronization

/// Finding out at the start that the database was set back to a backup: every bank begins a new epoch then.
extension SQLiteCloudStorage {
  /// Compares a database with its witness at the start, and begins a new epoch if it is a backup.
  ///
  /// - Parameter witness: Nil for a database that has none.
  /// - Returns: The epoch of all banks.
  static func begin(_ pool: DatabasePool, _ witness: DatabaseWitness?, now: Int64, logger: Logger) throws -> UInt64 {
    let seen = try witness?.read() ?? .missing
    let (epoch, generation, cause) = try pool.write { db -> (UInt64, UInt64, EpochCause?) in
      var generation = try CloudNumber.generation.value(in: db)
      var cause: EpochCause?
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

  func beginEpoch(after known: UInt64, now: Int64) async throws -> UInt64? {
    let begun = try await committer.write(for: nil) { db -> UInt64? in
      guard try CloudNumber.bankEpoch.value(in: db) == known else { return nil }
      return try CloudNumber.beginEpoch(in: db, now: now)
    }
    if let begun { epoch.withLock { $0 = max($0, begun) } }
    return begun
  }

  func frozenBanks(after container: ContainerID?, epoch: UInt64) async throws -> FrozenBanks {
    let page = try await reading { try BankPage(after: container, epoch: epoch, in: $0) }
    return FrozenBanks(
      containers: page.entries.filter(\.bank.isFrozen).map(\.container), unreadable: page.unreadable,
      next: page.next)
  }
}
#endif
