import Dispatch
package import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A bare connection, for requests that no client would send.
package final class RawConnection: Sendable {
  private let socketDescriptor: Int32

  package init(port: Int) throws {
    guard let descriptor = Sockets.connect(to: port) else { throw POSIXError(.ECONNREFUSED) }
    socketDescriptor = descriptor
    var limit = timeval(tv_sec: Int(Patience.limit.components.seconds), tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(socketDescriptor) }

  package func send(_ text: String) async { await send(Data(text.utf8)) }

  package func send(_ data: Data) async {
    await offPool { _ = Sockets.send(self.socketDescriptor, data) }
  }

  /// The result of reading if nothing arrives although the connection is open: the test would hang otherwise.
  private static let silence = "(silence)"

  /// Returns what arrives, until `mark` has arrived or the connection ends.
  package func read(until mark: String) async -> String {
    await offPool { self.readNow(until: mark) }
  }

  /// Runs blocking calls off the few threads that all tasks share.
  private func offPool<Result: Sendable>(_ work: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async { continuation.resume(returning: work()) }
    }
  }

  private func readNow(until mark: String) -> String {
    var received: [UInt8] = []
    errno = 0
    while received.count < 1 << 20 {
      guard let bytes = Sockets.receive(socketDescriptor, atMost: 4096) else {
        if errno == EAGAIN || errno == EWOULDBLOCK { return Self.silence }
        break
      }
      received += bytes
      if String(decoding: received, as: UTF8.self).contains(mark) { break }
    }
    return String(decoding: received, as: UTF8.self)
  }
}
