#if Cloud
import Foundation
import KeepsakePlatform
/// The address of the server under load, resolved once.
struct LoadAddress: Sendable {
  let host: String
  let port: Int
  /// The bytes of a `sockaddr`.
  private let bytes: [UInt8]
  let family: Int32
  /// Whether it is an address of this machine: one that a socket can be bound to.
  let isOfThisMachine: Bool

  /// - Throws: A `CommandFailure` if the URL isn't one of plain HTTP, or its host isn't found.
  init(_ url: URL) throws {
    guard url.scheme?.lowercased() == "http", let host = url.host, !host.isEmpty else {
      throw CommandFailure(
        .data, "keepsake load speaks plain HTTP, and \(url.absoluteString) isn't an address of it",
        next: "name the server itself rather than its proxy, such as http://127.0.0.1:8080")
    }
    self.host = host
    port = url.port ?? 80
    var hints = addrinfo()
    hints.ai_socktype = SystemCall.stream
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, "\(port)", &hints, &list) == 0, let first = list, let address = first.pointee.ai_addr
    else {
      throw CommandFailure(.unavailable, "the host \(host) isn't found", next: "check --url")
    }
    defer { freeaddrinfo(list) }
    family = first.pointee.ai_family
    bytes = Array(UnsafeRawBufferPointer(start: address, count: Int(first.pointee.ai_addrlen)))
    isOfThisMachine = Self.canBind(bytes, family)
  }

  private static func canBind(_ bytes: [UInt8], _ family: Int32) -> Bool {
    let descriptor = socket(family, SystemCall.stream, 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var anyPort = bytes
    // The port's place is the same in both families; 0 takes any free one.
    guard anyPort.count >= 4 else { return false }
    (anyPort[2], anyPort[3]) = (0, 0)
    return Self.with(anyPort) { bind(descriptor, $0, $1) } == 0
  }

  /// Connects a socket to it.
  func connect(_ descriptor: Int32) -> Int32 {
    Self.with(bytes) { SystemCall.connect(descriptor, $0, $1) }
  }

  private static func with(_ bytes: [UInt8], _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
    bytes.withUnsafeBytes { raw in
      guard let base = raw.baseAddress else { return -1 }
      return body(base.assumingMemoryBound(to: sockaddr.self), socklen_t(raw.count))
    }
  }
}

/// A connected socket whose calls block, each for a limited time.
final class LoadSocket {
  let descriptor: Int32

  /// - Parameters:
  ///   - timeoutSeconds: How long one call may wait.
  ///   - receiveBytes: How much the system may receive ahead; nil for its own choice.
  init(_ address: LoadAddress, timeoutSeconds: Int, receiveBytes: Int32? = nil) throws(LoadError) {
    descriptor = socket(address.family, SystemCall.stream, 0)
    guard descriptor >= 0 else { throw LoadError("no socket") }
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    if var receiveBytes {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBytes, socklen_t(MemoryLayout<Int32>.size))
    }
    var limit = timeval()
    limit.tv_sec = timeoutSeconds
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
    }
    guard address.connect(descriptor) == 0 else {
      throw LoadError(errno == EINPROGRESS || errno == EAGAIN ? "connect timed out" : "connect refused")
    }
  }

  deinit { close(descriptor) }

  func send(_ bytes: Data) throws(LoadError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let sent = rest.withUnsafeBytes { SystemCall.send(descriptor, $0.baseAddress, $0.count) }
      if sent < 0, errno == EINTR { continue }
      guard sent > 0 else { throw LoadError(errno == EAGAIN ? "send timed out" : "connection closed") }
      rest = rest.dropFirst(sent)
    }
  }

  /// Returns what has arrived, at least one byte; nil if the other side has closed.
  func receive(atMost count: Int = 64 << 10) throws(LoadError) -> Data? {
    var buffer = [UInt8](repeating: 0, count: count)
    while true {
      let received = recv(descriptor, &buffer, count, 0)
      if received < 0, errno == EINTR { continue }
      guard received >= 0 else { throw LoadError(errno == EAGAIN ? "no response in time" : "connection closed") }
      return received == 0 ? nil : Data(buffer.prefix(received))
    }
  }
}

/// What went wrong with a request, in words that are counted.
struct LoadError: Error, Hashable {
  var kind: String

  init(_ kind: String) { self.kind = kind }
}
#endif
