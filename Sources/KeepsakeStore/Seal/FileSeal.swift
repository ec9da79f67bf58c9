import Crypto
import Foundation

/// How a save that is exported from its store as a file is sealed: with the game's secret alone, so that the same
/// player's other devices and the studio can open it. A store's own keys depend on the store's salt, which isn't in the
/// file.
package struct FileSeal: Sendable {
  /// What is derived from one secret for all files of a game and, if the seal is bound to one, of a player.
  struct Key: Sendable {
    /// Identifies the secret that sealed a file. Public: it reveals nothing about the secret.
    let id: Data
    fileprivate let root: SymmetricKey

    init(secret: Data, game: String, player: String?) {
      let material = SymmetricKey(data: secret)
      func derive(_ purpose: String, bytes: Int) -> SymmetricKey {
        let info = SealKey.info(["keepsake file 1", game, player.map { "player \($0)" } ?? "", purpose])
        return HKDF<SHA256>.deriveKey(inputKeyMaterial: material, info: info, outputByteCount: bytes)
      }
      id = derive("id", bytes: SealKey.idBytes).withUnsafeBytes { Data($0) }
      root = derive("files", bytes: 32)
    }

    /// Derives the key of one file: each has its own, through a random salt.
    fileprivate func key(salt: Data) -> SymmetricKey {
      HKDF<SHA256>.deriveKey(inputKeyMaterial: root, salt: salt, info: Data("one file".utf8), outputByteCount: 32)
    }
  }

  /// The unencrypted header that describes a sealed file's seal.
  struct Header: Codable, Hashable, Sendable {
    var game: String
    var hasPlayer: Bool
    /// The id of the key.
    var key: Data
    var salt: Data
  }

  package let kind: Seal.Kind
  private let game: String
  private let hasPlayer: Bool
  /// The one used for sealing comes first. Empty for a tool without the secret.
  private let keys: [Key]
  private static let codeBytes = 32

  /// For a store without a seal.
  package static let none = FileSeal(kind: .none, game: "", hasPlayer: false, keys: [])

  private init(kind: Seal.Kind, game: String, hasPlayer: Bool, keys: [Key]) {
    (self.kind, self.game, self.hasPlayer, self.keys) = (kind, game, hasPlayer, keys)
  }

  /// - Parameter kind: How written files are sealed. A file that is read states its own kind.
  init(_ seal: Seal, kind: Seal.Kind, game: String) {
    let keys = seal.secrets.map { Key(secret: $0, game: game, player: seal.player) }
    self.init(kind: kind, game: game, hasPlayer: seal.player != nil, keys: keys)
  }

  /// For a store whose secret wasn't given: nothing can be sealed or opened.
  init(withoutSecret kind: Seal.Kind, game: String) { self.init(kind: kind, game: game, hasPlayer: false, keys: []) }

  // MARK: Sealing

  /// Returns a header for one new file. Throws `wrongSecret` without a secret.
  func newHeader() throws -> Header {
    guard let key = keys.first else {
      throw StoreError(
        .wrongSecret, "the store is \(kind.rawValue): without its secret a save can only be exported without the seal")
    }
    var random = SystemRandomNumberGenerator()
    let salt = Data((0..<SealKey.saltBytes).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    return Header(game: game, hasPlayer: hasPlayer, key: key.id, salt: salt)
  }

  /// Returns the sealed form of `body`. `front` is everything before it in the file.
  func close(_ body: Data, behind front: Data, _ header: Header) throws -> Data {
    guard let key = keys.first?.key(salt: header.salt) else { throw refusal(of: header) }
    switch kind {
    case .none: return body
    case .signed:
      var code = HMAC<SHA256>(key: key)
      code.update(data: front)
      code.update(data: body)
      return body + Data(code.finalize())
    case .sealed: return try ChaChaPoly.seal(body, using: key, authenticating: front).combined
    }
  }

  // MARK: Opening

  /// Returns the body of a file that was sealed as `kind`. Throws `wrongSecret` or `tampered`.
  func open(_ sealed: Data, as kind: Seal.Kind, behind front: Data, _ header: Header) throws -> Data {
    guard header.game == game, header.hasPlayer == hasPlayer, let root = keys.first(where: { $0.id == header.key })
    else {
      throw refusal(of: header)
    }
    let key = root.key(salt: header.salt)
    let forged = StoreError(
      .tampered, "the exported save doesn't verify: somebody without the game's secret changed it")
    switch kind {
    case .none: return sealed
    case .signed:
      guard sealed.count >= Self.codeBytes else { throw forged }
      let body = sealed.dropLast(Self.codeBytes)
      var code = HMAC<SHA256>(key: key)
      code.update(data: front)
      code.update(data: body)
      // Compares in constant time.
      guard code.finalize() == sealed.suffix(Self.codeBytes) else { throw forged }
      return body
    case .sealed:
      do {
        return try ChaChaPoly.open(.init(combined: sealed), using: key, authenticating: front)
      } catch {
        throw forged
      }
    }
  }

  /// Returns the body of a signed file without checking the signature, for tools without the secret.
  static func unchecked(_ signed: Data) throws -> Data {
    guard signed.count >= codeBytes else { throw StoreError(.damaged, "the exported save is cut off") }
    return signed.dropLast(codeBytes)
  }

  private func refusal(of header: Header) -> StoreError {
    if kind == .none {
      return StoreError(
        .otherSeal, "the exported save is sealed for \(header.game), but this game has no seal to open it with")
    }
    if header.game != game {
      return StoreError(.wrongSecret, "the exported save belongs to \(header.game), but this game is \(game)")
    }
    if !keys.isEmpty, header.hasPlayer != hasPlayer {
      return StoreError(
        .wrongSecret,
        header.hasPlayer
          ? "the exported save is bound to a player, but none was given"
          : "the exported save is bound to no player, but one was given")
    }
    return StoreError(.wrongSecret, "the exported save is sealed with another secret, or for another player")
  }
}
