/// Numbers of things in messages: "1 commit", "2 commits".
package enum CountText {
  /// Returns a number and the noun that goes with it.
  ///
  /// - Parameters:
  ///   - count: The number.
  ///   - noun: The noun for one.
  ///   - plural: The noun for any other number, if it isn't the noun with an "s".
  package static func of(_ count: some BinaryInteger, _ noun: String, plural: String? = nil) -> String {
    "\(count) \(count == 1 ? noun : plural ?? noun + "s")"
  }
}
