import Foundation
import KeepsakeReplication

/// A content that is hashed and encoded, but not yet in the database: the slow part of a save, done outside its
/// transaction.
struct PreparedContent: Sendable {
  var hash: ContentHash
  /// Kept in case the base is gone by the time of the transaction.
  var plain: Data
  /// Nil if the content was in the database already.
  var encoded: EncodedContent?

  /// Creates one for a content that is already in the database.
  init(known hash: ContentHash, plain: Data) {
    self.hash = hash
    self.plain = plain
  }

  /// Compresses a content, against `base` if that saves space.
  init(encoding plain: Data, as hash: ContentHash, against base: ContentBase?) throws {
    self.init(known: hash, plain: plain)
    encoded = try EncodedContent.encoding(plain, as: hash, against: base)
  }
}

/// Plain bytes that others are encoded against.
struct ContentBase {
  var hash: ContentHash
  var plain: Data
  /// Whether the content was derived directly from this one, and not from one further up the chain.
  var isNearest = true
  /// The size of a full frame of similar bytes, if known.
  var fullFrameBytes: Int?
}

extension EncodedContent {
  /// The maximum length of one content's plain bytes, and so of a saved game.
  package static let maximumContentBytes = 256 << 20

  /// Encodes `plain` against `base` if that saves space, otherwise as a full frame. Costs one or two compressions.
  static func encoding(_ plain: Data, as hash: ContentHash, against base: ContentBase?) throws -> Self {
    guard plain.count <= maximumContentBytes else {
      throw StoreError(.tooLarge, "a content of \(plain.count) bytes is larger than \(maximumContentBytes) bytes")
    }
    func content(_ bytes: Data, _ base: ContentHash?) -> Self {
      Self(hash: hash, length: plain.count, base: base, bytes: bytes)
    }
    guard let base, base.hash != hash, !base.plain.isEmpty else { return content(try Zstd.compress(plain), nil) }
    let delta = try Zstd.compress(plain, prefix: base.plain)
    if base.isNearest, delta.count < plain.count / obviousGain { return content(delta, base.hash) }
    // Half of a full frame's size needn't be known exactly.
    if !base.isNearest, let fullFrameBytes = base.fullFrameBytes {
      return delta.count < fullFrameBytes / 2 ? content(delta, base.hash) : content(try Zstd.compress(plain), nil)
    }
    let full = try Zstd.compress(plain)
    // A delta keeps its base alive as long as it exists, so it must save at least a tenth; and half if it begins a new
    // chain, for which a full frame would be better.
    let worthwhile = base.isNearest ? full.count - full.count / 10 : full.count / 2
    return delta.count < worthwhile ? content(delta, base.hash) : content(full, nil)
  }

  /// A delta smaller than this fraction of the plain bytes is used without a comparison: saves seldom compress this far
  /// alone.
  private static let obviousGain = 32
}
