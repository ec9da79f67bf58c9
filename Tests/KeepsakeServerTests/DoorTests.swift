#if Cloud
import Foundation
import KeepsakeReplication
import Testing

@testable import KeepsakeServer

@Suite("At the door")
struct DoorTests {
  @Test("an operator sees that the server lives, and every answer says that it is a Keepsake server")
  func health() async throws {
    try await LiveServer.with { server in
      let answer = try await server.client.call("GET", "/health")
      #expect(answer.status == 200)
      #expect(answer.json["status"] as? String == "ok")
      #expect(answer.headers["keepsake-protocol"] == "1")
      let lost = try await server.client.call("GET", "/nowhere")
      #expect(lost.status == 404)
      #expect(lost.code == "not_found")
      #expect(lost.headers["keepsake-protocol"] == "1")
    }
  }

  @Test("a packed body, which may expand a thousandfold, is refused unread")
  func packed() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let answer = try await client.call(
        "POST", "/v1/exchange", headers: ["Content-Encoding": "gzip"], body: Data([0x1F, 0x8B, 8, 0]))
      #expect(answer.status == 415)
      #expect(answer.code == "encoding_refused")
    }
  }

  @Test("an exchange larger than any real one is refused, with and without its length being said")
  func tooLarge() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let answer = try await client.call("POST", "/v1/exchange", body: Data(repeating: 32, count: (16 << 20) + 1))
      #expect(answer.status == 413)
      #expect(answer.code == "too_large")
      let raw = try RawConnection(port: server.running.port)
      await raw.send(
        "POST /v1/devices HTTP/1.1\r\nHost: x\r\nKeepsake-App-Key: \(server.appKey)\r\nTransfer-Encoding: chunked\r\n\r\n"
          + String(repeating: "1000\r\n" + String(repeating: " ", count: 4096) + "\r\n", count: 8) + "0\r\n\r\n")
      #expect(await raw.read(until: "too_large").hasPrefix("HTTP/1.1 413"))
    }
  }

  @Test(
    "bad exchanges are the sender's mistake, never the server's",
    arguments: [
      "", "{", "[]", "null", #""text""#, "{}", #"{"protocolVersion": 1}"#, "DEEP[", #"DEEP{"a":"#,
      #"{"protocolVersion":1,"cursor":{"epoch":-1,"seq":0,"mark":0},"cells":[],"versions":[],"contents":[],"limit":10}"#,
      #"{"protocolVersion":1,"cursor":{"epoch":0,"seq":1e300,"mark":0},"cells":[],"versions":[],"contents":[],"limit":10}"#,
      #"{"protocolVersion":1,"cursor":{"epoch":0,"seq":18446744073709551616,"mark":0},"cells":[],"versions":[],"contents":[],"limit":1}"#,
      #"{"protocolVersion":1,"cursor":{"epoch":0,"seq":18446744073709551615,"mark":0},"cells":[],"versions":[],"contents":[],"limit":1}"#,
      #"{"protocolVersion":1,"cursor":{"epoch":0,"seq":0,"mark":0},"cells":[],"versions":[],"contents":[],"limit":-1}"#,
      #"{"protocolVersion":1,"cursor":{"epoch":0,"seq":0,"mark":0},"cells":[],"versions":[],"contents":[],"limit":0}"#,
      #"{"protocolVersion":2,"cursor":{"epoch":0,"seq":0,"mark":0},"cells":[],"versions":[],"contents":[],"limit":1}"#,
    ])
  func badExchange(body: String) async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let deep = body.hasPrefix("DEEP") ? String(repeating: String(body.dropFirst(4)), count: 50_000) : body
      let answer = try await client.call("POST", "/v1/exchange", json: deep)
      #expect(answer.status == 400, "\(body.prefix(80)): \(answer.json)")
      #expect(answer.code?.hasPrefix("bad_") == true || answer.code == "unsupported_protocol")
    }
  }

  @Test("lines that aren't HTTP, and endless headers, end the connection and nothing else")
  func notHTTP() async throws {
    try await LiveServer.with { server in
      let lines = [
        "hello\r\n\r\n", "GET /health HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\n" + String(repeating: "a: b\r\n", count: 5_000) + "\r\n",
        "GET / HTTP/1.1\r\nx: " + String(repeating: "y", count: 100_000) + "\r\n\r\n",
      ]
      for line in lines {
        let raw = try RawConnection(port: server.running.port)
        await raw.send(line)
        let answer = await raw.read(until: "\r\n\r\n")
        #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 4") || answer.hasPrefix("HTTP/1.1 5"), "\(answer)")
      }
      #expect(try await server.client.call("GET", "/health").status == 200)
    }
  }

  @Test("who sends a byte now and then, or nothing, doesn't keep a connection")
  func slowClients() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(
        data: folder,
        change: {
          $0.idleSeconds = 2
          $0.slowGraceSeconds = 1
        })
      let head = "POST /v1/devices HTTP/1.1\r\nHost: x\r\nKeepsake-App-Key: \(server.appKey)\r\nContent-Length: 5000\r\n\r\n"
      let dripping = try RawConnection(port: server.running.port)
      await dripping.send(head)
      let drops = Task {
        while !Task.isCancelled {
          await dripping.send("x")
          try await Task.sleep(for: .milliseconds(200))
        }
      }
      // Ends only because the server closes it: each drop would start an idle timer again.
      #expect(await dripping.read(until: "\r\n\r\n") == "")
      drops.cancel()
      for silent in ["", "POST /v1/dev", head] {
        let connection = try RawConnection(port: server.running.port)
        await connection.send(silent)
        #expect(await connection.read(until: "\r\n\r\n") == "")
      }
      try await server.stop()
    }
  }

  @Test("one player's streams can't use up the server's")
  func streams() async throws {
    let hub = EventHub()
    let (one, other) = (ContainerID(high: 0, low: 1), ContainerID(high: 0, low: 2))
    let open = try (0..<64).map { _ in try hub.subscribe(to: one) }
    #expect(throws: APIError.self) { try hub.subscribe(to: one) }
    let stranger = try hub.subscribe(to: other)
    hub.unsubscribe(open[0])
    let again = try hub.subscribe(to: one)
    hub.publish(5, of: one)
    hub.publish(3, of: one)
    hub.publish(9, of: other)
    for subscription in open.dropFirst() + [again] {
      var iterator = subscription.seqs.makeAsyncIterator()
      #expect(await iterator.next() == 5)
    }
    var iterator = stranger.seqs.makeAsyncIterator()
    #expect(await iterator.next() == 9)
    #expect(hub.count == 65)
  }

  @Test("two servers never share a data folder")
  func folderLock() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder)
      let error = await #expect(throws: ServerError.self) { try await LiveServer.start(data: folder) }
      #expect(error?.code == .folderInUse)
      try await server.stop()
      let next = try await LiveServer.start(data: folder)
      try await next.stop()
    }
  }

  @Test("data of a newer server is left alone")
  func newer() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder)
      try await server.stop()
      try StorageTests.pretendNewer(folder.appendingPathComponent("cloud.sqlite"))
      let error = await #expect(throws: ServerError.self) { try await LiveServer.start(data: folder) }
      #expect(error?.code == .newerData)
    }
  }

  @Test("a damaged database or secret is told, not overwritten")
  func damaged() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder)
      try await server.stop()
      let database = folder.appendingPathComponent("cloud.sqlite")
      let good = try Data(contentsOf: database)
      let bad = Data(repeating: 0x5A, count: good.count)
      try bad.write(to: database)
      let error = await #expect(throws: ServerError.self) { try await LiveServer.start(data: folder) }
      #expect(error?.code == .damaged)
      #expect(try Data(contentsOf: database) == bad)
      try good.write(to: database)
      try Data("short".utf8).write(to: folder.appendingPathComponent("secret"))
      let second = await #expect(throws: ServerError.self) { try await LiveServer.start(data: folder) }
      #expect(second?.code == .damaged)
    }
  }

  @Test("app keys that can't travel in a header, and ports that don't exist, are refused at the start")
  func configuration() async throws {
    try await TemporaryFolder.with { folder in
      for keys in [["short"], ["with space in it"], ["with\u{0}nul-in-it"], [String(repeating: "k", count: 201)]] {
        let error = await #expect(throws: ServerError.self) { try await LiveServer.start(data: folder, appKeys: keys) }
        #expect(error?.code == .configuration)
      }
      let error = await #expect(throws: ServerError.self) { try await LiveServer.start(data: folder, port: 70_000) }
      #expect(error?.code == .configuration)
    }
  }
}
#endif
