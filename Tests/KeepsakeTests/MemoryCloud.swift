import Foundation
import Keepsake
import KeepsakeReplication
import KeepsakeSync
import KeepsakeTesting
import Synchronization

/// A cloud in this process: the real acceptance over memory, and a network that a test can cut.
final class MemoryCloud: Transport {
  private struct State {
    var container = SimulatedContainer(epoch: 1)
    var random = SystemRandomNumberGenerator()
    var listeners: [UUID: AsyncThrowingStream<CloudEvent, any Error>.Continuation] = [:]
    var isCut = false
    var exchanges = 0
  }
  private let state = Mutex(State())
  let name = UUID().uuidString
  private let id = ContainerID(high: 7, low: 7)

  var address: CloudAddress { .transport(self, container: id, name: name) }

  /// Nobody reaches the cloud while this is true.
  var isCut: Bool {
    get { state.withLock { $0.isCut } }
    set {
      let listeners = state.withLock { state in
        state.isCut = newValue
        defer { if newValue { state.listeners = [:] } }
        return newValue ? Array(state.listeners.values) : []
      }
      for listener in listeners { listener.finish(throwing: TransportFailure(.interrupted, "cut")) }
    }
  }

  var exchanges: Int { state.withLock { $0.exchanges } }

  func exchange(_ request: ExchangeRequest) async throws(TransportFailure) -> ExchangeResponse {
    let result: Result<(ExchangeResponse, UInt64?), TransportFailure> = state.withLock { state in
      guard !state.isCut else { return .failure(TransportFailure(.unreachable, "the network is cut")) }
      state.exchanges += 1
      do {
        var next = state.container
        let before = next.position().seq
        let response = try CloudAcceptance.exchange(
          request, now: 10_000_000_000, in: &next, using: &state.random)
        state.container = next
        let after = next.position().seq
        return .success((response, after > before ? after : nil))
      } catch {
        return .failure(TransportFailure(.rejected, "\(error)"))
      }
    }
    let (response, seq) = try result.get()
    if let seq {
      let listeners = state.withLock { Array($0.listeners.values) }
      for listener in listeners { listener.yield(CloudEvent(seq: seq)) }
    }
    return response
  }

  func putContent(
    _ content: EncodedContent, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) {
    let isCut = state.withLock { state in
      if !state.isCut { state.container.putContent(content) }
      return state.isCut
    }
    if isCut { throw TransportFailure(.unreachable, "the network is cut") }
  }

  func getContent(
    _ hash: ContentHash, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) -> EncodedContent? {
    let (content, isCut) = state.withLock { ($0.container.content(hash), $0.isCut) }
    if isCut { throw TransportFailure(.unreachable, "the network is cut") }
    return content
  }

  func events() -> AsyncThrowingStream<CloudEvent, any Error> {
    let (stream, continuation) = AsyncThrowingStream<CloudEvent, any Error>.makeStream()
    let id = UUID()
    let seq = state.withLock { state -> UInt64? in
      guard !state.isCut else { return nil }
      state.listeners[id] = continuation
      return state.container.position().seq
    }
    if let seq {
      continuation.yield(CloudEvent(seq: seq))
    } else {
      continuation.finish(throwing: TransportFailure(.unreachable, "the network is cut"))
    }
    continuation.onTermination = { [weak self] _ in
      self?.state.withLock { _ = $0.listeners.removeValue(forKey: id) }
    }
    return stream
  }
}

struct TookTooLong: Error {}

/// Waits until `condition` holds; far longer than it should ever take, and less long than devices wait before they ask the
/// cloud without a reason.
func eventually(_ condition: () throws -> Bool) async throws {
  for _ in 0..<3_000 {
    if try condition() { return }
    try await Task.sleep(for: .milliseconds(10))
  }
  throw TookTooLong()
}
