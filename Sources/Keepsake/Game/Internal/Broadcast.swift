import Synchronization

/// Sends each element to every listener registered at that time.
final class Broadcast<Element: Sendable>: Sendable {
  /// The maximum number of elements buffered for a listener. One that falls further behind misses the oldest, so that
  /// no listener can fill a game's memory.
  private let capacity: Int

  private struct State {
    var listeners: [UInt64: AsyncStream<Element>.Continuation] = [:]
    var next: UInt64 = 0
    var isFinished = false
  }
  private let state = Mutex(State())

  init(keepingNewest capacity: Int = 256) { self.capacity = capacity }

  func stream(beginningWith first: Element? = nil) -> AsyncStream<Element> {
    let (stream, continuation) = AsyncStream<Element>.makeStream(bufferingPolicy: .bufferingNewest(capacity))
    if let first { continuation.yield(first) }
    let id = state.withLock { state -> UInt64? in
      guard !state.isFinished else { return nil }
      state.next += 1
      state.listeners[state.next] = continuation
      return state.next
    }
    guard let id else {
      continuation.finish()
      return stream
    }
    continuation.onTermination = { [weak self] _ in self?.remove(id) }
    return stream
  }

  func send(_ element: Element) {
    // Each listener has its own buffer, so the order among them can't be observed.
    let listeners = state.withLock { Array($0.listeners.values) }
    for listener in listeners { listener.yield(element) }
  }

  func finish() {
    let listeners = state.withLock { state -> [AsyncStream<Element>.Continuation] in
      state.isFinished = true
      defer { state.listeners = [:] }
      return Array(state.listeners.values)
    }
    for listener in listeners { listener.finish() }
  }

  private func remove(_ id: UInt64) { state.withLock { _ = $0.listeners.removeValue(forKey: id) } }
}
