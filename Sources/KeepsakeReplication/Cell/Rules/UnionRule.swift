extension CellRule {
  /// A set that only grows. {"union": [{"string": "a"}]}, sorted.
  package static let union = CellRule(
    "union", rank: 3, payload: { if case .union(let values) = $0 { values } else { nil } }, value: CellValue.union,
    join: { $0.union($1) },
    size: { $0.reduce(0) { $0 + $1.size + 8 } },
    objection: { values, _ in values.allSatisfy(\.isOrdered) ? nil : CellValue.notANumber },
    text: { values, style in "union " + style.list(values) },
    change: { (change, held, application) throws(CellError) in
      guard case .insert(let values) = change else {
        throw application.mismatch(held.map(CellValue.union), asked: change.rule.name)
      }
      return try application.checked(values).subtracting(held ?? [])
    },
    written: { $0.sorted() }, read: { Set($0) }, nested: Nested(isCollection: true))
}
