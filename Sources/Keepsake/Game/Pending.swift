import KeepsakeStore

/// The result of a commit that is accepted but not yet durable.
///
/// ```swift
/// let pending = try game.saves.capture(world, to: .main)
/// try pending.wait(within: .seconds(2))    // in a termination handler
/// let version = try await pending.value    // in a task
/// ```
///
/// Dropping it doesn't cancel the commit, and neither does a normal end of the program, which waits for it
/// (`GameData.exitLimit`). `GameData.incidents` reports a failure that nobody waits for.
public struct Pending<Value: Sendable>: Sendable {
  private let commit: PendingCommit<Value>

  init(_ commit: PendingCommit<Value>) { self.commit = commit }

  /// The result, once it is durable. Throws the error of a failed commit.
  public var value: Value {
    get async throws { try await commit.value }
  }

  /// Blocks until the commit is durable. Don't call it within a frame.
  ///
  /// - Parameter limit: How long to wait.
  /// - Returns: The result of the commit.
  /// - Throws: The error of a failed commit, or `StoreError` with `timedOut`, in which case the commit continues.
  @discardableResult
  public func wait(within limit: Duration = .seconds(10)) throws -> Value { try commit.wait(within: limit) }

  /// Whether the commit is durable or has failed.
  public var isDone: Bool { commit.result != nil }
}
