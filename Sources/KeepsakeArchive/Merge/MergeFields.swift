/// How a property is merged: the argument of `@Merge`.
public enum MergeRule: Sendable {
  /// The greater value wins.
  case max
  /// The lesser value wins.
  case min
  /// Keeps what is in either set or dictionary. A merge never removes anything.
  case union
  /// Adds up both sides' changes of a `Counter`.
  case counter
}

/// The functions that generated merges call, one per rule.
///
/// If a rule doesn't fit the property's type, the last overload of its function is chosen, and the compiler rejects it
/// with a message that says what to do.
public enum MergeFields {
  // MARK: max and min

  /// Takes the greater value. A value that isn't equal to itself, such as a `Double` that is NaN, counts as no value
  /// yet.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: Not used: the rule needs none.
  public static func max<T: Comparable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    if replaces(other, value, >) { value = other }
  }

  /// Takes the lesser value. A value that isn't equal to itself, such as a `Double` that is NaN, counts as no value
  /// yet.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: Not used: the rule needs none.
  public static func min<T: Comparable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    if replaces(other, value, <) { value = other }
  }

  /// Takes the greater value. nil counts as less than any value.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: Not used: the rule needs none.
  public static func max<T: Comparable>(_ value: inout T?, _ other: T?, _ ancestor: T??) {
    guard let new = other else { return }
    if let old = value, !replaces(new, old, >) { return }
    value = new
  }

  /// Takes the lesser value. nil counts as no value yet.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: Not used: the rule needs none.
  public static func min<T: Comparable>(_ value: inout T?, _ other: T?, _ ancestor: T??) {
    guard let new = other else { return }
    if let old = value, !replaces(new, old, <) { return }
    value = new
  }

  /// Every comparison with NaN is false. If only comparisons decided, each device would keep its own value.
  private static func replaces<T: Comparable>(_ new: T, _ old: T, _ isBetter: (T, T) -> Bool) -> Bool {
    guard isEqualToItself(new) else { return false }
    return !isEqualToItself(old) || isBetter(new, old)
  }

  private static func isEqualToItself<T: Equatable>(_ value: T) -> Bool {
    let again = value
    return value == again
  }

  /// Rejects `@Merge(.max)` at compile time on a type that isn't `Comparable`.
  @_disfavoredOverload
  @available(
    *, unavailable,
    message: "@Merge(.max) needs a Comparable type: make the property's type Comparable, or use @Merge(combining:)"
  )
  public static func max<T>(_ value: inout T, _ other: T, _ ancestor: T?) {}

  /// Rejects `@Merge(.min)` at compile time on a type that isn't `Comparable`.
  @_disfavoredOverload
  @available(
    *, unavailable,
    message: "@Merge(.min) needs a Comparable type: make the property's type Comparable, or use @Merge(combining:)"
  )
  public static func min<T>(_ value: inout T, _ other: T, _ ancestor: T?) {}

  // MARK: union

  /// `@Merge(.union)` on a set: keeps the elements of either side.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: Not used: the rule needs none.
  public static func union<T>(_ value: inout Set<T>, _ other: Set<T>, _ ancestor: Set<T>?) {
    value.formUnion(other)
  }

  /// `@Merge(.union)` on a dictionary: keeps the keys of either side. If both have a key, its values are merged like
  /// properties without a rule.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common; nil if it isn't known. Needed only for values under
  ///     keys that both sides have.
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

  /// Rejects `@Merge(.union)` at compile time on a type that is neither a set nor a dictionary.
  @_disfavoredOverload
  @available(
    *, unavailable,
    message: """
      @Merge(.union) needs a Set or a Dictionary of archivable values: for an array whose elements are Identifiable \
      write @Merge alone
      """
  )
  public static func union<T>(_ value: inout T, _ other: T, _ ancestor: T?) {}

  // MARK: counter

  /// `@Merge(.counter)`: applies what both sides added and subtracted.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common; nil if it isn't known.
  public static func counter(_ value: inout Counter, _ other: Counter, _ ancestor: Counter?) {
    value.merge(other, ancestor: ancestor)
  }

  /// Rejects `@Merge(.counter)` at compile time on a type that isn't `Counter`.
  @_disfavoredOverload
  @available(
    *, unavailable,
    message: "@Merge(.counter) needs the type Counter: write 'var kills = Counter()', and 'kills += 1' as before"
  )
  public static func counter<T>(_ value: inout T, _ other: T, _ ancestor: T?) {}

  // MARK: A function of the game's own

  /// `@Merge(combining:)`: merges with a function of the game.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common; nil if it isn't known.
  ///   - combine: The game's function. Receives this side's value, the other side's and the ancestor's, and returns the
  ///     merged one.
  public static func combine<T>(_ value: inout T, _ other: T, _ ancestor: T?, _ combine: (T, T, T?) -> T) {
    value = combine(value, other, ancestor)
  }

  /// Rejects `@Merge(combining:)` at compile time with a function of other types.
  @_disfavoredOverload
  @available(
    *, unavailable,
    message: """
      @Merge(combining:) needs a function of this side's value, the other side's and the ancestor's, which is \
      optional: (Value, Value, Value?) -> Value
      """
  )
  public static func combine<T, Combine>(_ value: inout T, _ other: T, _ ancestor: T?, _ combine: Combine) {}
}
