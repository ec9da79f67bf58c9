#if Cloud
import Foundation
import KeepsakeReplication
import NIOCore
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite("Requests, limits and startup")
struct DoorTests {
  @Test("the health check succeeds, and every response names the protocol version in its header")
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

  @Test(
    "a response has `Connection: close` only if the connection ends after it, so that no device reuses the connection")
  func closing() async throws {
    try await LiveServer.with { server in
      for (header, isSaid) in [("Connection: close\r\n", true), ("", false)] {
        let raw = try RawConnection(port: server.running.port)
        await raw.send("GET /health HTTP/1.1\r\nHost: x\r\n\(header)\r\n")
        let answer = await raw.read(until: "{\"status\":\"ok\"}").lowercased()
        #expect(answer.contains("connection: close\r\n") == isSaid, "\(answer)")
      }
    }
  }

  @Test("a compressed request body, which may expand a thousandfold, is refused with status 415")
  func packed() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let answer = try await client.call(
        "POST", "/v1/exchange", headers: ["Content-Encoding": "gzip"], body: Data([0x1F, 0x8B, 8, 0]))
      #expect(answer.status == 415)
      #expect(answer.code == "encoding_refused")
    }
  }

  @Test("a request body above the limit is refused with status 413, with and without a Content-Length")
  func tooLarge() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let answer = try await client.call("POST", "/v1/exchange", body: Data(repeating: 32, count: (16 << 20) + 1))
      #expect(answer.status == 413)
      #expect(answer.code == "too_large")
      let raw = try RawConnection(port: server.running.port)
      await raw.send(
        """
        POST /v1/devices HTTP/1.1\r\nHost: x\r\nKeepsake-App-Key: \(server.appKey)\r\nTransfer-Encoding: chunked\r\n\r\n
        """
          + String(repeating: "1000\r\n" + String(repeating: " ", count: 4096) + "\r\n", count: 8) + "0\r\n\r\n")
      #expect(await raw.read(until: "too_large").hasPrefix("HTTP/1.1 413"))
    }
  }

  @Test(
    "malformed exchanges are refused with status 400, never as a server error",
    arguments: [
      "", "{", "[]", "null", #""text""#, "{}", #"{"protocolVersion": 1}"#, "DEEP[", #"DEEP{"a":"#,
      #"""
      {"protocolVersion":1,"cursor":{"epoch":-1,"seq":0,"mark":0},"cells":[],"versions":[],"contents":[],"limit":10}
      """#,
      #"""
      {"protocolVersion":1,"cursor":{"epoch":0,"seq":1e300,"mark":0},"cells":[],"versions":[],"contents":[],"limit":10}
      """#,
      #"""
      {"protocolVersion":1,"cursor":{"epoch":0,"seq":18446744073709551616,"mark":0},"cells":[],"versions":[],\#
      "contents":[],"limit":1}
      """#,
      #"""
      {"protocolVersion":1,"cursor":{"epoch":0,"seq":18446744073709551615,"mark":0},"cells":[],"versions":[],\#
      "contents":[],"limit":1}
      """#,
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

  @Test("a request of a later protocol version is refused as `unsupported_protocol`, whatever else it contains")
  func laterProtocol() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let answer = try await client.call(
        "POST", "/v1/exchange", json: #"{"protocolVersion":2,"cells":"of another kind"}"#)
      #expect(answer.status == 400 && answer.code == "unsupported_protocol", "\(answer.json)")
    }
  }

  @Test("fields that are omitted from an exchange count as empty, and the response omits empty fields")
  func bareExchange() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let request = #"{"protocolVersion":1,"cursor":{"epoch":0,"seq":0,"mark":0},"limit":100}"#
      let answer = try await client.call("POST", "/v1/exchange", json: request)
      #expect(answer.status == 200, "\(answer.json)")
      #expect(
        answer.json["changes"] == nil && answer.json["outcome"] == nil && answer.json["cursor"] != nil, "\(answer.json)"
      )
    }
  }

  @Test("lines that aren't HTTP and oversized headers affect only their own connection, and the server continues")
  func notHTTP() async throws {
    try await LiveServer.with { server in
      let lines = [
        "hello\r\n\r\n", "GET /health HTTP/9.9\r\n\r\n",
        "GET / HTTP/1.1\r\n" + String(repeating: "a: b\r\n", count: 5_000) + "\r\n",
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

  @Test("the server closes the connection of a client that sends nothing, or only a byte now and then")
  func slowClients() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(
        data: folder,
        change: {
          $0.idleSeconds = 2
          $0.slowGraceSeconds = 1
          $0.requestSeconds = 2
        })
      let head =
        "POST /v1/devices HTTP/1.1\r\nHost: x\r\nKeepsake-App-Key: \(server.appKey)\r\nContent-Length: 5000\r\n\r\n"
      let dripping = try RawConnection(port: server.running.port)
      await dripping.send(head)
      let drops = Task {
        while !Task.isCancelled {
          await dripping.send("x")
          try await Task.sleep(for: .milliseconds(200))
        }
      }
      // Ends only because the server closes the connection: each byte would restart an idle timer.
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

  @Test("each player has a limited number of event streams, which receive only that player's newer events")
  func streams() async throws {
    let hub = EventHub()
    let (one, other) = (ContainerID(high: 0, low: 1), ContainerID(high: 0, low: 2))
    let (own, device) = (DeviceID(high: 1, low: 0), DeviceID(high: 2, low: 0))
    let open = try (0..<64).map { _ in try hub.subscribe(device, to: one) }
    #expect(throws: APIError.self) { try hub.subscribe(device, to: one) }
    let stranger = try hub.subscribe(device, to: other)
    hub.unsubscribe(open[0])
    let sender = try hub.subscribe(own, to: one)
    #expect(hub.hasListeners(in: one, besides: own))
    #expect(!hub.hasListeners(in: other, besides: device))
    hub.publish(5, ByteBuffer(string: "five"), of: one, from: own)
    hub.publish(3, ByteBuffer(string: "three"), of: one, from: own)
    hub.publish(6, nil, of: one, from: own)
    hub.publish(9, nil, of: other, from: own)
    for subscription in open.dropFirst() + [sender] {
      var iterator = subscription.notices.makeAsyncIterator()
      let first = await iterator.next()
      #expect(first?.seq == 5)
      // The device that made the exchange knows its contents already.
      #expect((first?.event).map { String(buffer: $0) } == (subscription.id == sender.id ? nil : "five"))
      #expect(await iterator.next()?.seq == 6)
    }
    var iterator = stranger.notices.makeAsyncIterator()
    #expect(await iterator.next()?.seq == 9)
    #expect(hub.count == 65)
  }

  @Test("a long poll responds at once if its `after` isn't the current seq, and with status 204 if nothing happens")
  func nextEvents() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let first = try await client.call("GET", "/v1/events/next")
      #expect(first.status == 200 && first.json["seq"] as? Int == 0)
      let elsewhere = try await client.call("GET", "/v1/events/next?after=7")
      #expect(elsewhere.status == 200 && elsewhere.json["seq"] as? Int == 0)
      #expect(try await client.call("GET", "/v1/events/next?after=x").status == 400)
      #expect(try await server.client.call("GET", "/v1/events/next").status == 401)
      let nothing = try await client.call("GET", "/v1/events/next?after=0")
      #expect(nothing.status == 204 && nothing.headers["keepsake-protocol"] == "1")
    }
  }

  @Test("a server refuses to start on a data folder that another server uses")
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

  #if os(Linux)
  @Test("a server can be started again at once even if its process started another program while stopping it")
  func releasesLockOfChildren() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder)
      let copies = try copiedDescriptors(of: folder.appendingPathComponent("lock"))
      defer { for copy in copies { close(copy) } }
      #expect(copies.count == 1)
      try await server.stop()
      try await LiveServer.start(data: folder).stop()
    }
  }
  #endif

  @Test("a server refuses to start on the data of a newer version")
  func newer() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder)
      try await server.stop()
      try StorageTests.pretendNewer(folder.appendingPathComponent("cloud.sqlite"))
      let error = await #expect(throws: ServerError.self) { try await LiveServer.start(data: folder) }
      #expect(error?.code == .newerData)
    }
  }

  @Test("a server refuses to start with a damaged database, which it doesn't overwrite, or with a damaged secret")
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

  @Test("a server whose time to stop is over ends the requests in progress, and that is no failure", .hangLimit)
  func stopsLate() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder, change: { $0.stopSeconds = 1 })
      let token = try #require(try await server.client.register().0.token)
      let raw = try RawConnection(port: server.running.port)
      await raw.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
      _ = await raw.read(until: "ok")
      await raw.send(
        "POST /v1/exchange HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(token)\r\nContent-Length: 100\r\n\r\n{")
      // A request that hasn't begun by then doesn't hold the server up, and the test is weaker.
      try await Task.sleep(for: .milliseconds(200))
      try await server.stop()
      // Its database is one file, and its lock is free again.
      let log = folder.appendingPathComponent("cloud.sqlite-wal")
      #expect((try? Data(contentsOf: log))?.isEmpty ?? true)
      let next = try await LiveServer.start(data: folder)
      try await next.stop()
    }
  }

  @Test("a server refuses to start with an app key of invalid length or characters, or with an invalid port")
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
