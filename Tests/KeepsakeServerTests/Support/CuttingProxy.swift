#if Cloud
import Dispatch
import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
private let streamType = Int32(SOCK_STREAM.rawValue)
private let noSignal = Int32(MSG_NOSIGNAL)
#elseif canImport(Musl)
import Musl
private let streamType = SOCK_STREAM
private let noSignal = MSG_NOSIGNAL
#elseif canImport(Darwin)
import Darwin
private let streamType = SOCK_STREAM
private let noSignal: Int32 = 0
#endif

/// A bad network: passes bytes on between devices and a server, and cuts each connection after so many of them, or holds streams back.
final class CuttingProxy: Sendable {
  let port: Int
  private let target: Int
  private let listener: Int32
  private let cuts = Mutex(0)
  private let isCutting = Mutex(true)
  private let isHolding: Bool
  /// Set where only one cut is wanted, after so many bytes of all connections in one direction.
  private let once: (up: Budget, down: Budget)?
  private let state: Mutex<UInt64>

  var url: URL { URL(string: "http://127.0.0.1:\(port)") ?? URL(fileURLWithPath: "/") }
  /// Connections cut so far.
  var count: Int { cuts.withLock { $0 } }
  /// Bytes that came down so far, where only one cut is wanted.
  var down: Int { once?.down.taken ?? 0 }

  convenience init(to target: Int, seed: UInt64) throws { try self.init(to: target, seed: seed, once: nil) }

  /// Cuts one connection after so many bytes, and is a good network from then on.
  convenience init(to target: Int, cuttingOnceAfterUp up: Int = .max, down: Int = .max) throws {
    try self.init(to: target, seed: 0, once: (Budget(up), Budget(down)))
  }

  /// Cuts nothing, but keeps answers that are event streams until they are complete, as some proxies do.
  convenience init(holdingStreamsOf target: Int) throws {
    try self.init(to: target, seed: 0, once: (Budget(.max), Budget(.max)), isHolding: true)
  }

  private init(to target: Int, seed: UInt64, once: (up: Budget, down: Budget)?, isHolding: Bool = false) throws {
    self.target = target
    self.once = once
    self.isHolding = isHolding
    state = Mutex(seed)
    listener = socket(AF_INET, streamType, 0)
    var address = Self.address(0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = listener
    let failed = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, length) != 0 || listen(listener, 64) != 0 || getsockname(listener, $0, &length) != 0
      }
    }
    guard !failed else { throw POSIXError(.EADDRINUSE) }
    port = Int(UInt16(bigEndian: address.sin_port))
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

  /// From now on the network is good.
  func heal() { isCutting.withLock { $0 = false } }

  func stop() { shutdown(listener, Int32(2)) }

  private static func address(_ port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    return address
  }

  private func pass(_ connection: Int32) {
    let onward = socket(AF_INET, streamType, 0)
    var address = Self.address(target)
    let connected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(onward, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    // A few hundred bytes cut a request's head, some thousands its body or its answer; some connections live.
    let budget = state.withLock { state -> Int in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let roll = Int(state >> 33)
      return [300, 3_000, 30_000, 300_000][roll % 4] + roll % 997
    }
    let left = Budget(isCutting.withLock { $0 } ? budget : .max)
    let group = DispatchGroup()
    if connected == 0 {
      for (from, to, left) in [(connection, onward, once?.up ?? left), (onward, connection, once?.down ?? left)] {
        group.enter()
        Thread.detachNewThread { [self] in
          if pump(from, to, left) == .cut {
            if once != nil { left.refill() }
            Self.reset(from)
            Self.reset(to)
          } else {
            shutdown(from, Int32(2))
            shutdown(to, Int32(2))
          }
          group.leave()
        }
      }
      group.wait()
    }
    close(connection)
    close(onward)
  }

  private enum End {
    case finished, cut
  }

  /// Ends a connection as a lost network does: with a reset, not politely.
  private static func reset(_ connection: Int32) {
    #if os(Linux)
    var nowhere = sockaddr()
    nowhere.sa_family = sa_family_t(AF_UNSPEC)
    connect(connection, &nowhere, socklen_t(MemoryLayout<sockaddr>.size))
    #else
    shutdown(connection, Int32(2))
    #endif
  }

  private func pump(_ from: Int32, _ to: Int32, _ left: Budget) -> End {
    var buffer = [UInt8](repeating: 0, count: 16_384)
    var isHeld = false
    while true {
      let count = recv(from, &buffer, buffer.count, 0)
      guard count > 0 else { return .finished }
      if isHolding, !isHeld, Data(buffer[..<count]).range(of: Data("Content-Type: text/event-stream".utf8)) != nil { isHeld = true }
      if isHeld { continue }
      let allowed = left.take(count)
      var sent = 0
      while sent < allowed {
        let step = buffer[sent..<allowed].withUnsafeBytes { Self.systemSend(to, $0) }
        guard step > 0 else { return .finished }
        sent += step
      }
      if allowed < count {
        cuts.withLock { $0 += 1 }
        return .cut
      }
    }
  }

  private static func systemSend(_ to: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    #if canImport(Glibc)
    Glibc.send(to, bytes.baseAddress, bytes.count, noSignal)
    #elseif canImport(Musl)
    Musl.send(to, bytes.baseAddress, bytes.count, noSignal)
    #else
    Darwin.send(to, bytes.baseAddress, bytes.count, noSignal)
    #endif
  }

  private final class Budget: Sendable {
    private let left: Mutex<Int>
    private let passed = Mutex(0)
    init(_ bytes: Int) { left = Mutex(bytes) }

    var taken: Int { passed.withLock { $0 } }

    func refill() { left.withLock { $0 = .max } }

    func take(_ count: Int) -> Int {
      left.withLock { left in
        let allowed = min(count, left)
        left -= allowed
        passed.withLock { $0 += allowed }
        return allowed
      }
    }
  }
}
#endif
