import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

extension CellValue {
  /// The elements of a set; nil for any other value.
  fileprivate var elements: Set<Scalar>? {
    if case .set(let set) = self { return set.elements }
    return nil
  }
}

@Suite struct CellDraftTests {
  @Test("A value set under a key that replaces another outranks that key's value, even one from a wrong clock")
  func outranked() throws {
    let (old, new) = (CellKey(collection: "progress", key: "old"), CellKey(collection: "progress", key: "new"))
    let future = Stamp(caughtUp: true, milliseconds: 4_000_000_000_000, writer: WriterID(9))
    let there = CellState(value: .latest(future, .int(1)))
    let draft = CellDraft(new, .set(.string("crown")), outranks: [old])
    let context = draft.context(CellDraft.Context(writer: WriterID(1), caughtUp: true, nowMilliseconds: 5)) {
      $0 == old ? there : nil
    }
    let set = try #require(try draft.applied(to: nil, context)).state
    #expect(try #require(set.value.stamp) > future)
    #expect(try draft.applied(to: set, context) == nil, "it has that value already")
    // Once the old key is set again, setting the same value is a new choice.
    let later = CellState(
      value: .latest(Stamp(caughtUp: true, milliseconds: 4_000_000_000_100, writer: WriterID(9)), .int(2)))
    let again = try #require(try draft.applied(to: set, draft.context(context) { $0 == old ? later : nil })).state
    #expect(try #require(again.value.stamp) > #require(later.value.stamp))
  }

  let key = CellKey(collection: "progress", key: "level")
  let me = CellDraft.Context(writer: WriterID(7), caughtUp: true, nowMilliseconds: 1_000)

  func apply(_ change: CellDraft.Change, to state: CellState?, _ context: CellDraft.Context? = nil) throws -> (
    state: CellState, delta: CellState
  )? {
    try CellDraft(key, change).applied(to: state, context ?? me)
  }

  @Test("A lower level doesn't overwrite a higher one")
  func maxKeepsTheGreater() throws {
    let six = try #require(try apply(.max(.int(6)), to: nil)).state
    #expect(try apply(.max(.int(5)), to: six) == nil)
    #expect(try apply(.max(.int(6)), to: six) == nil)
    #expect(try apply(.max(.int(7)), to: six)?.state.value == .max(.int(7)))
    #expect(try apply(.min(.int(7)), to: CellState(value: .min(.int(7)))) == nil)
  }

  @Test("A union sends only the new element")
  func unionSendsWhatIsNew() throws {
    let known = CellState(value: .union([.int(1), .int(2)]))
    let change = try #require(try apply(.insert([.int(2), .int(3)]), to: known))
    #expect(change.delta.value == .union([.int(3)]))
    #expect(change.state.value == .union([.int(1), .int(2), .int(3)]))
    #expect(try apply(.insert([.int(2)]), to: known) == nil)
  }

  @Test("A counter sends only the writer's own totals, ignores counting by zero, and throws on overflow")
  func counterCountsByWriter() throws {
    let known = CellState(
      value: .counter([WriterID(1): CounterEntry(plus: 4), WriterID(7): CounterEntry(plus: 1, minus: 1)]))
    let change = try #require(try apply(.add(plus: 2, minus: 1), to: known))
    #expect(change.delta.value == .counter([WriterID(7): CounterEntry(plus: 3, minus: 2)]))
    #expect(try apply(.add(plus: 0, minus: 0), to: known) == nil)
    #expect(throws: CellError.overflow(key)) { try apply(.add(plus: .max, minus: 0), to: known) }
  }

  @Test("A setting made by a device with a clock in 2099 can be changed again")
  func latestOutranksTheKnownStamp() throws {
    let future = CellState(
      value: .latest(Stamp(caughtUp: true, milliseconds: 4_070_908_800_000, writer: WriterID(1)), .int(1)))
    let change = try #require(try apply(.set(.int(2)), to: future))
    #expect(
      change.state.value
        == .latest(Stamp(caughtUp: true, milliseconds: 4_070_908_800_001, writer: WriterID(7)), .int(2)))
    #expect(try apply(.set(.int(1)), to: future) == nil)
  }

  @Test("A setting made before the first sync yields to the player's own setting in the cloud")
  func latestBeforeCatchUpRanksBelow() throws {
    var early = me
    early.caughtUp = false
    early.nowMilliseconds = 9_000_000
    let local = try #require(try apply(.set(.int(1)), to: nil, early)).state
    let cloud = CellState(value: .latest(Stamp(caughtUp: true, milliseconds: 5, writer: WriterID(1)), .int(2)))
    #expect(local.joined(with: cloud) == cloud)
  }

  @Test("Changing a key's rule by mistake, or writing not-a-number, throws an error")
  func misuseIsAnError() throws {
    let known = CellState(value: .max(.int(1)))
    #expect(throws: CellError.ruleMismatch(key, holds: "max", asked: "union")) {
      try apply(.insert([.int(1)]), to: known)
    }
    #expect(throws: CellError.notANumber(key)) { try apply(.max(.double(.nan)), to: nil) }
    #expect(throws: CellError.notANumber(key)) { try apply(.insert([.double(.nan)]), to: nil) }
  }

  @Test("A set sends only what changes, and keeps what another device inserts meanwhile")
  func setSendsWhatChanges() throws {
    let other = CellDraft.Context(writer: WriterID(1), caughtUp: true, nowMilliseconds: 0)
    let theirs = try #require(try apply(.insertElements([.int(1), .int(2)]), to: nil, other)).state
    let put = try #require(try apply(.insertElements([.int(2), .int(3)]), to: theirs))
    #expect(
      put.delta.value == .set(ObservedSet([WriterID(7): .init(seen: NumberRanges([1...1]), present: [1: .int(3)])])))
    #expect(try apply(.insertElements([.int(2)]), to: theirs) == nil, "an element in the set isn't inserted again")
    let taken = try #require(try apply(.removeElements([.int(1), .int(3), .int(9)]), to: put.state))
    #expect(
      taken.delta.value
        == .set(
          ObservedSet([
            WriterID(1): .init(seen: NumberRanges([1...1])), WriterID(7): .init(seen: NumberRanges([1...1])),
          ])))
    #expect(
      try apply(.removeElements([.int(9)]), to: put.state) == nil && apply(.removeElements([.int(9)]), to: nil) == nil)
    // A removed element can be inserted again. What another device inserts without knowing of a removal stays.
    let again = try #require(try apply(.insertElements([.int(1)]), to: taken.state)).state
    #expect(again.joined(with: put.state) == again && again.value.elements == [.int(1), .int(2)])
    let meanwhile = try #require(try apply(.insertElements([.int(4)]), to: theirs, other)).state
    let out = try #require(try apply(.removeElements([.int(1), .int(2), .int(4)]), to: theirs)).state
    #expect(out.joined(with: meanwhile).value.elements == [.int(4)])
  }

  @Test("A set's cell stays small however often an element is inserted and removed")
  func setStaysSmall() throws {
    var state: CellState?
    for _ in 0..<1_000 {
      state = try apply(.insertElements([.string("rose")]), to: state)?.state
      state = try apply(.removeElements([.string("rose")]), to: state)?.state
    }
    #expect(try #require(state).value.size == 24)
    #expect(state?.value.elements == [])
  }

  @Test("A dictionary sends only the entries that change, and rejects changes that don't fit it")
  func dictionarySendsWhatChanges() throws {
    let first = try #require(try apply(.entries([.int(1): .min(.int(60)), .int(2): .min(.int(50))]), to: nil)).state
    let change = try #require(
      try apply(.entries([.int(1): .min(.int(59)), .int(2): .min(.int(70)), .int(3): .min(.int(9))]), to: first))
    #expect(change.delta.value == .dictionary([.int(1): .min(.int(59)), .int(3): .min(.int(9))]))
    #expect(
      change.state.value == .dictionary([.int(1): .min(.int(59)), .int(2): .min(.int(50)), .int(3): .min(.int(9))]))
    #expect(try apply(.entries([.int(1): .min(.int(60))]), to: first) == nil && apply(.entries([:]), to: first) == nil)
    #expect(try apply(.entries([.int(1): .removeElements([.int(1)])]), to: nil) == nil)
    #expect(throws: CellError.self) { try apply(.entries([.int(4): .max(.int(1))]), to: first) }
    #expect(throws: CellError.self) { try apply(.entries([.int(1): .max(.int(1))]), to: first) }
    #expect(throws: CellError.notANumber(key)) { try apply(.entries([.double(.nan): .min(.int(1))]), to: first) }
    #expect(throws: CellError.notInside(key, "a reset")) {
      try apply(.entries([.int(1): .reset(.min(.int(1)))]), to: first)
    }
    #expect(throws: CellError.self) { try apply(.optional(.best(BestScore(order: .ascending, entry: nil))), to: nil) }
  }

  @Test("Setting an optional to nil doesn't remove a value that it has; only a reset does")
  func optionals() throws {
    let six = try #require(try apply(.optional(.max(.int(6))), to: nil)).state
    #expect(try apply(.optional(nil), to: six) == nil && apply(.optional(nil), to: nil) == nil)
    #expect(try apply(.optional(.max(.int(5))), to: six) == nil)
    #expect(try apply(.reset(.optional(nil)), to: six)?.state == CellState(generation: 1, value: .optional(nil)))
    #expect(throws: CellError.self) { try apply(.max(.int(7)), to: six) }
    #expect(throws: CellError.self) { try apply(.optional(.min(.int(7))), to: six) }
  }

  @Test("A guest's setting in a dictionary yields to the player's own when the guest joins the player")
  func guestsWhoJoin() throws {
    var early = me
    early.nowMilliseconds = 9_000_000
    let guest = try #require(try apply(.entries([.int(1): .set(.int(1))]), to: nil, early)).state
    let player = try #require(try apply(.entries([.int(1): .set(.int(2))]), to: nil)).state
    var storage = SimulatedDevice()
    storage.setCell(CellUpdate(key: key, state: guest))
    try DeviceCommit.moved(in: &storage)
    #expect(storage.cell(key)?.joined(with: player) == player)
  }

  @Test("Values beyond the limits are refused, but one that is too large may still get smaller")
  func refused() throws {
    func reason(_ value: CellValue) -> Refusal.Reason? {
      ExchangeRules.objection(to: CellUpdate(key: key, state: CellState(value: value)))?.reason
    }
    func additions(_ seen: ClosedRange<UInt64>, _ present: [UInt64: Scalar] = [:]) -> CellValue {
      .set(ObservedSet([WriterID(1): ObservedSet.Additions(seen: NumberRanges([seen]), present: present)]))
    }
    #expect(reason(additions(1...(1 << 62), [1: .int(1)])) == nil)
    #expect(reason(additions(0...1)) == .invalid && reason(additions(1...(1 << 62 + 1))) == .invalid)
    #expect(reason(additions(1...1, [1: .double(.nan)])) == .invalid)
    #expect(
      reason(.dictionary([.double(.nan): .max(.int(1))])) == .invalid
        && reason(.dictionary([.int(1): .max(.double(.nan))])) == .invalid)
    #expect(
      reason(.optional(.optional(.max(.int(1))))) == nil && reason(.optional(.optional(.optional(nil)))) == .invalid)
    #expect(reason(.optional(.best(BestScore(order: .ascending, entry: nil)))) == .invalid)
    let farAway = CellValue.latest(Stamp(caughtUp: true, milliseconds: .min, writer: WriterID(1)), .int(1))
    #expect(reason(.dictionary([.int(1): farAway])) == .invalid)
    let many = Dictionary(
      uniqueKeysWithValues: (0..<9_000).map { (Scalar.string("element number \($0)"), CellValue.max(.int(1))) })
    #expect(reason(.dictionary(many)) == .tooLarge)
    #expect(reason(.dictionary([.int(1): .dictionary(many)])) == .tooLarge)
    let present = Dictionary(uniqueKeysWithValues: (UInt64(1)...10_000).map { ($0, Scalar.string("element \($0)")) })
    #expect(reason(additions(1...10_000, present)) == .tooLarge)

    // Two devices filled it while they were offline.
    let full = try #require(try apply(.insertElements(Set(many.keys)), to: nil)).state
    let smaller = try #require(try apply(.removeElements([.string("element number 1")]), to: full)).state
    #expect(ExchangeRules.objection(to: CellUpdate(key: key, state: full), over: nil)?.reason == .tooLarge)
    #expect(ExchangeRules.objection(to: CellUpdate(key: key, state: smaller), over: full) == nil)
    #expect(ExchangeRules.objection(to: CellUpdate(key: key, state: full), over: full)?.reason == .tooLarge)
  }

  @Test("A writer that has used up its numbers gets an error when it inserts, but can still remove")
  func numbersEnd() throws {
    let last = ObservedSet([WriterID(7): ObservedSet.Additions(seen: NumberRanges([1...Cursor.maximumSeq - 1]))])
    let full = try #require(try apply(.insertElements([.int(1)]), to: CellState(value: .set(last)))).state
    #expect(throws: CellError.overflow(key)) { try apply(.insertElements([.int(2)]), to: full) }
    #expect(try apply(.removeElements([.int(1)]), to: full)?.state.value.elements == [])
  }

  @Test("A reset starts a generation that wins over the old value, and throws before the store has caught up")
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
