/// What a cloud tells a player's devices about the ways back to the player.
package struct RecoveryFacts: Hashable, Sendable, Codable {
  /// When the recovery code was made; nil if there is none.
  package var createdMilliseconds: Int64?
  /// By which the device that made it knows it.
  package var digest: ContentHash?
  /// How many devices the player has, with the one that asks.
  package var devices: Int
  /// How many identities lead to the player; nil from a server that knows none.
  package var identities: Int?

  package init(createdMilliseconds: Int64?, digest: ContentHash?, devices: Int, identities: Int? = nil) {
    self.createdMilliseconds = createdMilliseconds
    self.digest = digest
    self.devices = devices
    self.identities = identities
  }
}
