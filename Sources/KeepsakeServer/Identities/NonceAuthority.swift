#if Cloud
import Crypto
import Foundation
import KeepsakeReplication

/// Gives devices nonces for their tokens, and recognizes them.
///
/// A nonce says itself until when and, by a code that only the servers of this cloud can make, for which device and
/// issuer it is: so that asking for any number of them takes no room. What was used is stored (`identityUse`).
struct NonceAuthority: Sendable {
  /// Time to sign in at another service, with a password that has to be looked up.
  static let lifetimeMilliseconds: Int64 = 600_000
  private static let (timeBytes, randomBytes, codeBytes) = (8, 17, 32)

  /// The newest first, the same at each server of a cloud.
  let keys: @Sendable () -> [Data]

  /// Returns a new nonce: 76 characters of the alphabet of base64url. Its bytes fill them, so that it can be written in
  /// one way only.
  func nonce(for device: DeviceID, issuer: String, now: Int64) -> String {
    guard let key = keys().first else { return "" }
    var source = SystemRandomNumberGenerator()
    var body = Data()
    withUnsafeBytes(of: (now &+ Self.lifetimeMilliseconds).bigEndian) { body.append(contentsOf: $0) }
    for _ in 0..<Self.randomBytes { body.append(source.next()) }
    let code = HMAC<SHA256>.authenticationCode(
      for: Self.signed(body, device, issuer), using: SymmetricKey(data: key))
    return (body + code).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
  }

  /// Returns when a nonce expires, in milliseconds since 1970; nil if no server of this cloud gave it to this device
  /// for this issuer, or if it has expired.
  func expiry(of nonce: String, for device: DeviceID, issuer: String, now: Int64) -> Int64? {
    let count = Self.timeBytes + Self.randomBytes + Self.codeBytes
    guard nonce.utf8.count == count / 3 * 4, !nonce.utf8.contains(where: { $0 == 0x2B || $0 == 0x2F }),
      let bytes = Data(base64Encoded: nonce.replacing("-", with: "+").replacing("_", with: "/"))
    else { return nil }
    let body = bytes.prefix(Self.timeBytes + Self.randomBytes)
    let code = bytes.suffix(Self.codeBytes)
    let signed = Self.signed(body, device, issuer)
    let isOwn = keys().contains {
      HMAC<SHA256>.isValidAuthenticationCode(code, authenticating: signed, using: SymmetricKey(data: $0))
    }
    guard isOwn else { return nil }
    let expiry = Int64(bitPattern: body.prefix(Self.timeBytes).reduce(0) { $0 << 8 | UInt64($1) })
    // One from further in the future is of a clock that was set back.
    guard (1...Self.lifetimeMilliseconds).contains(expiry &- now) else { return nil }
    return expiry
  }

  private static func signed(_ body: Data, _ device: DeviceID, _ issuer: String) -> Data {
    body + device.bytes + Data(issuer.utf8)
  }
}
#endif
