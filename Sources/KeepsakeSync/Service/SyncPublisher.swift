import KeepsakeReplication
import Synchronization

/// Publishes a service's status and notifications to any number of readers on any thread.
final class SyncPublisher: Sendable {
  private struct State {
    var status = SyncStatus()
    var ledger = TransferLedger()
    var nextID: UInt64 = 0
    var statusReaders: [UInt64: AsyncStream<SyncStatus>.Continuation] = [:]
    var notificationReaders: [UInt64: AsyncStream<EngineNotification>.Continuation] = [:]
    var notificationCount: UInt64 = 0
  }
  private let state = Mutex(State())

  var status: SyncStatus { state.withLock { $0.status } }

  func update(_ change: (inout SyncStatus) -> Void) { updateTransfers { status, _ in change(&status) } }

  /// Does the same with the transfers in flight, from which the status derives its `transfers`.
  func updateTransfers(_ change: (inout SyncStatus, inout TransferLedger) -> Void) {
    state.withLock { state in
      let before = state.status
      change(&state.status, &state.ledger)
      state.status.transfers = state.ledger.transfers
      guard state.status != before else { return }
      for reader in state.statusReaders.values { reader.yield(state.status) }
    }
  }

  func post(_ notifications: EngineNotification) {
    state.withLock { state in
      state.notificationCount += 1
      for reader in state.notificationReaders.values {
        // A slow reader never gets what it misses, and counting must not wait for it.
        if case .dropped = reader.yield(notifications) { state.notificationCount -= 1 }
      }
    }
  }

  /// How many of the notifications posted so far a reader gets that has been there from the beginning.
  var notificationCount: UInt64 { state.withLock { $0.notificationCount } }

  /// Returns the current status and each change of it; changes that a reader misses are replaced by the newest.
  func statuses() -> AsyncStream<SyncStatus> {
    let (stream, continuation) = AsyncStream<SyncStatus>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let id = state.withLock { state in
      state.nextID += 1
      state.statusReaders[state.nextID] = continuation
      continuation.yield(state.status)
      return state.nextID
    }
    continuation.onTermination = { [weak self] _ in
      // Released outside the lock, because the end of a continuation may call this again.
      _ = self?.state.withLock { $0.statusReaders.removeValue(forKey: id) }
    }
    return stream
  }

  func notifications() -> AsyncStream<EngineNotification> {
    let (stream, continuation) = AsyncStream<EngineNotification>.makeStream(
      bufferingPolicy: .bufferingNewest(SyncLimits.waitingNews))
    let id = state.withLock { state in
      state.nextID += 1
      state.notificationReaders[state.nextID] = continuation
      return state.nextID
    }
    continuation.onTermination = { [weak self] _ in
      _ = self?.state.withLock { $0.notificationReaders.removeValue(forKey: id) }
    }
    return stream
  }

  /// Ends all streams.
  func close() {
    let (statuses, notifications) = state.withLock { state in
      defer {
        state.statusReaders = [:]
        state.notificationReaders = [:]
      }
      return (Array(state.statusReaders.values), Array(state.notificationReaders.values))
    }
    for reader in statuses { reader.finish() }
    for reader in notifications { reader.finish() }
  }
}
