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

/// What is known of an identity that leads to a player.
struct FoundIdentity {
  var container: ContainerID
  var player: PlayerID
  var issuer: String
  var created: Int64
  /// The device that signed in last, by what it was then and what it became.
  var joiner: DeviceID?
  var joined: DeviceID?

  func device(_ id: DeviceID, for app: AppID) -> DeviceIdentity {
    DeviceIdentity(device: id, player: player, container: container, app: app)
  }
}

/// Whether a device may use a proof: it may, something has come of the proof already, or another device has shown it.
enum IdentityUse { case first, again, refused }
#endif
