import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Ports on loopback for servers that a test stops and starts again on the same port.
package enum TestPort {
  /// Below the ports that systems give to whoever asks for any: while the server is stopped, no other test gets its
  /// port.
  private static let range = 10_000..<30_000
  private static let next = Atomic(Int.random(in: range))

  /// Returns a port that nothing uses, and another one each time.
  package static func unused() throws -> Int {
    for _ in range {
      let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
      let port = range.lowerBound + number % range.count
      if Sockets.canBind(port) { return port }
    }
    throw POSIXError(.EADDRINUSE)
  }

  /// Returns whether a listener accepts connections on a port.
  ///
  /// A child process that is being started has a copy of each listener until it runs its own program, so that a port
  /// may stay taken for a moment after its listener was closed.
  package static func isOpen(_ port: Int) -> Bool {
    guard UInt16(exactly: port) != nil, let connection = Sockets.connect(to: port) else { return false }
    close(connection)
    return true
  }
}
