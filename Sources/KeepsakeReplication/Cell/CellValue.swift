/// A cell's value together with the rule that joins it. The rules are implemented in `Cell/Rules`, one file each.
package enum CellValue: Hashable, Sendable {
  case max(Scalar)
  case min(Scalar)
  case latest(Stamp, Scalar)
  case union(Set<Scalar>)
  case counter([WriterID: CounterEntry])
  case best(BestScore)
  case set(ObservedSet)
  /// By key, all of one rule. A value stays under its key until the cell is reset.
  case dictionary([Scalar: CellValue])
  /// Nil ranks below every value.
  indirect case optional(CellValue?)
  /// Values of rules that this program doesn't know.
  case later(LaterValue)

  /// The description of the value's rule.
  package var rule: CellRule {
    switch self {
    case .max: .max
    case .min: .min
    case .latest: .latest
    case .union: .union
    case .counter: .counter
    case .best: .best
    case .set: .set
    case .dictionary: .dictionary
    case .optional: .optional
    case .later: .later
    }
  }
}

extension CellRule {
  /// Every rule, by rank.
  package static let all: [CellRule] = [
    .max, .min, .latest, .union, .counter, .best, .set, .dictionary, .optional, .later,
  ]
}

extension CellValue {
  /// How deep values may be nested: a dictionary of dictionaries of plain values, and no deeper. Each level is read,
  /// joined and compared with everything above it.
  package static let maximumDepth = 2
  static let tooDeep = "values may be nested at most \(maximumDepth) levels deep"
  static let notANumber = "not a number"

  /// The rule's name for people.
  package var ruleName: String { rule.title(self) }

  /// The approximate size in bytes, for limits.
  package var size: Int { rule.size(self) }

  /// Returns the value as text for people.
  package func text(_ style: CellText) -> String { rule.text(self, style) }

  /// Returns the least value that includes both. If two rules meet under one key, the one of the higher rank wins.
  package func joined(with other: CellValue) -> CellValue {
    let (mine, others) = (rule, other.rule)
    if mine.rank == others.rank, let joined = mine.join(self, other) { return joined }
    return mine.rank > others.rank ? self : other
  }

  /// Returns why the value can't be kept or sent; nil if it can. The size is checked elsewhere.
  ///
  /// - Parameter depth: How many values it is nested in.
  package func objection(depth: Int = 0) -> String? { rule.objection(self, depth) }

  /// When a `latest` value was set; nil for other values.
  package var stamp: Stamp? {
    if case .latest(let stamp, _) = self { return stamp }
    return nil
  }

  /// The value as written by a device that had not yet caught up with its cloud: `latest` values rank below all that
  /// were set after a catch-up.
  var beforeCatchUp: CellValue {
    if case .latest(var stamp, let value) = self {
      stamp.caughtUp = false
      return .latest(stamp, value)
    }
    return rule.nested.map(self, \.beforeCatchUp)
  }

  /// The unknown rule of this value or of one inside it; nil if all are known.
  var laterRule: String? {
    if case .later(let later) = self { return later.ruleName }
    return rule.nested.values(self).lazy.compactMap(\.laterRule).min()
  }

  /// Whether it has any number of parts that games insert.
  package var isGathered: Bool {
    if case .optional(let value) = self { return value?.isGathered ?? false }
    return rule.nested.isCollection
  }

  /// Returns whether both are joined by the same rule, whatever they hold.
  func hasRule(of other: CellValue) -> Bool {
    guard rule.rank == other.rule.rank else { return false }
    // All values inside have the same rule.
    guard let mine = rule.nested.values(self).first, let others = other.rule.nested.values(other).first else {
      return true
    }
    return mine.hasRule(of: others)
  }
}

// A readable form that doesn't depend on hashing, by the rule's name: {"max": {"int": 6}}.
extension CellValue: Codable {
  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CellRule.Key.self)
    self = try CellRule.named(in: container, decoder).decode(container, decoder)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CellRule.Key.self)
    try rule.encode(self, &container)
  }
}
