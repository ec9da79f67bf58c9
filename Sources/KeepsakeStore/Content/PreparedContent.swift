import Foundation
import KeepsakeReplication

/// A content hashed and encoded, but not yet in the database: the slow part of a save, done outside its transaction.
struct PreparedContent: Sendable {
  var hash: ContentHash
  /// Kept in case that the base is gone by the time of the transaction.
  var plain: Data
  /// Nil if the content was in the database already.
  var encoded: EncodedContent?

  /// One that was in the database already.
  init(known hash: ContentHash, plain: Data) {
    self.hash = hash
    self.plain = plain
  }

  /// Compresses, against `base` where that pays.
  init(encoding plain: Data, as hash: ContentHash, against base: ContentBase?) throws {
    self.init(known: hash, plain: plain)
    encoded = try EncodedContent.encoding(plain, as: hash, against: base)
  }
}

/// Plain bytes against which others are encoded.
struct ContentBase {
  var hash: ContentHash
  var plain: Data
  /// Whether it is what the content came from, and not something before that.
  var isNearest = true
}

extension EncodedContent {
  /// The most plain bytes of one content: what a saved game may weigh.
  package static let maximumContentBytes = 256 << 20

  /// Encodes `plain` against `base` where that pays, else as a full frame. Costs one or two compressions.
  static func encoding(_ plain: Data, as hash: ContentHash, against base: ContentBase?) throws -> Self {
    guard plain.count <= maximumContentBytes else {
      throw StoreError(.tooLarge, "a content of \(plain.count) bytes is larger than \(maximumContentBytes) bytes")
    }
    func content(_ bytes: Data, _ base: ContentHash?) -> Self { Self(hash: hash, length: plain.count, base: base, bytes: bytes) }
    guard let base, base.hash != hash, !base.plain.isEmpty else { return content(try Zstd.compress(plain), nil) }
    let delta = try Zstd.compress(plain, prefix: base.plain)
    if base.isNearest, delta.count < plain.count / obviousGain { return content(delta, base.hash) }
    let full = try Zstd.compress(plain)
    // A delta binds its base for as long as it lives, so it has to save a tenth at least; and half where it stands at the head of a new
    // chain, which a full frame would do better.
    let worthwhile = base.isNearest ? full.count - full.count / 10 : full.count / 2
    return delta.count < worthwhile ? content(delta, base.hash) : content(full, nil)
  }

  /// A delta smaller than this part of the plain bytes is taken without comparing: saves seldom compress this far alone.
  private static let obviousGain = 32
}
