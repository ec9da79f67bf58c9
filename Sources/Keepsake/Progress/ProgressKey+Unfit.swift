// What the compiler says of a type that progress can't hold, or of a rule that isn't for the key's type. The compiler
// prefers every other declaration to these.
extension ProgressKey {
  /// Not available: a key with a default holds one value.
  ///
  /// - Parameters:
  ///   - name: The key's name.
  ///   - value: The value before anything is recorded.
  ///   - rule: How the values of two devices are joined.
  @available(
    *, unavailable,
    message: """
      a progress key with a default holds one Int, Double, String, Bool or Data, or a type of your own that is a \
      ProgressValue; a Set, a dictionary or an optional of these takes no default
      """
  )
  @_disfavoredOverload
  public init(_ name: String, default value: Value, rule: ProgressRule<Value>) {
    preconditionFailure("a progress key with a default holds one ProgressValue")
  }

  /// Not available: a key without a default holds a number or several values.
  ///
  /// - Parameters:
  ///   - name: The key's name.
  ///   - rule: How the values of two devices are joined.
  @available(
    *, unavailable,
    message: """
      a progress key without a default holds an Int, or a Set, a dictionary or an optional of Int, Double, String, \
      Bool, Data or a type of your own that is a ProgressValue; give any other of these types a default
      """
  )
  @_disfavoredOverload
  public init(_ name: String, rule: ProgressRule<Value>) {
    preconditionFailure("a progress key without a default holds an Int, a Set, a dictionary or an optional")
  }
}

extension ProgressRule {
  /// Not available: `max` is for one value.
  @available(*, unavailable, message: "max is for one Int, Double, String, Bool, Data or ProgressValue of your own")
  @_disfavoredOverload
  public static var max: Self { preconditionFailure("max is for one ProgressValue") }

  /// Not available: `min` is for one value.
  @available(*, unavailable, message: "min is for one Int, Double, String, Bool, Data or ProgressValue of your own")
  @_disfavoredOverload
  public static var min: Self { preconditionFailure("min is for one ProgressValue") }

  /// Not available: `latest` is for one value.
  @available(*, unavailable, message: "latest is for one Int, Double, String, Bool, Data or ProgressValue of your own")
  @_disfavoredOverload
  public static var latest: Self { preconditionFailure("latest is for one ProgressValue") }

  /// Not available: `union` is for a set.
  @available(*, unavailable, message: "union is for a Set of Int, Double, String, Bool, Data or a ProgressValue")
  @_disfavoredOverload
  public static var union: Self { preconditionFailure("union is for a Set") }

  /// Not available: `set` is for a set.
  @available(*, unavailable, message: "set is for a Set of Int, Double, String, Bool, Data or a ProgressValue")
  @_disfavoredOverload
  public static var set: Self { preconditionFailure("set is for a Set") }

  /// Not available: `counter` is for whole numbers.
  @available(*, unavailable, message: "counter is for Int")
  @_disfavoredOverload
  public static var counter: Self { preconditionFailure("counter is for Int") }
}
