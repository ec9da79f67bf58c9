import KeepsakeStore

/// What was accepted but is not yet durable: the promise that a capture returns at once.
///
///     let pending = try game.saves.capture(world, to: .main)
///     try pending.wait(within: .seconds(2))          // in a termination handler
///     let version = try await pending.value          // in a task
///
/// Letting go of it changes nothing: the save goes on. A failure that nobody waits for is told by `GameData.incidents`.
public struct Pending<Value: Sendable>: Sendable {
  private let commit: PendingCommit<Value>

  init(_ commit: PendingCommit<Value>) { self.commit = commit }

  /// Suspends until it is durable; throws why it isn't.
  public var value: Value {
    get async throws { try await commit.value }
  }

  /// Blocks until it is durable; throws why it isn't, or `StoreError.Code.timedOut`. Not for the game's frames.
  @discardableResult
  public func wait(within limit: Duration = .seconds(10)) throws -> Value { try commit.wait(within: limit) }

  /// Whether it is decided: durable, or failed.
  public var isDone: Bool { commit.result != nil }
}
