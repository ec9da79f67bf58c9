#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

@testable import KeepsakeServer

@Suite("Packed decisions")
struct PackedDecisionsTests {
  private typealias Entry = PackedDecisions.Entry

  private func entry(_ id: OperationID, using random: inout SeededGenerator) -> Entry {
    Entry(
      operation: id, isAccepted: Bool.random(using: &random),
      fingerprint: random.next() & WalletOperation.fingerprintMask)
  }

  private func found(_ id: OperationID, in parts: [PackedDecisions]) -> Entry? {
    parts.last { $0.first <= id }?.entry(of: id)
  }

  @Test("a decision is found by its operation's id, with verdict and fingerprint, and no other id is found")
  func lookup() throws {
    var random = SeededGenerator(seed: 11)
    for count in [1, 2, 180, 181, 182, 1_000] {
      let ids =
        [OperationID(high: 0, low: 0), OperationID(high: .max, low: .max)].prefix(count)
        + (2..<max(2, count)).map { _ in OperationID(using: &random) }
      let entries = ids.map { entry($0, using: &random) }
      let parts = PackedDecisions.packed(entries.shuffled(using: &random))
      #expect(parts.map(\.count).reduce(0, +) == count)
      for entry in entries {
        #expect(found(entry.operation, in: parts) == entry)
        for absent in [entry.operation.low &+ 1, entry.operation.low &- 1] {
          #expect(found(OperationID(high: entry.operation.high, low: absent), in: parts) == nil)
        }
        #expect(found(OperationID(high: ~entry.operation.high &+ 5, low: 5), in: parts) == nil)
      }
    }
    #expect(PackedDecisions.packed([]).isEmpty)
  }

  @Test("an operation's own fingerprint is packed without loss, and differs for another amount, currency or goods")
  func fingerprints() throws {
    var random = SeededGenerator(seed: 12)
    var fingerprints: Set<UInt64> = []
    for number in 0..<500 {
      let operation = WalletOperation(
        id: OperationID(using: &random), kind: .spend, currency: "currency \(number % 5)",
        amount: Int64(number / 5 % 50) + 1, reason: "a hat", goods: number >= 250 ? ["hat"] : [])
      let decided = DecidedOperation(verdict: .declined, fingerprint: operation.fingerprint, chain: nil)
      let packed = PackedDecisions.packed([
        Entry(operation: operation.id, isAccepted: false, fingerprint: operation.fingerprint)
      ])
      #expect(packed.first?.entry(of: operation.id)?.decided == decided)
      fingerprints.insert(operation.fingerprint)
    }
    #expect(fingerprints.count == 500)
  }

  @Test("of several decisions on one id the first counts")
  func duplicates() throws {
    var random = SeededGenerator(seed: 13)
    let ids = (0..<300).map { _ in OperationID(using: &random) }
    let entries = (ids + ids + ids).map { entry($0, using: &random) }
    let parts = PackedDecisions.packed(entries)
    #expect(parts.map(\.count) == [181, 119])
    for (id, first) in zip(ids, entries) { #expect(found(id, in: parts) == first) }
  }

  @Test("merged runs have every decision of each run once, sorted, in full parts; the foremost run's counts")
  func merge() throws {
    for seed in 0..<20 as Range<UInt64> {
      var random = SeededGenerator(seed: seed)
      // Few different ids, so that runs share many.
      let ids = (0..<400).map { _ in OperationID(using: &random) }
      var runs: [[PackedDecisions]] = []
      var expected: [OperationID: Entry] = [:]
      for _ in 0..<(random.next() % 5) {
        let chosen = ids.filter { _ in random.next() % 3 == 0 }.map { entry($0, using: &random) }
        expected.merge(chosen.map { ($0.operation, $0) }) { foremost, _ in foremost }
        runs.append(PackedDecisions.packed(chosen))
      }
      if seed % 2 == 0 { runs.append([]) }
      var merge = try PackedDecisions.Merge(
        runs.map { parts in
          var rest = parts[...]
          return { rest.popFirst() }
        })
      var merged: [PackedDecisions] = []
      while let part = try merge.next() { merged.append(part) }
      let entries = merged.flatMap(\.entries)
      #expect(entries == expected.values.sorted { $0.operation < $1.operation }, "seed \(seed)")
      #expect(merged.dropLast().allSatisfy { $0.count == PackedDecisions.maximumEntries })
      #expect(try merge.next() == nil)
    }
  }

  @Test("a million decisions take at most 24 bytes each with the keys of their rows, and a row is less than a page")
  func size() throws {
    var random = SeededGenerator(seed: 14)
    let count = 1_000_000
    let entries = (0..<count).map { number in
      entry(OperationID(high: UInt64(number) << 44 | random.next() >> 20, low: random.next()), using: &random)
    }
    let parts = PackedDecisions.packed(entries)
    // A row has two ids (the container's and the first operation's) and a level beside the entries.
    let bytes = parts.reduce(0) { $0 + $1.bytes.count + 2 * 16 + 8 }
    #expect(bytes <= 24 * count)
    #expect(parts.allSatisfy { $0.bytes.count + 2 * 16 + 8 < 4_096 - 35 })
    // Two pieces of a long value in PostgreSQL.
    #expect(parts.allSatisfy { $0.bytes.count <= 2 * 1_996 })
    for index in stride(from: 0, to: count, by: 997) {
      #expect(found(entries[index].operation, in: parts) == entries[index])
    }
  }

  @Test("bytes that no packing gives are refused")
  func damaged() throws {
    // Rows were packed with 182 before.
    let most = 182 * PackedDecisions.entryBytes
    for count in [0, 1, 21, 23, 43, most - 1, most + 1, most + 22] {
      #expect(PackedDecisions(bytes: Data(count: count)) == nil)
    }
    #expect(PackedDecisions(bytes: Data(count: 22))?.count == 1)
    #expect(PackedDecisions(bytes: Data(count: most))?.count == 182)
  }
}
#endif
