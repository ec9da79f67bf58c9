#if Cloud
import Foundation
import JWTKit

/// The keys of an issuer that are for its algorithm.
struct KeySet: Sendable {
  static let maximumBytes = 256 << 10
  static let maximumKeys = 64

  /// A key of a set. One of a kind that isn't known is left out, and not a mistake: issuers add kinds.
  private struct Entry: Decodable {
    private enum Keys: String, CodingKey { case use }
    var key: JWK?
    var use: String?

    init(from decoder: any Decoder) throws {
      key = try? JWK(from: decoder)
      use = try? decoder.container(keyedBy: Keys.self).decodeIfPresent(String.self, forKey: .use)
    }
  }
  private struct Entries: Decodable {
    var keys: [Entry]
  }

  private let keys: [VerificationKey]

  /// Reads a set of keys (JWKS), one key (JWK), or one in PEM.
  ///
  /// - Throws: `KeySetError` if there is no key for the algorithm or too much; what a library throws for a file that is
  ///   none of these.
  init(_ bytes: Data, for algorithm: TokenAlgorithm) throws {
    guard bytes.count <= Self.maximumBytes else { throw KeySetError.tooLarge }
    let text = String(decoding: bytes, as: UTF8.self)
    if text.contains("-----BEGIN") {
      keys = [try VerificationKey(pem: text, for: algorithm)]
      return
    }
    let decoder = JSONDecoder()
    guard let entries = try? decoder.decode(Entries.self, from: bytes).keys else {
      keys = [try VerificationKey(decoder.decode(JWK.self, from: bytes), for: algorithm)]
      return
    }
    guard entries.count <= Self.maximumKeys else { throw KeySetError.tooLarge }
    var found: [VerificationKey] = []
    for entry in entries where entry.use == nil || entry.use == "sig" {
      guard let jwk = entry.key, let key = try? VerificationKey(jwk, for: algorithm) else { continue }
      if let id = key.id, found.contains(where: { $0.id == id }) { throw KeySetError.sameName(id) }
      found.append(key)
    }
    guard !found.isEmpty else { throw KeySetError.noKey }
    keys = found
  }

  /// Returns the key that a token names; the only one there is for a token that names none, or if it has no name.
  func key(named id: String?) -> VerificationKey? {
    if keys.count == 1, id == nil || keys[0].id == nil { return keys[0] }
    return id.flatMap { id in keys.first { $0.id == id } }
  }
}
#endif
