package import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A network of one device: passes bytes on between it and a server, knows where one request ends and the next begins, counts them, and can
/// hold one at a named point until the test says what becomes of it.
///
/// Never inside an answer's head: Foundation on Linux ends the process where a connection closes there.
package final class WatchingProxy: Sendable {
  /// Where a request is held.
  package enum Point: Sendable {
    /// Half of its body has gone on.
    case insideRequest
    /// All of it has gone on and the server has begun to answer; nothing of the answer has come back.
    case beforeAnswer
    /// The head, and so many bytes of the answer's body, have come back.
    case insideAnswer(after: Int)
  }

  package let port: Int
  private let target: Int
  private let listener: Int32
  private let state = Mutex(State())

  private struct State {
    var counts: [String: Int] = [:]
    var trap: Trap?
    var isDown = false
    var connections: [Int32: Tunnel] = [:]
    var nextConnection: Int32 = 0
  }

  package var url: URL { URL(string: "http://127.0.0.1:\(port)") ?? URL(fileURLWithPath: "/") }

  package init(to target: Int) throws {
    self.target = target
    let (listener, port) = try Sockets.listen()
    (self.listener, self.port) = (listener, port)
    Sockets.listen(on: listener) { [self] in pass($0) }
  }

  package func stop() {
    Sockets.shutDown(listener)
    cutAll()
  }

  // MARK: Counting

  /// Requests so far, by method and path ("POST /v1/exchange"); contents under "PUT /v1/contents/*".
  package var counts: [String: Int] { state.withLock { $0.counts } }
  package var exchanges: Int { counts["POST /v1/exchange"] ?? 0 }

  // MARK: Faults

  /// Holds the next request whose name begins so, at this point; `skipping` so many of its kind before.
  package func hold(_ name: String, at point: Point, skipping: Int = 0) -> Trap {
    let trap = Trap(name: name, point: point, skipping: skipping)
    state.withLock { $0.trap = trap }
    return trap
  }

  /// Ends all connections, and all new ones, until `heal`.
  package func cutOff() {
    state.withLock { $0.isDown = true }
    cutAll()
  }

  package func heal() { state.withLock { $0.isDown = false } }

  private func cutAll() { for tunnel in state.withLock({ Array($0.connections.values) }) { tunnel.cut() } }

  // MARK: Passing

  private func pass(_ connection: Int32) {
    guard !state.withLock({ $0.isDown }), let onward = Sockets.connect(to: target) else {
      Sockets.reset(connection)
      close(connection)
      return
    }
    let tunnel = Tunnel(device: connection, server: onward)
    let number = state.withLock { state -> Int32 in
      state.nextConnection += 1
      state.connections[state.nextConnection] = tunnel
      return state.nextConnection
    }
    tunnel.run { [self] name in began(name) }
    state.withLock { $0.connections[number] = nil }
    close(connection)
    close(onward)
  }

  private func began(_ name: String) -> Trap? {
    state.withLock { state in
      // What is asked for counts, not how it is asked.
      state.counts[String(name.prefix { $0 != "?" }), default: 0] += 1
      guard let trap = state.trap, name.hasPrefix(trap.name), trap.isNext() else { return nil }
      state.trap = nil
      return trap
    }
  }
}
