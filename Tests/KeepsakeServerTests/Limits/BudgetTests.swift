#if Cloud
import Foundation
import KeepsakeReplication
import NIOCore
import TestSupport
import Testing

@testable import KeepsakeServer

/// What clients can take of a running server's memory, connections and threads.
@Suite("Budgets of a running server", .hangLimit)
struct BudgetTests {
  private func head(_ client: Client, _ path: String, length: Int) -> String {
    """
    POST \(path) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(client.token ?? "")\r\nContent-Length: \(length)\r\n\r\n
    """
  }

  /// A request for everything.
  private static let fetch = #"{"protocolVersion":1,"cursor":{"epoch":0,"seq":0,"mark":0},"limit":20000}"#

  @Test("large bodies that are held open are in files, and their memory is bounded; they leave nothing behind")
  func heldBodies() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let memory = server.running.gate.memory
      do {
        var held: [RawConnection] = []
        for _ in 0..<12 {
          let connection = try RawConnection(port: server.running.port)
          await connection.send(head(client, "/v1/exchange", length: 16 << 20))
          await connection.send(Data(repeating: 0x20, count: 400_000))
          held.append(connection)
        }
        try await until("all has arrived") { memory.files.use.used == 12 * 400_000 }
        #expect(memory.bodies.use.used == 0 && memory.bodies.use.most <= 12 * ServerLimits.bodyMemoryBytes)
        #expect(try await client.call("POST", "/v1/exchange", json: Self.fetch).status == 200)
      }
      try await until("the files are gone") { memory.files.use.used == 0 }
    }
  }

  @Test("a body that began fast and stalls ends its connection after one window, however fast it was on average")
  func stalledBody() async throws {
    try await LiveServer.with(clock: nil) {
      $0.slowGraceSeconds = 1
    } _: { (server: LiveServer) async throws in
      let (client, _) = try await server.client.register()
      let connection = try RawConnection(port: server.running.port)
      await connection.send(head(client, "/v1/exchange", length: 16 << 20))
      await connection.send(Data(repeating: 0x20, count: 1 << 20))
      #expect(await connection.read(until: "\r\n\r\n") == "")
      #expect(server.running.gate.refusals.counts[.slowBody] == 1)
    }
  }

  @Test("catch-up responses that nobody reads are in files, take little memory, and end after one window")
  func unreadResponses() async throws {
    try await LiveServer.with(clock: nil) {
      $0.slowGraceSeconds = 1
    } _: { (server: LiveServer) async throws in
      let (client, _) = try await server.client.register()
      for batch in 0..<2 {
        let cells = (0..<8).map { number in
          CellUpdate(
            key: CellKey(collection: "progress", key: "\(batch)-\(number)"),
            state: CellState(value: .max(.string(String(repeating: "v", count: 250_000)))))
        }
        let request = ExchangeRequest(cursor: .start, cells: cells, limit: 1)
        #expect(try await client.call("POST", "/v1/exchange", body: JSONEncoder().encode(request)).status == 200)
      }
      let gate = server.running.gate
      var unread: [RawConnection] = []
      for _ in 0..<6 {
        let connection = try RawConnection(port: server.running.port)
        await connection.send(head(client, "/v1/exchange", length: Self.fetch.utf8.count) + Self.fetch)
        unread.append(connection)
      }
      try await until("they are closed") { gate.refusals.counts[.slowReader] == 6 }
      #expect(gate.memory.files.use.most > 6_000_000)
      try await until("their files are gone") { gate.memory.files.use.used == 0 }
      #expect(gate.memory.responses.use.used == 0 && gate.memory.building.use.used == 0)
      // Whoever reads gets all of it.
      let whole = try await client.call("POST", "/v1/exchange", json: Self.fetch)
      #expect(whole.status == 200 && whole.body.count > 3_000_000)
      withExtendedLifetime(unread) {}
    }
  }

  @Test("JSON with a million values is refused before it is decoded, with the limit, also under a key nobody knows")
  func tokens() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      func body(_ zeros: Int) -> String {
        String(Self.fetch.dropLast()) + #","later":[0"# + String(repeating: ",0", count: zeros) + "]}"
      }
      let memory = server.running.gate.memory
      // The answer comes while most of the body is still on its way.
      let connection = try RawConnection(port: server.running.port)
      await connection.send(head(client, "/v1/exchange", length: 16 << 20) + body(ServerLimits.jsonTokens))
      #expect(await connection.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 400"))
      let answer = try await client.call("POST", "/v1/exchange", json: body(ServerLimits.jsonTokens))
      #expect(answer.status == 400 && answer.code == "bad_json", "\(answer.json)")
      #expect((answer.json["error"] as? [String: Any])?["limit"] as? Int == ServerLimits.jsonTokens)
      #expect(memory.decoding.use.most == 0)
      #expect(server.running.gate.refusals.counts[.tooManyTokens] == 2)
      #expect(try await client.call("POST", "/v1/exchange", json: body(1_000)).status == 200)
      let deep = String(repeating: "[", count: 100) + String(repeating: "]", count: 100)
      let nested = String(Self.fetch.dropLast()) + #","later":\#(deep)}"#
      #expect(try await client.call("POST", "/v1/exchange", json: nested).code == "bad_json")
    }
  }

  @Test("connections beyond the limit get 503 with Retry-After, are counted, and others get in when one is closed")
  func connections() async throws {
    try await LiveServer.with(clock: nil) {
      $0.connections = 8
    } _: { (server: LiveServer) async throws in
      let gate = server.running.gate
      try await until("no connection") { gate.connections.counts.open == 0 }
      var open: [RawConnection] = []
      for count in 1...8 {
        open.append(try RawConnection(port: server.running.port))
        try await until("connection \(count)") { gate.connections.counts.open == count }
      }
      let refused = try RawConnection(port: server.running.port)
      let answer = await refused.read(until: "(nothing more)").lowercased()
      #expect(answer.hasPrefix("http/1.1 503") && answer.contains("retry-after: 5"), "\(answer)")
      #expect(gate.refusals.counts[.connection] == 1 && gate.connections.counts.most == 8)
      open.removeLast()
      try await until("one is closed") { gate.connections.counts.open == 7 }
      #expect(try await server.client.call("GET", "/health").status == 200)
      withExtendedLifetime(open) {}
    }
  }

  @Test("a connection without a request is closed")
  func noRequest() async throws {
    try await LiveServer.with(clock: nil) {
      $0.requestSeconds = 1
    } _: { (server: LiveServer) async throws in
      for bytes in ["", "GET /hea"] {
        let connection = try RawConnection(port: server.running.port)
        await connection.send(bytes)
        #expect(await connection.read(until: "\r\n\r\n") == "")
      }
      #expect(server.running.gate.refusals.counts[.noRequest] == 2)
    }
  }

  @Test("events beyond the budget for those who don't read reach them as numbers only")
  func waitingEvents() async throws {
    let hub = EventHub(waitingBytes: 100)
    let (container, other) = (ContainerID(high: 0, low: 1), DeviceID(high: 2, low: 0))
    let slow = try hub.subscribe(other, to: container)
    for seq in 1...3 { hub.publish(UInt64(seq), .init(repeating: 1, count: 45), of: container, from: nil) }
    var notices = slow.notices.makeAsyncIterator()
    #expect(await notices.next()?.event != nil)
    #expect(await notices.next()?.event != nil)
    let third = await notices.next()
    #expect(third?.seq == 3 && third?.event == nil)
    hub.publish(4, .init(repeating: 1, count: 45), of: container, from: nil)
    #expect(await notices.next()?.event != nil)
  }

  @Test("the number of connections follows from the descriptors, and leaves some for the rest of the server")
  func descriptors() {
    #expect(Descriptors.connections(for: 1 << 20) == ServerLimits.connections)
    #expect(Descriptors.connections(for: 1_024) == (1_024 - ServerLimits.reservedDescriptors) / 2)
    #expect(Descriptors.connections(for: 16) == 8)
    #expect(Descriptors.raiseLimit() == Descriptors.raiseLimit())
  }
}
#endif
