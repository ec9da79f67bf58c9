/// An identity of another service that leads to a player, as the cloud tells the player's devices.
package struct LinkedIdentity: Hashable, Sendable, Codable {
  /// A hash of who it is: the same whenever the same identity is linked.
  package var id: ContentHash
  /// The name of its issuer in the cloud's configuration.
  package var issuer: String
  package var createdMilliseconds: Int64

  package init(id: ContentHash, issuer: String, createdMilliseconds: Int64) {
    self.id = id
    self.issuer = issuer
    self.createdMilliseconds = createdMilliseconds
  }
}

/// The response to a request for a player's identities.
package struct IdentityList: Hashable, Sendable, Codable {
  package var identities: [LinkedIdentity]

  package init(identities: [LinkedIdentity]) { self.identities = identities }
}
