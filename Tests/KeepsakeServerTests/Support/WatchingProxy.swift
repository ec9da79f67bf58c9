#if Cloud && os(Linux)
import Foundation
import Glibc
import Synchronization

/// A network of one device: passes bytes on between it and a server, knows where one request ends and the next begins, counts them, and can
/// hold one at a named point until the test says what becomes of it.
///
/// Never inside an answer's head: Foundation on Linux ends the process where a connection closes there.
final class WatchingProxy: Sendable {
  /// Where a request is held.
  enum Point: Sendable {
    /// Half of its body has gone on.
    case insideRequest
    /// All of it has gone on and the server has begun to answer; nothing of the answer has come back.
    case beforeAnswer
    /// The head, and so many bytes of the answer's body, have come back.
    case insideAnswer(after: Int)
  }

  let port: Int
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

  var url: URL { URL(string: "http://127.0.0.1:\(port)") ?? URL(fileURLWithPath: "/") }

  init(to target: Int) throws {
    self.target = target
    let (listener, port) = try Sockets.listen()
    (self.listener, self.port) = (listener, port)
    Thread.detachNewThread { [self] in
      while true {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else {
          close(listener)
          return
        }
        Thread.detachNewThread { [self] in pass(connection) }
      }
    }
  }

  func stop() {
    shutdown(listener, Int32(SHUT_RDWR))
    cutAll()
  }

  // MARK: Counting

  /// Requests so far, by method and path ("POST /v1/exchange"); contents under "PUT /v1/contents/*".
  var counts: [String: Int] { state.withLock { $0.counts } }
  var exchanges: Int { counts["POST /v1/exchange"] ?? 0 }

  // MARK: Faults

  /// Holds the next request whose name begins so, at this point; `skipping` so many of its kind before.
  func hold(_ name: String, at point: Point, skipping: Int = 0) -> Trap {
    let trap = Trap(name: name, point: point, skipping: skipping)
    state.withLock { $0.trap = trap }
    return trap
  }

  /// Ends all connections, and all new ones, until `heal`.
  func cutOff() {
    state.withLock { $0.isDown = true }
    cutAll()
  }

  func heal() { state.withLock { $0.isDown = false } }

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

/// One request that is held at a point.
final class Trap: Sendable {
  enum Decision: Sendable { case pass, cut }
  /// What had gone through when it was held.
  struct Hit: Sendable {
    var bytes: Int
    /// Of the body that goes there; nil where its length isn't said before.
    var bytesInAll: Int?
  }
  static let patience: Duration = .seconds(60)

  let name: String
  let point: WatchingProxy.Point
  private let skipping: Atomic<Int>
  private let hit = Mutex<Hit?>(nil)
  private let decision = Mutex<Decision?>(nil)

  init(name: String, point: WatchingProxy.Point, skipping: Int) {
    (self.name, self.point) = (name, point)
    self.skipping = Atomic(skipping)
  }

  func isNext() -> Bool { skipping.subtract(1, ordering: .relaxed).oldValue <= 0 }

  var isReached: Bool { hit.withLock { $0 != nil } }

  /// Returns when the request is held.
  func reached() async throws -> Hit {
    let start = ContinuousClock.now
    while ContinuousClock.now - start < Self.patience {
      if let hit = hit.withLock({ $0 }) { return hit }
      try await Task.sleep(for: .milliseconds(5))
    }
    throw TrapError(name: name)
  }

  /// What becomes of the request.
  func decide(_ decision: Decision) { self.decision.withLock { $0 = decision } }

  /// Called by the proxy's thread.
  func wait(_ found: Hit) -> Decision {
    hit.withLock { $0 = found }
    let start = ContinuousClock.now
    while ContinuousClock.now - start < Self.patience {
      if let decision = decision.withLock({ $0 }) { return decision }
      usleep(2_000)
    }
    return .cut
  }
}

struct TrapError: Error, CustomStringConvertible {
  var name: String
  var description: String { "no request \(name) came to the point where it was to be held" }
}
#endif
