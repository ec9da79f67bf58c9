extension CellRule {
  /// Values of rules that are newer than this program, passed on unchanged. {"later": [...]}, see `LaterValue`.
  package static let later = CellRule(
    "later", rank: .max, payload: { if case .later(let later) = $0 { later } else { nil } }, value: CellValue.later,
    title: \.ruleName,
    join: { $0.joined(with: $1) },
    size: \.size,
    objection: { later, _ in later.objection },
    text: { later, style in
      "\(style.name(later.ruleName)), which this program doesn't know: "
        + later.entries.sorted { $0.key < $1.key }.map { "\($0.value.content.count) bytes" }.joined(separator: ", ")
    },
    // Only a program that knows the rule can change the value.
    change: { (change, held, application) throws(CellError) in
      throw application.mismatch(held.map(CellValue.later), asked: change.rule.name)
    },
    written: { $0 }, read: { $0 })
}
