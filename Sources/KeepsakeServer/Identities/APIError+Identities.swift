#if Cloud
import HTTPTypes

/// What goes wrong when somebody signs in.
extension APIError {
  static let issuerUnknown = Self(
    .notFound, .issuerUnknown, "This server knows no issuer of identities of this name.")

  /// The proof of an identity is no good.
  static func identityRefused(_ reason: String) -> Self {
    Self(.forbidden, .identityRefused, "This proves no identity: \(reason).")
  }

  /// It can't be checked at present.
  static func identityUnavailable(_ reason: String) -> Self {
    Self(
      .serviceUnavailable, .identityUnavailable, "The identity can't be checked: \(reason).",
      retryAfterSeconds: Int(KeyRing.pauseMilliseconds / 1_000))
  }

  static let identityUsed = identityRefused(
    "another device, or this one for something else, has used it; sign in at its issuer again")

  static let identityUnknown = Self(.notFound, .identityUnknown, "This identity leads to no player.")

  static let identityTaken = Self(
    .conflict, .identityTaken,
    """
    This identity leads to another player: the device can become one of that player's, with its data, or stay apart \
    without the identity.
    """)

  static let tooManyIdentities = Self(
    .conflict, .tooManyIdentities,
    "A player can have at most \(ServerLimits.identitiesPerPlayer) identities: remove one first.")
}
#endif
