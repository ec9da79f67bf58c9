/// Generates the method that merges field by field, if a property has a rule or its type may have some.
struct MergeExpansion {
  let model: DeclarationModel

  private var merged: [StoredField] { model.fields.filter { !$0.isLet && $0.strength == .strong } }

  /// Generates the property that states whether there are rules. For a struct it goes into the extension: a property
  /// can't be conditional on what a generic parameter conforms to.
  func statement() -> [String] {
    hasRules.map { ["\(model.modifier)static var archiveHasMergeRules: Bool { \($0) }"] } ?? []
  }

  /// Generates the merging itself. It goes into the type: in an extension, a method that names the type can't be a
  /// member of a private one.
  func method() -> [String] {
    guard hasRules != nil else { return [] }
    return [model.kind == .object ? object() : structure()]
  }

  /// The expression for whether there are rules; nil if there can be none, or after an error. A property's type is
  /// queried only if its name could be that of a type with rules; in a class that others may inherit from, it never is.
  private var hasRules: String? {
    guard model.isValid else { return nil }
    if model.fields.contains(where: { $0.merge != nil }) { return "true" }
    guard model.kind != .object || model.isFinal, !model.hasMergeFields else { return nil }
    // An extension of a nested type doesn't see the names that the types of its properties have there; a closure that
    // is never called does.
    let questions = merged.filter(\.mayHaveMergeRules).map { field in
      "KeepsakeArchive.MergeFields.hasRules({ (value: \(model.typeName)) in value.\(field.name) })"
    }
    return questions.isEmpty ? nil : questions.joined(separator: " || ")
  }

  private func structure() -> String {
    """
    \(model.modifier)mutating func mergeFields(from other: \(model.typeName), ancestor: \(model.typeName)?)\
    \(model.whereClause) {
    \(merged.map { call($0, on: "self.\($0.name)") }.joined(separator: "\n"))
    }
    """
  }

  /// Merges a copy of each property: comparing what it refers to may lead back to this object, which must not be in the
  /// middle of a change then.
  private func object() -> String {
    let lines = merged.map { field in
      """
      do {
      var value = self.\(field.name)
      \(call(field, on: "value"))
      self.\(field.name) = value
      }
      """
    }
    return """
      \(model.modifier)func mergeFields(from other: \(model.typeName), ancestor: \(model.typeName)?) {
      KeepsakeArchive.MergeFields.object(self, other) {
      \(lines.joined(separator: "\n"))
      }
      }
      """
  }

  /// Only a rule may not fit the type of the property, so only there can the compiler find an error.
  private func call(_ field: StoredField, on value: String) -> String {
    let call = unplacedCall(field, on: value)
    return field.merge == nil ? call : field.position.placed(call)
  }

  private func unplacedCall(_ field: StoredField, on value: String) -> String {
    let sides = "&\(value), other.\(field.name), ancestor.map { $0.\(field.name) }"
    let name: String
    switch field.merge {
    case .rule(let rule): name = rule
    case .fields: name = "fields"
    case .combining(let function): return "KeepsakeArchive.MergeFields.combine(\(sides), \(function))"
    case nil: name = field.isCoded ? "coded" : "unmarked"
    }
    return "KeepsakeArchive.MergeFields.\(name)(\(sides))"
  }
}
