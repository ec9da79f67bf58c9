#if Cloud
package import Foundation

/// Proves who a player is at a service whose proofs only that service can check: Steam's tickets, Play Games' codes,
/// Game Center's signatures.
///
/// Whoever runs the server with `KeepsakeServer.run` passes one for each such service, in
/// `ServerConfiguration.identityVerifiers`, by the name with which games sign in. The server calls it for each proof,
/// from many tasks at once, at most 64 for each verifier, and never while it holds its database's writer: a slow
/// service delays nobody but those who sign in with it. It isn't asked for a device whose proofs were refused ten times
/// in ten minutes; since anybody can register devices, a proof must be too long to be guessed.
package protocol IdentityVerifier: Sendable {
  /// Returns who made a proof.
  ///
  /// - Parameter proof: What the game has sent. Nothing of it was checked but its size.
  /// - Returns: The subject: 1 to 512 bytes that the service never gives to anyone else, and that stay the same for
  ///   this player whatever name, device or proof they have. Case and spaces count. Only a hash of it is stored.
  /// - Throws: `IdentityFailure`, with `refused` for a proof that is wrong, too old, for another game or used before
  ///   (the game is told the reason, and it counts against the device), and `unavailable` if the service couldn't be
  ///   asked (the game may try the same proof again). Any other error counts as `unavailable` and is logged. So does a
  ///   call that takes longer than ten seconds: its task is cancelled then, and what it still returns is ignored; it
  ///   counts among the 64 until it ends.
  func subject(of proof: IdentityProof) async throws -> String
}

/// What a game sends to prove who its player is.
package struct IdentityProof: Sendable {
  /// Up to 8,192 bytes of text in UTF-8, such as a ticket in hexadecimal.
  package var bytes: Data
  /// Identifies the game: the first 8 bytes of the SHA-256 of its app key, in hexadecimal. A verifier that serves
  /// several games must not accept a proof that was made for another one.
  package var app: String

  package init(bytes: Data, app: String) {
    self.bytes = bytes
    self.app = app
  }
}

/// Why a proof doesn't say who a player is.
package struct IdentityFailure: Error, Hashable, CustomStringConvertible {
  package enum Kind: Hashable, Sendable {
    /// The proof is no good.
    case refused
    /// It couldn't be checked now.
    case unavailable
  }
  package var kind: Kind
  /// What the game is told: half a sentence, without anything secret.
  package var reason: String

  package init(_ kind: Kind, _ reason: String) {
    self.kind = kind
    self.reason = reason
  }

  static func refused(_ reason: String) -> Self { Self(.refused, reason) }
  static func unavailable(_ reason: String) -> Self { Self(.unavailable, reason) }

  package var description: String { reason }
}
#endif
