import Foundation
import KeepsakePlatform
import KeepsakeReplication
import Synchronization

/// Receives the cloud's events: by a stream, or, if something in between holds the stream back until it is complete (a
/// proxy that buffers responses), by long polling, where the response to each request is sent when there is something
/// new.
final class HTTPEvents: Sendable {
  private struct State {
    /// Consecutive streams that ended without an event, though the cloud was reached.
    var silentStreams = 0
    var isPolling: Bool { silentStreams >= SyncLimits.silentStreams }
  }
  private let credentials: RenewableCredentials
  private let requests: HTTPSession
  private let streams: HTTPSession
  private let idleSeconds: Double
  private let state = Mutex(State())

  init(
    _ credentials: RenewableCredentials, _ requests: HTTPSession, traffic: TrafficCounter, idleSeconds: Double,
    carrier: HTTPCarrier
  ) {
    self.credentials = credentials
    self.requests = requests
    self.idleSeconds = idleSeconds
    streams = HTTPSession(idleSeconds: idleSeconds, traffic: traffic, carrier: carrier)
  }

  /// - Parameter restarted: Called before an event that says that the cloud isn't the same as before.
  func events(
    since cursor: @escaping @Sendable () async -> Cursor?, restarted: @escaping @Sendable () -> Void
  ) -> AsyncThrowingStream<CloudEvent, any Error> {
    AsyncThrowingStream(bufferingPolicy: .bufferingNewest(SyncLimits.waitingEvents)) { continuation in
      let listener = Listener(cursor: cursor) { event in
        if event.unknown != nil { restarted() }
        continuation.yield(event)
      } fail: { error in
        continuation.finish(throwing: error)
      }
      let task = Task {
        do throws(TransportFailure) {
          if state.withLock({ $0.isPolling }) { try await poll(for: listener) } else { try await stream(to: listener) }
          continuation.finish()
        } catch {
          continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { _ in task.cancel() }
    }
  }

  private struct Listener: Sendable {
    var cursor: @Sendable () async -> Cursor?
    var emit: @Sendable (CloudEvent) -> Void
    /// Ends the task by finishing the stream.
    var fail: @Sendable (any Error) -> Void
  }

  /// Adds the device's cursor to a request. Without a cursor, or between two pages, none is added: an exchange is due
  /// anyway.
  private static func name(_ cursor: Cursor?, in message: inout URLRequest) {
    guard let cursor, cursor.seq > 0, cursor.ahead == nil else { return }
    message.url?.append(queryItems: [
      URLQueryItem(name: "cursor", value: "\(cursor.epoch).\(cursor.seq).\(cursor.mark)")
    ])
  }

  private func stream(to listener: Listener) async throws(TransportFailure) {
    var message = HTTPRequests.request("GET", credentials.current, "v1/events")
    Self.name(await listener.cursor(), in: &message)
    message.setValue("text/event-stream", forHTTPHeaderField: "Accept")
    message.timeoutInterval = idleSeconds
    if streams.opensConnectionsFirst {
      let short = HTTPRequests.request("GET", credentials.current, "health")
      _ = try await streams.send(short, limit: SyncLimits.accountBytes)
    }
    let lines = Mutex(EventLines())
    let hasBegun = Atomic(false)
    let hasSpoken = Atomic(false)
    func noteSilence() {
      // A game that stops listening has received what it wanted.
      if !hasSpoken.load(ordering: .acquiring), !Task.isCancelled { state.withLock { $0.silentStreams += 1 } }
    }
    do throws(TransportFailure) {
      try await streams.stream(message) { response throws(TransportFailure) in
        hasBegun.store(true, ordering: .releasing)
        try HTTPAnswer.check(response)
      } part: { [self] piece in
        do {
          for event in try lines.withLock({ try $0.take(piece) }) {
            if !hasSpoken.exchange(true, ordering: .acquiringAndReleasing) {
              state.withLock { $0.silentStreams = 0 }
            }
            listener.emit(event)
          }
        } catch {
          listener.fail(error)
        }
      }
    } catch {
      // A network that fails, or a cloud that is away, holds no stream back.
      if hasBegun.load(ordering: .acquiring) || error.isTimeout { noteSilence() }
      throw error
    }
    noteSilence()
  }

  /// Polls for some minutes; then a stream is tried again.
  private func poll(for listener: Listener) async throws(TransportFailure) {
    var known: UInt64?
    var named: Cursor?
    for _ in 0..<SyncLimits.pollsForAStream where !Task.isCancelled {
      var message = HTTPRequests.request("GET", credentials.current, "v1/events/next")
      if let known { message.url?.append(queryItems: [URLQueryItem(name: "after", value: String(known))]) }
      // Each cursor is sent once: the response that it is unknown comes immediately, and the device may be busy with an
      // exchange that reports this, too.
      let cursor = await listener.cursor()
      if cursor != named { Self.name(cursor, in: &message) }
      named = cursor
      let answer = try await requests.send(message, limit: SyncLimits.eventLineBytes)
      try HTTPAnswer.check(answer.response, body: answer.body)
      if answer.response.statusCode == 204 { continue }
      let event = try HTTPAnswer.decode(CloudEvent.self, answer.body)
      known = event.seq
      listener.emit(event)
    }
    state.withLock { $0.silentStreams = 0 }
  }
}
