import Foundation
import GRDB
import KeepsakeReplication

/// The contents of a store, within one transaction: bytes under the hash of their plain form, each stored as a full
/// zstd frame or as a delta against another content.
struct ContentTable {
  /// What is known about a content without its bytes.
  struct Entry {
    /// Length of the plain bytes.
    var length: Int
    /// The content that its frame is a delta against.
    var base: ContentHash?
    /// Length of the frame.
    var encodedLength: Int

    var cost: Int { DecodingCost.frame(plain: length, encoded: encodedLength) }

    /// Returns the maximum cost of a chain that ends in this full frame and begins with a content of `length` bytes,
    /// part of a save of `whole` bytes. Assumes that similar contents compress similarly.
    func limit(of whole: Int, for length: Int) -> Int {
      let fullFrame = Double(encodedLength) * Double(length) / Double(max(self.length, 1))
      return DecodingCost.limit(plain: length, of: whole, fullFrame: Int(fullFrame))
    }
  }

  let database: Database
  let context: StoreContext
  var memory: ContentMemory { context.memory }

  func has(_ hash: ContentHash) throws -> Bool {
    try database.exists("SELECT 1 FROM content WHERE hash = ?", hash.bytes)
  }

  func entry(_ hash: ContentHash) throws -> Entry? {
    let statement = try database.cachedStatement(sql: "SELECT length, base, LENGTH(bytes) FROM content WHERE hash = ?")
    return try Row.fetchOne(statement, arguments: [hash.bytes])?.entry(of: hash)
  }

  // MARK: Reading

  /// Returns the plain bytes, checked against their hash. Throws `missing` or `damaged`.
  func plain(_ hash: ContentHash) throws -> Data {
    // The cache may contain what was rolled back or collected.
    if let bytes = memory.cache.bytes(of: hash), try has(hash) { return bytes }
    let plain = try decode(hash, usingCache: true)
    memory.cache.insert(plain, as: hash)
    return plain
  }

  /// Decodes the chain of `hash` and checks the result against it.
  private func decode(_ hash: ContentHash, usingCache: Bool) throws -> Data {
    // From the content down to a full frame, or to one whose plain bytes are cached.
    var frames: [(frame: Data, length: Int)] = []
    var next: ContentHash? = hash
    var plain: Data?
    var cost = 0
    while let current = next {
      if usingCache, current != hash, let bytes = memory.cache.bytes(of: current) {
        plain = bytes
        break
      }
      guard let (entry, frame) = try stored(current) else {
        if current == hash { throw StoreError(.missing, "the content \(hash) isn't in this store") }
        throw StoreError(.damaged, "the content \(hash) can't be read: its base \(current) is missing")
      }
      frames.append((frame, entry.length))
      cost += entry.cost
      guard frames.count <= DecodingCost.maximumDepth + 1, let first = frames.first,
        cost <= DecodingCost.believable(plain: first.length)
      else {
        throw StoreError(.damaged, "the content \(hash) can't be read: its chain of bases is too long")
      }
      next = entry.base
    }
    while let (frame, length) = frames.popLast() {
      plain = try Zstd.decompress(frame, prefix: plain, length: length)
    }
    guard let plain, ContentHash(of: plain) == hash else {
      throw StoreError(.damaged, "the content \(hash) is damaged: its bytes don't match the hash")
    }
    memory.setProven(hash)
    return plain
  }

  /// Returns whether what is in the database can be read, regardless of cached bytes.
  func isReadable(_ hash: ContentHash) throws -> Bool {
    do {
      _ = try decode(hash, usingCache: false)
      return true
    } catch let error as StoreError where error.code == .damaged {
      memory.setProven(hash, false)
      return false
    }
  }

  /// Returns the chain from a content down to its full frame; empty if one of them is missing or they form a circle.
  /// Throws `damaged` for an invalid row.
  ///
  /// `pending` are contents that are not in the database yet. Costs a look-up for each, without their bytes.
  func chain(from hash: ContentHash, pending: [ContentHash: PreparedContent] = [:]) throws -> [(
    hash: ContentHash, entry: Entry
  )] {
    var chain: [(hash: ContentHash, entry: Entry)] = []
    var next: ContentHash? = hash
    while let current = next, let entry = pending[current]?.entry {
      chain.append((current, entry))
      next = entry.base
    }
    guard let kept = next else { return chain }
    let statement = try database.cachedStatement(
      sql: """
        WITH RECURSIVE chain (length, base, encoded, hash, depth) AS (
          SELECT length, base, LENGTH(bytes), hash, 0 FROM content WHERE hash = ?1
          UNION ALL
          SELECT content.length, content.base, LENGTH(content.bytes), content.hash, depth + 1
          FROM chain JOIN content ON content.hash = chain.base WHERE depth <= \(DecodingCost.maximumDepth))
        SELECT * FROM chain ORDER BY depth
        """)
    let rows = try Row.fetchCursor(statement, arguments: [kept.bytes])
    while let row = try rows.next() {
      guard let current = next else { break }
      let entry = try row.entry(of: current)
      chain.append((current, entry))
      next = entry.base
    }
    // One is missing, or they form a circle.
    return next == nil && chain.count <= DecodingCost.maximumDepth ? chain : []
  }

  /// Returns a base for a content of `length` bytes, part of a save of `whole` bytes, that was derived from `hash`:
  /// that content or, if its chain is as long as it may get, the one half-way down the chain. Nil if there is none or
  /// it can't be read: damage must not spread to later contents.
  func base(
    from hash: ContentHash, for length: Int, of whole: Int, pending: [ContentHash: PreparedContent] = [:]
  ) throws -> ContentBase? {
    do {
      let chain = try chain(from: hash, pending: pending)
      guard let full = chain.last?.entry else { return nil }
      let limit = full.limit(of: whole, for: length)
      var cost = chain.reduce(0) { $0 + $1.entry.cost }
      let fits =
        cost + DecodingCost.frame(plain: length, encoded: 0) <= limit && chain.count < DecodingCost.maximumDepth
      for (index, link) in chain.enumerated() {
        if fits || cost <= limit / 2 && chain.count - index <= DecodingCost.maximumDepth / 2 {
          let plain = try pending[link.hash]?.plain ?? plain(link.hash)
          return ContentBase(
            hash: link.hash, plain: plain, isNearest: index == 0, fullFrameBytes: full.encodedLength)
        }
        cost -= link.entry.cost
      }
      return nil
    } catch let error as StoreError where error.code == .damaged {
      return nil
    }
  }

  // MARK: Keeping

  /// Stores a content. If it is already here, the stored one stays unless it can't be read.
  func keep(_ prepared: PreparedContent) throws {
    let hash = prepared.hash
    if try has(hash) {
      // Replace a damaged content with a full frame: deltas against it become readable again.
      if try !memory.isProven(hash) && !isReadable(hash) { try insertFull(prepared.plain, as: hash) }
      return
    }
    // The content may have existed when it was prepared and have been collected since, or its base may have been.
    if let encoded = prepared.encoded, try encoded.base.map(has) ?? true {
      try insert(encoded)
    } else {
      try insertFull(prepared.plain, as: hash)
    }
  }

  /// Returns the content for the wire: the stored frame if it has the right base, otherwise encoded again.
  func encoded(_ hash: ContentHash, against base: ContentHash?) throws -> EncodedContent {
    guard let (entry, frame) = try stored(hash) else {
      throw StoreError(.missing, "the content \(hash) isn't in this store")
    }
    // Check what leaves this store, so that damage here doesn't spread.
    let plain = try plain(hash)
    if entry.base == base, isSound(frame, entry, plain) {
      return EncodedContent(hash: hash, length: entry.length, base: base, bytes: frame)
    }
    guard let base, try has(base) else { return try .encoding(plain, as: hash, against: nil) }
    return try .encoding(plain, as: hash, against: ContentBase(hash: base, plain: self.plain(base)))
  }

  /// Returns whether a frame decodes to these bytes. That the cache has them doesn't show it.
  private func isSound(_ frame: Data, _ entry: Entry, _ plain: Data) -> Bool {
    do {
      return try Zstd.decompress(frame, prefix: entry.base.map(self.plain), length: entry.length) == plain
    } catch {
      return false  // The content is encoded afresh instead.
    }
  }

  /// Stores a content from the wire, after checking its plain bytes against its hash.
  func receive(_ content: EncodedContent) throws -> ContentReceipt {
    guard content.length >= 0, content.length <= EncodedContent.maximumContentBytes, content.base != content.hash else {
      return .damaged
    }
    let replaces = try has(content.hash)
    if replaces, try isReadable(content.hash) { return .stored }
    var prefix: Data?
    if let base = content.base {
      guard try has(base) else { return .needsBase(base) }
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
    // Store the replacement of a damaged content in full: the base that it came with may itself build on the damaged
    // one.
    if try replaces || isTooFar(content) { try insertFull(plain, as: content.hash) } else { try insert(content) }
    memory.cache.insert(plain, as: content.hash)
    return .stored
  }

  /// Returns whether decoding it would cost more than the limit, because another device may have been less careful.
  private func isTooFar(_ content: EncodedContent) throws -> Bool {
    guard let base = content.base else { return false }
    let chain = try chain(from: base)
    let own = DecodingCost.frame(plain: content.length, encoded: content.bytes.count)
    guard let full = chain.last?.entry, chain.count < DecodingCost.maximumDepth else { return true }
    return chain.reduce(own) { $0 + $1.entry.cost } > full.limit(of: content.length, for: content.length)
  }

  // MARK: Rows

  private func stored(_ hash: ContentHash) throws -> (Entry, frame: Data)? {
    let statement = try database.cachedStatement(
      sql: "SELECT length, base, LENGTH(bytes), bytes FROM content WHERE hash = ?")
    let found: Row?
    do {
      found = try Row.fetchOne(statement, arguments: [hash.bytes])
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
      // Only this content is lost with the page; contents on other pages can still be read.
      memory.recordLostPage()
      throw StoreError(.damaged, "the content \(hash) can't be read: a page of the database is damaged", cause: error)
    }
    guard let row = found else { return nil }
    let entry = try row.entry(of: hash)
    return (
      entry, try context.seal.open(frame: row.checked(at: 3, "bytes"), of: hash, length: entry.length, base: entry.base)
    )
  }

  private func insertFull(_ plain: Data, as hash: ContentHash) throws {
    try insert(.encoding(plain, as: hash, against: nil))
  }

  /// Writes the content, replacing one with the same hash.
  func insert(_ content: EncodedContent) throws {
    let frame = try context.seal.close(
      frame: content.bytes, of: content.hash, length: content.length, base: content.base)
    try database.cachedStatement(
      sql: "INSERT OR REPLACE INTO content (hash, length, base, bytes) VALUES (?, ?, ?, ?)"
    ).execute(arguments: [content.hash.bytes, content.length, content.base?.bytes, frame])
    memory.setProven(content.hash)
  }
}

extension PreparedContent {
  fileprivate var entry: ContentTable.Entry? {
    encoded.map { ContentTable.Entry(length: plain.count, base: $0.base, encodedLength: $0.bytes.count) }
  }
}

extension Row {
  /// Reads an entry from a row that begins with the length, the base, and the frame's length.
  fileprivate func entry(of hash: ContentHash) throws -> ContentTable.Entry {
    func damaged(_ what: String) -> StoreError { StoreError(.damaged, "the content \(hash) is damaged: \(what)") }
    let length: Int = try checked(at: 0, "length")
    guard (0...EncodedContent.maximumContentBytes).contains(length) else { throw damaged("it has an invalid length") }
    let base: Data? = try checkedOptional(at: 1, "base")
    let name = base.flatMap { ContentHash(bytes: $0) }
    guard (base == nil) == (name == nil) else { throw damaged("its base has an invalid hash") }
    return ContentTable.Entry(length: length, base: name, encodedLength: try checked(at: 2, "bytes"))
  }
}
