/// A value whose fields merge one by one when two devices changed it.
///
/// `@Archivable` writes the conformance when a property carries `@Merge`. The rules `.max`, `.min`, `.union` and `.counter` give the
/// same result in whatever order and however often states are merged. A property without a rule keeps this value, unless only
/// the other side changed it since the ancestor; if both did, this value wins, so which side merges into which shows.
public protocol Mergeable: Archivable {
  /// Takes over what another device changed.
  ///
  /// - Parameter ancestor: The last state that both had, if it is known. Without it, unmarked properties keep this value.
  mutating func mergeFields(from other: Self, ancestor: Self?)
}

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
  /// A `Mergeable` value: its fields merge by their own rules.
  case fields
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

  /// Keys of both sides; where both have a key, the value is merged like a property without a rule.
  public static func union<K, V: Equatable>(_ value: inout [K: V], _ other: [K: V], _ ancestor: [K: V]?) {
    value.merge(other) { mine, _ in mine }
    guard let ancestor else { return }
    for (key, theirs) in other {
      if let mine = value[key], mine == ancestor[key] { value[key] = theirs }
    }
  }

  /// Keys of both sides; where both have a key, the values' own fields merge.
  public static func union<K, V: Mergeable>(_ value: inout [K: V], _ other: [K: V], _ ancestor: [K: V]?) {
    mergeValues(&value, other, ancestor)
  }

  public static func union<K, V: Mergeable & Equatable>(_ value: inout [K: V], _ other: [K: V], _ ancestor: [K: V]?) {
    mergeValues(&value, other, ancestor)
  }

  private static func mergeValues<K, V: Mergeable>(_ value: inout [K: V], _ other: [K: V], _ ancestor: [K: V]?) {
    for (key, theirs) in other {
      if value[key] == nil {
        value[key] = theirs
      } else {
        value[key]?.mergeFields(from: theirs, ancestor: ancestor?[key])
      }
    }
  }

  public static func counter(_ value: inout Counter, _ other: Counter, _ ancestor: Counter?) {
    value.merge(other, ancestor: ancestor)
  }

  public static func fields<T: Mergeable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    value.mergeFields(from: other, ancestor: ancestor)
  }

  /// A property without a rule: the other side's value only if this side didn't change it.
  public static func unmarked<T: Equatable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    if let ancestor, value == ancestor, value != other { value = other }
  }

  /// A property without a rule whose values can't be compared keeps this side's value.
  public static func unmarked<T>(_ value: inout T, _ other: T, _ ancestor: T?) {}
}
