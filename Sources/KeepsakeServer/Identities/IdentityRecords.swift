#if Cloud
import KeepsakeReplication

/// What came of linking an identity.
enum IdentityLink: Hashable, Sendable {
  case linked(LinkedIdentity)
  /// It leads to another player.
  case taken
  /// Another device has used its proof, or this one has, and it leads nowhere since.
  case used
  /// The player has as many as one may have.
  case tooMany
}

/// What came of signing in.
enum IdentitySignIn: Hashable, Sendable {
  case joined(DeviceIdentity)
  /// It leads to no player.
  case unknown
  /// It leads to the player of the device that asks.
  case own
  /// Another device has used its proof.
  case used
}

/// A device that is about to be recorded.
struct NewDevice: Hashable, Sendable {
  var device: DeviceID
  var name: String
}
#endif
