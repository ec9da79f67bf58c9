#if Cloud
import Foundation

/// One connection of a device: requests one after the other, as many as the server lets it make.
///
/// Not the games' client, whose sessions have threads of their own, so that thousands of devices in one process would
/// measure those. The messages are made and read by the games' code.
final class LoadConnection {
  struct Response {
    var status: Int
    var headers: [String: String]
    var body: Data
  }
  /// Longer heads are none of a Keepsake server's.
  private static let maximumHeadBytes = 64 << 10
  private static let timeoutSeconds = 60

  private let address: LoadAddress
  private var socket: LoadSocket?
  private var received = Data()

  init(_ address: LoadAddress) { self.address = address }

  /// Sends a request and reads its response. After an error the next request opens a new connection.
  func call(
    _ method: String, _ path: String, _ headers: [(String, String)] = [], body: Data? = nil
  ) throws(LoadError) -> Response {
    do throws(LoadError) {
      let socket = try connected()
      try socket.send(Self.head(method, path, headers, body, address) + (body ?? Data()))
      let response = try read(socket)
      if response.headers["connection"]?.lowercased() == "close" { close() }
      return response
    } catch {
      close()
      throw error
    }
  }

  private func connected() throws(LoadError) -> LoadSocket {
    if let socket { return socket }
    let new = try LoadSocket(address, timeoutSeconds: Self.timeoutSeconds)
    socket = new
    return new
  }

  func close() {
    socket = nil
    received = Data()
  }

  static func head(
    _ method: String, _ path: String, _ headers: [(String, String)], _ body: Data?, _ address: LoadAddress
  ) -> Data {
    var text = "\(method) \(path) HTTP/1.1\r\nHost: \(address.host):\(address.port)\r\n"
    for (name, value) in headers { text += "\(name): \(value)\r\n" }
    if let body { text += "Content-Length: \(body.count)\r\n" }
    return Data((text + "\r\n").utf8)
  }

  // MARK: Reading

  private func read(_ socket: LoadSocket) throws(LoadError) -> Response {
    let separator = Data("\r\n\r\n".utf8)
    while received.range(of: separator) == nil {
      guard received.count < Self.maximumHeadBytes else { throw LoadError("not HTTP") }
      try more(socket)
    }
    guard let end = received.range(of: separator) else { throw LoadError("not HTTP") }
    let head = String(decoding: received[..<end.lowerBound], as: UTF8.self)
    received = Data(received[end.upperBound...])
    var lines = head.components(separatedBy: "\r\n")
    let words = lines.removeFirst().split(separator: " ")
    guard words.count >= 2, words[0].hasPrefix("HTTP/1"), let status = Int(words[1]) else {
      throw LoadError("not HTTP")
    }
    var headers: [String: String] = [:]
    for line in lines {
      guard let colon = line.firstIndex(of: ":") else { continue }
      headers[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    }
    let body: Data
    if status == 204 || status == 304 {
      body = Data()
    } else if headers["transfer-encoding"]?.lowercased() == "chunked" {
      body = try chunks(socket)
    } else {
      body = try take(headers["content-length"].flatMap { Int($0) } ?? 0, socket)
    }
    return Response(status: status, headers: headers, body: body)
  }

  private func chunks(_ socket: LoadSocket) throws(LoadError) -> Data {
    var body = Data()
    while true {
      guard let size = Int(try line(socket).prefix { $0.isHexDigit }, radix: 16) else { throw LoadError("not HTTP") }
      body.append(try take(size, socket))
      _ = try line(socket)
      if size == 0 { return body }
    }
  }

  private func line(_ socket: LoadSocket) throws(LoadError) -> String {
    let end = Data("\r\n".utf8)
    while received.range(of: end) == nil { try more(socket) }
    guard let range = received.range(of: end) else { throw LoadError("not HTTP") }
    defer { received = Data(received[range.upperBound...]) }
    return String(decoding: received[..<range.lowerBound], as: UTF8.self)
  }

  private func take(_ count: Int, _ socket: LoadSocket) throws(LoadError) -> Data {
    while received.count < count { try more(socket) }
    defer { received = Data(received.dropFirst(count)) }
    return Data(received.prefix(count))
  }

  private func more(_ socket: LoadSocket) throws(LoadError) {
    guard let part = try socket.receive() else { throw LoadError("connection closed") }
    received.append(part)
  }
}
#endif
