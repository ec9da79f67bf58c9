import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// A rule of a later release: a set of votes, joined by union. Only devices of that release know it.
struct Quorum {
  var votes: Set<String>

  init(_ votes: Set<String>) { self.votes = votes }

  /// Reads a cell as such a device does.
  init(_ state: CellState?) throws {
    votes = []
    guard case .later(let later)? = state?.value else { return }
    for entry in later.entries.values where entry.rule == "quorum" {
      votes.formUnion(String(decoding: entry.content, as: UTF8.self).split(separator: " ").map(String.init))
    }
  }

  /// Returns what such a device writes: the joined votes, with the ids of all values that were joined.
  static func casting(_ vote: String, over state: CellState?, id: LaterValueID) throws -> CellState {
    var quorum = try Quorum(state)
    quorum.votes.insert(vote)
    var over: Set<LaterValueID> = []
    if case .later(let later)? = state?.value { over = Set(later.entries.keys) }
    let content = Data(quorum.votes.sorted().joined(separator: " ").utf8)
    return CellState(
      generation: state?.generation ?? 0,
      value: .later(LaterValue([id: LaterValue.Entry(rule: "quorum", content: content, over: over)])))
  }
}

@Suite struct LaterRuleTests {
  static let key = CellKey(collection: "progress", key: "vote")

  func cast(_ vote: String, _ index: Int, in lab: inout Lab) throws {
    let known = lab.devices[index].storage.cell(Self.key)
    let written = try Quorum.casting(vote, over: known, id: LaterValueID(using: &lab.random))
    lab.devices[index].storage.setCell(CellUpdate(key: Self.key, state: known?.joined(with: written) ?? written))
    lab.devices[index].storage.appendToOutbox(OutboxGroup(cells: [CellUpdate(key: Self.key, state: written)]))
  }

  func votes(_ index: Int, in lab: Lab) throws -> Set<String> {
    try Quorum(lab.devices[index].storage.cell(Self.key)).votes
  }

  func present(_ state: CellState?) -> Int {
    guard case .later(let later)? = state?.value else { return 0 }
    return later.entries.count
  }

  func entry(_ text: String, over: [UInt64] = []) -> LaterValue.Entry {
    LaterValue.Entry(rule: "quorum", content: Data(text.utf8), over: Set(over.map { LaterValueID(high: 0, low: $0) }))
  }

  func state(_ entries: [UInt64: LaterValue.Entry]) -> CellState {
    CellState(
      value: .later(
        LaterValue(Dictionary(uniqueKeysWithValues: entries.map { (LaterValueID(high: 0, low: $0.key), $0.value) }))))
  }

  @Test("A server that doesn't know a rule keeps concurrent values of it side by side until a device joins them")
  func oldServer() throws {
    var lab = try Lab(devices: 2)
    for index in 0...1 { try lab.settle(index) }
    try cast("ann", 0, in: &lab)
    try cast("bob", 1, in: &lab)
    for index in [0, 1, 0] { try lab.settle(index) }
    for index in 0...1 { #expect(try votes(index, in: lab) == ["ann", "bob"]) }
    #expect(present(lab.cloud.cell(Self.key)?.update.state) == 2)
    // Again each device writes without knowing the other's vote; then one writes that has seen all of them.
    try cast("cid", 0, in: &lab)
    try cast("dan", 1, in: &lab)
    for index in [1, 0, 1] { try lab.settle(index) }
    #expect(present(lab.cloud.cell(Self.key)?.update.state) == 2)
    try cast("eve", 1, in: &lab)
    for index in [1, 0] { try lab.settle(index) }
    for index in 0...1 { #expect(try votes(index, in: lab) == ["ann", "bob", "cid", "dan", "eve"]) }
    #expect(present(lab.cloud.cell(Self.key)?.update.state) == 1)
    #expect(lab.devices[0].storage.cell(Self.key) == lab.devices[1].storage.cell(Self.key))
    #expect(lab.devices.allSatisfy { $0.storage.outboxCount() == 0 })
  }

  @Test("A value based on an older one leaves newer values in place, even if it is sent after them, or twice")
  func basedOnOlder() throws {
    var lab = try Lab(devices: 2)
    for index in 0...1 { try lab.settle(index) }
    try cast("ann", 0, in: &lab)
    try lab.settle(0)
    // Committed before the other device's value arrives, and sent after it.
    try cast("bob", 1, in: &lab)
    try lab.step(1, .sync)
    let taken = lab.takeRequest(1)
    let first = try #require(taken)
    _ = try lab.answer(to: first, cloud: &lab.cloud, using: &lab.random)
    guard case .exchange(let number, _) = first else { throw CancellationError() }
    try lab.step(1, .failed(request: number, TransportFailure(.interrupted, "the response is lost")))
    try lab.settle(0)
    try cast("cid", 0, in: &lab)
    try lab.settle(0)
    try lab.settle(1)
    try lab.settle(0)
    for index in 0...1 { #expect(try votes(index, in: lab) == ["ann", "bob", "cid"]) }
    #expect(try Quorum(lab.cloud.cell(Self.key)?.update.state).votes == ["ann", "bob", "cid"])
  }

  @Test("A device that doesn't know a rule keeps a newer device's values, and offers them to a cloud that lost them")
  func oldDevice() throws {
    // Device 1 is the old one: it never writes to the cell.
    var lab = try Lab(devices: 3)
    for index in 0...1 { try lab.settle(index) }
    try cast("ann", 0, in: &lab)
    try cast("bob", 0, in: &lab)
    for index in 0...1 { try lab.settle(index) }
    let carried = try #require(lab.devices[1].storage.cell(Self.key))
    #expect(carried == lab.devices[0].storage.cell(Self.key))
    // The cloud is a new one, and the first device is gone.
    lab.cloud = MemoryContainer(epoch: 2)
    try lab.settle(1)
    try lab.settle(2)
    #expect(lab.devices[2].storage.cell(Self.key) == carried)
    try cast("cid", 2, in: &lab)
    for index in [2, 1] { try lab.settle(index) }
    #expect(try votes(1, in: lab) == ["ann", "bob", "cid"])
  }

  @Test("Writing over a value whose rule the device doesn't know throws an error, and changes nothing")
  func writing() throws {
    var lab = try Lab()
    let there = state([1: entry("ann")])
    lab.devices[0].storage.setCell(CellUpdate(key: Self.key, state: there))
    lab.devices[0].storage.setFacts(DeviceFacts(container: ContainerID(high: 0, low: 1), caughtUp: true))
    let changes: [CellDraft.Change] = [
      .max(.int(1)), .min(.int(1)), .set(.int(1)), .insert([.int(1)]), .add(plus: 1, minus: 0),
      .insertElements([.int(1)]),
      .removeElements([.int(1)]),
      .entries([.string("a"): .max(.int(1))]), .optional(.max(.int(1))), .optional(nil), .reset(.max(.int(0))),
      .best(BestScore(order: .ascending, entry: nil)), .withdraw(BestScore(order: .ascending, entry: nil)),
    ]
    for change in changes {
      #expect(throws: CellError.laterRule(Self.key, "quorum")) {
        try lab.commit(0, CommitDraft(cells: [CellDraft(Self.key, change)]))
      }
    }
    #expect(lab.devices[0].storage.cell(Self.key) == there && lab.devices[0].storage.outboxCount() == 0)
    // In a dictionary, the other entries can still be changed.
    let table = CellKey(collection: "progress", key: "table")
    lab.devices[0].storage.setCell(
      CellUpdate(
        key: table, state: CellState(value: .dictionary([.string("new"): there.value, .string("old"): .max(.int(1))]))))
    try lab.commit(0, CommitDraft(cells: [CellDraft(table, .entries([.string("old"): .max(.int(2))]))]))
    for change in [.entries([.string("new"): .max(.int(2))]), .reset(.entries([:]))] as [CellDraft.Change] {
      #expect(throws: CellError.laterRule(table, "quorum")) {
        try lab.commit(0, CommitDraft(cells: [CellDraft(table, change)]))
      }
    }
    let kept = CellState(value: .dictionary([.string("new"): there.value, .string("old"): .max(.int(2))]))
    #expect(lab.devices[0].storage.cell(table) == kept)
  }

  @Test("No value of a later rule is lost if values arrive late, twice or in another order")
  func joins() throws {
    let parts = [
      state([1: entry("a")]), state([2: entry("b")]), state([3: entry("a b", over: [1, 2])]), state([4: entry("c")]),
      state([5: entry("a b d", over: [3])]),
    ]
    for left in parts {
      for right in parts {
        #expect(left.joined(with: right) == right.joined(with: left))
        #expect(left.joined(with: right).joined(with: right) == left.joined(with: right))
      }
    }
    var random = SeededGenerator(seed: 5)
    for _ in 0..<200 {
      let order = (parts + parts).shuffled(using: &random)
      let end = order.dropFirst().reduce(order[0]) { $0.joined(with: $1) }
      #expect(try Quorum(end).votes == ["a", "b", "c", "d"])
    }
    // In the order in which they were written, only those remain that weren't joined into another one.
    #expect(present(parts.dropFirst().reduce(parts[0]) { $0.joined(with: $1) }) == 2)
    // Two values that each claim to contain the other.
    let circle = state([1: entry("a", over: [2]), 2: entry("b", over: [1])])
    #expect(try Quorum(circle).votes == ["a", "b"])
  }

  @Test("A later rule's value wins over known rules, a later generation over both, and two later rules coexist")
  func otherRules() {
    let later = state([1: entry("a")])
    for value in [.max(.int(9)), .counter([:]), .optional(nil), .dictionary([:])] as [CellValue] {
      let known = CellState(value: value)
      #expect(later.joined(with: known) == later && known.joined(with: later) == later)
    }
    let reset = CellState(generation: 1, value: .max(.int(0)))
    #expect(later.joined(with: reset) == reset)
    // A value of another unknown rule is kept beside it.
    let other = state([2: LaterValue.Entry(rule: "median", content: Data())])
    #expect(present(later.joined(with: other)) == 2)
  }

  @Test(
    "A value of a later rule that no correct program writes is refused",
    arguments: ["", "a\u{7}", String(repeating: "r", count: 65)])
  func objections(rule: String) {
    func objection(_ value: CellValue) -> Refusal? {
      ExchangeRules.objection(to: CellUpdate(key: Self.key, state: CellState(value: value)))
    }
    let entry = LaterValue.Entry(rule: rule, content: Data())
    let value = CellValue.later(LaterValue([LaterValueID(high: 0, low: 1): entry]))
    #expect(objection(value)?.reason == .invalid && objection(.dictionary([.int(1): value]))?.reason == .invalid)
    #expect(objection(.later(LaterValue([:])))?.reason == .invalid)
    let large = LaterValue.Entry(rule: "quorum", content: Data(count: ExchangeRules.maximumCellBytes))
    #expect(objection(.later(LaterValue([LaterValueID(high: 0, low: 1): large])))?.reason == .tooLarge)
  }
}
