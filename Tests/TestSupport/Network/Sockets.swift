import Foundation

#if canImport(Glibc)
import Glibc
private let stream = Int32(SOCK_STREAM.rawValue)
private let noSignal = Int32(MSG_NOSIGNAL)
private let (systemConnect, systemListen, systemSend) = (Glibc.connect, Glibc.listen, Glibc.send)
#elseif canImport(Musl)
import Musl
private let stream = SOCK_STREAM
private let noSignal = MSG_NOSIGNAL
private let (systemConnect, systemListen, systemSend) = (Musl.connect, Musl.listen, Musl.send)
#elseif canImport(Darwin)
import Darwin
private let stream = SOCK_STREAM
private let noSignal: Int32 = 0
private let (systemConnect, systemListen, systemSend) = (Darwin.connect, Darwin.listen, Darwin.send)
#endif

/// The system's sockets on loopback, blocking.
enum Sockets {
  private static func withAddress<Result>(
    _ port: Int, _ body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Result
  ) -> (result: Result, port: Int) {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, &length) }
    }
    return (result, Int(UInt16(bigEndian: address.sin_port)))
  }

  /// Opens a listener on any free port.
  static func listen() throws -> (descriptor: Int32, port: Int) {
    let listener = socket(AF_INET, stream, 0)
    let (isOpen, port) = withAddress(0) { address, length in
      bind(listener, address, length.pointee) == 0 && systemListen(listener, 64) == 0
        && getsockname(listener, address, length) == 0
    }
    guard isOpen else {
      close(listener)
      throw POSIXError(.EADDRINUSE)
    }
    return (listener, port)
  }

  /// Returns whether a server could listen on a port. Binds it for a moment, in a way that keeps no server from it.
  static func canBind(_ port: Int) -> Bool {
    let descriptor = socket(AF_INET, stream, 0)
    defer { close(descriptor) }
    var reuses: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &reuses, socklen_t(MemoryLayout<Int32>.size))
    return withAddress(port) { bind(descriptor, $0, $1.pointee) == 0 }.result
  }

  /// Calls `serve` with each connection, on a thread of its own, until the listener is shut down.
  static func listen(on listener: Int32, _ serve: @escaping @Sendable (Int32) -> Void) {
    Thread.detachNewThread {
      while true {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else {
          // Closed only here, where nobody uses it any more: a descriptor that is closed elsewhere may already have
          // been reused.
          close(listener)
          return
        }
        Thread.detachNewThread { serve(connection) }
      }
    }
  }

  static func connect(to port: Int) -> Int32? {
    let descriptor = socket(AF_INET, stream, 0)
    let (result, _) = withAddress(port) { systemConnect(descriptor, $0, $1.pointee) }
    if result == 0 { return descriptor }
    close(descriptor)
    return nil
  }

  /// Ends what is in progress; the code that reads or accepts then returns and closes the socket.
  static func shutDown(_ descriptor: Int32) { shutdown(descriptor, Int32(2)) }

  /// Ends a connection as a lost network does: with a reset, not an orderly close.
  static func reset(_ descriptor: Int32) {
    #if os(Linux)
    var nowhere = sockaddr()
    nowhere.sa_family = sa_family_t(AF_UNSPEC)
    _ = systemConnect(descriptor, &nowhere, socklen_t(MemoryLayout<sockaddr>.size))
    #else
    shutDown(descriptor)
    #endif
  }

  /// Receives the next bytes; returns nil at the end.
  static func receive(_ descriptor: Int32, atMost count: Int = 16_384) -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: count)
    let count = recv(descriptor, &buffer, buffer.count, 0)
    return count > 0 ? Array(buffer.prefix(count)) : nil
  }

  /// Sends all of it; returns false if the connection ends before that.
  @discardableResult
  static func send(_ descriptor: Int32, _ bytes: some Collection<UInt8>) -> Bool {
    var rest = Array(bytes)[...]
    while !rest.isEmpty {
      let step = rest.withUnsafeBytes { systemSend(descriptor, $0.baseAddress, $0.count, noSignal) }
      guard step > 0 else { return false }
      rest = rest.dropFirst(step)
    }
    return true
  }
}
