import Foundation
import KeepsakeReplication
import Testing

@Suite struct CellDraftTests {
  let key = CellKey(collection: "progress", key: "level")
  let me = CellDraft.Context(writer: WriterID(7), caughtUp: true, nowMilliseconds: 1_000)

  func apply(_ change: CellDraft.Change, to state: CellState?, _ context: CellDraft.Context? = nil) throws -> (
    state: CellState, delta: CellState
  )? {
    try CellDraft(key, change).applied(to: state, context ?? me)
  }

  @Test("A lower level overwrites a higher one")
  func maxKeepsTheGreater() throws {
    let six = try #require(try apply(.max(.int(6)), to: nil)).state
    #expect(try apply(.max(.int(5)), to: six) == nil)
    #expect(try apply(.max(.int(6)), to: six) == nil)
    #expect(try apply(.max(.int(7)), to: six)?.state.value == .max(.int(7)))
    #expect(try apply(.min(.int(7)), to: CellState(value: .min(.int(7)))) == nil)
  }

  @Test("A set sends everything it ever held with each new element")
  func unionSendsWhatIsNew() throws {
    let known = CellState(value: .union([.int(1), .int(2)]))
    let change = try #require(try apply(.insert([.int(2), .int(3)]), to: known))
    #expect(change.delta.value == .union([.int(3)]))
    #expect(change.state.value == .union([.int(1), .int(2), .int(3)]))
    #expect(try apply(.insert([.int(2)]), to: known) == nil)
  }

  @Test("Counting on two devices counts once")
  func counterCountsByWriter() throws {
    let known = CellState(value: .counter([WriterID(1): CounterEntry(plus: 4), WriterID(7): CounterEntry(plus: 1, minus: 1)]))
    let change = try #require(try apply(.add(plus: 2, minus: 1), to: known))
    #expect(change.delta.value == .counter([WriterID(7): CounterEntry(plus: 3, minus: 2)]))
    #expect(try apply(.add(plus: 0, minus: 0), to: known) == nil)
    #expect(throws: CellError.overflow(key)) { try apply(.add(plus: .max, minus: 0), to: known) }
  }

  @Test("A setting from a device with a clock in 2099 can never be changed again")
  func latestOutranksTheKnownStamp() throws {
    let future = CellState(value: .latest(Stamp(caughtUp: true, milliseconds: 4_070_908_800_000, writer: WriterID(1)), .int(1)))
    let change = try #require(try apply(.set(.int(2)), to: future))
    #expect(change.state.value == .latest(Stamp(caughtUp: true, milliseconds: 4_070_908_800_001, writer: WriterID(7)), .int(2)))
    #expect(try apply(.set(.int(1)), to: future) == nil)
  }

  @Test("A setting made before the first sync overwrites the player's real one")
  func latestBeforeCatchUpRanksBelow() throws {
    var early = me
    early.caughtUp = false
    early.nowMilliseconds = 9_000_000
    let local = try #require(try apply(.set(.int(1)), to: nil, early)).state
    let cloud = CellState(value: .latest(Stamp(caughtUp: true, milliseconds: 5, writer: WriterID(1)), .int(2)))
    #expect(local.joined(with: cloud) == cloud)
  }

  @Test("A key that changes its rule by mistake stops the game or loses its value")
  func misuseIsAnError() throws {
    let known = CellState(value: .max(.int(1)))
    #expect(throws: CellError.ruleMismatch(key, holds: "max", asked: "union")) { try apply(.insert([.int(1)]), to: known) }
    #expect(throws: CellError.notANumber(key)) { try apply(.max(.double(.nan)), to: nil) }
    #expect(throws: CellError.notANumber(key)) { try apply(.insert([.double(.nan)]), to: nil) }
  }

  @Test("A reset is undone by the next sync")
  func resetStartsAGeneration() throws {
    let known = CellState(generation: 3, value: .max(.int(9)))
    let change = try #require(try apply(.reset(.max(.int(0))), to: known))
    #expect(change.state == CellState(generation: 4, value: .max(.int(0))))
    #expect(change.state.joined(with: known) == change.state)
    var early = me
    early.caughtUp = false
    #expect(throws: CellError.resetBeforeCatchUp(key)) { try apply(.reset(.max(.int(0))), to: known, early) }
  }
}
