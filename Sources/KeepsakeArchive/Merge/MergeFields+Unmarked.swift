import Foundation

extension MergeFields {
  /// A property without a rule: by the rules of its type's own fields, if it has any; else as a whole, the other side's value only if this side
  /// didn't change it.
  public static func unmarked<T: Archivable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    guard T.archiveHasMergeRules else { return whole(&value, other, ancestor) }
    var base = ancestor
    if let mine = identity(of: value) {
      // Another sword in the same hand: half of each would be neither.
      if let theirs = identity(of: other), mine != theirs { return whole(&value, other, ancestor) }
      if let old = ancestor, let before = identity(of: old), before != mine { base = nil }
    }
    value.mergeFields(from: other, ancestor: base)
  }

  /// A `@Coded` property without a rule: as a whole.
  public static func coded<T: Codable & Equatable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    if let ancestor, value == ancestor, value != other { value = other }
  }

  /// A `@Coded` property without a rule whose values can't be compared: as a whole, by what is saved of it.
  @_disfavoredOverload public static func coded<T: Codable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    var coded = Coded(value)
    whole(&coded, Coded(other), ancestor.map { Coded($0) })
    value = coded.value
  }

  /// Takes the other side's value if only that side changed it.
  static func whole<T: Archivable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    guard let ancestor, let old = saved(ancestor), let mine = saved(value), mine == old else { return }
    // Not if both are as they were: of equal objects this side's stay.
    if let theirs = saved(other), theirs != old { value = other }
  }

  /// Whether a save would hold the same for both. What `==` says isn't asked: it may look at a name alone.
  static func isSame<T: Archivable>(_ left: T, _ right: T) -> Bool {
    guard let left = saved(left), let right = saved(right) else { return false }
    return left == right
  }

  /// What stands in an archive for the value alone, with all that it leads to. nil if it can't stand alone, because it has an `unowned` reference to
  /// something outside: then nobody can tell whether it changed, and it counts as changed on this side.
  private static func saved<T: Archivable>(_ value: T) -> Data? { try? Archive.encode(value) }

  /// The `id` of an `Identifiable` value, also within an optional. An object's address is none: it is another one in every process.
  private static func identity<T>(of value: T) -> AnyHashable? {
    func id<Value: Identifiable>(_ value: Value) -> AnyHashable? {
      Value.ID.self == ObjectIdentifier.self ? nil : AnyHashable(value.id)
    }
    return (value as? any Identifiable).flatMap { id($0) }
  }
}
