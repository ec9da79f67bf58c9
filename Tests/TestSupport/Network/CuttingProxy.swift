import Dispatch
package import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A bad network: forwards bytes between devices and a server, and cuts each connection after a number of them, or
/// holds streams back.
package final class CuttingProxy: Sendable {
  package let port: Int
  private let target: Int
  private let listener: Int32
  private let cuts = Mutex(0)
  private let isCutting = Mutex(true)
  private let isHolding: Bool
  /// Set if only one cut is wanted, after a number of bytes of all connections in one direction.
  private let once: (up: Budget, down: Budget)?
  private let state: Mutex<UInt64>
  private let isReady = Mutex<@Sendable () -> Bool>({ true })

  package var url: URL { URL(string: "http://127.0.0.1:\(port)") ?? URL(fileURLWithPath: "/") }
  /// Connections cut so far.
  package var count: Int { cuts.withLock { $0 } }
  /// Bytes forwarded to the devices so far, if only one cut is wanted.
  package var down: Int { once?.down.taken ?? 0 }

  package convenience init(to target: Int, seed: UInt64) throws { try self.init(to: target, seed: seed, once: nil) }

  /// Cuts one connection after this many bytes, and is a good network from then on.
  package convenience init(to target: Int, cuttingOnceAfterUp up: Int = .max, down: Int = .max) throws {
    try self.init(to: target, seed: 0, once: (Budget(up, once: true), Budget(down, once: true)))
  }

  /// Cuts nothing, but holds back responses that are event streams until they are complete, as some proxies do.
  package convenience init(holdingStreamsOf target: Int) throws {
    try self.init(to: target, seed: 0, once: (Budget(.max), Budget(.max)), isHolding: true)
  }

  private init(to target: Int, seed: UInt64, once: (up: Budget, down: Budget)?, isHolding: Bool = false) throws {
    self.target = target
    self.once = once
    self.isHolding = isHolding
    state = Mutex(seed)
    (listener, port) = try Sockets.listen()
    Sockets.listen(on: listener) { [self] in pass($0) }
  }

  /// Puts a cut off until `isReady` is true. A reset discards what the device hasn't read yet, and how much that is
  /// depends on how busy the machine is: a test that says what the device must have by then waits for it here.
  package func cut(when isReady: @escaping @Sendable () -> Bool) { self.isReady.withLock { $0 = isReady } }

  /// Makes the network good from here on.
  package func heal() { isCutting.withLock { $0 = false } }

  package func stop() {
    Sockets.shutDown(listener)
    // Releases a cut that a failed test has left waiting.
    cut { true }
  }

  private func pass(_ connection: Int32) {
    defer { close(connection) }
    guard let onward = Sockets.connect(to: target) else { return }
    defer { close(onward) }
    // A few hundred bytes cut a request's head, a few thousand its body or its response; some connections survive.
    let budget = state.withLock { state -> Int in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let roll = Int(state >> 33)
      return [300, 3_000, 30_000, 300_000][roll % 4] + roll % 997
    }
    let left = Budget(isCutting.withLock { $0 } ? budget : .max)
    let group = DispatchGroup()
    for (from, to, left) in [(connection, onward, once?.up ?? left), (onward, connection, once?.down ?? left)] {
      group.enter()
      Thread.detachNewThread { [self] in
        if pump(from, to, left) == .cut {
          // The server's end first: if the device's came first, it could send its next request before the server has
          // begun the one that was cut, and the server would take that for the newer of the two.
          for descriptor in [onward, connection] { Sockets.reset(descriptor) }
        } else {
          for descriptor in [from, to] { Sockets.shutDown(descriptor) }
        }
        group.leave()
      }
    }
    group.wait()
  }

  private enum End {
    case finished, cut
  }

  private func pump(_ from: Int32, _ to: Int32, _ left: Budget) -> End {
    var isHeld = false
    while let bytes = Sockets.receive(from) {
      if isHolding, !isHeld, Data(bytes).range(of: Data("Content-Type: text/event-stream".utf8)) != nil {
        isHeld = true
      }
      if isHeld { continue }
      let allowed = left.take(bytes.count)
      guard Sockets.send(to, bytes[..<allowed]) else { return .finished }
      if allowed < bytes.count {
        let isReady = isReady.withLock { $0 }
        while !isReady() { Thread.sleep(forTimeInterval: 0.005) }
        cuts.withLock { $0 += 1 }
        return .cut
      }
    }
    return .finished
  }

  private final class Budget: Sendable {
    private let left: Mutex<Int>
    private let passed = Mutex(0)
    private let isOnce: Bool

    /// Creates a budget for this many bytes; with `once`, the connection that uses it up is the only one to be cut.
    init(_ bytes: Int, once: Bool = false) {
      left = Mutex(bytes)
      isOnce = once
    }

    var taken: Int { passed.withLock { $0 } }

    func take(_ count: Int) -> Int {
      left.withLock { left in
        let allowed = min(count, left)
        left = allowed < count && isOnce ? .max : left - allowed
        passed.withLock { $0 += allowed }
        return allowed
      }
    }
  }
}
