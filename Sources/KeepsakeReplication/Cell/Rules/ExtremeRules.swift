extension CellRule {
  /// The greatest value ever recorded. {"max": {"int": 6}}
  package static let max = extreme(
    "max", rank: 0, payload: { if case .max(let value) = $0 { value } else { nil } }, value: CellValue.max,
    asked: { if case .max(let value) = $0 { value } else { nil } }, join: { Swift.max($0, $1) })

  /// The smallest value ever recorded. {"min": {"int": 61}}
  package static let min = extreme(
    "min", rank: 1, payload: { if case .min(let value) = $0 { value } else { nil } }, value: CellValue.min,
    asked: { if case .min(let value) = $0 { value } else { nil } }, join: { Swift.min($0, $1) })

  private static func extreme(
    _ name: String, rank: Int, payload: @escaping @Sendable (CellValue) -> Scalar?,
    value: @escaping @Sendable (Scalar) -> CellValue,
    asked: @escaping @Sendable (CellDraft.Change) -> Scalar?, join: @escaping @Sendable (Scalar, Scalar) -> Scalar
  ) -> CellRule {
    CellRule(
      name, rank: rank, payload: payload, value: value, join: join, size: \.size,
      objection: { value, _ in value.isOrdered ? nil : CellValue.notANumber },
      text: { value, style in "\(name) \(style.scalar(value))" },
      change: { (change, held, application) throws(CellError) in
        guard let value = asked(change) else { throw application.mismatch(held.map(value), asked: change.rule.name) }
        return try application.checked(value)
      },
      written: { $0 }, read: { $0 })
  }
}
