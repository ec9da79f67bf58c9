import Foundation
import KeepsakeReplication
import Testing

/// What a device offers when it receives a best score that was taken back elsewhere.
@Suite struct ScoreOfferTests {
  private func best(_ score: Int64, _ id: UInt64) -> BestScore {
    BestScore(
      order: .descending,
      entry: .init(score: .int(score), dateMilliseconds: 0, payload: ScoreID(high: 0, low: id).bytes))
  }

  private func taken(_ ids: [UInt64], leaving left: BestScore? = nil, isCleared: Bool = false) -> CellState {
    let withdrawn = Set(ids.map { BestScore.Withdrawal(generation: 0, id: ScoreID(high: 0, low: $0)) })
    return CellState(
      generation: 1,
      value: .best(BestScore(order: .descending, entry: left?.entry, withdrawn: withdrawn, isCleared: isCleared)))
  }

  @Test("a device offers its own best for one that was taken back, once, and unless the whole board was")
  func offers() throws {
    let mine = best(70, 2)
    let offer = try #require(taken([1]).offering(mine, isLater: true))
    guard case .best(let offered) = offer.value else { return #expect(Bool(false)) }
    #expect(offer.generation == 1 && offered.entry == mine.entry && offered.withdrawn.map(\.id.low) == [1])
    #expect(taken([1]).offering(mine, isLater: false) == nil && taken([1]).offering(nil, isLater: true) == nil)
    #expect(taken([1], leaving: best(90, 3)).offering(mine, isLater: true) == nil, "a better one is there")
    #expect(taken([1], isCleared: true).offering(mine, isLater: true) == nil)
  }

  @Test("a best that was itself taken back is removed by a later generation, which has the device's own best")
  func takenBack() throws {
    let state = taken([1, 3], leaving: best(90, 3))
    for kept in [best(70, 2), nil] {
      let offer = try #require(state.offering(kept, isLater: false))
      guard case .best(let offered) = offer.value else { return #expect(Bool(false)) }
      #expect(offer.generation == 2 && offered.entry == kept?.entry && offered.withdrawn.count == 2)
      #expect(state.joined(with: offer) == offer)
    }
  }
}
