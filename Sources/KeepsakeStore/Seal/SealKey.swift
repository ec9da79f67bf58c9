import Crypto
import Foundation

/// The keys that one secret gives for one store.
///
/// HKDF-SHA256 over the secret and the store's salt; what the keys are bound to, and what each is for, stands in its info.
struct SealKey: Sendable {
  static let saltBytes = 32
  static let idBytes = 4

  /// Tells which secret sealed a row. Public: it says nothing about the secret.
  let id: Data
  /// Signs rows.
  let signing: SymmetricKey
  /// Encrypts rows.
  let rows: SymmetricKey
  /// Encrypts the frames of contents.
  let frames: SymmetricKey
  /// Sums up the rows.
  let ledger: SymmetricKey
  /// Signs the header, which proves that the secret is the right one.
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
  /// Each part with its length in front: no two lists of parts give the same bytes.
  static func info(_ parts: [String]) -> Data {
    var info = Data()
    for part in parts {
      withUnsafeBytes(of: UInt32(part.utf8.count).bigEndian) { info.append(contentsOf: $0) }
      info.append(contentsOf: part.utf8)
    }
    return info
  }
}
