#if Cloud
import KeepsakeReplication
import Logging

/// Why every bank begins a new epoch.
enum EpochCause: String {
  case marked = "The database is a backup that was restored (`keepsake cloud restore`, `keepsake bank restored`)."
  case olderDatabase = "The database is older than its folder: a copy of it was put back."
  case damagedWitness = "The file `witness` of the data folder can't be read, so the database may be an older copy."
  case shown = "A device has a later statement of its bank: the database was set back, and nobody has said so."

  var message: Logger.Message {
    """
    \(rawValue) Players' money is frozen until their devices have shown what they were granted since; \
    `keepsake bank status` lists for which devices it waits.
    """
  }
}

extension CloudStorage {
  /// If an offer proves that its bank was set back to a backup and nobody has said so, begins a new epoch of all banks.
  ///
  /// - Parameter rules: Those of the container's bank.
  func noticeRestore(by offer: WalletOffer, of container: ContainerID, rules: BankRules) async throws {
    // Only a store that was asked shows its statement.
    guard offer.proof != nil else { return }
    var reads = ReadSet()
    (reads.bank.state, reads.bank.closedChains) = (true, [offer.chain])
    let snapshot = try await load(reads, of: container)
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
    // Another device may have shown one meanwhile.
    guard let begun = try await beginEpoch(after: rules.epoch, now: now) else { return }
    logger.warning(EpochCause.shown.message, metadata: ["epoch": "\(begun)"])
  }
}
#endif
