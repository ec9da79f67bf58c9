extension CellRule {
  /// Values by key, all of one rule. {"dictionary": [{"key": {"string": "cave"}, "value": {"min": {"int": 61}}}]},
  /// sorted by key.
  package static let dictionary = CellRule(
    "dictionary", rank: 7, payload: { if case .dictionary(let entries) = $0 { entries } else { nil } },
    value: CellValue.dictionary,
    title: { $0.values.first.map { "dictionary of \($0.ruleName)" } ?? "dictionary" },
    join: { $0.merging($1) { $0.joined(with: $1) } },
    size: { $0.reduce(0) { $0 + $1.key.size + $1.value.size + 8 } },
    objection: { entries, depth in
      guard depth < CellValue.maximumDepth else { return CellValue.tooDeep }
      for (key, value) in entries {
        guard key.isOrdered else { return CellValue.notANumber }
        if let objection = value.objection(depth: depth + 1) { return objection }
      }
      return nil
    },
    text: { entries, style in
      let parts = entries.sorted { $0.key < $1.key }.map { "\(style.scalar($0.key)): \($0.value.text(style))" }
      return "dictionary {" + parts.joined(separator: ", ") + "}"
    },
    change: { (change, held, application) throws(CellError) in
      guard case .entries(let changes) = change else {
        throw application.mismatch(held.map(CellValue.dictionary), asked: change.rule.name)
      }
      return try application.entries(changes, over: held ?? [:])
    },
    written: { $0.sorted { $0.key < $1.key }.map { DictionaryLine(key: $0.key, value: $0.value) } },
    // A key that is listed twice has both values joined.
    read: { Dictionary($0.map { ($0.key, $0.value) }, uniquingKeysWith: { $0.joined(with: $1) }) },
    nested: Nested(
      values: { if case .dictionary(let entries) = $0 { Array(entries.values) } else { [] } },
      map: { value, change in
        if case .dictionary(let entries) = value { .dictionary(entries.mapValues(change)) } else { value }
      },
      isCollection: true, isContainer: true))
}

private struct DictionaryLine: Codable {
  var key: Scalar
  var value: CellValue
}

extension CellDraft.Application {
  fileprivate func entries(
    _ changes: [Scalar: CellDraft.Change], over held: [Scalar: CellValue]
  ) throws(CellError) -> [Scalar: CellValue] {
    var delta: [Scalar: CellValue] = [:]
    for (name, change) in changes {
      let name = try checked(name)
      let before = held[name]
      let value = try inner(change, over: before)
      guard before != nil || held.isEmpty || held.values.contains(where: { $0.hasRule(of: value) }) else {
        throw mismatch(.dictionary(held), asked: "dictionary of \(value.ruleName)")
      }
      // A value that is known already isn't sent again.
      if let before, before.joined(with: value) == before { continue }
      if before == nil, change.onlyTakes { continue }
      delta[name] = value
    }
    return delta
  }
}
