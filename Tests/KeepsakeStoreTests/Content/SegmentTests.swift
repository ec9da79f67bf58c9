import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// Saves of more than a few MiB, which are cut at positions that their bytes determine, and stored in segments.
@Suite struct SegmentTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Something like a map: small numbers, so half of it can be compressed away. `count` is a multiple of 8.
  static func map(_ count: Int, seed: UInt64) -> Data {
    var random = SeededRandom(seed: seed)
    var words: [UInt64] = []
    words.reserveCapacity(count / 8)
    for _ in 0..<count / 8 { words.append(random.next() & 0x0F0F_0F0F_0F0F_0F0F) }
    return words.withUnsafeBytes { Data($0) }
  }

  @Test("a large save is cut into segments of about a MiB that join to the whole, and a slice is cut the same way")
  func cuts() throws {
    let bytes = Self.map(24 << 20, seed: 1)
    let segments = Segmenter.segments(of: bytes)
    #expect(segments.allSatisfy { $0.count <= Segmenter.maximum })
    #expect(segments.dropLast().allSatisfy { $0.count > Segmenter.minimum })
    #expect((14...40).contains(segments.count), "\(segments.map(\.count))")
    let joined = segments.reduce(into: Data()) { $0.append($1) }
    let isWhole = joined == bytes
    #expect(isWhole)
    // A slice that doesn't begin at 0, as a caller may pass it.
    let within = (Data([1, 2, 3]) + bytes).dropFirst(3)
    let isAlike = Segmenter.segments(of: within).map(\.count) == segments.map(\.count)
    #expect(isAlike)
    #expect(Segmenter.segments(of: Data()).count == 1)
    #expect(Segmenter.segments(of: bytes.prefix(Segmenter.threshold)).count == 1)
    // Without a position to cut at, the cut is at the maximum length.
    let mebibyte = 1 << 20
    let counts: [Int] = Segmenter.segments(of: Data(count: 10 * mebibyte)).map(\.count)
    #expect(counts == [4 * mebibyte, 4 * mebibyte, 2 * mebibyte])
  }

  @Test("bytes inserted near the beginning change at most two segments")
  func cutsFollowTheBytes() {
    let bytes = Self.map(24 << 20, seed: 2)
    let longer = bytes.prefix(3 << 20) + Data("a new room".utf8) + bytes.dropFirst(3 << 20)
    let before = Set(Segmenter.segments(of: bytes).map { ContentHash(of: $0) })
    let after = Segmenter.segments(of: longer).map { ContentHash(of: $0) }
    #expect(after.filter { !before.contains($0) }.count <= 2)
  }

  @Test("a small change of a large save takes few bytes, and every version of the save can be loaded")
  func costsWhatChanged() throws {
    var store = try Store.open(at: folder.store)
    var random = SeededRandom(seed: 3)
    var bytes = Self.map(12 << 20, seed: 3)
    var versions: [Data] = []
    var sizes: [Int] = []
    for number in 1...6 {
      try store.save(bytes, as: UInt64(number))
      sizes.append(try store.read { try Int.fetchOne($0.database, sql: "SELECT SUM(LENGTH(bytes)) FROM content") ?? 0 })
      versions.append(bytes)
      let place = Int(random.next() % UInt64(bytes.count - 100))
      if number % 2 == 0 { bytes.insert(contentsOf: random.bytes(50), at: place) } else { bytes[place] ^= 1 }
    }
    let growth = zip(sizes.dropFirst(), sizes).map { $0 - $1 }
    #expect(growth.allSatisfy { $0 < 20_000 }, "bytes stored for each of the later versions: \(growth)")
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try store.read { transaction throws in
      let history = try transaction.history(of: "main")
      #expect(history.map(\.record.id.low) == (1...6).reversed())
      for version in history {
        #expect(version.record.contents.count > 5)
        let isSame = try transaction.plainBytes(of: version.record) == versions[Int(version.record.id.low) - 1]
        #expect(isSame, "version \(version.record.id.low)")
      }
    }
  }

  /// Thousands of lines, as text.
  private static func text(_ lines: [String]) -> Data { Data(lines.joined(separator: "\n").utf8) }

  @Test(
    """
    large saves that change all over, grow or stay near the threshold take at most 1.5 times the bytes of plain deltas
    """,
    arguments: ["all over", "at its end", "in its middle", "about the threshold"])
  func scattered(where place: String) throws {
    let store = try Store.open(at: folder.store, history: .everything)
    defer { try? store.close() }
    var random = SeededRandom(seed: 21)
    func line() -> String { "\(random.next()) \(random.next()) \(random.next())" }
    // Lines of about 60 bytes: 5.4 MB, or a little less than the threshold.
    let small = place == "about the threshold" ? 69_000 : 90_000
    var lines = (0..<small).map { _ in line() }
    var before: Data?
    var least = 0
    var versions: [Data] = []
    for number in UInt64(1)...24 {
      let bytes = Self.text(lines)
      least += try Zstd.compress(bytes, prefix: before).count
      try store.save(bytes, as: number)
      before = bytes
      versions.append(bytes)
      for _ in 0..<400 { lines[Int(random.next() % UInt64(lines.count))] = "changed \(random.next() % 1_000_000)" }
      switch place {
      case "at its end": for _ in 0..<1_000 { lines.append(line()) }
      case "in its middle": for _ in 0..<1_000 { lines.insert(line(), at: 30_000) }
      case "about the threshold":
        if number % 2 == 0 { lines.removeLast(2_000) } else { for _ in 0..<2_000 { lines.append(line()) } }
      default: break
      }
    }
    if place == "about the threshold" {
      let areAbove: [Bool] = versions.map { $0.count > Segmenter.threshold }
      #expect(areAbove.contains(true) && areAbove.contains(false))
    }
    let kept = try store.read { try Int.fetchOne($0.database, sql: "SELECT SUM(LENGTH(bytes)) FROM content") ?? 0 }
    #expect(Double(kept) <= 1.5 * Double(least), "seed 21, \(Double(kept) / Double(least)) times the least")
    store.memory.forgetPlain()
    try store.read { transaction throws in
      let history = try transaction.history(of: "main")
      #expect(history.map(\.record.id.low) == (1...24).reversed())
      for version in history {
        let isSame = try transaction.plainBytes(of: version.record) == versions[Int(version.record.id.low) - 1]
        #expect(isSame, "version \(version.record.id.low)")
      }
    }
  }

  @Test("all versions of a save that grows beyond the threshold and shrinks below it again are loaded unchanged")
  func crossesTheThreshold() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let bytes = Self.map(5 << 20, seed: 4)
    let lengths = [3 << 20, 5 << 20, 3 << 20, 0, 5 << 20, 1]
    for (index, length) in lengths.enumerated() { try store.save(bytes.prefix(length), as: UInt64(index + 1)) }
    store.memory.forgetPlain()
    try store.read { transaction throws in
      let history = try transaction.history(of: "main")
      #expect(history.map(\.record.id.low) == (1...6).reversed())
      for version in history {
        let isSame =
          try transaction.plainBytes(of: version.record) == bytes.prefix(lengths[Int(version.record.id.low) - 1])
        #expect(isSame, "version \(version.record.id.low)")
      }
    }
  }

  @Test("segments of a large save whose commit failed are removed, and the save can be tried again")
  func failedCommit() throws {
    struct Refused: Error {}
    let store = try Store.open(at: folder.store)
    let bytes = Self.map(9 << 20, seed: 5)
    let pending = try store.submit([(slot: "main", bytes: bytes)]) { _, _ in throw Refused() }
    #expect(throws: Refused.self) { try pending.wait() }
    try store.drain()
    #expect(try store.read { try Int.fetchOne($0.database, sql: "SELECT COUNT(*) FROM content") } == 0)
    try store.save(bytes, as: 1)
    store.memory.forgetPlain()
    let isSame = try store.read { try $0.plainBytes(of: try #require(try $0.version(id(1))).record) == bytes }
    #expect(isSame)
    try store.close()
  }

  @Test("segments of a large save are not collected while the save is being written")
  func heldWhilePrepared() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let (first, second) = (Self.map(9 << 20, seed: 6), Self.map(9 << 20, seed: 7))
    try store.save(first, as: 1)
    // Between the writing of the segments and the commit, another writer collects unused contents.
    for number in 2...4 as ClosedRange<UInt64> {
      let failure = Shared<String?>(nil)
      let done = DispatchSemaphore(value: 0)
      let sweeping = Thread {
        do { for _ in 0..<50 { try store.write { try History.sweep($0) } } } catch { failure.value = "\(error)" }
        done.signal()
      }
      sweeping.start()
      try store.save(number % 2 == 0 ? second : first, as: number)
      done.wait()
      #expect(failure.value == nil)
    }
    store.memory.forgetPlain()
    try store.read { transaction throws in
      let history = try transaction.history(of: "main")
      #expect(history.map(\.record.id.low) == (1...4).reversed())
      for version in history {
        let expected = version.record.id.low % 2 == 0 ? second : first
        let isSame = try transaction.plainBytes(of: version.record) == expected
        #expect(isSame, "version \(version.record.id.low)")
      }
    }
  }

  @Test("a damaged segment of a large save is written again by the next save that contains it")
  func heals() throws {
    var store = try Store.open(at: folder.store)
    let bytes = Self.map(6 << 20, seed: 8)
    try store.save(bytes, as: 1)
    try store.write { transaction throws in
      try transaction.database.execute(sql: "UPDATE content SET bytes = x'00' WHERE position = 2")
    }
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    func loads(_ number: UInt64) -> StoreError.Code? {
      errorCode { try store.read { _ = try $0.plainBytes(of: try #require(try $0.version(id(number))).record) } }
    }
    #expect(loads(1) == .damaged)
    try store.save(bytes + Data([1]), as: 2)
    store.memory.forgetPlain()
    #expect(loads(1) == nil && loads(2) == nil)
  }
}
