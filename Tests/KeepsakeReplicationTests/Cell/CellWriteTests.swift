import Foundation
import KeepsakeReplication
import TestSupport
import Testing

/// Every way in which two devices can write up to four times to a cell, with everything, nothing, or only the latest
/// change delivered between the writes. Whatever the order, all devices end with the same value, and it is the one that
/// was meant.
@Suite struct CellWriteTests {
  struct Rule: CustomTestStringConvertible, Sendable {
    var name: String
    /// The changes from which each write is chosen.
    var changes: [CellDraft.Change]
    var maximumWrites = TestDepth.interleavedWrites

    var testDescription: String { name }
  }

  static let rules: [Rule] = {
    func score(_ value: Int64) -> BestScore {
      BestScore(order: .descending, entry: .init(score: .int(value), dateMilliseconds: 0, payload: Data()))
    }
    let (x, y) = (Scalar.string("x"), Scalar.string("y"))
    return [
      Rule(name: "max", changes: [.max(.int(1)), .max(.int(2))]),
      Rule(name: "max, reset", changes: [.max(.int(2)), .reset(.max(.int(1)))]),
      Rule(name: "min", changes: [.min(.int(1)), .min(.double(0.5))]),
      Rule(name: "latest", changes: [.set(x), .set(y)]),
      Rule(name: "latest, reset", changes: [.set(x), .reset(.set(y))]),
      Rule(name: "union", changes: [.insert([x]), .insert([x, y])]),
      Rule(name: "union, reset", changes: [.insert([x]), .reset(.insert([y]))]),
      Rule(name: "counter", changes: [.add(plus: 1, minus: 0), .add(plus: 0, minus: 10)]),
      Rule(name: "counter, reset", changes: [.add(plus: 1, minus: 0), .reset(.add(plus: 10, minus: 0))]),
      Rule(name: "best", changes: [.best(score(1)), .best(score(2))]),
      Rule(name: "set", changes: [.insertElements([x]), .removeElements([x])]),
      Rule(
        name: "set of two", changes: [.insertElements([x]), .insertElements([x, y]), .removeElements([y])],
        maximumWrites: 3),
      Rule(
        name: "set, reset", changes: [.insertElements([x]), .removeElements([x]), .reset(.insertElements([y]))],
        maximumWrites: 3),
      Rule(name: "set, reset to what was taken out", changes: [.removeElements([x]), .reset(.insertElements([x]))]),
      Rule(
        name: "dictionary of max",
        changes: [.entries([x: .max(.int(1))]), .entries([x: .max(.int(2)), y: .max(.int(1))])]),
      Rule(name: "dictionary of latest", changes: [.entries([x: .set(x)]), .entries([x: .set(y)])]),
      Rule(
        name: "dictionary of counter",
        changes: [
          .entries([x: .add(plus: 1, minus: 0)]), .entries([x: .add(plus: 0, minus: 10), y: .add(plus: 1, minus: 0)]),
        ]),
      Rule(
        name: "dictionary of set",
        changes: [.entries([x: .insertElements([x]), y: .insertElements([y])]), .entries([x: .removeElements([x])])]),
      Rule(
        name: "dictionary, reset",
        changes: [
          .entries([x: .add(plus: 1, minus: 0)]), .entries([y: .add(plus: 1, minus: 0)]),
          .reset(.entries([x: .add(plus: 100, minus: 0)])),
        ], maximumWrites: 3),
      Rule(name: "optional max", changes: [.optional(.max(.int(1))), .optional(.max(.int(2)))]),
      Rule(
        name: "optional, reset", changes: [.optional(.max(.int(1))), .optional(nil), .reset(.optional(nil))],
        maximumWrites: 3),
    ]
  }()

  @Test("The writes of two devices have the intended result in any order of delivery", arguments: rules)
  func allInterleavings(rule: Rule) async {
    let found = await withCheckedContinuation { continuation in
      let thread = Thread { continuation.resume(returning: Interleavings(rule).run()) }
      thread.stackSize = 4 << 20
      thread.start()
    }
    for failure in found.failures { Issue.record("\(failure)") }
    // No sequence was left out: each further write is made by one of two devices, after one of at least four
    // deliveries.
    var least = 1
    for number in 0..<rule.maximumWrites { least *= number == 0 ? rule.changes.count : rule.changes.count * 2 * 4 }
    #expect(found.count >= least)
  }
}

/// One write, as recorded by an observer who sees all devices.
private struct Write {
  var change: CellDraft.Change
  var device: Int
  /// A bit mask of the writes that had reached the device.
  var seen: Int
  var generation: Int
  /// Whether it changed anything.
  var changed: Bool
}

private struct Interleavings {
  /// Two devices; the clock of the second one is behind.
  struct Pair {
    var states: [CellState?] = [nil, nil]
    var seen = [0, 0]
    var writes: [Write] = []
    var deltas: [CellState?] = []
  }

  enum Delivery: CaseIterable { case nothing, toFirst, toSecond, lastChange, both }

  let rule: CellWriteTests.Rule
  var failures: [String] = []
  /// How many sequences of the full length were tried.
  var count = 0
  private var checkedDeltas: Set<[CellState]> = []
  private let key = CellKey(collection: "progress", key: "x")

  init(_ rule: CellWriteTests.Rule) { self.rule = rule }

  func run() -> Interleavings {
    var run = self
    run.go(on: Pair())
    return run
  }

  private mutating func go(on pair: Pair) {
    guard failures.count < 3 else { return }
    if !pair.writes.isEmpty { check(pair) }
    guard pair.writes.count < rule.maximumWrites else {
      count += 1
      return
    }
    for delivery in pair.writes.isEmpty ? [.nothing] : Delivery.allCases {
      guard let delivered = deliver(delivery, to: pair) else { continue }
      // The devices are interchangeable: the first write is always made by the first one.
      for device in pair.writes.isEmpty ? [0] : [0, 1] {
        for change in rule.changes {
          var next = delivered
          write(change, on: device, &next)
          go(on: next)
        }
      }
    }
  }

  private func deliver(_ delivery: Delivery, to pair: Pair) -> Pair? {
    func joined(_ left: CellState?, _ right: CellState?) -> CellState? {
      guard let left, let right else { return left ?? right }
      return left.joined(with: right)
    }
    var pair = pair
    switch delivery {
    case .nothing: break
    case .toFirst, .toSecond:
      let (from, to) = delivery == .toFirst ? (1, 0) : (0, 1)
      pair.states[to] = joined(pair.states[to], pair.states[from])
      pair.seen[to] |= pair.seen[from]
    case .both:
      let all = joined(pair.states[0], pair.states[1])
      pair.states = [all, all]
      pair.seen = Array(repeating: pair.seen[0] | pair.seen[1], count: 2)
    case .lastChange:
      guard let last = pair.writes.last, let delta = pair.deltas.last ?? nil else { return nil }
      let to = 1 - last.device
      pair.states[to] = joined(pair.states[to], delta)
      pair.seen[to] |= 1 << (pair.writes.count - 1)
    }
    return pair
  }

  private mutating func write(_ change: CellDraft.Change, on device: Int, _ pair: inout Pair) {
    let context = CellDraft.Context(
      writer: WriterID(UInt64(device) + 1), caughtUp: true, nowMilliseconds: device == 0 ? 10 : 5)
    let before = pair.states[device]
    var generation = 0
    for (index, write) in pair.writes.enumerated() where pair.seen[device] & 1 << index != 0 && write.changed {
      generation = max(generation, write.generation)
    }
    if case .reset = change { generation += 1 }
    var write = Write(change: change, device: device, seen: pair.seen[device], generation: generation, changed: false)
    do {
      if let result = try CellDraft(key, change).applied(to: before, context) {
        write.changed = true
        if let before, !result.state.contains(before) {
          failures.append("\(rule.name): retreats from \(before) to \(result.state)")
        }
        pair.states[device] = result.state
        pair.deltas.append(result.delta)
      } else {
        pair.deltas.append(nil)
      }
    } catch {
      failures.append("\(rule.name): \(change) on \(String(describing: before)): \(error)")
    }
    pair.seen[device] |= 1 << pair.writes.count
    pair.writes.append(write)
  }

  private mutating func check(_ pair: Pair) {
    let end: CellState?
    if let left = pair.states[0], let right = pair.states[1] {
      end = left.joined(with: right)
      if right.joined(with: left) != end { failures.append("\(rule.name): join order matters: \(pair.writes)") }
    } else {
      end = pair.states[0] ?? pair.states[1]
    }
    checkDeltas(pair.deltas.compactMap(\.self), end)
    let meant = Observer(pair.writes).meaning()
    let shown = Observer.text(of: end?.value)
    if !meant.contains(shown) { failures.append("\(rule.name): \(shown), not \(meant), after \(pair.writes)") }
  }

  /// Checks that what was sent, joined in any order and twice, makes the state that the devices have at the end.
  private mutating func checkDeltas(_ deltas: [CellState], _ end: CellState?) {
    guard checkedDeltas.insert(deltas).inserted, !deltas.isEmpty else { return }
    var joins: [CellState?] = [nil]
    for mask in 1..<(1 << deltas.count) {
      var all: CellState?
      for (index, delta) in deltas.enumerated() where mask & 1 << index != 0 {
        let next = joins[mask & ~(1 << index)]?.joined(with: delta) ?? delta
        if let all, all != next { failures.append("\(rule.name): the order of \(deltas) matters") }
        if next.joined(with: delta) != next { failures.append("\(rule.name): \(delta) counts twice in \(next)") }
        all = next
      }
      joins.append(all)
    }
    if joins.last != end {
      failures.append(
        "\(rule.name): \(deltas) make \(String(describing: joins.last)), the devices have \(String(describing: end))")
    }
  }
}

/// Works out what writes mean from which device had seen which writes, without knowing how cells work.
private struct Observer {
  private typealias Noted = (change: CellDraft.Change, index: Int)

  private let writes: [Write]

  init(_ writes: [Write]) { self.writes = writes }

  /// Returns the writes that no later reset discarded.
  private func living(among seen: Int) -> Int {
    let indices = writes.indices.filter { seen & 1 << $0 != 0 && writes[$0].changed }
    let last = indices.map { writes[$0].generation }.max()
    return indices.filter { writes[$0].generation == last }.reduce(0) { $0 | 1 << $1 }
  }

  /// Returns the possible values at the end: more than one where devices wrote concurrently and the later write wins.
  func meaning() -> Set<String> {
    let living = living(among: (1 << writes.count) - 1)
    let noted = writes.indices.filter { living & 1 << $0 != 0 }.map { index -> Noted in
      if case .reset(let change) = writes[index].change { return (change, index) }
      return (writes[index].change, index)
    }
    return meaning(of: noted, under: [])
  }

  private func meaning(of noted: [Noted], under path: [Scalar]) -> Set<String> {
    guard let first = noted.first?.change else { return [""] }
    func values(_ value: (CellDraft.Change) -> Scalar?) -> [Scalar] { noted.compactMap { value($0.change) } }
    switch first {
    case .max: return [Self.text(values { if case .max(let value) = $0 { value } else { nil } }.max())]
    case .min: return [Self.text(values { if case .min(let value) = $0 { value } else { nil } }.min())]
    case .best: return [Self.text(values { if case .best(let best) = $0 { best.entry?.score } else { nil } }.max())]
    case .insert:
      let all = noted.reduce(into: Set<Scalar>()) { if case .insert(let values) = $1.change { $0.formUnion(values) } }
      return [Self.text(all)]
    case .add:
      let sum = noted.reduce(0) {
        if case .add(let plus, let minus) = $1.change { $0 + Int(plus) - Int(minus) } else { $0 }
      }
      return ["\(sum)"]
    case .set:
      // A write is later than those that its device had seen. Writing the value that was there already isn't a write.
      let last = noted.filter { one in !noted.contains { writes[$0.index].seen & 1 << one.index != 0 } }
      return Set(last.map { if case .set(let value) = $0.change { Self.text(value) } else { "" } })
    case .insertElements, .removeElements:
      var elements: Set<Scalar> = []
      for (change, _) in noted { if case .insertElements(let values) = change { elements.formUnion(values) } }
      let all = noted.reduce(0) { $0 | 1 << $1.index }
      return [Self.text(elements.filter { isIn($0, among: all, under: path) })]
    case .entries:
      var byKey: [Scalar: [Noted]] = [:]
      for (change, index) in noted {
        guard case .entries(let changes) = change else { continue }
        for (key, change) in changes { byKey[key, default: []].append((change, index)) }
      }
      // At most one of the keys may have several meanings here.
      var texts: Set<String> = [""]
      for (key, noted) in byKey.sorted(by: { $0.key < $1.key }) {
        let meanings = meaning(of: noted, under: path + [key])
        texts = Set(texts.flatMap { text in meanings.map { $0.isEmpty ? text : text + "\(Self.text(key)): \($0); " } })
      }
      return texts
    case .optional:
      return meaning(
        of: noted.compactMap { if case .optional(let change?) = $0.change { (change, $0.index) } else { nil } },
        under: path)
    case .reset, .withdraw: return ["not looked at"]
    }
  }

  /// Returns whether a device that has seen these writes has the element in its set: some insertion of it was unknown
  /// to every device that removed it.
  private func isIn(_ element: Scalar, among seen: Int, under path: [Scalar]) -> Bool {
    let living = living(among: seen)
    func touches(_ index: Int, putting: Bool) -> Bool {
      var change = writes[index].change
      if case .reset(let inner) = change { change = inner }
      for key in path {
        guard case .entries(let changes) = change, let inner = changes[key] else { return false }
        change = inner
      }
      switch change {
      case .insertElements(let elements): return putting && elements.contains(element)
      case .removeElements(let elements): return !putting && elements.contains(element)
      default: return false
      }
    }
    let known = writes.indices.filter { living & 1 << $0 != 0 }
    return known.contains { addition in
      guard touches(addition, putting: true) else { return false }
      // Inserting an element that is in the set already does nothing. A reset starts with an empty set.
      let before = self.living(among: writes[addition].seen)
      let generation = writes[addition].generation
      let isSameGeneration = writes.indices.contains { (index: Int) -> Bool in
        before & (1 << index) != 0 && writes[index].generation == generation
      }
      if isSameGeneration, isIn(element, among: before, under: path) { return false }
      return !known.contains { (index: Int) -> Bool in
        touches(index, putting: false) && writes[index].seen & (1 << addition) != 0
      }
    }
  }

  // MARK: Text

  static func text(of value: CellValue?) -> String {
    switch value {
    case nil, .optional(nil)?: return ""
    case .max(let value)?, .min(let value)?, .latest(_, let value)?: return text(value)
    case .union(let values)?: return text(values)
    case .set(let set)?: return text(set.elements)
    case .counter(let entries)?: return "\(CellValue.total(of: entries))"
    case .best(let best)?: return text(best.entry?.score)
    case .later(let later)?: return later.ruleName
    case .optional(let value?)?: return text(of: value)
    case .dictionary(let entries)?:
      return entries.sorted { $0.key < $1.key }.reduce(into: "") { words, entry in
        let value = text(of: entry.value)
        if !value.isEmpty { words += "\(text(entry.key)): \(value); " }
      }
    }
  }

  private static func text(_ scalar: Scalar?) -> String {
    switch scalar {
    case nil: ""
    case .int(let value)?: "\(value)"
    case .double(let value)?: "\(value)"
    case .string(let value)?: value
    case .data(let value)?: "\(value.count) bytes"
    }
  }

  private static func text(_ scalars: Set<Scalar>) -> String {
    scalars.sorted().map { text($0) }.joined(separator: ",")
  }
}
