import Synchronization

/// Counts what goes over the wire: the bodies of requests, and of answers and events. Heads are not counted.
package final class TrafficCounter: Sendable {
  private let sent = Atomic<Int64>(0)
  private let received = Atomic<Int64>(0)

  package init() {}

  /// Bytes handed to the connection; those of a request that failed on the way count, too.
  package var bytesSent: Int64 { sent.load(ordering: .relaxed) }
  package var bytesReceived: Int64 { received.load(ordering: .relaxed) }

  func didSend(_ bytes: Int) { sent.wrappingAdd(Int64(bytes), ordering: .relaxed) }
  func didReceive(_ bytes: Int) { received.wrappingAdd(Int64(bytes), ordering: .relaxed) }
}
