// `@Merge` without a rule: collections are merged element by element, against the ancestor. What was added on either
// side stays. What was removed on one side and is unchanged on the other goes. What was changed on one side and removed
// on the other stays.

extension MergeFields {
  /// A value that isn't a collection: the same as without `@Merge`.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common; nil if it isn't known.
  public static func fields<T: Archivable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    unmarked(&value, other, ancestor)
  }

  /// Merges elements by their ids.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common; nil if it isn't known.
  public static func fields<E: Archivable & Identifiable>(_ value: inout [E], _ other: [E], _ ancestor: [E]?) {
    guard E.ID.self != ObjectIdentifier.self else { return whole(&value, other, ancestor) }
    value = ElementMerge(mine: value, theirs: other, ancestor: ancestor).result()
  }

  /// Merges an array as a whole, because its elements have no ids.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common; nil if it isn't known.
  @available(
    *, deprecated,
    message: """
      @Merge treats this array as a single value, because its elements aren't Identifiable: give them an id, or \
      remove @Merge
      """
  )
  public static func fields<E: Archivable>(_ value: inout [E], _ other: [E], _ ancestor: [E]?) {
    whole(&value, other, ancestor)
  }

  /// Merges an array as a whole, because its objects have no saved ids.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common; nil if it isn't known.
  @available(
    *, deprecated,
    message: """
      @Merge treats this array as a single value, because its objects are identified by their addresses: give their \
      class a saved id
      """
  )
  public static func fields<E: Archivable & Identifiable>(
    _ value: inout [E], _ other: [E], _ ancestor: [E]?
  ) where E.ID == ObjectIdentifier { whole(&value, other, ancestor) }

  /// Merges an optional array as a whole, because its elements have no ids.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common, if it is known.
  @available(
    *, deprecated,
    message: """
      @Merge treats this array as a single value, because its elements aren't Identifiable: give them an id, or \
      remove @Merge
      """
  )
  public static func fields<E: Archivable>(_ value: inout [E]?, _ other: [E]?, _ ancestor: [E]??) {
    whole(&value, other, ancestor)
  }

  /// Merges values by their keys. A value that both sides have is merged like a property without a rule.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common; nil if it isn't known.
  public static func fields<K: Archivable, V: Archivable>(_ value: inout [K: V], _ other: [K: V], _ ancestor: [K: V]?) {
    for (key, mine) in value where other[key] == nil {
      if let old = ancestor?[key], isSame(mine, old) { value[key] = nil }
    }
    for (key, theirs) in other {
      let old = ancestor?[key]
      if var mine = value[key] {
        unmarked(&mine, theirs, old)
        value[key] = mine
      } else if let old, isSame(theirs, old) {
        continue
      } else {
        value[key] = theirs
      }
    }
  }

  /// Merges sets: applies what either side added or removed since the ancestor.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common; nil if it isn't known.
  public static func fields<T: Archivable>(_ value: inout Set<T>, _ other: Set<T>, _ ancestor: Set<T>?) {
    let old = ancestor ?? []
    let removedThere = old.subtracting(other)
    value.formUnion(other.subtracting(old))
    value.subtract(removedThere)
  }

  // Below, nil counts as an empty collection. An empty result becomes nil again if either side was nil.

  /// Merges elements by their ids. nil counts as an empty collection; an empty result becomes nil again if either side
  /// was nil.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common, if it is known.
  public static func fields<E: Archivable & Identifiable>(_ value: inout [E]?, _ other: [E]?, _ ancestor: [E]??) {
    var merged = value ?? []
    fields(&merged, other ?? [], ancestor.map { $0 ?? [] })
    value = merged.isEmpty && (value == nil || other == nil) ? nil : merged
  }

  /// Merges values by their keys. nil counts as an empty collection; an empty result becomes nil again if either side
  /// was nil.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common, if it is known.
  public static func fields<K: Archivable, V: Archivable>(
    _ value: inout [K: V]?, _ other: [K: V]?, _ ancestor: [K: V]??
  ) {
    var merged = value ?? [:]
    fields(&merged, other ?? [:], ancestor.map { $0 ?? [:] })
    value = merged.isEmpty && (value == nil || other == nil) ? nil : merged
  }

  /// Merges sets: applies what either side added or removed since the ancestor. nil counts as an empty collection; an
  /// empty result becomes nil again if either side was nil.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common, if it is known.
  public static func fields<T: Archivable>(_ value: inout Set<T>?, _ other: Set<T>?, _ ancestor: Set<T>??) {
    var merged = value ?? []
    fields(&merged, other ?? [], ancestor.map { $0 ?? [] })
    value = merged.isEmpty && (value == nil || other == nil) ? nil : merged
  }
}
