import Foundation
import GRDB
import KeepsakeReplication

/// The contents of a store, within one transaction: bytes under the hash of their plain form, each a full zstd frame or a
/// delta against another content.
struct ContentTable {
  /// The most deltas between a content and its full frame: bounds what loading the newest save costs. A chain of twenty
  /// deltas of a 2 MB save decodes in about 50 ms; a full frame costs the bytes of some thirty deltas.
  static let maximumDepth = 16
  /// No chain that this release writes comes near; a longer one in the database is damage, or a circle.
  private static let maximumWalk = 64

  /// What is known of a content without its bytes.
  struct Entry {
    var length: Int
    var base: ContentHash?
    var depth: Int
  }

  let database: Database
  let cache: PlainCache

  func has(_ hash: ContentHash) throws -> Bool {
    let statement = try database.cachedStatement(sql: "SELECT 1 FROM content WHERE hash = ?")
    return try Int.fetchOne(statement, arguments: [hash.bytes]) != nil
  }

  func entry(_ hash: ContentHash) throws -> Entry? {
    let statement = try database.cachedStatement(sql: "SELECT length, base, depth FROM content WHERE hash = ?")
    guard let row = try Row.fetchOne(statement, arguments: [hash.bytes]) else { return nil }
    return try Entry(length: row.length(of: hash), base: row.base(of: hash), depth: row.checked("depth"))
  }

  /// The plain bytes, checked against their hash. Throws `missing` or `damaged`.
  func plain(_ hash: ContentHash) throws -> Data {
    // The cache may remember what was rolled back or collected.
    if let bytes = cache.bytes(of: hash), try has(hash) { return bytes }
    let plain = try decode(hash, usingCache: true)
    cache.insert(plain, as: hash)
    return plain
  }

  /// Decodes the chain of `hash` and checks the result against it.
  private func decode(_ hash: ContentHash, usingCache: Bool) throws -> Data {
    // From the content down to a full frame, or to one whose plain bytes are at hand.
    var frames: [(frame: Data, length: Int)] = []
    var next: ContentHash? = hash
    var plain: Data?
    let statement = try database.cachedStatement(sql: "SELECT length, base, bytes FROM content WHERE hash = ?")
    while let current = next {
      if usingCache, current != hash, let bytes = cache.bytes(of: current) {
        plain = bytes
        break
      }
      guard let row = try Row.fetchOne(statement, arguments: [current.bytes]) else {
        if current == hash { throw StoreError(.missing, "the content \(hash) isn't here") }
        throw StoreError(.damaged, "the content \(hash) can't be read: its base \(current) is gone")
      }
      guard frames.count < Self.maximumWalk else {
        throw StoreError(.damaged, "the content \(hash) can't be read: its chain of bases doesn't end")
      }
      let length = try row.length(of: current)
      next = try row.base(of: current)
      frames.append((try cache.seal.open(frame: row.checked("bytes"), of: current, length: length, base: next), length))
    }
    while let (frame, length) = frames.popLast() {
      plain = try Zstd.decompress(frame, prefix: plain, length: length)
    }
    guard let plain, ContentHash(of: plain) == hash else {
      throw StoreError(.damaged, "the content \(hash) is damaged: its bytes have another hash")
    }
    return plain
  }

  /// The base against which a successor of `hash` may be encoded, with its plain bytes; nil where the chain is long enough,
  /// or where the base can't be read: what is damaged must not damage what comes after it.
  func usableBase(_ hash: ContentHash) throws -> (hash: ContentHash, plain: Data)? {
    guard let entry = try entry(hash), entry.depth < Self.maximumDepth else { return nil }
    do {
      return (hash, try plain(hash))
    } catch let error as StoreError where error.code == .damaged {
      return nil
    }
  }

  /// Keeps a content; if it is here already, the one that is here stays unless it can't be read.
  func keep(_ prepared: PreparedContent) throws {
    let hash = prepared.hash
    if try has(hash) {
      // Written anew and in full where it is damaged: deltas that lean on it become readable again.
      if try !isReadable(hash) { try insertFull(prepared.plain, as: hash) }
      return
    }
    if let encoded = prepared.encoded, let base = encoded.base {
      if let entry = try entry(base), entry.depth < Self.maximumDepth {
        try insert(encoded, depth: entry.depth + 1)
      } else {
        try insertFull(prepared.plain, as: hash)
      }
    } else if let encoded = prepared.encoded {
      try insert(encoded, depth: 0)
    } else {
      // It was here when it was prepared and has been collected since.
      try insertFull(prepared.plain, as: hash)
    }
    cache.insert(prepared.plain, as: hash)
  }

  /// The content for the wire: as it stands where that fits, else encoded anew.
  func encoded(_ hash: ContentHash, against base: ContentHash?) throws -> EncodedContent {
    guard let entry = try entry(hash) else { throw StoreError(.missing, "the content \(hash) isn't here") }
    if entry.base == base {
      // What leaves this store has to be good, so that damage here doesn't travel.
      _ = try plain(hash)
      let frame = try cache.seal.open(frame: frame(hash), of: hash, length: entry.length, base: base)
      return EncodedContent(hash: hash, length: entry.length, base: base, bytes: frame)
    }
    let plain = try plain(hash)
    guard let base, try has(base) else { return try .encoding(plain, as: hash, against: nil) }
    return try .encoding(plain, as: hash, against: (base, self.plain(base)))
  }

  /// Takes a content from the wire after its plain bytes proved to have its hash.
  func receive(_ content: EncodedContent) throws -> ContentReceipt {
    guard content.length >= 0, content.length <= EncodedContent.maximumContentBytes, content.base != content.hash else {
      return .damaged
    }
    let replaces = try has(content.hash)
    if replaces, try isReadable(content.hash) { return .stored }
    var depth = 0
    var prefix: Data?
    if let base = content.base {
      guard let entry = try entry(base) else { return .needsBase(base) }
      depth = entry.depth + 1
      do {
        prefix = try plain(base)
      } catch let error as StoreError where error.code == .damaged {
        // Fetched again, it replaces the damaged one.
        return .needsBase(base)
      }
    }
    let plain: Data
    do {
      plain = try Zstd.decompress(content.bytes, prefix: prefix, length: content.length)
    } catch let error as StoreError where error.code == .damaged {
      return .damaged
    }
    guard ContentHash(of: plain) == content.hash else { return .damaged }
    // What replaces a damaged content stands alone: the base that it came with may lean on the one replaced.
    if replaces || depth > Self.maximumDepth {
      try insertFull(plain, as: content.hash)
    } else {
      try insert(content, depth: depth)
    }
    cache.insert(plain, as: content.hash)
    return .stored
  }

  /// Whether what is in the database can be read, whatever memory still holds.
  private func isReadable(_ hash: ContentHash) throws -> Bool {
    do {
      _ = try decode(hash, usingCache: false)
      return true
    } catch let error as StoreError where error.code == .damaged {
      return false
    }
  }

  private func frame(_ hash: ContentHash) throws -> Data {
    let statement = try database.cachedStatement(sql: "SELECT bytes FROM content WHERE hash = ?")
    guard let frame = try Data.fetchOne(statement, arguments: [hash.bytes]) else {
      throw StoreError(.missing, "the content \(hash) isn't here")
    }
    return frame
  }

  private func insertFull(_ plain: Data, as hash: ContentHash) throws {
    try insert(.encoding(plain, as: hash, against: nil), depth: 0)
  }

  private func insert(_ content: EncodedContent, depth: Int) throws {
    let frame = try cache.seal.close(frame: content.bytes, of: content.hash, length: content.length, base: content.base)
    try database.cachedStatement(
      sql: "INSERT OR REPLACE INTO content (hash, length, base, depth, bytes) VALUES (?, ?, ?, ?, ?)"
    ).execute(arguments: [content.hash.bytes, content.length, content.base?.bytes, depth, frame])
  }
}

extension Row {
  fileprivate func length(of hash: ContentHash) throws -> Int {
    let length: Int = try checked("length")
    guard length >= 0, length <= EncodedContent.maximumContentBytes else {
      throw StoreError(.damaged, "the content \(hash) is damaged: it has an impossible length")
    }
    return length
  }

  fileprivate func base(of hash: ContentHash) throws -> ContentHash? {
    guard let bytes: Data = try checkedOptional("base") else { return nil }
    guard let base = ContentHash(bytes: bytes) else {
      throw StoreError(.damaged, "the content \(hash) is damaged: its base has no proper name")
    }
    return base
  }
}
