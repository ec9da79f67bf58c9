import KeepsakeReplication

/// How the values of two devices are joined under one key.
///
/// ```swift
/// extension ProgressKey<[String: Int]> {
///   static let bestTimes = ProgressKey("best times", rule: .dictionary(of: .min))
///   static let defeated = ProgressKey("defeated", rule: .dictionary(of: .counter))
/// }
/// extension ProgressKey<Int?> { static let firstWin = ProgressKey("first win", rule: .optional(of: .min)) }
/// ```
public struct ProgressRule<Value: Sendable & Hashable>: Sendable {
  /// The rule's name, as errors show it.
  let name: String
  /// What games can do with a value of this rule, or with one inside it.
  let verbs: Set<ProgressVerb>
  /// Returns the change that puts a value into a cell.
  let change: @Sendable (Value) -> CellDraft.Change
  /// Returns the value of a cell; nil if the cell holds another kind.
  let value: @Sendable (CellValue) -> Value?
}

extension ProgressRule where Value: ProgressValue {
  /// The greatest value ever recorded on any device, such as a level reached.
  public static var max: Self { scalar(.max, .record) { .max($0) } }

  /// The smallest value ever recorded on any device, such as a fastest time.
  public static var min: Self { scalar(.min, .record) { .min($0) } }

  /// The value that was set last. Only for values without an order, such as a name or a chosen hat.
  public static var latest: Self { scalar(.latest, .set) { .set($0) } }

  private static func scalar(
    _ rule: CellRule, _ verb: ProgressVerb, _ change: @escaping @Sendable (Scalar) -> CellDraft.Change
  ) -> Self {
    Self(
      name: rule.name, verbs: [verb], change: { change($0.progressScalar.scalar) },
      value: { cell in
        switch cell {
        case .max(let scalar), .min(let scalar), .latest(_, let scalar): Value(progressScalar: ProgressScalar(scalar))
        default: nil
        }
      })
  }
}

extension ProgressRule where Value: SetAlgebra & Sequence, Value.Element: ProgressValue {
  /// A set that only grows: badges, completed levels, hints seen.
  public static var union: Self {
    Self(
      name: CellRule.union.name, verbs: [.insert], change: { .insert(Set($0.map(\.element))) },
      value: { cell in
        guard case .union(let scalars) = cell else { return nil }
        return Value(scalars.compactMap { Value.Element(progressScalar: ProgressScalar($0)) })
      })
  }

  /// A set whose elements can be removed: favourites, equipment, current quests.
  ///
  /// Removing an element removes it on every device, unless another device has inserted it in the meantime: an
  /// insertion wins over a removal that didn't know of it. Inserting an element that is already in the set changes
  /// nothing.
  public static var set: Self {
    Self(
      name: CellRule.set.name, verbs: [.insert, .remove], change: { .insertElements(Set($0.map(\.element))) },
      value: { cell in
        guard case .set(let set) = cell else { return nil }
        return Value(set.elements.compactMap { Value.Element(progressScalar: ProgressScalar($0)) })
      })
  }
}

extension ProgressRule {
  /// Values by name, each joined by the same rule: the best time of each level, how often each enemy was met.
  ///
  /// ```swift
  /// try game.progress.record(61, at: "cave", for: .bestTimes)
  /// game.progress[.bestTimes, at: "cave"]
  /// ```
  ///
  /// A value stays until the whole key is reset.
  ///
  /// - Parameter rule: The rule for each value.
  /// - Returns: The rule for the dictionary.
  public static func dictionary<Key: ProgressValue, Entry>(
    of rule: ProgressRule<Entry>
  ) -> Self where Value == [Key: Entry] {
    Self(
      name: "dictionary of \(rule.name)", verbs: rule.verbs,
      change: { values in
        .entries(
          Dictionary(values.map { ($0.key.element, rule.change($0.value)) }, uniquingKeysWith: { first, _ in first }))
      },
      value: { cell in
        guard case .dictionary(let entries) = cell else { return nil }
        // Two spellings of one name, which another program may write, are one key here.
        var cells: [Key: CellValue] = [:]
        for (scalar, cell) in entries {
          guard let key = Key(progressScalar: ProgressScalar(scalar)) else { continue }
          cells[key] = cells[key]?.joined(with: cell) ?? cell
        }
        return cells.compactMapValues(rule.value)
      })
  }

  /// A value that is nil until something is recorded, and after a reset to nil: when the game was first won. Setting
  /// nil otherwise has no effect.
  ///
  /// - Parameter rule: The rule for the value.
  /// - Returns: The rule for the optional.
  public static func optional<Wrapped: ProgressValue>(
    of rule: ProgressRule<Wrapped>
  ) -> Self where Value == Wrapped? {
    Self(
      name: "optional \(rule.name)", verbs: rule.verbs, change: { .optional($0.map(rule.change)) },
      value: { cell in
        guard case .optional(let value) = cell else { return nil }
        return .some(value.flatMap(rule.value))
      })
  }
}

extension ProgressRule where Value == Int {
  /// A count that every device adds to: enemies met, coins found. It can also go down, but has no limits: keep money in
  /// the wallet.
  public static var counter: Self {
    Self(
      name: CellRule.counter.name, verbs: [.add],
      change: { .add(plus: $0 > 0 ? UInt64($0.magnitude) : 0, minus: $0 < 0 ? UInt64($0.magnitude) : 0) },
      value: { cell in
        guard case .counter(let entries) = cell else { return nil }
        return Int(clamping: CellValue.total(of: entries))
      })
  }
}

extension ProgressValue {
  /// The value as an element of a set or a key of a dictionary. Text is normalized to one spelling, so that one device
  /// can remove what another inserted.
  var element: Scalar {
    if case .string(let text) = progressScalar.scalar { return .string(text.canonical) }
    return progressScalar.scalar
  }
}
