#if Cloud
import Dispatch
import KeepsakeReplication

/// Load, decide, commit: a decision is made on any thread over what was loaded, and is committed if nobody has changed
/// the container meanwhile.
extension DecidingStorage {
  /// The same for a decision that removes no device from a shared container.
  func commit(_ writes: WriteSet, of container: ContainerID, ifAt revision: UInt64) async throws -> Bool {
    try await commit(writes, of: container, ifAt: revision, leaving: nil)
  }

  /// Makes a decision about a container, which is created if it doesn't exist; what it changes is durable when this
  /// returns. If `body` throws, nothing is changed. A decision that changes nothing doesn't wait for any other.
  ///
  /// `body` may run several times: again if it has read what wasn't loaded, or if another decision about the container
  /// was committed first. It first runs over what is remembered of the container, if that may be enough: what it throws
  /// then is heeded only if it throws it again over what is loaded.
  ///
  /// - Parameters:
  ///   - reads: What is known in advance that `body` will read.
  ///   - work: How many items it looks at, roughly: a decision with much work is made on a thread of its own.
  ///   - leaving: A device that leaves a shared container with it (`commit`).
  /// - Throws: What `body` throws; `APIError.retired` if everything of the player was deleted; a `ServerError` if other
  ///   decisions are always first.
  func decide<Result: Sendable>(
    on container: ContainerID, reading reads: ReadSet = ReadSet(), work: Int = 0, leaving: DeviceID? = nil,
    _ body: @escaping @Sendable (inout SnapshotContainer) throws -> Result
  ) async throws -> Result {
    let remembered = try await remembered(of: container)
    if let snapshot = remembered?.snapshot(of: container, for: reads), leaving == nil,
      case .made(let result, let decided) = try? await Decision.make(over: snapshot, isHeavy: false, body),
      !decided.writes.isEmpty, decided.writes.showsAssumption,
      try await commit(decided, of: container, remembered, connections: snapshot.assumption?.connections)
    {
      return result
    }
    var needed = reads
    var conflicts = 0
    while conflicts < ServerLimits.decisionConflicts {
      let connections = remembered?.connections
      let snapshot = try await load(needed, of: container)
      // A request that arrived before everything was deleted must leave nothing behind.
      if snapshot.isDeleted { throw APIError.retired }
      let items = needed.work + work + (snapshot.changes?.list.count ?? 0)
      switch try await Decision.make(over: snapshot, isHeavy: items > ServerLimits.lightDecision, body) {
      case .lacks(let lacking):
        needed.formUnion(lacking)
      case .made(let result, let decided):
        if decided.writes.isEmpty { return result }
        if try await commit(decided, of: container, leaving: leaving, remembered, connections: connections) {
          return result
        }
        conflicts += 1
      }
    }
    throw ServerError(.overloaded, "Too many requests of this player at a time; try again in a moment.")
  }

  /// Commits a decision, and remembers what it has left.
  private func commit(
    _ decided: SnapshotContainer, of container: ContainerID, leaving: DeviceID? = nil,
    _ remembered: RememberedContainers?, connections: Int?
  ) async throws -> Bool {
    do {
      let isDone = try await commit(
        decided.writes, of: container, ifAt: decided.base.revision, leaving: leaving)
      if isDone, let connections {
        remembered?.note(decided, of: container, connections: connections)
      } else {
        remembered?.forget(container)
      }
      return isDone
    } catch {
      remembered?.forget(container)
      throw error
    }
  }

  /// Reads a container, as far as `body` asks.
  func look<Result: Sendable>(
    at container: ContainerID, reading reads: ReadSet = ReadSet(),
    _ body: @escaping @Sendable (SnapshotContainer) throws -> Result
  ) async throws -> Result {
    var needed = reads
    while true {
      switch try await Decision.make(over: try await load(needed, of: container), isHeavy: false, { try body($0) }) {
      case .lacks(let lacking): needed.formUnion(lacking)
      case .made(let result, _): return result
      }
    }
  }
}

/// What came of a decision.
private enum Decision<Result: Sendable>: Sendable {
  case made(Result, SnapshotContainer)
  /// It asked for what wasn't loaded.
  case lacks(ReadSet)

  static func make(
    over snapshot: Snapshot, isHeavy: Bool, _ body: @escaping @Sendable (inout SnapshotContainer) throws -> Result
  ) async throws -> Self {
    guard isHeavy else { return try make(over: snapshot, body) }
    return try await withCheckedThrowingContinuation { continuation in
      heavyDecisions.async { continuation.resume(with: Swift.Result { try make(over: snapshot, body) }) }
    }
  }

  private static func make(
    over snapshot: Snapshot, _ body: (inout SnapshotContainer) throws -> Result
  ) throws -> Self {
    var overlay = SnapshotContainer(snapshot)
    do {
      let result = try body(&overlay)
      return .made(result, overlay)
    } catch let lacking as NotLoaded {
      return .lacks(lacking.reads)
    }
  }
}

/// Where decisions with much work are made, one at a time: not on the threads that all requests share.
private let heavyDecisions = DispatchQueue(label: "keepsake.cloud.decisions")
#endif
