import Foundation
import Keepsake
import KeepsakeSimulation
import KeepsakeStore
import TestSupport
import Testing

/// Bytes of a store's files are altered: the game loads the newest state that can be read, or an older one that an
/// incident reports, never anything else, and can go on saving.
///
/// `TestDepth` says how many byte flips are tried; `make damage` tries 20,000, and every page.
@Suite(.serialized) struct DamageTests {
  private static let seed: UInt64 = 2026

  private struct Result: Sendable {
    var counts: [DamagedStores.Outcome: Int] = [:]
    var broken: [String] = []

    mutating func add(_ outcome: DamagedStores.Outcome?) {
      if let outcome { counts[outcome, default: 0] += 1 }
    }

    func check(_ tried: Int, mended: Bool = true) {
      #expect(broken.isEmpty, "\(broken.count) broken promises, the first: \(broken.prefix(3).joined(separator: "; "))")
      #expect(counts.values.reduce(0, +) == tried)
      if mended { #expect(counts[.mended, default: 0] > 0, "nothing was repaired: the test alters nothing relevant") }
    }
  }

  @Test("one altered byte anywhere in a closed store is repaired or reported, and the game can go on saving")
  func closedStore() async throws {
    let count = (TestDepth.damagedBytes) / 2
    let result = try await onThread {
      let stores = try DamagedStores(levels: 8, ballast: 0, isRunning: false, seed: Self.seed)
      return try Self.flip(in: stores, "store.sqlite", count: count, seed: Self.seed)
    }
    result.check(count)
  }

  @Test("one altered byte in a killed game's log or database is repaired or reported, and the game can go on saving")
  func killedStore() async throws {
    let count = (TestDepth.damagedBytes) / 4
    let (inLog, beside) = try await onThread {
      let stores = try DamagedStores(levels: 8, ballast: 0, isRunning: true, seed: Self.seed)
      return (
        try Self.flip(in: stores, "store.sqlite-wal", count: count, seed: Self.seed &+ 1),
        try Self.flip(in: stores, "store.sqlite", count: count, seed: Self.seed &+ 2)
      )
    }
    inLog.check(count)
    // Most of what is in the database is in the log, too, in a newer state.
    beside.check(count, mended: false)
  }

  @Test("a lost page of a larger store is repaired or reported, and the game can go on saving")
  func lostPages() async throws {
    let (result, tried) = try await onThread {
      let stores = try DamagedStores(levels: 8, ballast: 120_000, isRunning: false, seed: Self.seed)
      let whole = stores.files["store.sqlite"] ?? Data()
      let pages = whole.count / 4_096
      // The first pages are the roots of all tables; of the others, an even sample.
      let first = TestDepth.lostPages
      let some = Array(0..<first) + Array(stride(from: first, to: pages, by: max(2 * pages / first, 1)))
      let tried = TestDepth.everyPage ? Array(0..<pages) : some
      var result = Result()
      for page in tried {
        var bytes = whole
        bytes.replaceSubrange(page * 4_096..<(page + 1) * 4_096, with: Data(count: 4_096))
        result.add(try stores.outcome(of: "store.sqlite", altered: bytes, "page \(page + 1) of zeros"))
      }
      result.broken = stores.broken
      Self.tell("\(tried.count) of \(pages) pages zeroed, one at a time", result)
      return (result, tried.count)
    }
    result.check(tried)
    #expect(result.counts[.older, default: 0] > 0, "no page contained anything that wasn't elsewhere, too")
  }

  private static func flip(in stores: DamagedStores, _ file: String, count: Int, seed: UInt64) throws -> Result {
    let whole = stores.files[file] ?? Data([0])
    var random = SeededGenerator(seed: seed)
    var result = Result()
    for number in 0..<count {
      let offset = Int.random(in: 0..<whole.count, using: &random)
      let change = UInt8.random(in: 1...255, using: &random)
      var bytes = whole
      bytes[offset] ^= change
      let name = "seed \(seed), flip \(number): byte \(offset) of \(file) ^ \(change)"
      result.add(try stores.outcome(of: file, altered: bytes, name))
    }
    result.broken = stores.broken
    tell("\(count) bytes of \(file) (\(whole.count) bytes) altered, one at a time, seed \(seed)", result)
    return result
  }

  private static func tell(_ what: String, _ result: Result) {
    let lines = DamagedStores.Outcome.allCases.map { "  \(result.counts[$0, default: 0]) \($0.rawValue)" }
    print(([what + ":"] + lines).joined(separator: "\n"))
  }
}
