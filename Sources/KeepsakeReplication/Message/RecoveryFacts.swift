/// What a cloud tells a player's devices about the recovery code.
package struct RecoveryFacts: Hashable, Sendable, Codable {
  /// When it was made; nil if there is none.
  package var createdMilliseconds: Int64?
  /// By which the device that made it knows it.
  package var digest: ContentHash?
  /// How many devices the player has, with the one that asks.
  package var devices: Int

  package init(createdMilliseconds: Int64?, digest: ContentHash?, devices: Int) {
    self.createdMilliseconds = createdMilliseconds
    self.digest = digest
    self.devices = devices
  }
}
