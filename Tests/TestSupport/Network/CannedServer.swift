package import Foundation
import Synchronization

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A listener on loopback that responds with whatever bytes a test wants, valid or not.
package final class CannedServer: Sendable {
  package enum Reply: Sendable {
    /// These bytes; the connection stays open for another request.
    case answer(String)
    /// These bytes, and then the connection ends.
    case answerAndClose(String)
    /// These bytes, and then nothing, with the connection open.
    case answerAndHang(String)
  }
  private struct State {
    var requests: [String] = []
    var bodies: [String] = []
    var connections: [Int32] = []
    var connectionCount = 0
    var isStopped = false
  }
  package let port: Int
  private let listener: Int32
  private let state = Mutex(State())

  package var url: URL { URL(string: "http://127.0.0.1:\(port)") ?? URL(fileURLWithPath: "/") }
  /// How many connections there have been.
  package var connectionCount: Int { state.withLock { $0.connectionCount } }
  /// How many of them haven't ended.
  package var openConnectionCount: Int { state.withLock { $0.connections.count } }
  /// The heads of all requests so far.
  package var requests: [String] { state.withLock { $0.requests } }
  /// The bodies of all requests so far, the first 64 KiB of each.
  package var bodies: [String] { state.withLock { $0.bodies } }

  package init(_ reply: @escaping @Sendable (_ head: String, _ number: Int) -> Reply) throws {
    (listener, port) = try Sockets.listen()
    Sockets.listen(on: listener) { [self] connection in
      let goesOn = state.withLock { state in
        if !state.isStopped {
          state.connections.append(connection)
          state.connectionCount += 1
        }
        return !state.isStopped
      }
      if goesOn { serve(connection, reply) } else { close(connection) }
    }
  }

  /// Stops listening, and ends open connections.
  package func stop() {
    state.withLock { state in
      guard !state.isStopped else { return }
      state.isStopped = true
      for descriptor in [listener] + state.connections { Sockets.shutDown(descriptor) }
    }
  }

  private func serve(_ connection: Int32, _ reply: @Sendable (String, Int) -> Reply) {
    defer {
      state.withLock { state in
        state.connections.removeAll { $0 == connection }
        close(connection)
      }
    }
    while let (head, body) = readRequest(connection) {
      let number = state.withLock { state in
        state.requests.append(head)
        state.bodies.append(body)
        return state.requests.count
      }
      switch reply(head, number) {
      case .answer(let text): Sockets.send(connection, text.utf8)
      case .answerAndClose(let text):
        Sockets.send(connection, text.utf8)
        return
      case .answerAndHang(let text):
        Sockets.send(connection, text.utf8)
        var byte: UInt8 = 0
        while recv(connection, &byte, 1, 0) > 0 {}
        return
      }
    }
  }

  /// Reads one request: its head, and the first 64 KiB of its body.
  private func readRequest(_ connection: Int32) -> (head: String, body: String)? {
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
    var body: [UInt8] = []
    while left > 0 {
      let count = recv(connection, &buffer, min(left, buffer.count), 0)
      guard count > 0 else { return nil }
      left -= count
      if body.count < buffer.count { body += buffer[..<count] }
    }
    return (head, String(decoding: body, as: UTF8.self))
  }
}

extension CannedServer.Reply {
  /// A complete response with its length.
  package static func http(_ status: String, _ headers: [String] = ["Keepsake-Protocol: 1"], body: String = "") -> Self
  {
    let lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.utf8.count)"] + headers
    return .answer(lines.joined(separator: "\r\n") + "\r\n\r\n" + body)
  }

  /// The response to a registration: these identifiers are all `id`.
  package static func registered(as id: UInt64, token: String = "a-token") -> Self {
    let id = String(format: "%032llx", id)
    return .http(
      "201 Created", body: #"{"device": "\#(id)", "player": "\#(id)", "container": "\#(id)", "token": "\#(token)"}"#)
  }
}
