import KeepsakeReplication
import KeepsakeStore

extension GameCore {
  /// Takes what stands in the slot out of the cloud's reach. Durable when it returns.
  func keepLocal(_ slot: String, removing: Bool) throws {
    // Nothing damaged is carried on. Read before the transaction, which keeps other saves waiting.
    try store.read { transaction in
      guard try !transaction.isLocal(slot), let winner = try Resolution.view(of: slot, in: transaction).winner else { return }
      _ = try SlotReading.side(winner, in: transaction)
    }
    try commits.submit(SlotMove(of: slot, .leave(removing: removing), now: environment.nowMilliseconds()))
  }

  /// Takes that back. Durable when it returns.
  func syncAgain(_ slot: String) throws { try commits.submit(SlotMove(of: slot, .comeBack, now: environment.nowMilliseconds())) }
}
