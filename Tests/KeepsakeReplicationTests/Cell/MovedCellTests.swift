import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// What a copied store counts and inserts, once it and its copy have joined another player's container.
@Suite struct MovedCellTests {
  static let key = CellKey(collection: "progress", key: "cell")
  static let writer = WriterID(7)

  /// A store that has caught up with its first cloud.
  func store() throws -> SimulatedDevice {
    var store = SimulatedDevice()
    store.setFacts(DeviceFacts(container: ContainerID(high: 0, low: 1), caughtUp: true))
    return store
  }

  func write(_ change: CellDraft.Change, in store: inout SimulatedDevice) throws {
    var random = SeededGenerator(seed: 1)
    try DeviceCommit.apply(
      CommitDraft(cells: [CellDraft(Self.key, change)]), now: 1_000, writer: Self.writer, in: &store, using: &random)
  }

  /// Returns the value that the other player's cloud makes of what these stores hold and of everything that they still
  /// have to send. Checks that the order doesn't matter.
  func joined(_ stores: [SimulatedDevice]) throws -> CellValue {
    var states: [CellState] = []
    for store in stores {
      states.append(try #require(store.cell(Self.key)))
      states += store.outbox(limit: .max).flatMap(\.cells).map(\.state)
    }
    let state = states.dropFirst().reduce(states[0]) { $0.joined(with: $1) }
    for order in [states, states.reversed(), states + states] {
      #expect(order.dropFirst().reduce(order[0]) { $0.joined(with: $1) } == state)
    }
    return state.value
  }

  func total(_ value: CellValue) -> Int64? {
    guard case .counter(let entries) = value else { return nil }
    return CellValue.total(of: entries)
  }

  func elements(_ value: CellValue) -> Set<Scalar>? {
    guard case .set(let set) = value else { return nil }
    return set.elements
  }

  @Test("What a store counts after a reset is added to what its copy counted, once both join the same player")
  func counterAfterReset() throws {
    var store = try store()
    try write(.add(plus: 10, minus: 0), in: &store)
    var copy = store
    try DeviceCommit.moved(in: &copy)
    try write(.reset(.add(plus: 2, minus: 0)), in: &store)
    try write(.add(plus: 1, minus: 0), in: &store)
    try DeviceCommit.moved(in: &store)
    #expect(total(try #require(store.cell(Self.key)).value) == 3, "the reset still applies in the store itself")
    #expect(try total(joined([copy, store])) == 13)
    try write(.add(plus: 4, minus: 0), in: &store)
    #expect(try total(joined([copy, store])) == 17, "what is counted after joining is added, too")
  }

  @Test("Elements inserted after a reset aren't confused with those that a copy of the store inserted or removed")
  func setAfterReset() throws {
    var store = try store()
    try write(.insertElements([.string("rose"), .string("lily")]), in: &store)
    try write(.removeElements([.string("rose")]), in: &store)
    var copy = store
    try DeviceCommit.moved(in: &copy)
    try write(.reset(.insertElements([.string("oak")])), in: &store)
    try DeviceCommit.moved(in: &store)
    #expect(elements(try #require(store.cell(Self.key)).value) == [.string("oak")])
    #expect(try elements(joined([copy, store])) == [.string("lily"), .string("oak")])
    try write(.insertElements([.string("elm"), .string("ash")]), in: &store)
    #expect(try elements(joined([copy, store])) == [.string("lily"), .string("oak"), .string("elm"), .string("ash")])
  }

  @Test("What a store counts after another device's reset is kept when the store joins another player")
  func resetElsewhere() throws {
    var store = try store()
    try write(.add(plus: 10, minus: 0), in: &store)
    var copy = store
    try DeviceCommit.moved(in: &copy)
    store.setCell(CellUpdate(key: Self.key, state: CellState(generation: 1, value: .counter([:]))))
    try write(.add(plus: 2, minus: 0), in: &store)
    try DeviceCommit.moved(in: &store)
    #expect(try total(joined([copy, store])) == 12)
  }

  @Test("A value that a reset took back before it was ever sent isn't sent to the other player's cloud")
  func takenBackInTheOutbox() throws {
    for (first, second, expected) in [
      (CellDraft.Change.max(.int(9)), .max(.int(2)), CellValue.max(.int(2))),
      (.insert([.int(9)]), .insert([.int(2)]), .union([.int(2)])),
    ] as [(CellDraft.Change, CellDraft.Change, CellValue)] {
      var store = try store()
      try write(first, in: &store)
      // It may have been sent: the next commit gets a group of its own.
      var group = try #require(store.newestOutboxGroup())
      group.refusals = [Refusal(item: ExchangeRules.item(Self.key), reason: .quota, message: "no room")]
      store.updateOutbox(group)
      try write(.reset(second), in: &store)
      try DeviceCommit.moved(in: &store)
      #expect(store.outboxCount() == 2)
      #expect(try joined([store]) == expected)
    }
  }

  @Test("All counts of one writer share one entry, until a reset starts another one")
  func oneEntryEach() throws {
    var store = try store()
    for _ in 0..<3 { try write(.add(plus: 1, minus: 0), in: &store) }
    guard case .counter(let first)? = store.cell(Self.key)?.value else { throw CancellationError() }
    #expect(Array(first.keys) == [Self.writer])
    try write(.reset(.add(plus: 1, minus: 0)), in: &store)
    for _ in 0..<3 { try write(.add(plus: 1, minus: 0), in: &store) }
    guard case .counter(let second)? = store.cell(Self.key)?.value else { throw CancellationError() }
    #expect(second.count == 1 && second.keys.first != Self.writer && second.values.first?.plus == 4)
  }
}
