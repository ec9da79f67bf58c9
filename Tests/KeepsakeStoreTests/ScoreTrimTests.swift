import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// Which scores of a board are kept, and which of them is a player's best.
@Suite struct ScoreTrimTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private static func entry(
    _ number: UInt64, of player: String, _ value: Int64, at date: Int64, _ order: ScoreOrder = .descending
  ) -> ScoreEntry {
    ScoreEntry(
      board: "easy", player: player, order: order, value: .int(value), dateMilliseconds: date,
      id: ScoreID(high: 0, low: number))
  }

  @Test(
    "of equal scores the earlier one has the last place on a board that keeps only some, then that with the smaller id",
    arguments: ScoreOrder.allCases)
  func ties(order: ScoreOrder) throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let best: Int64 = order == .descending ? 900 : 1
    // Each player's best stays in any case.
    let bests = [Self.entry(1, of: "Ada", best, at: 1, order), Self.entry(2, of: "Eve", best, at: 2, order)]
    let equal = [
      Self.entry(20, of: "Eve", 100, at: 8, order), Self.entry(21, of: "Ada", 100, at: 7, order),
      Self.entry(22, of: "Eve", 100, at: 7, order), Self.entry(10, of: "Eve", 100, at: 9, order),
    ]
    try store.write { transaction throws in
      for entry in equal + bests { try transaction.putScore(entry) }
      for (count, left) in [(4, [1, 2, 21, 22]), (3, [1, 2, 21])] as [(Int, [UInt64])] {
        try transaction.trimScores(on: "easy", order, to: count, atMost: 100)
        #expect(try transaction.topScores(.max, on: "easy", order).entries.map(\.id.low) == left, "best \(count)")
      }
    }
  }

  @Test("a player's best changes with a better score, and not with a worse one")
  func best() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    for (index, (value, expected)) in ([(700, 700), (900, 900), (800, 900)] as [(Int64, Int64)]).enumerated() {
      let entry = Self.entry(UInt64(index) + 1, of: "Ada", value, at: Int64(index) + 1)
      _ = try store.submit(GameCommit(scores: [ScoreDraft(entry: entry, trimmedTo: nil)], now: 1)).wait()
      let kept = try #require(try store.read { try $0.cell(entry.key) })
      #expect(ScoreEntry(CellUpdate(key: entry.key, state: kept))?.value == .int(expected))
    }
  }
}
