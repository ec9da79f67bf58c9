extension CellState {
  /// The least state that holds both: commutative, associative and idempotent, for any two states.
  ///
  /// The later generation wins whole. Within a generation the rule joins; where two rules meet under one key, which only a
  /// mistake brings about, the rule that ranks higher wins, the same everywhere.
  package func joined(with other: CellState) -> CellState {
    if generation != other.generation { return generation > other.generation ? self : other }
    return CellState(generation: generation, value: value.joined(with: other.value))
  }

  /// Whether joining `other` changes nothing.
  package func contains(_ other: CellState) -> Bool { joined(with: other) == self }
}

extension CellValue {
  /// The rule's name, as people know it.
  package var ruleName: String {
    switch self {
    case .max: "max"
    case .min: "min"
    case .latest: "latest"
    case .union: "union"
    case .counter: "counter"
    case .best(let best): "best, \(best.order.rawValue)"
    case .set: "set"
    case .dictionary(let entries): entries.values.first.map { "dictionary of \($0.ruleName)" } ?? "dictionary"
    case .optional(let value): value.map { "optional \($0.ruleName)" } ?? "optional"
    case .later(let later): later.ruleName
    }
  }

  /// Later rules rank higher. The list never changes but at its end.
  var ruleRank: Int {
    switch self {
    case .max: 0
    case .min: 1
    case .latest: 2
    case .union: 3
    case .counter: 4
    case .best: 5
    case .set: 6
    case .dictionary: 7
    case .optional: 8
    // Whatever it is, it was added to the list behind all these.
    case .later: 9
    }
  }

  package func joined(with other: CellValue) -> CellValue {
    switch (self, other) {
    case (.max(let left), .max(let right)): return .max(Swift.max(left, right))
    case (.min(let left), .min(let right)): return .min(Swift.min(left, right))
    case (.latest(let leftStamp, let left), .latest(let rightStamp, let right)):
      if leftStamp != rightStamp { return leftStamp > rightStamp ? self : other }
      return .latest(leftStamp, Swift.max(left, right))
    case (.union(let left), .union(let right)): return .union(left.union(right))
    case (.counter(let left), .counter(let right)):
      return .counter(left.merging(right) { $0.joined(with: $1) })
    case (.best(let left), .best(let right)): return .best(left.joined(with: right))
    case (.set(let left), .set(let right)): return .set(left.joined(with: right))
    case (.dictionary(let left), .dictionary(let right)): return .dictionary(left.merging(right) { $0.joined(with: $1) })
    case (.optional(let left), .optional(let right)):
      guard let left, let right else { return .optional(left ?? right) }
      return .optional(left.joined(with: right))
    case (.later(let left), .later(let right)): return .later(left.joined(with: right))
    default:
      return ruleRank > other.ruleRank ? self : other
    }
  }

  /// What a counter stands at: everything added less everything taken, held within 64 bits.
  package static func total(of entries: [WriterID: CounterEntry]) -> Int64 {
    // 128 bits hold the sum of any number of entries that memory can.
    var sum: Int128 = 0
    for entry in entries.values { sum += Int128(entry.plus) - Int128(entry.minus) }
    return Int64(clamping: sum)
  }

  /// Roughly the bytes it takes, for limits.
  package var size: Int {
    switch self {
    case .max(let value), .min(let value): value.size
    case .latest(_, let value): value.size + 24
    case .union(let values): values.reduce(0) { $0 + $1.size + 8 }
    case .counter(let entries): entries.count * 24
    case .best(let best): best.size
    case .set(let set): set.size
    case .dictionary(let entries): entries.reduce(0) { $0 + $1.key.size + $1.value.size + 8 }
    case .optional(let value): (value?.size ?? 0) + 8
    case .later(let later): later.size
    }
  }
}

extension CounterEntry {
  func joined(with other: CounterEntry) -> CounterEntry {
    CounterEntry(plus: max(plus, other.plus), minus: max(minus, other.minus))
  }
}
