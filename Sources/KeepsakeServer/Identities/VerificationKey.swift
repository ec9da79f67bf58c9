#if Cloud
import Foundation
import JWTKit

/// A public key of an issuer, for the one algorithm with which its tokens are signed.
struct VerificationKey: Sendable {
  private enum Material: Sendable {
    case rsa(Insecure.RSA.PublicKey)
    case es256(ES256PublicKey)
    case es384(ES384PublicKey)
    case es512(ES512PublicKey)
    case edDSA(EdDSA.PublicKey)
  }
  /// The key's `kid`, if it has one.
  var id: String?
  private let algorithm: TokenAlgorithm
  private let material: Material

  /// Throws if this isn't a key for the algorithm.
  init(_ jwk: JWK, for algorithm: TokenAlgorithm) throws {
    if let own = jwk.algorithm, own.rawValue != algorithm.rawValue { throw KeySetError.otherAlgorithm }
    id = jwk.keyIdentifier?.string
    self.algorithm = algorithm
    func needed(_ part: String?) throws -> String {
      guard let part else { throw KeySetError.otherAlgorithm }
      return part
    }
    switch algorithm {
    case .rs256, .rs384, .rs512, .ps256, .ps384, .ps512:
      material = .rsa(try Insecure.RSA.PublicKey(modulus: needed(jwk.modulus), exponent: needed(jwk.exponent)))
    case .es256, .es384, .es512:
      let curve: ECDSACurve = algorithm == .es256 ? .p256 : algorithm == .es384 ? .p384 : .p521
      guard jwk.curve == .ecdsa(curve) else { throw KeySetError.otherAlgorithm }
      let point = (x: try needed(jwk.x), y: try needed(jwk.y))
      switch algorithm {
      case .es256: material = .es256(try ES256PublicKey(parameters: point))
      case .es384: material = .es384(try ES384PublicKey(parameters: point))
      default: material = .es512(try ES512PublicKey(parameters: point))
      }
    case .edDSA:
      guard jwk.curve == .eddsa(.ed25519) else { throw KeySetError.otherAlgorithm }
      material = .edDSA(try EdDSA.PublicKey(x: needed(jwk.x), curve: .ed25519))
    }
  }

  /// Reads a public key in PEM. Throws if this isn't one for the algorithm.
  init(pem: String, for algorithm: TokenAlgorithm) throws {
    self.algorithm = algorithm
    material =
      switch algorithm {
      case .rs256, .rs384, .rs512, .ps256, .ps384, .ps512: .rsa(try Insecure.RSA.PublicKey(pem: pem))
      case .es256: .es256(try ES256PublicKey(pem: pem))
      case .es384: .es384(try ES384PublicKey(pem: pem))
      case .es512: .es512(try ES512PublicKey(pem: pem))
      case .edDSA: .edDSA(try EdDSA.PublicKey(pem: pem))
      }
  }

  /// Returns what a token says, if it was signed with this key and this key's algorithm. Throws otherwise.
  func claims(of token: String) async throws -> TokenClaims {
    // One key alone: none of the token's words chooses another one.
    try await keys().verify(token, as: TokenClaims.self)
  }

  private func keys() async -> JWTKeyCollection {
    let keys = JWTKeyCollection()
    switch material {
    case .rsa(let key):
      switch algorithm {
      case .ps256: await keys.add(pss: key, digestAlgorithm: .sha256)
      case .ps384: await keys.add(pss: key, digestAlgorithm: .sha384)
      case .ps512: await keys.add(pss: key, digestAlgorithm: .sha512)
      case .rs384: await keys.add(rsa: key, digestAlgorithm: .sha384)
      case .rs512: await keys.add(rsa: key, digestAlgorithm: .sha512)
      default: await keys.add(rsa: key, digestAlgorithm: .sha256)
      }
    case .es256(let key): await keys.add(ecdsa: key)
    case .es384(let key): await keys.add(ecdsa: key)
    case .es512(let key): await keys.add(ecdsa: key)
    case .edDSA(let key): await keys.add(eddsa: key)
    }
    return keys
  }
}

/// Why keys can't be used.
enum KeySetError: Error, CustomStringConvertible {
  case otherAlgorithm
  case tooLarge
  case noKey
  case sameName(String)

  var description: String {
    switch self {
    case .otherAlgorithm: "the key is for another algorithm than the issuer's"
    case .tooLarge: "the set of keys is larger than \(KeySet.maximumBytes) bytes or \(KeySet.maximumKeys) keys"
    case .noKey: "there is no key for the issuer's algorithm"
    case .sameName(let id): "two keys have the kid \"\(id.prefix(60))\""
    }
  }
}
#endif
