import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

@Suite struct ContentTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Successive states of a save of some size: text in which little changes.
  static func series(count: Int, seed: UInt64) -> [Data] {
    var random = SeededRandom(seed: seed)
    var lines = (0..<2000).map { "tile \($0) kind \(random.next() % 40) hardness \(random.next() % 1000)" }
    return (0..<count).map { _ in
      for _ in 0..<5 { lines[Int(random.next() % 2000)] = "tile changed \(random.next())" }
      return Data(lines.joined(separator: "\n").utf8)
    }
  }

  func storedSizes(_ store: Store) throws -> [(isFull: Bool, bytes: Int)] {
    try store.read { transaction throws in try storedSizes(transaction) }
  }

  func storedSizes(_ transaction: StoreTransaction) throws -> [(isFull: Bool, bytes: Int)] {
    try Row.fetchAll(transaction.database, sql: "SELECT base IS NULL, LENGTH(bytes) FROM content ORDER BY position").map
    { ($0[0], $0[1]) }
  }

  @Test("a long series of saves takes one full frame and small deltas, and every version in the history can be loaded")
  func chains() throws {
    let store = try Store.open(at: folder.store)
    let series = Self.series(count: 50, seed: 1)
    for (index, bytes) in series.enumerated() { try store.save(bytes, as: UInt64(index + 1)) }
    let sizes = try storedSizes(store)
    let full = try #require(sizes.filter { $0.isFull }.map(\.bytes).max())
    let deltas = sizes.filter { !$0.isFull }.map(\.bytes).sorted()
    #expect(sizes.filter { $0.isFull }.count == 1, "seed 1, \(sizes)")
    // One or two deltas have bases that are long gone, and contain everything that changed since.
    #expect(deltas[deltas.count / 2] * 20 < full, "seed 1, \(sizes)")
    try store.close()

    let again = try Store.open(at: folder.store)
    defer { try? again.close() }
    try again.read { transaction throws in
      let history = try transaction.history(of: "main")
      #expect(history.count == HistoryRules.standard.newest)
      for version in history {
        let plain = try transaction.plainBytes(of: version.record)
        #expect(plain == series[Int(version.record.id.low) - 1])
      }
    }
  }

  @Test(
    """
    in a long series every version loads within the cost limit, and all take at most 1.5 times the bytes of plain deltas
    """)
  func chainsAreBounded() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    var random = SeededRandom(seed: 11)
    var bytes = random.bytes(1 << 20)
    var hashes: [ContentHash] = []
    var versions: [Data] = []
    var least = 0
    try store.write { transaction throws in
      for _ in 0..<480 {
        let before = versions.last
        least += try Zstd.compress(bytes, prefix: before).count
        hashes.append(try transaction.keepContent(bytes, against: hashes.last))
        versions.append(bytes)
        for _ in 0..<20 { bytes[Int(random.next() % UInt64(bytes.count))] ^= UInt8(truncatingIfNeeded: random.next()) }
      }
    }
    store.memory.forgetPlain()
    try store.read { transaction throws in
      let limit = DecodingCost.limit(plain: bytes.count, of: bytes.count, fullFrame: bytes.count)
      var longest = 0
      for (hash, plain) in zip(hashes, versions) {
        let chain = try transaction.contents.chain(from: hash)
        #expect(chain.reduce(0) { $0 + $1.entry.cost } <= limit, "seed 11, a chain of \(chain.count)")
        longest = max(longest, chain.count)
        let isSame = try transaction.plainContent(hash) == plain
        #expect(isSame)
      }
      // Otherwise the limit was never reached.
      #expect((50..<430).contains(longest), "seed 11, the longest chain has \(longest)")
    }
    let kept = try storedSizes(store)
    #expect(kept.count(where: \.isFull) <= 2, "seed 11")
    #expect(Double(kept.reduce(0) { $0 + $1.bytes }) <= 1.5 * Double(least), "seed 11")
  }

  @Test("forged chains of bases that would take forever to decode are reported as damage before they are decoded")
  func forgedChains() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let large = Data(count: 128 << 20)
    var hash = ContentHash(of: large)
    try store.write { transaction throws in
      try transaction.contents.insert(
        EncodedContent(hash: hash, length: large.count, base: nil, bytes: Zstd.compress(large)))
      for number in 0..<500 as Range<UInt64> {
        let next = ContentHash(of: Data("\(number)".utf8))
        try transaction.contents.insert(EncodedContent(hash: next, length: large.count, base: hash, bytes: Data([1])))
        hash = next
      }
    }
    let error = #expect(throws: StoreError.self) { try store.read { _ = try $0.plainContent(hash) } }
    #expect(
      error?.code == .damaged && error?.message.contains("chain of bases is too long") == true,
      "\(String(describing: error))")
    // A cycle doesn't take forever either.
    let (one, other) = (ContentHash(of: Data([1])), ContentHash(of: Data([2])))
    try store.write { transaction throws in
      try transaction.contents.insert(EncodedContent(hash: one, length: 1, base: other, bytes: Data([1])))
      try transaction.contents.insert(EncodedContent(hash: other, length: 1, base: one, bytes: Data([1])))
      #expect(try transaction.contents.chain(from: one).isEmpty)
    }
    #expect(errorCode { try store.read { _ = try $0.plainContent(one) } } == .damaged)
  }

  @Test("the next save doesn't rely on a content that was repaired in a transaction that failed")
  func failedHealing() throws {
    struct Refused: Error {}
    var store = try Store.open(at: folder.store)
    let bytes = SegmentTests.map(1 << 16, seed: 12)
    try store.save(bytes, as: 1)
    try store.write { transaction throws in
      try transaction.database.execute(sql: "UPDATE content SET bytes = x'00'")
    }
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let pending = try store.submit([(slot: "main", bytes: bytes)]) { _, _ in throw Refused() }
    #expect(throws: Refused.self) { try pending.wait() }
    try store.drain()
    try store.save(bytes, as: 2)
    store.memory.forgetPlain()
    #expect(errorCode { _ = try store.read { try $0.plainContent(ContentHash(of: bytes)) } } == nil)
  }

  @Test("real saves are loaded byte for byte", .needsRealFiles)
  func corpus() throws {
    let saves = try #require(RealFiles.folder).appendingPathComponent("saves")
    let kinds = try FileManager.default.contentsOfDirectory(atPath: saves.path).sorted()
    #expect(!kinds.isEmpty)
    for kind in kinds {
      let store = try Store.open(at: folder.url.appendingPathComponent(kind))
      var plainBytes = 0
      var wholeBytes = 0
      var number: UInt64 = 0
      var contents: [(ContentHash, Data)] = []
      for name in try FileManager.default.contentsOfDirectory(atPath: saves.appendingPathComponent(kind).path).sorted()
      {
        let bytes = try Data(contentsOf: saves.appendingPathComponent(kind).appendingPathComponent(name))
        number += 1
        try store.save(bytes, as: number)
        plainBytes += bytes.count
        wholeBytes += try Zstd.compress(bytes).count
        contents.append((ContentHash(of: bytes), bytes))
      }
      let stored = try store.read { transaction throws in
        try storedSizes(transaction).map { "\($0.bytes)\($0.isFull ? " full" : "")" }
      }
      print("\(kind): \(contents.count) saves, plain \(plainBytes), each zstd -3 \(wholeBytes), stored \(stored)")
      store.memory.forgetPlain()
      try store.read { transaction throws in
        for (hash, bytes) in contents { #expect(try transaction.plainContent(hash) == bytes, "\(kind)") }
      }
      try store.close()
    }
  }

  @Test(
    "every altered byte of a stored save is detected by the save's hash, and never given to the game",
    arguments: [0, 1])
  func findsFlippedBytes(depth: Int) throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    var random = SeededRandom(seed: 5)
    let first = random.bytes(300)
    var second = first
    second[20] ^= 7
    try store.save(first, as: 1)
    try store.save(second, as: 2)
    #expect(try storedSizes(store).map(\.isFull) == [true, false])
    let hash = ContentHash(of: depth == 0 ? first : second)
    let frame = try store.read { transaction throws in
      try #require(
        try Data.fetchOne(
          transaction.database, sql: "SELECT bytes FROM content WHERE hash = ?", arguments: [hash.bytes]))
    }
    var harmless = 0
    for index in frame.indices {
      var changed = frame
      changed[index] ^= 0x10
      try store.write { transaction throws in
        try transaction.database.execute(
          sql: "UPDATE content SET bytes = ? WHERE hash = ?", arguments: [changed, hash.bytes])
      }
      store.memory.forgetPlain()
      // The second is a delta of the first: it must not be returned changed either.
      let code = errorCode {
        let plain = try store.read { try $0.plainContent(ContentHash(of: second)) }
        #expect(plain == second, "byte \(index) changed what the game gets")
        harmless += 1
      }
      #expect(code == nil || code == .damaged)
    }
    // A frame may contain a bit without meaning; then the right bytes are returned.
    #expect(harmless < 4)
  }

  @Test("a save after a damaged one is stored in full, and saving the damaged bytes again repairs them")
  func damageDoesNotSpread() throws {
    var store = try Store.open(at: folder.store)
    let series = Self.series(count: 3, seed: 3)
    try store.save(series[0], as: 1)
    try store.save(series[1], as: 2)
    try store.write { transaction throws in
      try transaction.database.execute(sql: "UPDATE content SET bytes = x'00' WHERE base IS NULL")
    }
    try store.close()
    store = try Store.open(at: folder.store)
    #expect(errorCode { _ = try store.read { try $0.plainContent(ContentHash(of: series[1])) } } == .damaged)
    try store.save(series[2], as: 3)
    // Saving the same bytes again repairs the damaged content.
    try store.save(series[0], as: 4)
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    for bytes in series { #expect(try store.read { try $0.plainContent(ContentHash(of: bytes)) } == bytes) }
  }

  @Test("contents are sent as deltas if the receiver has the base, and in full otherwise, and arrive unchanged")
  func overTheWire() throws {
    let series = Self.series(count: 4, seed: 4)
    let here = try Store.open(at: folder.url.appendingPathComponent("here"))
    let there = try Store.open(at: folder.url.appendingPathComponent("there"))
    defer {
      try? here.close()
      try? there.close()
    }
    for (index, bytes) in series.enumerated() { try here.save(bytes, as: UInt64(index + 1)) }
    let hashes = series.map { ContentHash(of: $0) }
    let full = try here.read { try $0.encoded(hashes[1], against: nil) }
    let delta = try here.read { try $0.encoded(hashes[2], against: hashes[1]) }
    let skipping = try here.read { try $0.encoded(hashes[3], against: hashes[1]) }
    let unknownBase = try here.read { try $0.encoded(hashes[3], against: ContentHash(of: Data([9]))) }
    #expect(full.base == nil && delta.base == hashes[1] && skipping.base == hashes[1] && unknownBase.base == nil)
    #expect(delta.bytes.count * 20 < full.bytes.count)
    try there.write { transaction throws in
      #expect(try transaction.receiveContent(delta) == .needsBase(hashes[1]))
      #expect(try transaction.receiveContent(full) == .stored)
      #expect(try transaction.receiveContent(full) == .stored)
      #expect(try transaction.receiveContent(delta) == .stored)
      #expect(try transaction.receiveContent(skipping) == .stored)
      // It is stored as it was received, so that it takes as many bytes here as it took in transfer.
      #expect(try transaction.encoded(hashes[2], against: hashes[1]) == delta)
    }
    there.memory.forgetPlain()
    for index in 1...3 { #expect(try there.read { try $0.plainContent(hashes[index]) } == series[index]) }
  }

  @Test(
    "a damaged content that arrives as a delta against one that builds on it is stored in full, and both can be read")
  func receivesInPlaceOfDamage() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let series = Self.series(count: 2, seed: 10)
    let hashes = series.map { ContentHash(of: $0) }
    try store.write { transaction throws in
      _ = try transaction.keepContent(series[0])
      _ = try transaction.keepContent(series[1], against: hashes[0])
      #expect(try storedSizes(transaction).map(\.isFull) == [true, false])
      // So that the second can still be read, though it builds on what is now damaged.
      #expect(try transaction.plainContent(hashes[1]) == series[1])
      try transaction.database.execute(sql: "UPDATE content SET bytes = x'00' WHERE base IS NULL")
      let arriving = try EncodedContent.encoding(
        series[0], as: hashes[0], against: ContentBase(hash: hashes[1], plain: series[1]))
      #expect(arriving.base == hashes[1])
      #expect(try transaction.receiveContent(arriving) == .stored)
    }
    store.memory.forgetPlain()
    for (hash, bytes) in zip(hashes, series) { #expect(try store.read { try $0.plainContent(hash) } == bytes) }
  }

  @Test("a chain of deltas from another device that would get too long ends in a full frame, and can be read")
  func receivesLongChains() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let series = (0..<DecodingCost.maximumDepth + 5).map { Data("content \($0)".utf8) }
    try store.write { transaction throws in
      var base: Data?
      for (index, plain) in series.enumerated() {
        let content = EncodedContent(
          hash: ContentHash(of: plain), length: plain.count, base: base.map { ContentHash(of: $0) },
          bytes: try Zstd.compress(plain, prefix: base))
        base = plain
        if index < DecodingCost.maximumDepth - 5 {
          // Without the checks, which cost a look at the whole chain each time.
          try transaction.contents.insert(content)
        } else {
          #expect(try transaction.receiveContent(content) == .stored)
        }
      }
    }
    for index in [DecodingCost.maximumDepth - 1, series.count - 1] {
      store.memory.forgetPlain()
      #expect(try store.read { try $0.plainContent(ContentHash(of: series[index])) } == series[index])
    }
  }

  @Test("a stored frame that was damaged since its bytes were cached is not sent")
  func sendsNoDamage() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let bytes = Self.series(count: 1, seed: 9)[0]
    try store.write { transaction in
      let hash = try transaction.keepContent(bytes)
      let good = try transaction.encoded(hash, against: nil)
      try transaction.database.execute(sql: "UPDATE content SET bytes = zeroblob(LENGTH(bytes))")
      #expect(try transaction.plainContent(hash) == bytes, "the bytes are no longer cached, so that this shows nothing")
      let sent = try transaction.encoded(hash, against: nil)
      #expect(sent.bytes.contains { $0 != 0 } && sent.length == good.length)
      #expect(try Zstd.decompress(sent.bytes, prefix: nil, length: sent.length) == bytes)
    }
  }

  @Test("a received content with a wrong hash, length, frame or base is refused")
  func refusesLies() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let plain = Data("a world of its own".utf8)
    let hash = ContentHash(of: plain)
    let good = try EncodedContent.encoding(plain, as: hash, against: nil)
    var lies: [EncodedContent] = []
    var lie = good
    lie.hash = ContentHash(of: Data("another".utf8))
    lies.append(lie)
    for length in [0, plain.count - 1, plain.count + 1, -1, Int.max, EncodedContent.maximumContentBytes + 1] {
      lie = good
      lie.length = length
      lies.append(lie)
    }
    for count in 0..<good.bytes.count {
      lie = good
      lie.bytes = good.bytes.prefix(count)
      lies.append(lie)
    }
    lie = good
    lie.bytes = good.bytes + good.bytes
    lies.append(lie)
    lie = good
    lie.base = hash
    lies.append(lie)
    // A decompression bomb: a few bytes that expand to more than they declare.
    lie = try EncodedContent.encoding(Data(count: 1 << 20), as: hash, against: nil)
    lie.length = plain.count
    lies.append(lie)
    for lie in lies {
      #expect(try store.write { try $0.receiveContent(lie) } == .damaged, "\(lie)")
    }
    #expect(try store.read { try !$0.hasContent(hash) })
    #expect(try store.write { try $0.receiveContent(good) } == .stored)
  }

  @Test(
    "empty and incompressible saves are stored like any other, and a save above 256 MiB is refused",
    arguments: [0, 1, 100_000])
  func oddSizes(count: Int) throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    var random = SeededRandom(seed: 6)
    let first = random.bytes(count)
    let second = random.bytes(count)
    try store.save(first, as: 1)
    try store.save(second, as: 2)
    store.memory.forgetPlain()
    #expect(try store.read { try $0.plainContent(ContentHash(of: first)) } == first)
    #expect(try store.read { try $0.plainContent(ContentHash(of: second)) } == second)
    if count > 1 { #expect(try storedSizes(store).allSatisfy(\.isFull)) }
    #expect(
      errorCode { _ = try store.submit([(slot: "x", bytes: Data(count: (256 << 20) + 1))]) { _, _ in } }
        == .tooLarge)
  }
}
