extension CellRule {
  /// A count that every device adds to. {"counter": [{"writer": "...", "plus": 3, "minus": 0}]}, sorted by writer.
  package static let counter = CellRule(
    "counter", rank: 4, payload: { if case .counter(let entries) = $0 { entries } else { nil } },
    value: CellValue.counter,
    join: { $0.merging($1) { $0.joined(with: $1) } },
    size: { $0.count * 24 },
    objection: { _, _ in nil },
    text: { entries, _ in
      "counter "
        + entries.sorted { $0.key < $1.key }.map { "\($0.key): +\($0.value.plus) -\($0.value.minus)" }.joined(
          separator: ", ")
    },
    change: { (change, held, application) throws(CellError) in
      guard case .add(let plus, let minus) = change else {
        throw application.mismatch(held.map(CellValue.counter), asked: change.rule.name)
      }
      if held != nil, plus == 0, minus == 0 { return [:] }
      let writer = application.context.counter
      let entry = held?[writer] ?? CounterEntry()
      let (up, upOverflow) = entry.plus.addingReportingOverflow(plus)
      let (down, downOverflow) = entry.minus.addingReportingOverflow(minus)
      guard !upOverflow, !downOverflow else { throw .overflow(application.key) }
      return [writer: CounterEntry(plus: up, minus: down)]
    },
    written: {
      $0.sorted { $0.key < $1.key }.map { CounterLine(writer: $0.key, plus: $0.value.plus, minus: $0.value.minus) }
    },
    read: { lines in
      // A writer that is listed twice counts once, with the greater of each number, as in a join.
      Dictionary(
        lines.map { ($0.writer, CounterEntry(plus: $0.plus, minus: $0.minus)) },
        uniquingKeysWith: { $0.joined(with: $1) })
    })
}

private struct CounterLine: Codable {
  var writer: WriterID
  var plus: UInt64
  var minus: UInt64
}

/// What one writer has added to and subtracted from a counter in total: both only grow.
package struct CounterEntry: Hashable, Sendable, Codable {
  package var plus: UInt64
  package var minus: UInt64

  package init(plus: UInt64 = 0, minus: UInt64 = 0) {
    self.plus = plus
    self.minus = minus
  }

  func joined(with other: CounterEntry) -> CounterEntry {
    CounterEntry(plus: max(plus, other.plus), minus: max(minus, other.minus))
  }
}

extension CellValue {
  /// Returns the value of a counter: everything added minus everything subtracted, clamped to 64 bits.
  package static func total(of entries: [WriterID: CounterEntry]) -> Int64 {
    // 128 bits can hold the sum of as many entries as fit into memory.
    var sum: Int128 = 0
    for entry in entries.values { sum += Int128(entry.plus) - Int128(entry.minus) }
    return Int64(clamping: sum)
  }
}
