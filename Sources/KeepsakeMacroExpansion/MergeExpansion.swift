/// The method that merges field by field, where a property has a rule.
struct MergeExpansion {
  let model: DeclarationModel

  func members() -> [String] {
    guard model.fields.contains(where: { $0.mergeRule != nil }) else { return [] }
    let mutating = model.kind == .object ? "" : "mutating "
    let lines = model.fields.filter { !$0.isLet && $0.strength == .strong }.map { field in
      "KeepsakeArchive.MergeFields.\(field.mergeRule ?? (field.isCoded ? "coded" : "unmarked"))(&self.\(field.name), other.\(field.name), ancestor.map { $0.\(field.name) })"
    }
    return [
      "\(model.modifier)static var archiveHasMergeRules: Bool { true }",
      """
      \(model.modifier)\(mutating)func mergeFields(from other: \(model.typeName), ancestor: \(model.typeName)?) {
      \(lines.joined(separator: "\n"))
      }
      """,
    ]
  }
}
