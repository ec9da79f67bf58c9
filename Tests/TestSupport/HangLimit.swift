package import Testing

extension Trait where Self == TimeLimitTrait {
  /// Ends a test that hangs. Far more than any test takes, so that no verdict depends on how fast the machine is.
  package static var hangLimit: Self { .timeLimit(.minutes(60)) }
}
