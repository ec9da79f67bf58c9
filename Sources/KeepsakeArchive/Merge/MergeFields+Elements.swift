// `@Merge` without a rule: what holds other values is merged value by value, against the ancestor. What was added on either side stays; what
// was removed on one side and is unchanged on the other goes; what was changed on one side and removed on the other stays.

extension MergeFields {
  /// A value that isn't a collection: as without `@Merge`.
  public static func fields<T: Archivable>(_ value: inout T, _ other: T, _ ancestor: T?) { unmarked(&value, other, ancestor) }

  /// Elements by their ids.
  public static func fields<E: Archivable & Identifiable>(_ value: inout [E], _ other: [E], _ ancestor: [E]?) {
    guard E.ID.self != ObjectIdentifier.self else { return whole(&value, other, ancestor) }
    value = ElementMerge(mine: value, theirs: other, ancestor: ancestor).result()
  }

  /// Takes an array as a whole, because its elements have no ids.
  @available(
    *, deprecated,
    message: "@Merge on this array takes it as a whole, because its elements aren't Identifiable: give them an id, or remove @Merge"
  )
  public static func fields<E: Archivable>(_ value: inout [E], _ other: [E], _ ancestor: [E]?) { whole(&value, other, ancestor) }

  /// Takes an array as a whole, because its objects have no saved ids.
  @available(
    *, deprecated,
    message: "@Merge on this array takes it as a whole, because its objects are identified by their addresses: give their class a saved id"
  )
  public static func fields<E: Archivable & Identifiable>(
    _ value: inout [E], _ other: [E], _ ancestor: [E]?
  ) where E.ID == ObjectIdentifier { whole(&value, other, ancestor) }

  /// Takes an optional array as a whole, because its elements have no ids.
  @available(
    *, deprecated,
    message: "@Merge on this array takes it as a whole, because its elements aren't Identifiable: give them an id, or remove @Merge"
  )
  public static func fields<E: Archivable>(_ value: inout [E]?, _ other: [E]?, _ ancestor: [E]??) { whole(&value, other, ancestor) }

  /// Values by their keys; what both sides have merges like a property without a rule.
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

  /// Elements that either side added or removed since the ancestor.
  public static func fields<T: Archivable>(_ value: inout Set<T>, _ other: Set<T>, _ ancestor: Set<T>?) {
    let old = ancestor ?? []
    let removedThere = old.subtracting(other)
    value.formUnion(other.subtracting(old))
    value.subtract(removedThere)
  }

  // nil counts as an empty collection, which becomes nil again.

  /// Elements by their ids; nil counts as an empty collection, which becomes nil again.
  public static func fields<E: Archivable & Identifiable>(_ value: inout [E]?, _ other: [E]?, _ ancestor: [E]??) {
    var merged = value ?? []
    fields(&merged, other ?? [], ancestor.map { $0 ?? [] })
    value = merged.isEmpty && (value == nil || other == nil) ? nil : merged
  }

  /// Values by their keys; nil counts as an empty collection, which becomes nil again.
  public static func fields<K: Archivable, V: Archivable>(_ value: inout [K: V]?, _ other: [K: V]?, _ ancestor: [K: V]??) {
    var merged = value ?? [:]
    fields(&merged, other ?? [:], ancestor.map { $0 ?? [:] })
    value = merged.isEmpty && (value == nil || other == nil) ? nil : merged
  }

  /// Elements that either side added or removed since the ancestor; nil counts as an empty collection, which becomes nil again.
  public static func fields<T: Archivable>(_ value: inout Set<T>?, _ other: Set<T>?, _ ancestor: Set<T>??) {
    var merged = value ?? []
    fields(&merged, other ?? [], ancestor.map { $0 ?? [] })
    value = merged.isEmpty && (value == nil || other == nil) ? nil : merged
  }
}
