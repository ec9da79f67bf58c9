import KeepsakeReplication
import Synchronization

/// Where a service posts its status and news, for any number of readers on any thread.
final class SyncBoard: Sendable {
  private struct State {
    var status = SyncStatus()
    var nextID: UInt64 = 0
    var statusReaders: [UInt64: AsyncStream<SyncStatus>.Continuation] = [:]
    var newsReaders: [UInt64: AsyncStream<EngineNews>.Continuation] = [:]
  }
  private let state = Mutex(State())

  var status: SyncStatus { state.withLock { $0.status } }

  func update(_ change: (inout SyncStatus) -> Void) {
    state.withLock { state in
      let before = state.status
      change(&state.status)
      guard state.status != before else { return }
      for reader in state.statusReaders.values { reader.yield(state.status) }
    }
  }

  func post(_ news: EngineNews) {
    state.withLock { state in
      for reader in state.newsReaders.values { reader.yield(news) }
    }
  }

  /// The status now and each time it changes; changes that a reader misses are replaced by the newest.
  func statuses() -> AsyncStream<SyncStatus> {
    let (stream, continuation) = AsyncStream<SyncStatus>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let id = state.withLock { state in
      state.nextID += 1
      state.statusReaders[state.nextID] = continuation
      continuation.yield(state.status)
      return state.nextID
    }
    continuation.onTermination = { [weak self] _ in
      // Let go of outside the lock: the end of a continuation may come here again.
      _ = self?.state.withLock { $0.statusReaders.removeValue(forKey: id) }
    }
    return stream
  }

  func news() -> AsyncStream<EngineNews> {
    let (stream, continuation) = AsyncStream<EngineNews>.makeStream(
      bufferingPolicy: .bufferingNewest(SyncLimits.waitingNews))
    let id = state.withLock { state in
      state.nextID += 1
      state.newsReaders[state.nextID] = continuation
      return state.nextID
    }
    continuation.onTermination = { [weak self] _ in
      _ = self?.state.withLock { $0.newsReaders.removeValue(forKey: id) }
    }
    return stream
  }

  /// Ends all streams.
  func close() {
    let (statuses, news) = state.withLock { state in
      defer {
        state.statusReaders = [:]
        state.newsReaders = [:]
      }
      return (Array(state.statusReaders.values), Array(state.newsReaders.values))
    }
    for reader in statuses { reader.finish() }
    for reader in news { reader.finish() }
  }
}
