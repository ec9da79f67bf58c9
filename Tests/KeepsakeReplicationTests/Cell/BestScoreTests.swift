import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// What a cell of the rule `best` does. The laws of its join are checked with those of all rules, in `CellLawTests`.
@Suite struct BestScoreTests {
  private let context = CellDraft.Context(writer: WriterID(1), caughtUp: true, nowMilliseconds: 5)

  private func entry(_ value: Scalar, _ order: ScoreOrder, at date: Int64 = 0, id: UInt64 = 1, context: Data? = nil)
    -> ScoreEntry
  {
    ScoreEntry(
      board: "easy", player: "Ada", order: order, value: value, dateMilliseconds: date, id: ScoreID(high: 0, low: id),
      context: context)
  }

  private func entry(_ value: Int64, _ order: ScoreOrder) -> ScoreEntry { entry(.int(value), order) }

  @Test("the better score is the player's best, of equal ones the earlier, then the one with the smaller id")
  func joins() {
    for (order, better, worse) in [
      (ScoreOrder.descending, Scalar.int(900), Scalar.int(800)), (.ascending, .double(59.5), .int(60)),
    ] {
      func best(_ left: ScoreEntry, _ right: ScoreEntry) -> BestScore { left.best.joined(with: right.best) }
      #expect(best(entry(worse, order), entry(better, order, at: 9)) == entry(better, order, at: 9).best)
      #expect(
        best(entry(better, order, at: 9), entry(better, order, at: 8, id: 2)) == entry(better, order, at: 8, id: 2).best
      )
      #expect(
        best(entry(better, order, id: 3), entry(better, order, id: 2, context: Data([9]))).entry?.payload.last == 9)
      let none = BestScore(order: order, entry: nil)
      #expect(none.joined(with: entry(worse, order).best) == entry(worse, order).best)
    }
    #expect(entry(12, .descending).value == entry(.double(12), .descending).value, "12 and 12.0 are the same score")
  }

  @Test("a score that isn't better changes nothing and is not sent; a board's order can't be changed")
  func drafts() throws {
    let key = entry(5, .descending).key
    let known = CellState(value: .best(entry(5, .descending).best))
    #expect(try CellDraft(key, .best(entry(4, .descending).best)).applied(to: known, context) == nil)
    #expect(
      try CellDraft(key, .best(entry(6, .descending).best)).applied(to: known, context)?.state.value
        == .best(entry(6, .descending).best))
    #expect(throws: CellError.ruleMismatch(key, holds: "best, descending", asked: "best, ascending")) {
      _ = try CellDraft(key, .best(entry(4, .ascending).best)).applied(to: known, context)
    }
    #expect(throws: CellError.self) {
      _ = try CellDraft(key, .best(entry(4, .ascending).best)).applied(to: CellState(value: .max(.int(3))), context)
    }
    let broken = BestScore(order: .descending, entry: .init(score: .double(.nan), dateMilliseconds: 0, payload: Data()))
    #expect(throws: CellError.notANumber(key)) { _ = try CellDraft(key, .best(broken)).applied(to: nil, context) }
  }

  @Test("a withdrawn best doesn't come back if it arrives late; a store that was never connected may withdraw at once")
  func withdraws() throws {
    let key = entry(5, .descending).key
    let cheated = CellState(value: .best(entry(5_000, .descending).best))
    let draft = CellDraft(key, .withdraw(entry(5, .descending).best))
    let change = try #require(try draft.applied(to: cheated, context))
    let left = BestScore(
      order: .descending, entry: entry(5, .descending).best.entry,
      withdrawn: [BestScore.Withdrawal(generation: 0, id: ScoreID(high: 0, low: 1))])
    #expect(
      change.state.joined(with: cheated) == change.state && change.state.value == .best(left),
      "it names the withdrawn score")
    #expect(try draft.applied(to: nil, context) == nil)
    var late = CellDraft.Context(writer: WriterID(1), caughtUp: false, nowMilliseconds: 5)
    #expect(throws: CellError.resetBeforeCatchUp(key)) { _ = try draft.applied(to: cheated, late) }
    late.neverConnected = true
    #expect(try draft.applied(to: cheated, late)?.state.value == .best(left))
  }

  @Test("a value lists only so many withdrawn scores: those of the latest generations")
  func manyWithdrawn() throws {
    let key = entry(1, .descending).key
    var state = CellState(value: .best(entry(.int(0), .descending, id: 0).best))
    for number in 1...UInt64(BestScore.maximumWithdrawn + 10) {
      let next = entry(.int(Int64(number)), .descending, id: number).best
      state = try #require(try CellDraft(key, .withdraw(next)).applied(to: state, context)).state
    }
    guard case .best(let best) = state.value else { return #expect(Bool(false)) }
    #expect(best.withdrawn.count == BestScore.maximumWithdrawn && best.withdrawn.map(\.generation).min() == 10)
    #expect(ExchangeRules.objection(to: CellUpdate(key: key, state: state)) == nil)
    var crowded = best
    crowded.withdrawn.insert(BestScore.Withdrawal(generation: 1, id: ScoreID(high: 9, low: 9)))
    let refusal = ExchangeRules.objection(to: CellUpdate(key: key, state: CellState(value: .best(crowded))))
    #expect(refusal?.reason == .invalid)
  }

  @Test("no two pairs of a board and a player share a key, and a score is read back from its cell unchanged")
  func keys() throws {
    let names = ["a", "a/b", "b", "1/a", "/", "2/a", "é", String(repeating: "x", count: 100)]
    var keys: Set<CellKey> = []
    for board in names {
      for player in names + ["", "b/c", String(repeating: "é", count: 75)] {
        let key = ScoreEntry.key(board: board, player: player)
        #expect(keys.insert(key).inserted, "\(key)")
        let found = ScoreEntry.names(in: key)
        #expect(found?.board == board && found?.player == player)
        let score = ScoreEntry(
          board: board, player: player, order: .ascending, value: .double(0.1), dateMilliseconds: -7,
          id: ScoreID(high: .max, low: 3),
          context: Data([1, 2]))
        let update = CellUpdate(key: key, state: CellState(value: .best(score.best)))
        #expect(ScoreEntry(update) == score && ExchangeRules.objection(to: update) == nil, "\(key)")
      }
    }
  }

  @Test(
    "a cell whose key or payload isn't in the form that games write isn't read as a score",
    arguments: [
      "", "easy", "5/easy/Ada", "4/easy", "4/easyAda", "04/easy/Ada", "-1/a/b", "0//Ada", "99999999999999999999/a/b",
      "3/e\u{301}/x",
      "1/é/x",
    ])
  func strangeKeys(key: String) {
    let update = CellUpdate(
      key: CellKey(collection: "scores", key: key), state: CellState(value: .best(entry(1, .descending).best)))
    #expect(ScoreEntry(update) == nil)
    var short = CellUpdate(key: entry(1, .descending).key, state: update.state)
    #expect(ScoreEntry(short) == entry(1, .descending))
    short.state.value = .best(
      BestScore(order: .descending, entry: .init(score: .int(1), dateMilliseconds: 0, payload: Data([1]))))
    #expect(ScoreEntry(short) == nil)
  }

  @Test("a best that isn't a finite number, or whose date or payload is beyond the limits, is refused")
  func refused() {
    func objection(_ score: Scalar, date: Int64 = 0, payload: Int = 16) -> Refusal.Reason? {
      let best = BestScore(
        order: .descending, entry: .init(score: score, dateMilliseconds: date, payload: Data(count: payload)))
      return ExchangeRules.objection(
        to: CellUpdate(key: entry(1, .descending).key, state: CellState(value: .best(best))))?.reason
    }
    #expect(objection(.int(1)) == nil && objection(.double(0.5)) == nil)
    #expect(objection(.int(1), payload: ScoreEntry.maximumPayloadBytes) == nil)
    for score in [Scalar.double(.nan), .double(.infinity), .string("1000"), .data(Data([1]))] {
      #expect(objection(score) == .invalid, "\(score)")
    }
    for date in [Int64.min, .max, 1 << 53 + 1] { #expect(objection(.int(1), date: date) == .invalid, "\(date)") }
    #expect(objection(.int(1), payload: ScoreEntry.maximumPayloadBytes + 1) == .tooLarge)
  }
}
