#if Cloud
import KeepsakeReplication

@testable import KeepsakeServer

extension DecidingStorage {
  /// Makes a decision that counts: one more change, and one more gem in the bank.
  func addGem(to container: ContainerID, mark: UInt64) async throws {
    try await decide(on: container) { container in
      var position = container.position()
      position.seq += 1
      position.mark = mark
      container.advance(to: position)
      var bank = try container.bank()
      bank.pool["gems", default: 0] += 1
      container.setBank(bank)
    }
  }
}
#endif
