import Foundation
import KeepsakeReplication

/// A content hashed and encoded, but not yet in the database: the slow part of a save, done outside its transaction.
struct PreparedContent: Sendable {
  var hash: ContentHash
  /// Kept in case that the base is gone by the time of the transaction.
  var plain: Data
  /// Nil if the content was in the database already.
  var encoded: EncodedContent?
}

extension EncodedContent {
  /// The most plain bytes of one content: what a saved game may weigh.
  package static let maximumContentBytes = 256 << 20

  /// Encodes `plain` against `base` where that pays, else as a full frame. Costs one or two compressions.
  static func encoding(_ plain: Data, as hash: ContentHash, against base: (hash: ContentHash, plain: Data)?) throws -> Self {
    guard plain.count <= maximumContentBytes else {
      throw StoreError(.tooLarge, "a content of \(plain.count) bytes is larger than \(maximumContentBytes) bytes")
    }
    if let base, base.hash != hash, !base.plain.isEmpty {
      let delta = try Zstd.compress(plain, prefix: base.plain)
      if delta.count < plain.count / obviousGain {
        return Self(hash: hash, length: plain.count, base: base.hash, bytes: delta)
      }
      let full = try Zstd.compress(plain)
      // A delta binds its base for as long as it lives, so it has to save a tenth at least.
      if delta.count < full.count - full.count / 10 {
        return Self(hash: hash, length: plain.count, base: base.hash, bytes: delta)
      }
      return Self(hash: hash, length: plain.count, base: nil, bytes: full)
    }
    return Self(hash: hash, length: plain.count, base: nil, bytes: try Zstd.compress(plain))
  }

  /// A delta smaller than this part of the plain bytes is taken without comparing: saves seldom compress this far alone.
  private static let obviousGain = 32
}
