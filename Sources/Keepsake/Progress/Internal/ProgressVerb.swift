import KeepsakeReplication

/// An operation that a game can apply to a key.
enum ProgressVerb: String, CaseIterable {
  case record, set, add, insert, remove

  /// Throws `GameDataError` if the key's rule, or the one inside its dictionary or optional, doesn't support the
  /// operation.
  func check<Value>(_ key: ProgressKey<Value>) throws {
    let verbs = key.rule.verbs
    guard !verbs.contains(self) else { return }
    let usable = Self.allCases.filter(verbs.contains).map { "`\($0.rawValue)`" }.joined(separator: " or ")
    throw GameDataError(
      .misuse, "`\(rawValue)` can't be used with \"\(key.name)\", whose rule is \(key.rule.name): use \(usable)")
  }
}

extension ProgressKey {
  /// Returns the draft that puts `value` into the key's cell.
  func draft(_ verb: ProgressVerb, _ value: Value) throws -> CellDraft {
    try verb.check(self)
    return CellDraft(key, rule.change(value), outranks: earlierKeys)
  }

  /// Returns the draft that empties the key's cell and then puts `value` into it. Works for any rule.
  func resetting(to value: Value) -> CellDraft { CellDraft(key, .reset(rule.change(value))) }

  func removing<Element: ProgressValue>(_ elements: Set<Element>) throws -> CellDraft where Value == Set<Element> {
    try ProgressVerb.remove.check(self)
    return CellDraft(key, .removeElements(Set(elements.map(\.element))))
  }

  func removing<Key: ProgressValue, Element: ProgressValue>(
    _ elements: Set<Element>, at entry: Key
  ) throws -> CellDraft where Value == [Key: Set<Element>] {
    try ProgressVerb.remove.check(self)
    return CellDraft(key, .entries([entry.element: .removeElements(Set(elements.map(\.element)))]))
  }
}
