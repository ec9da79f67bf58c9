extension MergeFields {
  /// A `@Coded` property without a rule: the other side's value only if this side didn't change it.
  public static func coded<T: Equatable>(_ value: inout T, _ other: T, _ ancestor: T?) {
    if let ancestor, value == ancestor, value != other { value = other }
  }

  /// A `@Coded` property without a rule whose values can't be compared keeps this side's value.
  @_disfavoredOverload public static func coded<T>(_ value: inout T, _ other: T, _ ancestor: T?) {}
}
