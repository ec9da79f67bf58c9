#if Cloud
package import Foundation

/// An issuer of signed identities that a server accepts: another service at which players sign in, and whose tokens
/// (JWT) say who they are.
///
/// Its name is what games ask for, and part of what an identity is: one name is for one game. A server for two games
/// has two issuers of different names, even if both are the same service.
package struct IdentityIssuer: Hashable, Sendable {
  /// Where the keys are that verify its tokens.
  package enum Keys: Hashable, Sendable {
    /// A file on this machine: a public key in PEM, a JWK, or a set of them (JWKS). Read again when it changes.
    case file(URL)
    /// The address of a set of keys (JWKS). Asked at most once a minute.
    case address(URL)
  }
  /// 1 to 40 lowercase letters, digits and hyphens. It must not change once players have signed in.
  package var name: String
  /// What a token's `iss` may be. The first is part of what an identity is, and must not change either.
  package var issuers: [String]
  /// What a token's `aud` has to name, one of them at least: the game's own identifiers at the issuer.
  package var audiences: Set<String>
  /// How its tokens are signed. What a token says itself is only compared with it.
  package var algorithm: TokenAlgorithm
  package var keys: Keys
  /// By how much its clock and this server's may differ, 0 to 600.
  package var skewSeconds = 60
  /// How old a token may be, by its `iat`, 1 to 86,400.
  package var maximumAgeSeconds = 3_600
  /// Whether a token has to contain a nonce that this server has given to the same device.
  package var requiresNonce = false
  /// Whether only the first device that shows a token may use it.
  package var isSingleUse = false

  package init(name: String, issuers: [String], audiences: Set<String>, algorithm: TokenAlgorithm, keys: Keys) {
    self.name = name
    self.issuers = issuers
    self.audiences = audiences
    self.algorithm = algorithm
    self.keys = keys
  }

  /// Throws a `ServerError` with the code `configuration` if tokens can't be verified like this.
  func check() throws {
    guard Self.isName(name) else { throw Self.mistake(name, Self.nameRule) }
    guard !issuers.isEmpty, issuers.allSatisfy(Self.isValue) else {
      throw Self.mistake(name, "it needs its issuer, as in the iss of its tokens")
    }
    guard !audiences.isEmpty, audiences.allSatisfy(Self.isValue) else {
      throw Self.mistake(name, "it needs an audience, as in the aud of its tokens")
    }
    guard (0...600).contains(skewSeconds) else {
      throw Self.mistake(name, "its skew has to be 0 to 600 seconds, not \(skewSeconds)")
    }
    guard (1...86_400).contains(maximumAgeSeconds) else {
      throw Self.mistake(name, "its max-age has to be 1 to 86400 seconds, not \(maximumAgeSeconds)")
    }
    if case .address(let url) = keys {
      let host = url.host() ?? ""
      let isLocal = url.scheme == "http" && ServerConfiguration.isLoopback(host)
      guard !host.isEmpty, url.scheme == "https" || isLocal else {
        throw Self.mistake(name, "the address of its keys has to begin with https://")
      }
    }
  }

  static let nameRule = "its name has to be 1 to 40 lowercase letters, digits and hyphens"

  static func isName(_ text: String) -> Bool {
    (1...40).contains(text.utf8.count)
      && text.utf8.allSatisfy { (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D }
  }

  private static func isValue(_ text: String) -> Bool { (1...500).contains(text.utf8.count) }

  static func mistake(_ name: String, _ what: String) -> ServerError {
    ServerError(.configuration, "The identity issuer \"\(name.prefix(60))\" can't be used: \(what).")
  }
}

/// How tokens are signed. Only with a pair of keys: who verifies a token can't make one.
package enum TokenAlgorithm: String, CaseIterable, Sendable {
  case rs256 = "RS256"
  case rs384 = "RS384"
  case rs512 = "RS512"
  case ps256 = "PS256"
  case ps384 = "PS384"
  case ps512 = "PS512"
  case es256 = "ES256"
  case es384 = "ES384"
  case es512 = "ES512"
  case edDSA = "EdDSA"
}
#endif
