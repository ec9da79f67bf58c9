import Crypto
import Foundation

/// The keys derived from one secret for one store.
///
/// HKDF-SHA256 over the secret and the store's salt. The info contains what the keys are bound to and the purpose of
/// each.
struct SealKey: Sendable {
  static let saltBytes = 32
  static let idBytes = 4

  /// Identifies the secret that sealed a row. Public: it reveals nothing about the secret.
  let id: Data
  /// Signs rows.
  let signing: SymmetricKey
  /// Encrypts rows.
  let rows: SymmetricKey
  /// Encrypts the frames of contents.
  let frames: SymmetricKey
  /// Authenticates the sum over the rows.
  let ledger: SymmetricKey
  /// Signs the header, which shows whether the secret is the right one.
  let header: SymmetricKey

  /// Costs six derivations, some tens of microseconds.
  init(secret: Data, salt: Data, owner: SealOwner, player: String?) {
    let material = SymmetricKey(data: secret)
    func derive(_ purpose: String, bytes: Int = 32) -> SymmetricKey {
      let info = Self.info(["keepsake seal 1", owner.game, owner.profile, player.map { "player \($0)" } ?? "", purpose])
      return HKDF<SHA256>.deriveKey(inputKeyMaterial: material, salt: salt, info: info, outputByteCount: bytes)
    }
    id = derive("id", bytes: Self.idBytes).withUnsafeBytes { Data($0) }
    signing = derive("sign rows")
    rows = derive("encrypt rows")
    frames = derive("encrypt frames")
    ledger = derive("sum up rows")
    header = derive("header")
  }
  /// Each part is prefixed with its length: no two lists of parts give the same bytes.
  static func info(_ parts: [String]) -> Data {
    var info = Data()
    for part in parts {
      withUnsafeBytes(of: UInt32(part.utf8.count).bigEndian) { info.append(contentsOf: $0) }
      info.append(contentsOf: part.utf8)
    }
    return info
  }
}
