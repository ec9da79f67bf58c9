/// What a cloud tells a player's devices about the recovery code.
package struct RecoveryFacts: Hashable, Sendable, Codable {
  /// When it was made; nil if there is none.
  package var createdMilliseconds: Int64?
  /// How many devices the player has, with the one that asks.
  package var devices: Int

  package init(createdMilliseconds: Int64?, devices: Int) {
    self.createdMilliseconds = createdMilliseconds
    self.devices = devices
  }
}
