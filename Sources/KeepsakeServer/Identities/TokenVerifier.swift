#if Cloud
import Crypto
import Foundation
import KeepsakeReplication

/// Verifies the tokens (JWT) of one issuer.
struct TokenVerifier: Sendable {
  /// Google's have some 1,200 bytes, Microsoft's up to 4,000.
  static let maximumBytes = 8_192
  private static let maximumSubjectBytes = 512
  private static let maximumKeyIDBytes = 256

  let issuer: IdentityIssuer
  let keys: IssuerKeys

  /// Returns who a token is about.
  ///
  /// - Parameters:
  ///   - nonceExpiry: Returns until when a nonce is valid, in milliseconds since 1970; nil for one that this server
  ///     didn't give to the device that shows the token.
  ///   - now: Milliseconds since 1970.
  /// - Throws: `IdentityFailure`.
  func verify(_ token: String, nonceExpiry: (String) -> Int64?, now: Int64) async throws -> VerifiedIdentity {
    guard token.utf8.count <= Self.maximumBytes else {
      throw IdentityFailure.refused("the token has more than \(Self.maximumBytes) bytes")
    }
    let parts = token.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, parts.allSatisfy(Self.isBase64URL) else {
      throw IdentityFailure.refused("the token isn't a signed JWT")
    }
    let header = try Self.header(parts[0])
    guard header.alg == issuer.algorithm.rawValue else {
      throw IdentityFailure.refused("the token isn't signed with \(issuer.algorithm.rawValue)")
    }
    guard header.crit == nil else {
      throw IdentityFailure.refused("the token needs its reader to know \"crit\"")
    }
    guard (header.kid?.utf8.count ?? 0) <= Self.maximumKeyIDBytes, let key = try await keys.key(named: header.kid)
    else {
      throw IdentityFailure.refused("the token is signed with a key that the issuer doesn't have")
    }
    let claims: TokenClaims
    do {
      claims = try await key.claims(of: token)
    } catch {
      throw IdentityFailure.refused("the token's signature is wrong, or its claims can't be read")
    }
    let expiry = try check(claims, now: now)
    return VerifiedIdentity(
      id: try id(of: claims), issuer: issuer.name,
      uses: try uses(of: claims, signed: token.utf8.prefix(parts[0].utf8.count + 1 + parts[1].utf8.count), expiry) {
        nonceExpiry($0)
      })
  }

  private static func isBase64URL(_ part: Substring) -> Bool {
    !part.isEmpty
      && part.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x2D
          || byte == 0x5F
      }
  }

  private static func header(_ part: Substring) throws -> TokenClaims.Header {
    var text = String(part).replacing("-", with: "+").replacing("_", with: "/")
    while text.utf8.count % 4 != 0 { text += "=" }
    guard let bytes = Data(base64Encoded: text),
      let header = try? JSONDecoder().decode(TokenClaims.Header.self, from: bytes)
    else {
      throw IdentityFailure.refused("the token's header can't be read")
    }
    return header
  }

  /// Checks who a token is for, and when. Returns when it expires, in milliseconds since 1970.
  private func check(_ claims: TokenClaims, now: Int64) throws -> Int64 {
    guard let own = claims.issuer, issuer.issuers.contains(own) else {
      throw IdentityFailure.refused("the token is another issuer's")
    }
    guard claims.audiences.contains(where: issuer.audiences.contains) else {
      throw IdentityFailure.refused("the token is for another audience")
    }
    let (now, skew) = (Double(now) / 1_000, Double(issuer.skewSeconds))
    guard let expires = claims.expires, let issued = claims.issued else {
      throw IdentityFailure.refused("the token doesn't say when it was issued, or when it expires")
    }
    guard now < expires + skew else { throw IdentityFailure.refused("the token has expired") }
    guard now >= issued - skew, claims.notBefore.map({ now >= $0 - skew }) ?? true else {
      throw IdentityFailure.refused("the token isn't valid yet")
    }
    let oldest = issued + Double(issuer.maximumAgeSeconds)
    guard now < oldest + skew else { throw IdentityFailure.refused("the token is too old") }
    // Not far from now, so that it is an Int64.
    return Int64((min(expires, oldest) + skew) * 1_000)
  }

  private func id(of claims: TokenClaims) throws -> ContentHash {
    guard let subject = claims.subject, (1...Self.maximumSubjectBytes).contains(subject.utf8.count) else {
      throw IdentityFailure.refused("the token doesn't say who it is about")
    }
    return VerifiedIdentity.id(of: subject, at: issuer.issuers[0], named: issuer.name)
  }

  /// Returns what of a token may be used by one device only.
  private func uses(
    of claims: TokenClaims, signed: some Sequence<UInt8>, _ expiry: Int64, nonceExpiry: (String) -> Int64?
  ) throws -> [VerifiedIdentity.Use] {
    var uses: [VerifiedIdentity.Use] = []
    if issuer.requiresNonce {
      guard let nonce = claims.nonce, let expiry = nonceExpiry(nonce) else {
        throw IdentityFailure.refused("the token has no nonce of this server for this device, or it has expired")
      }
      uses.append(.init(key: ContentHash(of: Data("nonce\0\(nonce)".utf8)), expiresMilliseconds: expiry))
    }
    if issuer.isSingleUse {
      // Without the signature, which some algorithms let anyone write in another way.
      uses.append(.init(key: ContentHash(of: Data("token\0".utf8) + signed), expiresMilliseconds: expiry))
    }
    return uses
  }
}

/// Somebody at an issuer, as proven.
struct VerifiedIdentity: Hashable, Sendable {
  /// Something that only the first device to show it may use, until it expires.
  struct Use: Hashable, Sendable {
    var key: ContentHash
    var expiresMilliseconds: Int64

    /// The same, once something has come of it: an identity was linked, or a device has joined.
    var effective: Use {
      Use(key: ContentHash(of: Data("effective".utf8) + key.bytes), expiresMilliseconds: expiresMilliseconds)
    }
  }
  /// All that is stored of who it is.
  var id: ContentHash
  /// The issuer's name.
  var issuer: String
  var uses: [Use] = []

  /// Who it is in a shared container, where the same person is somebody else than in a game itself.
  func scoped(to share: AppID) -> Self {
    var scoped = self
    scoped.id = ContentHash(of: Data("keepsake shared identity\0".utf8) + share.bytes + id.bytes)
    return scoped
  }

  /// Returns the hash of a subject. No part can be mistaken for another: a name has no zero byte, and the length of
  /// the service's own name stands before it.
  static func id(of subject: String, at service: String, named name: String) -> ContentHash {
    ContentHash(of: Data("keepsake identity\0\(name)\0\(service.utf8.count)\0\(service)\0\(subject)".utf8))
  }
}
#endif
