extension CellRule {
  /// A value or none; none ranks below every value. {"optional": null}, {"optional": {"min": {"int": 61}}}
  package static let optional = CellRule(
    "optional", rank: 8, payload: { if case .optional(let value) = $0 { .some(value) } else { .none } },
    value: CellValue.optional,
    title: { (value: CellValue?) in value.map { "optional \($0.ruleName)" } ?? "optional" },
    join: { (left: CellValue?, right: CellValue?) in
      guard let left, let right else { return left ?? right }
      return left.joined(with: right)
    },
    size: { ($0?.size ?? 0) + 8 },
    objection: { value, depth in
      guard depth < CellValue.maximumDepth else { return CellValue.tooDeep }
      return value?.objection(depth: depth + 1)
    },
    text: { value, style in "optional " + (value?.text(style) ?? "none") },
    change: { (change, held: CellValue??, application) throws(CellError) in
      guard case .optional(let inner) = change else {
        throw application.mismatch(held.map(CellValue.optional), asked: change.rule.name)
      }
      guard let inner else { return nil }
      return try application.inner(inner, over: held ?? nil)
    },
    written: { $0 }, read: { $0 },
    nested: Nested(
      values: { if case .optional(let value?) = $0 { [value] } else { [] } },
      map: { value, change in if case .optional(let inner) = value { .optional(inner.map(change)) } else { value } },
      isContainer: true))
}
