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
///
/// A rule that doesn't fit the property's type meets the last overload of its function, which the compiler refuses in words that say what to do.
public enum MergeFields {
  // MARK: max and min

  /// What isn't equal to itself, such as a `Double` that isn't a number, counts as no value yet.
  public static func max<T: Comparable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    if replaces(other, value, >) { value = other }
  }

  /// What isn't equal to itself, such as a `Double` that isn't a number, counts as no value yet.
  public static func min<T: Comparable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    if replaces(other, value, <) { value = other }
  }

  /// nil counts as less than any value.
  public static func max<T: Comparable>(_ value: inout T?, _ other: T?, _ ancestor: T??) {
    guard let new = other else { return }
    if let old = value, !replaces(new, old, >) { return }
    value = new
  }

  /// nil counts as no value yet.
  public static func min<T: Comparable>(_ value: inout T?, _ other: T?, _ ancestor: T??) {
    guard let new = other else { return }
    if let old = value, !replaces(new, old, <) { return }
    value = new
  }

  /// Every comparison with what isn't a number is false: decided by those alone, each device would keep its own.
  private static func replaces<T: Comparable>(_ new: T, _ old: T, _ isBetter: (T, T) -> Bool) -> Bool {
    guard isEqualToItself(new) else { return false }
    return !isEqualToItself(old) || isBetter(new, old)
  }

  private static func isEqualToItself<T: Equatable>(_ value: T) -> Bool {
    let again = value
    return value == again
  }

  /// Refuses `@Merge(.max)` on a type that isn't Comparable when the game is compiled.
  @_disfavoredOverload
  @available(
    *, unavailable, message: "@Merge(.max) needs a Comparable type: make the property's type Comparable, or use @Merge(combining:)"
  )
  public static func max<T>(_ value: inout T, _ other: T, _ ancestor: T?) {}

  /// Refuses `@Merge(.min)` on a type that isn't Comparable when the game is compiled.
  @_disfavoredOverload
  @available(
    *, unavailable, message: "@Merge(.min) needs a Comparable type: make the property's type Comparable, or use @Merge(combining:)"
  )
  public static func min<T>(_ value: inout T, _ other: T, _ ancestor: T?) {}

  // MARK: union

  /// `@Merge(.union)` on a set: what either side has.
  public static func union<T>(_ value: inout Set<T>, _ other: Set<T>, _ ancestor: Set<T>?) {
    value.formUnion(other)
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

  /// Refuses `@Merge(.union)` on what is neither a set nor a dictionary when the game is compiled.
  @_disfavoredOverload
  @available(
    *, unavailable,
    message:
      "@Merge(.union) needs a Set or a Dictionary of archivable values: for an array whose elements are Identifiable write @Merge alone"
  )
  public static func union<T>(_ value: inout T, _ other: T, _ ancestor: T?) {}

  // MARK: counter

  /// `@Merge(.counter)`: what both sides added and took away.
  public static func counter(_ value: inout Counter, _ other: Counter, _ ancestor: Counter?) {
    value.merge(other, ancestor: ancestor)
  }

  /// Refuses `@Merge(.counter)` on a type that isn't `Counter` when the game is compiled.
  @_disfavoredOverload
  @available(*, unavailable, message: "@Merge(.counter) needs the type Counter: write 'var kills = Counter()', and 'kills += 1' as before")
  public static func counter<T>(_ value: inout T, _ other: T, _ ancestor: T?) {}

  // MARK: A function of the game's own

  /// `@Merge(combining:)`.
  public static func combine<T>(_ value: inout T, _ other: T, _ ancestor: T?, _ combine: (T, T, T?) -> T) {
    value = combine(value, other, ancestor)
  }

  /// Refuses `@Merge(combining:)` on a function of other values when the game is compiled.
  @_disfavoredOverload
  @available(
    *, unavailable,
    message:
      "@Merge(combining:) needs a function of this side's value, the other side's and the ancestor's, which is optional: (Value, Value, Value?) -> Value"
  )
  public static func combine<T, Combine>(_ value: inout T, _ other: T, _ ancestor: T?, _ combine: Combine) {}
}
