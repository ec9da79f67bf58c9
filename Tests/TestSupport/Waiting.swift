import Foundation

/// Something that must happen and didn't.
package struct NeverHappened: Error, CustomStringConvertible {
  package let what: String

  package init(_ what: String) { self.what = what }

  package var description: String { "\(what): never happened" }
}

/// How long tests wait before they give up.
package enum Patience {
  /// No working machine takes this long for anything that a test waits for: a test that reaches this limit hangs.
  ///
  /// `Scripts/mutants.py` makes it shorter (`KEEPSAKE_PATIENCE`, in seconds): there, hanging is what many mistakes do.
  package static let limit: Duration = .seconds(
    ProcessInfo.processInfo.environment["KEEPSAKE_PATIENCE"].flatMap(Int.init) ?? 600)
}

/// Waits until something that must happen has happened. Returns as soon as it has, and throws `NeverHappened` after
/// `Patience.limit`.
///
/// Never use it to check that something does not happen: that would depend on how fast the machine is.
///
/// - Parameters:
///   - what: What is awaited, for the error.
///   - condition: Checked every few milliseconds.
package func until(
  _ what: @autoclosure () -> String = "what is waited for", isolation: isolated (any Actor)? = #isolation,
  _ condition: () async throws -> Bool
) async throws {
  let start = ContinuousClock.now
  while try await !condition() {
    guard ContinuousClock.now - start < Patience.limit else { throw NeverHappened(what()) }
    try await Task.sleep(for: .milliseconds(5))
  }
}
