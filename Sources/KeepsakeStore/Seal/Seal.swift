public import Foundation

/// How a game's data is protected against tampering: not at all, signed, or sealed.
///
///     let game = try GameData.open("com.example.space", seal: .signed(secret))
///
/// Everything has a checksum in any case, which detects accidents, not intent. `signed` detects changes made without
/// the secret and leaves everything readable. `sealed` encrypts as well. Both cover saved games, progress and the
/// wallet, and bind each row to its identity, its store, the game, the profile and, if given, the player: a row from
/// elsewhere doesn't verify.
///
/// The secret is part of the game, so anybody who takes the game apart has it. `docs/THREAT_MODEL.md` explains what
/// that means.
///
/// A commit costs a few more HMACs for each row that it writes, on top of a wait for the disk; `sealed` encrypts what
/// it stores. Opening reads and verifies all rows, but not the bytes of saved games, which are checked when they are
/// loaded.
public struct Seal: Sendable {
  /// The kind of protection.
  public enum Kind: String, Sendable, Hashable, Codable {
    /// Checksums only.
    case none
    /// HMAC-SHA256: readable, and any change is detected.
    case signed
    /// ChaCha20-Poly1305: neither readable nor changeable. Names of slots and keys, sizes, times of files and ids stay
    /// unencrypted.
    case sealed
  }

  /// What happens to data that doesn't verify although its checksum is right: data that somebody changed, not data that
  /// a disk damaged.
  public enum Policy: String, Sendable, Hashable {
    /// It is used, and reported as an incident. Encrypted data can't be used and is set aside.
    case flag
    /// It is set aside, kept and reported, as damage would be; the newest version that verifies replaces it.
    case quarantine
    /// Opening, or the call that encounters it, throws `StoreError.Code.tampered`. Nothing is changed.
    case reject
  }

  /// The minimum length of a secret, in bytes.
  public static let minimumSecretBytes = 16

  /// The kind of protection.
  public let kind: Kind
  /// What happens to data that doesn't verify.
  public let policy: Policy

  /// The current secret first, then earlier ones.
  let secrets: [Data]
  let player: String?
  let adoptsUnsealed: Bool

  /// Checksums only.
  public static let none = Seal(kind: .none, policy: .quarantine, secrets: [], player: nil, adoptsUnsealed: false)

  /// Returns a seal that signs all data.
  ///
  /// - Parameters:
  ///   - secret: At least 16 bytes, better 32 random ones. The same in every copy of the game.
  ///   - previous: Secrets of earlier releases. Data signed with them is still accepted, and is signed again with
  ///     `secret`: when it is written, a few megabytes on each opening, and all of it by `GameData.reseal()`. After
  ///     that, these secrets are no longer accepted.
  ///   - player: An identifier of the player, such as an account's. Another player's data is then refused even as a
  ///     whole. Must be the same on every opening.
  ///   - policy: `quarantine` by default: an edit gains nothing, and no player is locked out.
  ///   - adoptsUnsealed: Signs what an earlier release stored without a seal, once. A game that always had a seal
  ///     leaves this false: otherwise, anybody who can remove a seal could have anything signed.
  /// - Returns: The seal.
  public static func signed(
    _ secret: some Sequence<UInt8>, previous: [Data] = [], player: String? = nil, policy: Policy = .quarantine,
    adoptsUnsealed: Bool = false
  ) -> Seal {
    Seal(
      kind: .signed, policy: policy, secrets: [Data(secret)] + previous, player: player, adoptsUnsealed: adoptsUnsealed)
  }

  /// Returns a seal that encrypts and authenticates all data.
  ///
  /// - Parameters:
  ///   - secret: As for `signed`: at least 16 bytes, better 32 random ones.
  ///   - previous: Secrets of earlier releases, as for `signed`. Data sealed with them is sealed again with `secret`.
  ///   - player: An identifier of the player, as for `signed`.
  ///   - policy: As for `signed`, but even with `flag`, encrypted data that doesn't verify is set aside.
  ///   - adoptsUnsealed: Encrypts what an earlier release stored without a seal, once. As for `signed`, a game that
  ///     always had a seal leaves this false.
  /// - Returns: The seal.
  public static func sealed(
    _ secret: some Sequence<UInt8>, previous: [Data] = [], player: String? = nil, policy: Policy = .quarantine,
    adoptsUnsealed: Bool = false
  ) -> Seal {
    Seal(
      kind: .sealed, policy: policy, secrets: [Data(secret)] + previous, player: player, adoptsUnsealed: adoptsUnsealed)
  }

  /// Throws `misuse` for errors that can be found before any store is read.
  func check() throws {
    guard kind != .none else { return }
    for secret in secrets where secret.count < Self.minimumSecretBytes {
      throw StoreError(
        .misuse,
        """
        a secret of \(secret.count) bytes can be guessed: use at least \(Self.minimumSecretBytes), preferably 32 \
        random bytes
        """)
    }
    if player?.isEmpty == true {
      throw StoreError(.misuse, "the player's identifier is empty: every player without one would be the same")
    }
  }
}

// Secrets are left out, because logs and crash reports print what they are given.
extension Seal: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "Seal(\(kind.rawValue), \(policy.rawValue))" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: ["kind": kind, "policy": policy]) }
}

/// What keys are bound to besides the secret: the same row in another game or profile doesn't verify.
package struct SealOwner: Hashable, Sendable {
  package var game: String
  package var profile: String

  package init(game: String, profile: String) {
    self.game = game
    self.profile = profile
  }
}
