import KeepsakeReplication
import KeepsakeStore

extension GameCore {
  /// Makes a slot local. Durable on return.
  func keepLocal(_ slot: String, removing: Bool) throws {
    // Throws if the save is damaged, so that no damage is carried over. Read before the transaction, which blocks other
    // saves.
    try store.read { transaction in
      guard try !transaction.isLocal(slot), let winner = try Resolution.view(of: slot, in: transaction).winner else {
        return
      }
      _ = try SlotReading.side(winner, in: transaction)
    }
    try commits.submit(SlotMove(of: slot, .leave(removing: removing), now: environment.nowMilliseconds()))
  }

  /// Makes a local slot synced again. Durable on return.
  func syncAgain(_ slot: String) throws {
    try commits.submit(SlotMove(of: slot, .comeBack, now: environment.nowMilliseconds()))
  }
}
