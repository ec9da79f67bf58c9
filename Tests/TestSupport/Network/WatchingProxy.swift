package import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// The network of one device: forwards bytes between it and a server, recognizes where one request ends and the next
/// begins, counts them, and can hold one at a named point until the test decides what happens to it.
package final class WatchingProxy: Sendable {
  /// Where a request is held.
  package enum Point: Sendable {
    /// Half of its body has been forwarded.
    case insideRequest
    /// All of it has been forwarded and the server has begun to respond; nothing of the response has been forwarded.
    case beforeAnswer
    /// The head, and this many bytes of the response's body, have been forwarded.
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

  /// Requests so far, by method and path ("POST /v1/exchange"); contents as "PUT /v1/contents/*".
  package var counts: [String: Int] { state.withLock { $0.counts } }
  package var exchanges: Int { counts["POST /v1/exchange"] ?? 0 }

  // MARK: Faults

  /// Holds the next request whose name begins with `name` at this point, after `skipping` others of its kind.
  package func hold(_ name: String, at point: Point, skipping: Int = 0) -> Trap {
    let trap = Trap(name: name, point: point, skipping: skipping)
    state.withLock { $0.trap = trap }
    return trap
  }

  /// Cuts all connections, and all new ones, until `heal`.
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
      // The path counts, not the query.
      state.counts[String(name.prefix { $0 != "?" }), default: 0] += 1
      guard let trap = state.trap, name.hasPrefix(trap.name), trap.isNext() else { return nil }
      state.trap = nil
      return trap
    }
  }
}
