package import Testing

extension Trait where Self == ConditionTrait {
  /// For a suite that another test runs in a process of its own, which `condition` recognizes; elsewhere the suite is
  /// part of that test. Scripts/test.sh recognizes the wording and doesn't count it as skipped.
  package static func partOfAnotherTest(where condition: @autoclosure @escaping @Sendable () throws -> Bool) -> Self {
    .enabled(if: try condition(), "part of another test, which runs it in a process of its own")
  }
}
