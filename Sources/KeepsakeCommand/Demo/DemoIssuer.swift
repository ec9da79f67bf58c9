#if Cloud
import Crypto
import Foundation

/// The studio's own login in the story: makes a key, and signs who a player is.
struct DemoIssuer: Sendable {
  private static let address = "https://login.flower-garden.example"
  private static let audience = "flower-garden"

  private let key = P256.Signing.PrivateKey()

  /// Writes the public key, and returns how the server is told of this issuer.
  func setting(keyAt file: URL) throws -> String {
    try Data(key.publicKey.pemRepresentation.utf8).write(to: file)
    return "login issuer=\(Self.address) audience=\(Self.audience) algorithm=ES256 keys=\(file.absoluteString)"
  }

  /// Returns a token that says who a player is, for ten minutes.
  func token(of player: String) throws -> String {
    struct Header: Encodable {
      var alg = "ES256"
    }
    struct Claims: Encodable {
      var iss = DemoIssuer.address
      var aud = DemoIssuer.audience
      var sub: String
      var iat: Int
      var exp: Int
    }
    let now = Int(Date().timeIntervalSince1970)
    let parts = [
      try JSONEncoder().encode(Header()), try JSONEncoder().encode(Claims(sub: player, iat: now, exp: now + 600)),
    ]
    let signed = parts.map(Self.text).joined(separator: ".")
    return signed + "." + Self.text(try key.signature(for: Data(signed.utf8)).rawRepresentation)
  }

  /// In base64url.
  private static func text(_ bytes: Data) -> String {
    bytes.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }
}
#endif
