package import Foundation
import GRDB
package import KeepsakeReplication

/// The contents of versions, and what the cloud has of them.
extension StoreTransaction {
  package func hasContent(_ hash: ContentHash) throws -> Bool { try contents.has(hash) }

  package func isReadable(_ hash: ContentHash) throws -> Bool { try contents.has(hash) && contents.isReadable(hash) }

  package func contentLength(_ hash: ContentHash) throws -> Int? { try contents.entry(hash)?.length }

  package func cloudDepth(of hash: ContentHash) throws -> Int? {
    try Int.fetchOne(statement("SELECT depth FROM cloud_content WHERE hash = ?"), arguments: [hash.bytes])
  }

  package mutating func setCloudDepth(_ depth: Int?, of hash: ContentHash) throws {
    if let depth {
      try run("INSERT OR REPLACE INTO cloud_content (hash, depth) VALUES (?, ?)", [hash.bytes, depth])
    } else {
      try run("DELETE FROM cloud_content WHERE hash = ?", [hash.bytes])
    }
  }

  package mutating func clearCloudDepths() throws { try run("DELETE FROM cloud_content", []) }

  package func encoded(_ hash: ContentHash, against base: ContentHash?) throws -> EncodedContent {
    try contents.encoded(hash, against: base)
  }

  package mutating func receiveContent(_ content: EncodedContent) throws -> ContentReceipt {
    try contents.receive(content)
  }

  /// Returns the plain bytes of a content, checked against its hash. Throws `missing` or `damaged`.
  package func plainContent(_ hash: ContentHash) throws -> Data { try contents.plain(hash) }

  /// Stores `plain` under its hash, as a delta against `base` if that saves space.
  ///
  /// Compresses within the transaction, unless the content is stored already; `Store.submit` does so before it.
  package mutating func keepContent(_ plain: Data, against base: ContentHash? = nil) throws -> ContentHash {
    let hash = ContentHash(of: plain)
    if try contents.has(hash) {
      try contents.keep(PreparedContent(known: hash, plain: plain))
      return hash
    }
    let usable = try base.flatMap { try contents.base(from: $0, for: plain.count, of: plain.count) }
    try contents.keep(PreparedContent(encoding: plain, as: hash, against: usable))
    return hash
  }

  /// Returns the plain bytes of a whole version. Takes memory for them once, and for one content beside them.
  ///
  /// - Throws: `missing`, `damaged`, or `tooLarge` for more than the maximum size of a save.
  package func plainBytes(of record: VersionRecord) throws -> Data {
    if record.contents.count == 1 { return try plainContent(record.contents[0]) }
    guard (0...EncodedContent.maximumContentBytes).contains(record.length) else {
      throw StoreError(.tooLarge, "the version \(record.id) is larger than a save may be")
    }
    var bytes = Data(capacity: record.length)
    for hash in record.contents {
      let plain = try plainContent(hash)
      guard bytes.count + plain.count <= record.length else { break }
      bytes.append(plain)
    }
    guard bytes.count == record.length else {
      throw StoreError(.damaged, "the parts of the version \(record.id) don't add up to its length")
    }
    return bytes
  }
}
