#if Cloud
import Crypto
import Foundation

/// Identifies an app by a hash of its key, which doesn't reveal the key.
struct AppID: Hashable, Sendable {
  static let byteCount = 8
  let bytes: Data

  init(ofKey key: String) { bytes = Data(SHA256.hash(data: Data(key.utf8)).prefix(Self.byteCount)) }

  init(bytes: Data) { self.bytes = bytes }
}

/// The keys with which installs may register.
struct AppKeys: Sendable {
  private let digests: [SHA256.Digest]

  init(_ keys: [String]) throws {
    for key in keys where !Self.isAcceptable(key) {
      throw ServerError(
        .configuration,
        "An app key must have 8 to 200 visible ASCII characters and no spaces; one of those given doesn't.")
    }
    digests = keys.map { SHA256.hash(data: Data($0.utf8)) }
  }

  static func isAcceptable(_ key: String) -> Bool {
    (8...200).contains(key.utf8.count) && key.utf8.allSatisfy { (0x21...0x7E).contains($0) }
  }

  /// Returns the app of a known key. Takes the same time for every wrong key, however wrong.
  func app(forKey key: String) -> AppID? {
    let offered = SHA256.hash(data: Data(key.utf8))
    var found = false
    // Comparing digests takes the same time wherever they differ, and all of them are compared.
    for digest in digests where digest == offered { found = true }
    return found ? AppID(ofKey: key) : nil
  }
}
#endif
