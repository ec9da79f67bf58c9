import KeepsakeReplication

/// How two devices' values of a key become one: for the values within a dictionary or an optional. A plain key has its rule by the way in
/// which it is made (`ProgressKey.max`, `.union` and the others).
///
///     extension ProgressKey<[String: Int]> {
///       static var bestTimes: Self { .dictionary("best times", of: .min) }
///       static var defeated: Self { .dictionary("defeated", of: .counter) }
///     }
///     extension ProgressKey<Int?> { static var firstWin: Self { .optional("first win", of: .min) } }
public struct ProgressRule<Value: Sendable & Hashable>: Sendable {
  let kind: ProgressKind
  /// What has to be done to a cell so that it takes the value in.
  let change: @Sendable (Value) -> CellDraft.Change
  /// The value of a cell; nil if it holds another kind.
  let value: @Sendable (CellValue) -> Value?
}

extension ProgressRule where Value: ProgressValue {
  /// The greatest value ever recorded.
  public static var max: Self { scalar(.max) }

  /// The smallest value ever recorded.
  public static var min: Self { scalar(.min) }

  /// The value set last.
  public static var latest: Self { scalar(.latest) }

  private static func scalar(_ kind: ProgressKind) -> Self {
    Self(
      kind: kind,
      change: {
        let scalar = $0.progressScalar.scalar
        return kind == .max ? .max(scalar) : kind == .min ? .min(scalar) : .set(scalar)
      },
      value: { cell in
        switch cell {
        case .max(let scalar), .min(let scalar), .latest(_, let scalar): Value(progressScalar: ProgressScalar(scalar))
        case .union, .counter, .best, .set, .dictionary, .optional, .later: nil
        }
      })
  }
}

extension ProgressRule {
  /// A set that only grows.
  public static func union<Element: ProgressValue>() -> Self where Value == Set<Element> {
    Self(
      kind: .union, change: { .insert(Set($0.map(\.element))) },
      value: { cell in
        guard case .union(let scalars) = cell else { return nil }
        return Set(scalars.compactMap { Element(progressScalar: ProgressScalar($0)) })
      })
  }

  /// A set whose elements can be taken out again.
  public static func set<Element: ProgressValue>() -> Self where Value == Set<Element> {
    Self(
      kind: .set, change: { .insertElements(Set($0.map(\.element))) },
      value: { cell in
        guard case .set(let set) = cell else { return nil }
        return Set(set.elements.compactMap { Element(progressScalar: ProgressScalar($0)) })
      })
  }

  static func dictionary<Key: ProgressValue, Entry>(of rule: ProgressRule<Entry>) -> Self where Value == [Key: Entry] {
    Self(
      kind: .dictionary(rule.kind),
      change: { values in
        .entries(Dictionary(values.map { ($0.key.element, rule.change($0.value)) }, uniquingKeysWith: { first, _ in first }))
      },
      value: { cell in
        guard case .dictionary(let entries) = cell else { return nil }
        // Two spellings of one name, as another program may write them, are one key here.
        var cells: [Key: CellValue] = [:]
        for (scalar, cell) in entries {
          guard let key = Key(progressScalar: ProgressScalar(scalar)) else { continue }
          cells[key] = cells[key]?.joined(with: cell) ?? cell
        }
        return cells.compactMapValues(rule.value)
      })
  }

  static func optional<Wrapped>(of rule: ProgressRule<Wrapped>) -> Self where Value == Wrapped? {
    Self(
      kind: .optional(rule.kind), change: { .optional($0.map(rule.change)) },
      value: { cell in
        guard case .optional(let value) = cell else { return nil }
        return .some(value.flatMap(rule.value))
      })
  }
}

extension ProgressRule where Value == Int {
  /// A count that every device adds to.
  public static var counter: Self {
    Self(
      kind: .counter,
      change: { .add(plus: $0 > 0 ? UInt64($0.magnitude) : 0, minus: $0 < 0 ? UInt64($0.magnitude) : 0) },
      value: { cell in
        guard case .counter(let entries) = cell else { return nil }
        return Int(clamping: CellValue.total(of: entries))
      })
  }
}

extension ProgressValue {
  /// As an element of a set, or a key of a dictionary: text in its one spelling, so that what one device puts in another can take out.
  var element: Scalar {
    if case .string(let text) = progressScalar.scalar { return .string(text.canonical) }
    return progressScalar.scalar
  }
}
