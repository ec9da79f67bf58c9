#if Cloud
import Foundation
import JWTKit

/// What a token says, as far as it matters here. Nothing of it is checked.
struct TokenClaims: JWTPayload {
  /// The header of a token.
  struct Header: Decodable {
    var alg: String
    var kid: String?
    /// Names of things that a reader has to understand. Keepsake knows none.
    var crit: [String]?
  }
  private enum CodingKeys: String, CodingKey { case iss, sub, aud, exp, nbf, iat, nonce }

  var issuer: String?
  var subject: String?
  var audiences: [String]
  /// Seconds since 1970.
  var expires: Double?
  var notBefore: Double?
  var issued: Double?
  var nonce: String?

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    issuer = try container.decodeIfPresent(String.self, forKey: .iss)
    subject = try container.decodeIfPresent(String.self, forKey: .sub)
    // One alone may stand without brackets.
    if let one = try? container.decode(String.self, forKey: .aud) {
      audiences = [one]
    } else {
      audiences = try container.decodeIfPresent([String].self, forKey: .aud) ?? []
    }
    expires = try container.decodeIfPresent(Double.self, forKey: .exp)
    notBefore = try container.decodeIfPresent(Double.self, forKey: .nbf)
    issued = try container.decodeIfPresent(Double.self, forKey: .iat)
    nonce = try container.decodeIfPresent(String.self, forKey: .nonce)
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(issuer, forKey: .iss)
    try container.encodeIfPresent(subject, forKey: .sub)
    try container.encode(audiences, forKey: .aud)
    try container.encodeIfPresent(expires, forKey: .exp)
    try container.encodeIfPresent(notBefore, forKey: .nbf)
    try container.encodeIfPresent(issued, forKey: .iat)
    try container.encodeIfPresent(nonce, forKey: .nonce)
  }

  /// `TokenVerifier` checks the claims: that takes more than the key.
  func verify(using algorithm: some JWTAlgorithm) {}
}
#endif
