import Synchronization

/// Counts the bytes sent and received: the bodies of requests, and of responses and events. HTTP heads aren't counted.
package final class TrafficCounter: Sendable {
  private let sent = Atomic<Int64>(0)
  private let received = Atomic<Int64>(0)

  package init() {}

  /// Bytes passed to the connection, including those of requests that failed.
  package var bytesSent: Int64 { sent.load(ordering: .relaxed) }
  package var bytesReceived: Int64 { received.load(ordering: .relaxed) }

  func didSend(_ bytes: Int) { sent.wrappingAdd(Int64(bytes), ordering: .relaxed) }
  func didReceive(_ bytes: Int) { received.wrappingAdd(Int64(bytes), ordering: .relaxed) }
}
