// Values that hold values: dictionaries and optionals.
extension CellValue {
  /// How deep values may stand in each other: a dictionary of dictionaries of plain values, and no more. Each level is read, joined and
  /// compared with everything above it.
  package static let maximumDepth = 2

  /// The value as a device wrote it that had not yet caught up with its cloud: `latest` values rank below all that were set after that.
  var beforeCatchUp: CellValue {
    switch self {
    case .latest(var stamp, let value):
      stamp.caughtUp = false
      return .latest(stamp, value)
    case .dictionary(let entries): return .dictionary(entries.mapValues(\.beforeCatchUp))
    case .optional(let value): return .optional(value?.beforeCatchUp)
    case .max, .min, .union, .counter, .best, .set, .later: return self
    }
  }

  /// The rule that isn't known here of this value or one that stands in it; nil if all are.
  var laterRule: String? {
    switch self {
    case .later(let later): later.ruleName
    case .dictionary(let entries): entries.values.lazy.compactMap(\.laterRule).min()
    case .optional(let value): value?.laterRule
    case .max, .min, .latest, .union, .counter, .best, .set: nil
    }
  }

  /// Whether it has any number of parts that games put in.
  package var isGathered: Bool {
    switch self {
    case .union, .set, .dictionary: true
    case .optional(let value): value?.isGathered ?? false
    case .max, .min, .latest, .counter, .best, .later: false
    }
  }

  /// Whether both are joined by the same rule, whatever they hold.
  func hasRule(of other: CellValue) -> Bool {
    switch (self, other) {
    case (.dictionary(let left), .dictionary(let right)):
      guard let left = left.values.first, let right = right.values.first else { return true }
      return left.hasRule(of: right)
    case (.optional(let left), .optional(let right)):
      guard let left, let right else { return true }
      return left.hasRule(of: right)
    default: return ruleRank == other.ruleRank
    }
  }

  /// Why it can't be kept or sent; nil if it can. The size is looked at elsewhere.
  ///
  /// - Parameter depth: How many values it stands in.
  package func objection(depth: Int = 0) -> String? {
    switch self {
    case .max(let value), .min(let value): return value.isOrdered ? nil : Self.notANumber
    case .latest(let stamp, let value):
      guard value.isOrdered else { return Self.notANumber }
      // The magnitude of the smallest number doesn't fit into its type.
      let isInRange = stamp.milliseconds.magnitude <= Stamp.maximumMilliseconds.magnitude
      return isInRange ? nil : "the time of writing is out of range"
    case .union(let values): return values.allSatisfy(\.isOrdered) ? nil : Self.notANumber
    case .counter: return nil
    case .best(let best):
      // It is taken back by generations, and those are a whole cell's.
      return depth == 0 ? best.objection : "a best score can't stand in another value"
    case .set(let set): return set.objection
    case .dictionary(let entries):
      guard depth < Self.maximumDepth else { return Self.tooDeep }
      for (key, value) in entries {
        guard key.isOrdered else { return Self.notANumber }
        if let objection = value.objection(depth: depth + 1) { return objection }
      }
      return nil
    case .optional(let value):
      guard depth < Self.maximumDepth else { return Self.tooDeep }
      return value?.objection(depth: depth + 1)
    case .later(let later): return later.objection
    }
  }

  private static let notANumber = "not a number"
  static let tooDeep = "values stand in each other at most \(maximumDepth) deep"
}
