import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// Joins make sync safe: any order and any repetition give the same result.
@Suite struct CellLawTests {
  static let writers = [WriterID(1), WriterID(2)]

  /// Small states of every rule, two generations of each.
  static let few: [CellState] = {
    var values: [CellValue] = []
    let scalars: [Scalar] = [
      .int(-1), .int(2), .double(2), .double(2.5), .string("a"), .string("b"), .data(Data([0])), .double(.infinity),
    ]
    for scalar in scalars {
      values.append(.max(scalar))
      values.append(.min(scalar))
    }
    for milliseconds: Int64 in [0, 1] {
      for caughtUp in [false, true] {
        for writer in writers {
          let stamp = Stamp(caughtUp: caughtUp, milliseconds: milliseconds, writer: writer)
          values.append(.latest(stamp, .int(1)))
          values.append(.latest(stamp, .int(2)))
        }
      }
    }
    values += [.union([]), .union([.int(1)]), .union([.int(2), .string("x")]), .union([.int(1), .double(1)])]
    values += [
      .counter([:]), .counter([writers[0]: CounterEntry(plus: 1, minus: 0)]),
      .counter([writers[0]: CounterEntry(plus: 0, minus: 3), writers[1]: CounterEntry(plus: .max, minus: 1)]),
    ]
    for order in ScoreOrder.allCases {
      values.append(.best(BestScore(order: order, entry: nil)))
      for score in [Scalar.int(2), .double(2), .double(2.5)] {
        values.append(
          .best(BestScore(order: order, entry: .init(score: score, dateMilliseconds: 0, payload: Data([1])))))
      }
      values.append(.best(BestScore(order: order, entry: .init(score: .int(2), dateMilliseconds: 1, payload: Data()))))
      let entry = BestScore.Entry(score: .int(1), dateMilliseconds: 0, payload: Data(count: 16))
      values.append(.best(BestScore(order: order, entry: entry, withdrawn: Self.withdrawn(1...2))))
      values.append(.best(BestScore(order: order, entry: nil, withdrawn: Self.withdrawn(2...65), isCleared: true)))
      values.append(
        .best(BestScore(order: order, entry: .init(score: .int(2), dateMilliseconds: 0, payload: Data([1, 0])))))
    }
    values += sets.map(CellValue.set)
    values += [
      .dictionary([:]), .dictionary([.int(1): .max(.int(1))]),
      .dictionary([.int(1): .max(.int(2)), .string("a"): .max(.int(0))]),
      .dictionary([.int(1): .counter([writers[0]: CounterEntry(plus: 1)])]), .dictionary([.string("a"): .set(sets[2])]),
      .dictionary([.string("a"): .set(sets[4]), .int(1): .set(sets[5])]),
      .dictionary([.int(1): .dictionary([.int(1): .min(.int(1))])]),
      .optional(nil), .optional(.max(.int(1))), .optional(.max(.int(2))), .optional(.min(.int(1))),
    ]
    return [0, 1].flatMap { generation in values.map { CellState(generation: generation, value: $0) } }
  }()

  /// Empty sets, and insertions that are present, removed, or received out of order; and one insertion number for two
  /// elements, which no correct program writes.
  private static let sets: [ObservedSet] = {
    func additions(_ seen: [ClosedRange<UInt64>], _ present: [UInt64: Scalar] = [:]) -> ObservedSet.Additions {
      ObservedSet.Additions(seen: NumberRanges(seen), present: present)
    }
    return [
      ObservedSet(), ObservedSet([writers[0]: additions([1...1], [1: .int(1)])]),
      ObservedSet([writers[0]: additions([1...1])]),
      ObservedSet([writers[0]: additions([3...3], [3: .int(1)])]),
      ObservedSet([writers[0]: additions([1...2], [2: .string("a")]), writers[1]: additions([1...1], [1: .int(1)])]),
      ObservedSet([writers[0]: additions([1...3], [1: .int(1), 3: .string("a")]), writers[1]: additions([1...1])]),
      ObservedSet([writers[0]: additions([1...1], [1: .int(2)])]),
      ObservedSet([writers[1]: additions([2...5], [4: .int(1)])]),
    ]
  }()

  private static func withdrawn(_ numbers: ClosedRange<UInt64>) -> Set<BestScore.Withdrawal> {
    Set(numbers.map { BestScore.Withdrawal(generation: $0 / 2, id: ScoreID(high: 0, low: $0)) })
  }

  @Test("Two devices that receive each other's values in different orders show the same value")
  func commutes() {
    for left in Self.few {
      for right in Self.few { #expect(left.joined(with: right) == right.joined(with: left), "\(left) \(right)") }
    }
  }

  @Test("A value that arrives twice counts once")
  func idempotent() {
    for left in Self.few {
      #expect(left.joined(with: left) == left)
      for right in Self.few {
        let joined = left.joined(with: right)
        #expect(joined.joined(with: right) == joined, "\(left) \(right)")
        #expect(joined.contains(left) && joined.contains(right))
      }
    }
  }

  @Test("Three values have the same join, whichever two of them are joined first")
  func associates() {
    var failures = 0
    // All values of each rule, with one value of each other rule: how two values of different rules are joined doesn't
    // depend on a third.
    let byRule = Dictionary(grouping: Self.few) { state in String(state.value.ruleName.prefix { $0.isLetter }) }
    #expect(byRule.count == 9)
    for (rule, states) in byRule {
      let states = states + byRule.filter { $0.key != rule }.values.compactMap(\.last)
      for left in states {
        for middle in states {
          let both = left.joined(with: middle)
          for right in states where both.joined(with: right) != left.joined(with: middle.joined(with: right)) {
            failures += 1
          }
        }
      }
    }
    #expect(failures == 0)
  }

  @Test(
    "Values of three devices end up the same in any order of delivery, even if one is delivered twice",
    arguments: [1, 2, 3, 4, 5] as [UInt64])
  func randomLaws(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<300 {
      let a = Self.state(using: &random)
      let b = Self.state(using: &random)
      let c = Self.state(using: &random)
      #expect(a.joined(with: b) == b.joined(with: a), "seed \(seed)")
      #expect(a.joined(with: b).joined(with: c) == a.joined(with: b.joined(with: c)), "seed \(seed)")
      #expect(a.joined(with: b).joined(with: b) == a.joined(with: b), "seed \(seed)")
    }
  }

  static func scalar(using random: inout SeededGenerator) -> Scalar {
    switch Int.random(in: 0..<5, using: &random) {
    case 0: .int(Int64.random(in: -3...3, using: &random))
    case 1: .int(Int64.random(in: .min ... .max, using: &random))
    case 2: .double(Double(Int.random(in: -6...6, using: &random)) / 2)
    case 3: .string(["", "a", "\u{E9}", "e\u{301}"].randomElement(using: &random) ?? "")
    default: .data(Data([UInt8.random(in: 0...2, using: &random)]))
    }
  }

  static func state(using random: inout SeededGenerator) -> CellState {
    CellState(generation: UInt64.random(in: 0...1, using: &random), value: value(using: &random))
  }

  private static func value(using random: inout SeededGenerator, depth: Int = 0) -> CellValue {
    let value: CellValue
    switch Int.random(in: 0..<(depth < CellValue.maximumDepth ? 9 : 7), using: &random) {
    case 0: value = .max(scalar(using: &random))
    case 1: value = .min(scalar(using: &random))
    case 2:
      let stamp = Stamp(
        caughtUp: random.once(in: 2), milliseconds: Int64.random(in: 0...2, using: &random),
        writer: WriterID(UInt64.random(in: 0...1, using: &random)))
      value = .latest(stamp, scalar(using: &random))
    case 4:
      let entry = BestScore.Entry(
        score: scalar(using: &random), dateMilliseconds: Int64.random(in: 0...1, using: &random),
        payload: Data([UInt8.random(in: 0...2, using: &random)]))
      let first = UInt64.random(in: 1...9, using: &random)
      value = .best(
        BestScore(
          order: random.once(in: 2) ? .ascending : .descending, entry: random.once(in: 4) ? nil : entry,
          withdrawn: random.once(in: 2) ? [] : withdrawn(first...(first + UInt64.random(in: 0...60, using: &random))),
          isCleared: random.once(in: 4)))
    case 3: value = .union(Set((0..<Int.random(in: 0...3, using: &random)).map { _ in scalar(using: &random) }))
    case 6:
      var writers: [WriterID: ObservedSet.Additions] = [:]
      for writer in UInt64(0)..<3 where random.once(in: 2) {
        let seen = (UInt64(1)...6).filter { _ in random.once(in: 2) }
        let present = seen.filter { _ in random.once(in: 2) }.map { ($0, Self.scalar(using: &random)) }
        writers[WriterID(writer)] = ObservedSet.Additions(
          seen: NumberRanges(seen.map { $0...$0 }), present: Dictionary(present, uniquingKeysWith: { $1 }))
      }
      value = .set(ObservedSet(writers))
    case 7:
      var entries: [Scalar: CellValue] = [:]
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        entries[scalar(using: &random)] = Self.value(using: &random, depth: depth + 1)
      }
      value = .dictionary(entries)
    case 8: value = .optional(random.once(in: 3) ? nil : Self.value(using: &random, depth: depth + 1))
    default:
      var entries: [WriterID: CounterEntry] = [:]
      for writer in UInt64(0)..<3 where random.once(in: 2) {
        entries[WriterID(writer)] = CounterEntry(
          plus: UInt64.random(in: 0...3, using: &random), minus: UInt64.random(in: 0...3, using: &random))
      }
      value = .counter(entries)
    }
    return value
  }

  @Test(
    "The union of two ranges of numbers contains the numbers of both, and no others", arguments: [1, 2, 3] as [UInt64])
  func numberRanges(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<300 {
      var plain: [Set<UInt64>] = [[], []]
      var ranges: [NumberRanges] = []
      for side in 0..<2 {
        let made = (0..<Int.random(in: 0...4, using: &random)).map { _ in
          let first = UInt64.random(in: 1...12, using: &random)
          return first...(first + UInt64.random(in: 0...3, using: &random))
        }
        for range in made { plain[side].formUnion(range) }
        ranges.append(NumberRanges(made))
      }
      let union = ranges[0].union(ranges[1])
      #expect(
        (UInt64(0)...17).allSatisfy { union.contains($0) == plain[0].union(plain[1]).contains($0) }, "seed \(seed)")
      #expect(union == NumberRanges(plain[0].union(plain[1]).map { $0...$0 }), "seed \(seed)")
    }
    let whole = NumberRanges([.max ... .max, 0...0, 5...(.max - 1), 1...3])
    #expect(whole.ranges == [0...3, 5...(.max)] && whole.contains(.max) && !whole.contains(4))
  }

  @Test("Scalars have the same total order on every device, across all types")
  func scalarsAreTotallyOrdered() {
    let scalars: [Scalar] = [
      .double(-.infinity), .int(.min), .int(-1), .double(-0.5), .int(0), .double(0), .int(2), .double(2), .double(2.5),
      .int(3),
      .int(9_007_199_254_740_993), .double(9_007_199_254_740_994), .int(.max), .double(9.3e18), .double(.infinity),
      .string(""), .string("a"), .string("e\u{301}"), .string("\u{E9}"), .data(Data()), .data(Data([1])),
    ]
    for (index, left) in scalars.enumerated() {
      for (other, right) in scalars.enumerated() {
        #expect((left < right) == (index < other), "\(left) \(right)")
        #expect((left == right) == (index == other), "\(left) \(right)")
      }
    }
  }

  @Test("Two Unicode spellings of one letter are two different keys on every device")
  func keysAreBytes() {
    let composed = CellKey(collection: "progress", key: "\u{E9}")
    let decomposed = CellKey(collection: "progress", key: "e\u{301}")
    #expect(composed != decomposed)
    #expect(Set([composed, decomposed]).count == 2)
    #expect(Set([Scalar.string("\u{E9}"), .string("e\u{301}")]).count == 2)
  }

  @Test("A counter's total is the sum over all devices, or the greatest or least number if that would overflow")
  func counterTotal() {
    let entries = [
      WriterID(1): CounterEntry(plus: 5, minus: 2), WriterID(2): CounterEntry(plus: 0, minus: 7),
    ]
    #expect(CellValue.total(of: entries) == -4)
    let full = [WriterID(1): CounterEntry(plus: .max), WriterID(2): CounterEntry(plus: .max)]
    #expect(CellValue.total(of: full) == .max)
    #expect(CellValue.total(of: [WriterID(1): CounterEntry(minus: .max)]) == .min)
  }
}
