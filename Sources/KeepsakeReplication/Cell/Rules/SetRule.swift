extension CellRule {
  /// A set whose elements can be removed again. {"set": [...]}, see `ObservedSet`.
  package static let set = CellRule(
    "set", rank: 6, payload: { if case .set(let set) = $0 { set } else { nil } }, value: CellValue.set,
    join: { $0.joined(with: $1) },
    size: \.size,
    objection: { set, _ in set.objection },
    text: { set, style in "set " + style.list(set.elements) },
    change: { (change, held, application) throws(CellError) in
      switch change {
      case .insertElements(let elements):
        let elements = try application.checked(elements)
        guard let delta = (held ?? ObservedSet()).adding(elements, by: application.context.counter) else {
          throw .overflow(application.key)
        }
        return delta
      case .removeElements(let elements): return (held ?? ObservedSet()).removing(try application.checked(elements))
      default: throw application.mismatch(held.map(CellValue.set), asked: change.rule.name)
      }
    },
    written: { $0 }, read: { $0 }, nested: Nested(isCollection: true))
}
