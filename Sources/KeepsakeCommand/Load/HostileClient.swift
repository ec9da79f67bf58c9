#if Cloud
import Foundation
import KeepsakeReplication

/// A client that wants to harm the server: it repeats one attack until the end, and counts what the server does.
final class HostileClient {
  /// Connections that one attacker holds.
  private static let held = 8
  private static let timeoutSeconds = 60
  private static let covers = 60_000
  /// Contents that are large enough for a response not to fit into the system's buffers.
  private static let unreadBytes = 4 << 20
  private static let slowBodyBytes = 16 << 20

  private let attack: LoadAttack
  private let address: LoadAddress
  private let appKey: String
  private let clock: LoadClock
  private(set) var record = LoadRecord()

  init(_ attack: LoadAttack, at address: LoadAddress, appKey: String, clock: LoadClock) {
    (self.attack, self.address, self.appKey, self.clock) = (attack, address, appKey, clock)
  }

  func run() {
    while !clock.isEnded {
      do throws(LoadError) {
        switch attack {
        case .slowBodies: try sendSlowly()
        case .unreadAnswers: try leaveUnread()
        case .hugeCovers: try coverMuch()
        case .forgedTokens: try forge()
        }
      } catch {
        record.attack(attack, error.kind)
        clock.pause(.milliseconds(100))
      }
    }
  }

  private func account(_ connection: LoadConnection) throws(LoadError) -> LoadDevice.Account {
    let response = try connection.call(
      "POST", "/v1/devices", [("Keepsake-App-Key", appKey)], body: Data(#"{"name":"hostile"}"#.utf8))
    try LoadDevice.check(response)
    do {
      return try JSONDecoder().decode(LoadDevice.Account.self, from: response.body)
    } catch {
      throw LoadError("response can't be decoded")
    }
  }

  private static func authorization(_ token: String) -> [(String, String)] { [("Authorization", "Bearer \(token)")] }

  // MARK: Attacks

  private func sendSlowly() throws(LoadError) {
    let token = try account(LoadConnection(address)).token
    let head = LoadConnection.head(
      "POST", "/v1/exchange",
      Self.authorization(token) + [("Content-Type", "application/json"), ("Content-Length", "\(Self.slowBodyBytes)")],
      nil, address)
    var sockets: [LoadSocket] = []
    for _ in 0..<Self.held {
      let socket = try LoadSocket(address, timeoutSeconds: Self.timeoutSeconds)
      // Enough at once that its average speed looks good for long.
      try socket.send(head + Data(repeating: 0x20, count: 1 << 20))
      sockets.append(socket)
    }
    while !clock.isEnded, !sockets.isEmpty {
      clock.pause(.milliseconds(500))
      sockets = sockets.filter { socket in
        do throws(LoadError) {
          try socket.send(Data(repeating: 0x20, count: 16))
          return true
        } catch {
          record.attack(attack, "ended by the server")
          return false
        }
      }
    }
    record.attack(attack, "still open at the end")
  }

  private func leaveUnread() throws(LoadError) {
    let connection = LoadConnection(address)
    let token = try account(connection).token
    let content = try LoadContents.content(Self.unreadBytes, variant: 0, device: WriterID(0))
    try LoadDevice.check(
      try connection.call(
        "PUT", "/v1/contents/\(content.hash)",
        Self.authorization(token) + [("Keepsake-Length", "\(content.length)")], body: content.bytes))
    let request = LoadConnection.head(
      "GET", "/v1/contents/\(content.hash)", Self.authorization(token), nil, address)
    var sockets: [LoadSocket] = []
    for _ in 0..<Self.held {
      let socket = try LoadSocket(address, timeoutSeconds: Self.timeoutSeconds, receiveBytes: 4_096)
      try socket.send(request)
      sockets.append(socket)
    }
    record.attack(attack, "responses left unread")
    while !clock.isEnded { clock.pause(.milliseconds(500)) }
    withExtendedLifetime(sockets) {}
  }

  private func coverMuch() throws(LoadError) {
    let connection = LoadConnection(address)
    let token = try account(connection).token
    var source = SystemRandomNumberGenerator()
    let covers = (0..<Self.covers).map { _ in VersionID(using: &source) }
    let version = VersionRecord(
      id: VersionID(using: &source), slot: "slot", covers: covers.sorted(), contents: [], length: 0,
      savedAtMilliseconds: 0, writer: WriterID(0), provisional: false, tombstone: true)
    let body: Data
    do {
      body = try ExchangeBody.encode(ExchangeRequest(cursor: .start, versions: [version], limit: 1))
    } catch {
      throw LoadError("request can't be encoded")
    }
    let headers = Self.authorization(token) + [("Content-Type", ExchangeBody.contentType)]
    while !clock.isEnded {
      let response = try connection.call("POST", "/v1/exchange", headers, body: body)
      record.attack(attack, "\(response.status)")
    }
  }

  private func forge() throws(LoadError) {
    let connection = LoadConnection(address)
    let bytes = Data((0..<121).map { _ in UInt8.random(in: .min ... .max) })
    let token = bytes.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    let response = try connection.call("GET", "/v1/devices", Self.authorization(token))
    record.attack(attack, "\(response.status)")
  }
}
#endif
