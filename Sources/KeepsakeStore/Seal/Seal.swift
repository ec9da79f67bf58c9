public import Foundation

/// How what a game keeps is protected against other hands: not at all, signed, or sealed.
///
///     let game = try GameData.open("com.example.space", seal: .signed(secret))
///
/// A checksum stands on everything in any case; it finds accidents, not intent. `signed` finds what was changed by somebody
/// without the secret and leaves everything readable. `sealed` encrypts as well. Both cover saved games, progress and the
/// wallet, and bind each row to its place, its store, the game, the profile and, if given, the player: a row from elsewhere
/// doesn't verify.
///
/// The secret is in the game, so whoever takes the game apart has it. `docs/THREAT_MODEL.md` says what that means.
///
/// A commit costs a few HMACs more for each row that it writes, beside a wait for the disk; `sealed` encrypts what it stores.
/// Opening passes over all rows and verifies them, but not the bytes of saved games, which are checked when they are loaded.
public struct Seal: Sendable {
  /// What is done.
  public enum Kind: String, Sendable, Hashable, Codable {
    /// Checksums only.
    case none
    /// HMAC-SHA256: readable, and any change is found.
    case signed
    /// ChaCha20-Poly1305: neither readable nor changeable. Names of slots and keys, sizes, times of files and ids stay in clear.
    case sealed
  }

  /// What happens with what doesn't verify, though its checksum is right: with what somebody made, not what a disk broke.
  public enum Policy: String, Sendable, Hashable {
    /// It is used, and reported as an incident. What is encrypted can't be used and is set aside.
    case flag
    /// It is set aside, kept and reported, as damage would be; the newest version that verifies stands in its place.
    case quarantine
    /// Opening, or the call that meets it, throws `StoreError.Code.tampered`. Nothing is changed.
    case reject
  }

  /// The shortest secret that is taken, in bytes.
  public static let minimumSecretBytes = 16

  /// What is done.
  public let kind: Kind
  /// What happens with what doesn't verify.
  public let policy: Policy

  /// The secret in use first, then those before it.
  let secrets: [Data]
  let player: String?
  let adoptsUnsealed: Bool

  /// Checksums only.
  public static let none = Seal(kind: .none, policy: .quarantine, secrets: [], player: nil, adoptsUnsealed: false)

  /// Signs everything that is kept.
  ///
  /// - Parameters:
  ///   - secret: At least 16 bytes, better 32 random ones. The same in every copy of the game.
  ///   - previous: Secrets of earlier releases. What they signed is still taken, and signed anew as it is written, at each
  ///     opening a few megabytes, and wholly by `GameData.reseal()`. Once that has happened they no longer count.
  ///   - player: An identifier of the player, such as an account's. Another player's data then isn't taken even as a whole.
  ///     The same at every opening.
  ///   - policy: `quarantine`, unless told otherwise: an edit gains nothing, and no player is locked out.
  ///   - adoptsUnsealed: Signs what an earlier release kept without a seal, once. A game that was never without one leaves
  ///     this false: whoever can remove a seal could otherwise have anything signed.
  public static func signed(
    _ secret: some Sequence<UInt8>, previous: [Data] = [], player: String? = nil, policy: Policy = .quarantine,
    adoptsUnsealed: Bool = false
  ) -> Seal {
    Seal(
      kind: .signed, policy: policy, secrets: [Data(secret)] + previous, player: player, adoptsUnsealed: adoptsUnsealed)
  }

  /// Encrypts and authenticates everything that is kept. The parameters are those of `signed`.
  public static func sealed(
    _ secret: some Sequence<UInt8>, previous: [Data] = [], player: String? = nil, policy: Policy = .quarantine,
    adoptsUnsealed: Bool = false
  ) -> Seal {
    Seal(
      kind: .sealed, policy: policy, secrets: [Data(secret)] + previous, player: player, adoptsUnsealed: adoptsUnsealed)
  }

  /// Throws `misuse` for what can be seen to be wrong before any store is looked at.
  func check() throws {
    guard kind != .none else { return }
    for secret in secrets where secret.count < Self.minimumSecretBytes {
      throw StoreError(
        .misuse,
        "a secret of \(secret.count) bytes can be guessed: give \(Self.minimumSecretBytes) at least, better 32 random ones")
    }
    if player?.isEmpty == true {
      throw StoreError(.misuse, "the player's identifier is empty: every player without one would be the same")
    }
  }
}

// Logs and crash reports print what they are given.
extension Seal: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "Seal(\(kind.rawValue), \(policy.rawValue))" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: ["kind": kind, "policy": policy]) }
}

/// What keys are bound to beside the secret: the same row in another game or profile doesn't verify.
package struct SealOwner: Hashable, Sendable {
  package var game: String
  package var profile: String

  package init(game: String, profile: String) {
    self.game = game
    self.profile = profile
  }
}
