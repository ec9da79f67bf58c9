/// The method that merges field by field.
struct MergeExpansion {
  let model: DeclarationModel

  func method() -> String {
    let mutating = model.kind == .object ? "" : "mutating "
    let lines = model.fields.filter { !$0.isLet && $0.strength == .strong }.map { field in
      "KeepsakeArchive.MergeFields.\(field.mergeRule ?? "unmarked")(&self.\(field.name), other.\(field.name), ancestor?.\(field.name))"
    }
    return """
      \(model.modifier)\(mutating)func mergeFields(from other: \(selfType), ancestor: \(selfType)?) {
      \(lines.joined(separator: "\n"))
      }
      """
  }

  private var selfType: String { model.kind == .object ? model.name : "Self" }
}
