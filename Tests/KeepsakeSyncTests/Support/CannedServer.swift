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

/// A listener on loopback that answers with whatever bytes a test wants, right or wrong.
final class CannedServer: Sendable {
  enum Reply: Sendable {
    /// These bytes; the connection stays open for another request.
    case answer(String)
    /// These bytes, and the connection ends.
    case answerAndClose(String)
    /// These bytes, and then nothing, with the connection open.
    case answerAndHang(String)
  }
  private struct State {
    var requests: [String] = []
    var connections: [Int32] = []
    var isStopped = false
  }
  let port: Int
  private let listener: Int32
  private let state = Mutex(State())

  var url: URL { URL(string: "http://127.0.0.1:\(port)") ?? URL(fileURLWithPath: "/") }
  /// The heads of all requests so far.
  var requests: [String] { state.withLock { $0.requests } }

  init(_ reply: @escaping @Sendable (_ head: String, _ number: Int) -> Reply) throws {
    listener = socket(AF_INET, streamType, 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = listener
    let failed = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, length) != 0 || listen(listener, 16) != 0 || getsockname(listener, $0, &length) != 0
      }
    }
    guard !failed else { throw POSIXError(.EADDRINUSE) }
    port = Int(UInt16(bigEndian: address.sin_port))
    Thread.detachNewThread { [self] in
      while true {
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else {
          // Only here, where nobody uses it any more: a number that is closed elsewhere may be somebody else's by now.
          close(listener)
          return
        }
        let goesOn = state.withLock { state in
          if !state.isStopped { state.connections.append(connection) }
          return !state.isStopped
        }
        guard goesOn else {
          close(connection)
          continue
        }
        Thread.detachNewThread { [self] in serve(connection, reply) }
      }
    }
  }

  /// Nobody listens any more, and open connections end.
  func stop() {
    state.withLock { state in
      guard !state.isStopped else { return }
      state.isStopped = true
      shutdown(listener, Int32(2))
      for connection in state.connections { shutdown(connection, Int32(2)) }
    }
  }

  private func serve(_ connection: Int32, _ reply: @Sendable (String, Int) -> Reply) {
    defer {
      state.withLock { state in
        state.connections.removeAll { $0 == connection }
        close(connection)
      }
    }
    while let head = readRequest(connection) {
      let number = state.withLock { state in
        state.requests.append(head)
        return state.requests.count
      }
      switch reply(head, number) {
      case .answer(let text): send(text, connection)
      case .answerAndClose(let text):
        send(text, connection)
        return
      case .answerAndHang(let text):
        send(text, connection)
        var byte: UInt8 = 0
        while recv(connection, &byte, 1, 0) > 0 {}
        return
      }
    }
  }

  private func send(_ text: String, _ connection: Int32) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { systemSend(connection, $0) }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  private func systemSend(_ connection: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    #if canImport(Glibc)
    Glibc.send(connection, bytes.baseAddress, bytes.count, noSignal)
    #elseif canImport(Musl)
    Musl.send(connection, bytes.baseAddress, bytes.count, noSignal)
    #else
    Darwin.send(connection, bytes.baseAddress, bytes.count, noSignal)
    #endif
  }

  /// One request's head; its body is read and dropped.
  private func readRequest(_ connection: Int32) -> String? {
    var received: [UInt8] = []
    var byte: UInt8 = 0
    while !received.suffix(4).elementsEqual("\r\n\r\n".utf8) {
      guard received.count < 65_536, recv(connection, &byte, 1, 0) == 1 else { return nil }
      received.append(byte)
    }
    let head = String(decoding: received, as: UTF8.self)
    let length =
      head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
      .flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) } ?? 0
    var buffer = [UInt8](repeating: 0, count: 65_536)
    var left = length
    while left > 0 {
      let count = recv(connection, &buffer, min(left, buffer.count), 0)
      guard count > 0 else { return nil }
      left -= count
    }
    return head
  }
}

extension CannedServer.Reply {
  /// A whole answer with its length.
  static func http(_ status: String, _ headers: [String] = ["Keepsake-Protocol: 1"], body: String = "") -> Self {
    let lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.utf8.count)"] + headers
    return .answer(lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
  }
}
