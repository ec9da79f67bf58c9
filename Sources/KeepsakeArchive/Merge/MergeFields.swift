/// How a property is merged: the argument of `@Merge`.
public enum MergeRule: Sendable {
  /// The greater value stays.
  case max
  /// The lesser value stays.
  case min
  /// What is in either set or dictionary stays. Nothing is ever taken out by a merge.
  case union
  /// A `Counter`: both sides' changes add up.
  case counter
}

/// What generated merges call; one function a rule.
public enum MergeFields {
  public static func max<T: Comparable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    if other > value { value = other }
  }

  public static func min<T: Comparable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    if other < value { value = other }
  }

  /// nil counts as less than any value.
  public static func max<T: Comparable>(_ value: inout T?, _ other: T?, _ ancestor: T??) {
    guard let new = other else { return }
    if let old = value, old >= new { return }
    value = new
  }

  /// nil counts as no value yet.
  public static func min<T: Comparable>(_ value: inout T?, _ other: T?, _ ancestor: T??) {
    guard let new = other else { return }
    if let old = value, old <= new { return }
    value = new
  }

  public static func union<T>(_ value: inout Set<T>, _ other: Set<T>, _ ancestor: Set<T>?) {
    value.formUnion(other)
  }

  /// Keys of both sides; where both have a key, the values merge like properties without a rule.
  public static func union<K, V: Archivable & Equatable>(_ value: inout [K: V], _ other: [K: V], _ ancestor: [K: V]?) {
    for (key, theirs) in other {
      guard var mine = value[key] else {
        value[key] = theirs
        continue
      }
      unmarked(&mine, theirs, ancestor?[key])
      value[key] = mine
    }
  }

  /// Keys of both sides; where both have a key, the values merge like properties without a rule.
  public static func union<K, V: Archivable>(_ value: inout [K: V], _ other: [K: V], _ ancestor: [K: V]?) {
    for (key, theirs) in other {
      guard var mine = value[key] else {
        value[key] = theirs
        continue
      }
      unmarked(&mine, theirs, ancestor?[key])
      value[key] = mine
    }
  }

  public static func counter(_ value: inout Counter, _ other: Counter, _ ancestor: Counter?) {
    value.merge(other, ancestor: ancestor)
  }

  /// A property without a rule: by its own fields' rules, if it has any; else the other side's value only if this side didn't
  /// change it.
  public static func unmarked<T: Archivable & Equatable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    if T.archiveHasMergeRules {
      value.mergeFields(from: other, ancestor: ancestor)
    } else if let ancestor, value == ancestor, value != other {
      value = other
    }
  }

  /// A property without a rule whose values can't be compared keeps this side's value.
  public static func unmarked<T: Archivable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    if T.archiveHasMergeRules { value.mergeFields(from: other, ancestor: ancestor) }
  }
}
