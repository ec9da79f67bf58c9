import Foundation
import KeepsakeReplication
import KeepsakeStore
import Testing

@testable import Keepsake

@Suite struct ProgressTests {
  let device: Device

  init() throws { device = try Device() }

  @Test("level 6 can't be overwritten by level 2, whether it is recorded or received, or after a restart")
  func neverBack() throws {
    var game = try device.open()
    #expect(game.progress[.level] == 1 && !game.progress.contains(.level))
    try game.progress.record(6, for: .level)
    #expect(game.progress[.level] == 6, "seen at once")
    try game.progress.record(2, for: .level).wait()
    #expect(game.progress[.level] == 6)
    try game.close()

    game = try device.open()
    defer { end(game) }
    #expect(game.progress[.level] == 6)
    try arrive(.max(.int(2)), "level", to: game)
    #expect(game.progress[.level] == 6)
    try arrive(.max(.int(8)), "level", to: game)
    #expect(game.progress[.level] == 8)
  }

  func arrive(_ value: CellValue, _ name: String, to game: GameData) throws {
    let key = CellKey(collection: "progress", key: name)
    try game.core.store.write { transaction in
      let state = CellState(value: value)
      let joined = try transaction.cell(key)?.joined(with: state) ?? state
      try transaction.setCell(CellUpdate(key: key, state: joined))
    }
    try game.progress.received([key])
  }

  @Test("a key shows its default until something is recorded: 0, nil or an empty collection, if it was given no other")
  func defaults() throws {
    let game = try device.open()
    defer { end(game) }
    let lowest = ProgressKey("lowest", rule: .min)
    #expect(game.progress[lowest] == 0 && game.progress[ProgressKey("lowest", default: 9, rule: .min)] == 9)
    #expect(game.progress[.badges].isEmpty && game.progress[.favourites].isEmpty && game.progress[.bestTimes].isEmpty)
    #expect(game.progress[.firstWin] == nil && game.progress[.coinsFound] == 0)
    try game.progress.record(61, for: lowest)
    #expect(game.progress[lowest] == 61, "the default is no record")
  }

  @Test("a counter that is given a default stops the process and reports why")
  func counterWithDefault() async throws {
    let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = ProgressKey("coins", default: 5, rule: .counter)
    }
    let errors = String(decoding: result.standardErrorContent, as: UTF8.self)
    #expect(errors.contains("the key \"coins\" is a counter, which has no other default than 0"))
  }

  @Test("a value of each rule is joined by that rule, and is the same after a restart")
  func rules() throws {
    var game = try device.open()
    try game.progress.record(50, for: .fastest)
    try game.progress.record(70, for: .fastest)
    try game.progress.set("crown", for: .hat)
    try game.progress.set("cap", for: .hat)
    try game.progress.insert("brave", into: .badges)
    try game.progress.insert("wise", into: .badges)
    try game.progress.add(5, to: .coinsFound)
    try game.progress.add(-2, to: .coinsFound)
    func check(_ game: GameData) {
      #expect(game.progress[.fastest] == 50)
      #expect(game.progress[.hat] == "cap")
      #expect(game.progress[.badges] == ["brave", "wise"])
      #expect(game.progress[.coinsFound] == 3)
    }
    check(game)
    #expect(game.progress.names == ["badges", "coins found", "fastest", "hat"])
    try game.close()
    game = try device.open()
    defer { end(game) }
    check(game)
    try game.progress.add(4, to: .coinsFound).wait()
    try arrive(.counter([WriterID(5): CounterEntry(plus: 10)]), "coins found", to: game)
    #expect(game.progress[.coinsFound] == 17)
  }

  @Test("a newer game's value with a rule that this game doesn't know isn't shown, and can't be overwritten")
  func laterRules() throws {
    var game = try device.open()
    let later = CellValue.later(
      LaterValue([LaterValueID(high: 0, low: 1): LaterValue.Entry(rule: "quorum", content: Data([1, 2]))]))
    try arrive(later, "level", to: game)
    try arrive(later, "badges", to: game)
    func check(_ game: GameData) throws {
      #expect(game.progress[.level] == 1 && game.progress[.badges].isEmpty, "as if nothing was recorded")
      let level = #expect(throws: GameDataError.self) { try game.progress.record(6, for: .level) }
      let badges = #expect(throws: GameDataError.self) { try game.progress.insert("brave", into: .badges) }
      #expect(level?.code == .tooNew && badges?.code == .tooNew)
      #expect(level?.message.contains("quorum") == true)
      #expect(try game.core.store.read { try $0.cell(CellKey(collection: "progress", key: "level"))?.value } == later)
      try game.progress.record(5, for: .fastest).wait()
    }
    try check(game)
    try game.close()
    game = try device.open()
    defer { end(game) }
    try check(game)
  }

  @Test("after a store has joined another player, each addition to a counter shows once, durable or not")
  func countsAfterMove() throws {
    let game = try device.open()
    defer { end(game) }
    try game.core.store.write { transaction in
      var facts = try transaction.facts()
      facts.moves = 1
      try transaction.setFacts(facts)
    }
    try game.progress.reload()
    var last: Pending<Void>?
    for count in 1...200 {
      last = try game.progress.add(1, to: .coinsFound)
      #expect(game.progress[.coinsFound] == count)
    }
    try last?.wait()
    #expect(game.progress[.coinsFound] == 200)
  }

  @Test("another device's change is reported with its keys")
  func changes() async throws {
    let game = try device.open()
    let keys = game.progress.changes
    try arrive(.max(.int(9)), "level", to: game)
    var iterator = keys.makeAsyncIterator()
    #expect(await iterator.next() == ["level"])
    try game.close()
    #expect(await iterator.next() == nil)
  }

  @Test("invalid changes throw at the call, and change nothing")
  func mistakes() throws {
    let game = try device.open()
    defer { end(game) }
    #expect(gameErrorCode { try game.progress.set(3, for: .level) } == .misuse)
    #expect(gameErrorCode { try game.progress.record(3, for: .coinsFound) } == .misuse)
    let ratio = ProgressKey("ratio", default: 0.0, rule: .max)
    #expect(gameErrorCode { try game.progress.record(.nan, for: ratio) } == .misuse)
    #expect(
      gameErrorCode {
        try game.progress.record(1, for: ProgressKey(String(repeating: "k", count: 1_000), default: 0, rule: .max))
      }
        == .misuse)
    #expect(gameErrorCode { try game.progress.reset(.level, to: 1) } == .notCaughtUp)
    try game.progress.record(3, for: .level)
    #expect(gameErrorCode { try game.progress.add(1, to: ProgressKey("level", rule: .counter)) } == .misuse)
    #expect(game.progress[.level] == 3 && game.progress.names == ["level"])
  }

  @Test("a value of another rule is shown if both rules hold one value; what is recorded over it is refused by name")
  func otherRule() throws {
    let game = try device.open()
    defer { end(game) }
    try game.progress.record(6, for: .level)
    let lowest = ProgressKey("level", default: 1, rule: .min)
    #expect(game.progress[lowest] == 6 && game.progress[ProgressKey("level", default: "none", rule: .latest)] == "none")
    #expect(game.progress[ProgressKey<Set<Int>>("level", rule: .union)].isEmpty)
    #expect(game.progress[ProgressKey<Int>("level", rule: .counter)] == 0)
    let error = #expect(throws: GameDataError.self) { try game.progress.record(3, for: lowest) }
    #expect(error?.code == .misuse)
    #expect(
      error?.message
        == "progress \"level\" holds a value of the rule max, not min: a key never changes its rule, use a new key")
  }

  @Test("recording from many threads at once loses nothing")
  func threads() throws {
    let game = try device.open()
    defer { end(game) }
    DispatchQueue.concurrentPerform(iterations: 8) { thread in
      for step in 0..<25 {
        do {
          try game.progress.add(1, to: .coinsFound)
          try game.progress.record(thread * 100 + step, for: .level)
          try game.progress.insert("\(thread)-\(step)", into: .badges)
        } catch { Issue.record("\(error)") }
      }
    }
    #expect(game.progress[.coinsFound] == 200 && game.progress[.level] == 724 && game.progress[.badges].count == 200)
    try game.core.store.base.drain()
    let stored = try game.core.store.read { try $0.cells(in: "progress") }
    #expect(stored.count == 3)
    let totals = stored.compactMap {
      if case .counter(let entries) = $0.state.value { CellValue.total(of: entries) } else { nil }
    }
    #expect(totals == [200])
  }
}
