#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeSync
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeServer

/// Keeps what a server sends, and answers as the test says.
final class RecordingSender: WebhookSender {
  private struct State {
    var status: Int?
    var requests: [WebhookRequest] = []
  }
  private let state: Mutex<State>

  /// - Parameter status: Nil for no answer.
  init(status: Int? = 200) { state = Mutex(State(status: status)) }

  var status: Int? {
    get { state.withLock { $0.status } }
    set { state.withLock { $0.status = newValue } }
  }
  /// What was accepted, or sent without an answer.
  var requests: [WebhookRequest] { state.withLock { $0.requests } }
  var kinds: [String] { requests.compactMap { Self.body($0)["kind"] as? String } }

  static func body(_ request: WebhookRequest) -> [String: Any] {
    (try? JSONSerialization.jsonObject(with: request.body)) as? [String: Any] ?? [:]
  }

  func send(_ request: WebhookRequest) async throws -> Int {
    let status = state.withLock { state in
      state.requests.append(request)
      return state.status
    }
    guard let status else { throw URLError(.cannotConnectToHost) }
    return status
  }

  func close() {}
}

/// Webhooks of a whole server.
@Suite("A server with webhooks", .hangLimit) struct WebhookServerTests {
  private func start(
    in folder: URL, _ sender: any WebhookSender, url: String = "http://127.0.0.1:9/hook"
  ) async throws -> LiveServer {
    let endpoint = try WebhookLab.endpoint("shop", in: folder, url: url)
    return try await LiveServer.start(
      data: folder.appendingPathComponent("server"),
      change: { configuration in
        (configuration.adminPort, configuration.saves) = (0, TextReader())
        (configuration.webhooks, configuration.webhookSender) = ([endpoint], sender)
      })
  }

  private func stage(_ server: LiveServer, _ folder: URL) -> AdminStage {
    AdminStage(server: server, data: folder.appendingPathComponent("server"), folder: folder)
  }

  @Test("a backend gets over HTTP what devices, servers of the game and the studio do, each signed")
  func http() async throws {
    try await TemporaryFolder.with { folder in
      let backend = try CannedServer { _, _ in .http("204 No Content", []) }
      defer { backend.stop() }
      let server = try await start(in: folder, HTTPWebhookSender(), url: "\(backend.url.absoluteString)/hook?a=b")
      let stage = stage(server, folder)
      func kinds() -> [String] {
        backend.bodies.compactMap {
          ((try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: Any])?["kind"] as? String
        }
      }
      let device = try await stage.device()
      let version = try device.save(Data("a save".utf8), to: "main")
      try await device.sync.sync()
      try await until("the save is told") { kinds() == ["deviceAdded", "saveArrived"] }
      let second = try await stage.device(with: device)
      try await second.sync.sync()
      let client = try stage.client()
      let order = """
        {"id": "\(OperationID(high: 5, low: 6))", "kind": "grant", "currency": "gems", "amount": 5, "reason": "sorry"}
        """
      #expect(try await client.call("POST", AdminStage.path(device, "/money/orders"), json: order).status == 200)
      let removed = AdminStage.path(device, "/devices/\(second.credentials.device)")
      #expect(try await client.call("DELETE", removed).status == 204)
      try await until("the device is told") { kinds().last == "deviceRemoved" }
      #expect(try await client.call("DELETE", AdminStage.path(device)).status == 200)
      try await until("the end is told") { kinds().last == "playerDeleted" }
      #expect(
        kinds() == ["deviceAdded", "saveArrived", "deviceAdded", "purchaseSettled", "deviceRemoved", "playerDeleted"])
      #expect(backend.bodies[1].contains("\(version)") && backend.bodies[1].contains("\(device.credentials.player)"))
      #expect(backend.bodies[3].contains(#""balance":5"#) && backend.bodies[3].contains(#""what":"grant""#))

      let secrets = try WebhookSecrets(folder.appendingPathComponent("shop.secrets"), of: "shop")
      for (head, body) in zip(backend.requests, backend.bodies) {
        #expect(head.hasPrefix("POST /hook?a=b HTTP/1.1\r\n"))
        var fields: [String: String] = [:]
        for line in head.split(separator: "\r\n").dropFirst() {
          let parts = line.split(separator: ":", maxSplits: 1)
          fields[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
        }
        let id = try #require(fields["keepsake-webhook-id"])
        let time = try #require(fields["keepsake-webhook-time"].flatMap { Int64($0) })
        #expect(body.contains(#""id":"\#(id)""#) && fields["content-type"] == "application/json")
        #expect(
          fields["keepsake-webhook-signature"] == secrets.signature(id: id, milliseconds: time, body: Data(body.utf8)))
      }
      for device in [device, second] { try await device.close() }
      try await server.stop()
    }
  }

  /// Sends, and closes the connections afterwards, whatever comes of it.
  private func sending(_ body: (HTTPWebhookSender) async throws -> Void) async throws {
    let sender = HTTPWebhookSender()
    do {
      try await body(sender)
    } catch {
      try await sender.close()
      throw error
    }
    try await sender.close()
  }

  private static func request(_ name: String, to backend: URL) -> WebhookRequest {
    WebhookRequest(endpoint: name, url: backend.appendingPathComponent(name), headers: [:], body: Data("{}".utf8))
  }

  @Test("a webhook that never answers takes no connection from another at the same host")
  func sameHost() async throws {
    let backend = try CannedServer { head, _ in
      head.hasPrefix("POST /slow ") ? .answerAndHang("") : .http("204 No Content", [])
    }
    defer { backend.stop() }
    let url = backend.url
    try await sending { sender in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<WebhookLimits().requests {
          group.addTask {
            // Cancelled in the end.
            _ = try? await sender.send(Self.request("slow", to: url))
          }
        }
        try await until("all are on their way") { backend.requests.count == WebhookLimits().requests }
        let status = try await Deadline.run(within: .seconds(20)) {
          try await sender.send(Self.request("quick", to: url))
        }
        #expect(status == 204)
        group.cancelAll()
      }
    }
  }

  @Test("no redirection is followed, and of an answer that is too long or cut off only the status counts")
  func answers() async throws {
    let backend = try CannedServer { head, _ in
      if head.hasPrefix("POST /away ") { return .http("307 Temporary Redirect", ["Location: /elsewhere"]) }
      let isLong = head.hasPrefix("POST /long ")
      let text = "HTTP/1.1 \(isLong ? 200 : 503) Words\r\nContent-Length: 1000000\r\n\r\n"
      let body = String(repeating: "x", count: isLong ? 2 * HTTPWebhookSender.answerBytes : 10)
      return isLong ? .answerAndHang(text + body) : .answerAndClose(text + body)
    }
    defer { backend.stop() }
    try await sending { sender in
      for (name, status) in [("away", 307), ("long", 200), ("cut", 503)] {
        let answered = try await sender.send(Self.request(name, to: backend.url))
        #expect(answered == status, "\(name)")
      }
      #expect(backend.requests.count == 3)
      backend.stop()
      await #expect(throws: (any Error).self) {
        _ = try await sender.send(Self.request("away", to: backend.url))
      }
    }
  }

  @Test("while a backend is down, the studio sees what waits; a restarted server sends it")
  func admin() async throws {
    try await TemporaryFolder.with { folder in
      let sender = RecordingSender(status: nil)
      var server = try await start(in: folder, sender)
      var stage = stage(server, folder)
      let device = try await stage.device()
      try await until("it was tried") { !sender.requests.isEmpty }
      var client = try stage.client([.webhooks])
      func shown() async throws -> [String: Any] {
        let answer = try await client.call("GET", "/admin/v1/webhooks")
        #expect(answer.status == 200)
        return try #require((answer.json["endpoints"] as? [[String: Any]])?.first)
      }
      let down = try await shown()
      #expect(down["name"] as? String == "shop" && down["host"] as? String == "127.0.0.1")
      #expect(down["waiting"] as? Int == 1 && down["dead"] as? Int == 0 && down["state"] as? String != nil)

      try await AdminDatabase.buryWebhooks(stage.data, "a test")
      let dead = try await client.call("GET", "/admin/v1/webhooks/shop/dead")
      let letter = try #require((dead.json["events"] as? [[String: Any]])?.first)
      #expect(letter["reason"] as? String == "a test" && letter["kind"] as? String == "deviceAdded")
      #expect(letter["player"] as? String == "\(device.credentials.player)")
      try await server.stop()

      sender.status = 200
      server = try await start(in: folder, sender)
      stage = self.stage(server, folder)
      client = try stage.client([.webhooks], name: "grace")
      #expect(try await client.call("POST", "/admin/v1/webhooks/bank/retry", json: "{}").status == 404)
      let retried = try await client.call("POST", "/admin/v1/webhooks/shop/retry", json: "{}")
      #expect(retried.status == 200 && retried.json["retried"] as? Int == 1)
      try await until("it has arrived") { try await shown()["waiting"] as? Int == 0 }
      #expect(RecordingSender.body(try #require(sender.requests.last))["id"] as? String == letter["id"] as? String)
      #expect(try stage.audit().contains { $0.act == "webhook.retry" && $0.details["webhook"] == "shop" })
      try await device.close()
      try await server.stop()
    }
  }

  @Test(
    "a deleted player leaves nothing in the data folder either while a backend is down",
    .enabled(if: !TestDatabase.isUsedByServers, "the database's files aren't the server's"))
  func erasure() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await start(in: folder, RecordingSender(status: 500))
      let stage = stage(server, folder)
      let device = try await stage.device()
      for number in 0..<20 {
        try device.save(Data("save \(number)".utf8), to: "Zq7XmarkerW4t")
        try await device.sync.sync()
      }
      let credentials = device.credentials
      let ids: [any CustomStringConvertible] = [credentials.player, credentials.device, credentials.container]
      let marks =
        [credentials.player.bytes, credentials.device.bytes, credentials.container.bytes, Data("Zq7XmarkerW4t".utf8)]
        + ids.map { Data($0.description.utf8) }
      #expect(try !Traces.files(of: stage.data, having: marks).isEmpty)
      let answer = try await stage.client().call("DELETE", AdminStage.path(device))
      #expect(answer.status == 200 && answer.json["erased"] as? Bool == true)
      #expect(try Traces.files(of: stage.data, having: marks) == [])
      try await device.close()
      try await server.stop()
    }
  }
}
#endif
