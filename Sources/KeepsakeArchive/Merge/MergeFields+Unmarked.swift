import Foundation

extension MergeFields {
  /// Merges a property without a rule: by the rules of its type's fields, if there are any; otherwise as a whole,
  /// taking the other side's value only if this side didn't change its own.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common; nil if it isn't known.
  public static func unmarked<T: Archivable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    guard T.archiveHasMergeRules else { return whole(&value, other, ancestor) }
    var base = ancestor
    if let mine = identity(of: value) {
      // The two sides hold different things, such as another sword in the same hand: a mix of both would be neither.
      if let theirs = identity(of: other), mine != theirs { return whole(&value, other, ancestor) }
      if let old = ancestor, let before = identity(of: old), before != mine { base = nil }
    }
    value.mergeFields(from: other, ancestor: base)
  }

  /// Merges a `@Coded` property without a rule, as a whole.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common; nil if it isn't known.
  public static func coded<T: Codable & Equatable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    if let ancestor, value == ancestor, value != other { value = other }
  }

  /// Merges a `@Coded` property without a rule whose values can't be compared: as a whole, by comparing their saved
  /// forms.
  ///
  /// - Parameters:
  ///   - value: This side's value, which becomes the merged one.
  ///   - other: The other side's value.
  ///   - ancestor: The last value that both sides had in common; nil if it isn't known.
  @_disfavoredOverload public static func coded<T: Codable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    var coded = Coded(value)
    whole(&coded, Coded(other), ancestor.map { Coded($0) })
    value = coded.value
  }

  /// Takes the other side's value if only that side changed it.
  static func whole<T: Archivable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    guard let ancestor, let old = saved(ancestor), let mine = saved(value), mine == old else { return }
    // If neither side changed the value, it isn't replaced: of equal objects, this side's are kept.
    if let theirs = saved(other), theirs != old { value = other }
  }

  /// Returns whether a save of both values would be the same. Doesn't use `==`, which may compare only a name.
  static func isSame<T: Archivable>(_ left: T, _ right: T) -> Bool {
    guard let left = saved(left), let right = saved(right) else { return false }
    return left == right
  }

  /// Returns the archive of the value alone, with everything reachable from it. nil if it can't be archived alone,
  /// because it has an `unowned` reference to something outside: then there is no way to find out whether it changed,
  /// and it counts as changed on this side.
  private static func saved<T: Archivable>(_ value: T) -> Data? { try? Archive.encode(value) }

  /// The `id` of an `Identifiable` value, also inside an optional. An object's address doesn't count, because it
  /// differs in every process.
  private static func identity<T>(of value: T) -> AnyHashable? {
    func id<Value: Identifiable>(_ value: Value) -> AnyHashable? {
      Value.ID.self == ObjectIdentifier.self ? nil : AnyHashable(value.id)
    }
    return (value as? any Identifiable).flatMap { id($0) }
  }
}
