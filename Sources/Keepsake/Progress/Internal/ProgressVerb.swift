import KeepsakeReplication

/// The rule of a key, as far as it decides what can be done to it.
indirect enum ProgressKind: Sendable, Hashable, CustomStringConvertible {
  case max, min, latest, union, set, counter
  case dictionary(ProgressKind)
  case optional(ProgressKind)

  var description: String {
    switch self {
    case .max: "max"
    case .min: "min"
    case .latest: "latest"
    case .union: "union"
    case .set: "set"
    case .counter: "counter"
    case .dictionary(let kind): "dictionary of \(kind)"
    case .optional(let kind): "optional \(kind)"
    }
  }

  /// The rule of what is inside.
  var innermost: ProgressKind {
    switch self {
    case .dictionary(let kind), .optional(let kind): kind.innermost
    case .max, .min, .latest, .union, .set, .counter: self
    }
  }
}

/// What a game can do to a key, and by which rules.
enum ProgressVerb: String {
  case record, set, add, insert, remove

  private func takes(_ kind: ProgressKind) -> Bool {
    switch (self, kind) {
    case (.record, .max), (.record, .min), (.set, .latest), (.add, .counter), (.insert, .union), (.insert, .set), (.remove, .set): true
    default: false
    }
  }

  private var rules: String {
    switch self {
    case .record: "max or min"
    case .set: "latest; a join never sets"
    case .add: "counter"
    case .insert: "union or set"
    case .remove: "set; what a union holds stays"
    }
  }

  /// Throws `GameDataError` where the key's rule, or the one inside of its dictionary or optional, is another.
  func check<Value>(_ key: ProgressKey<Value>) throws {
    guard !takes(key.rule.kind.innermost) else { return }
    throw GameDataError(.misuse, "`\(rawValue)` is for keys with the rule \(rules); \"\(key.name)\" has \(key.rule.kind)")
  }
}

extension ProgressKey {
  /// What makes the key's cell take `value` in.
  func draft(_ verb: ProgressVerb, _ value: Value) throws -> CellDraft {
    try verb.check(self)
    return CellDraft(key, rule.change(value), outranks: earlierKeys)
  }

  /// What makes it empty, and `value` of that. For any rule.
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
