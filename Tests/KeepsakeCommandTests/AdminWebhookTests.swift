#if Cloud && os(Linux)
import Foundation
import Keepsake
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeCommand

/// `keepsake admin webhook`: with a server whose backend is away, and with answers of many pages.
@Suite("keepsake admin webhook", .serialized, .hangLimit) struct AdminWebhookTests {
  private static func json(_ ended: TestSupport.ChildProcess.Ended) throws -> [String: Any] {
    try #require(
      try JSONSerialization.jsonObject(with: ended.output) as? [String: Any], "\(ended.text) \(ended.errors)")
  }

  @Test("a webhook whose backend is away has a failure, and events wait; there are no dead letters to send again")
  func away() async throws {
    try await TemporaryFolder.with { secrets in
      let secret = secrets.appendingPathComponent("secret")
      try Data((String(repeating: "5a", count: 32) + "\n").utf8).write(to: secret)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secret.path)
      // Nothing listens on this port, which only the superuser could open.
      let webhook = "shop url=http://127.0.0.1:1/hook secrets=\(secret.path)"
      try await RunningCloud.with(["--webhook", webhook]) { cloud, folder in
        let data = folder.deletingLastPathComponent().appendingPathComponent("cloud")
        func key(_ name: String, _ more: [String]) throws -> [String] {
          let made = try Tool.run(["admin", "key", "create", "--data", data.path, "--name", name] + more)
          let file = folder.appendingPathComponent("key-\(name)")
          try made.output.write(to: file)
          return ["--url", cloud.adminURL, "--key-file", file.path]
        }
        let asked = try key("ada", ["--scopes", "webhooks"])
        let game = try GameData.open("com.example.webhook", at: folder.appendingPathComponent("game"))
        let url = try #require(URL(string: cloud.url))
        game.cloud.connect(.server(url, appKey: cloud.appKey), deviceName: "phone")
        try await game.cloud.sync()
        try game.close()
        var shown: [String: Any] = [:]
        try await until("the first attempt has failed") {
          let listed = try Self.json(try Tool.run(["admin", "webhook", "list", "--json"] + asked))
          shown = (listed["webhooks"] as? [[String: Any]])?.first ?? [:]
          return shown["failure"] != nil
        }
        #expect(shown["name"] as? String == "shop" && shown["host"] as? String == "127.0.0.1")
        #expect(shown["waitingCount"] as? Int == 1 && shown["deadCount"] as? Int == 0, "\(shown)")
        #expect(shown["oldest"] is String && shown["state"] is String, "\(shown)")
        let table = try Tool.run(["admin", "webhook", "list"] + asked)
        #expect(table.status == 0 && table.text.contains("shop"), "\(table.errors)")
        let dead = try Self.json(try Tool.run(["admin", "webhook", "dead", "shop", "--json"] + asked))
        #expect((dead["events"] as? [Any])?.isEmpty == true && dead["webhook"] as? String == "shop")
        let retried = try Self.json(try Tool.run(["admin", "webhook", "retry", "shop", "--json"] + asked))
        #expect(retried["retriedCount"] as? Int == 0)
        #expect(try Tool.run(["admin", "webhook", "dead", "other"] + asked).status == 66)
        #expect(try Tool.run(["admin", "webhook", "retry", "shop", "not an id"] + asked).status == 64)
        let reader = try key("bob", ["--scopes", "read"])
        #expect(try Tool.run(["admin", "webhook", "list"] + reader).status == 77)
      }
    }
  }

  @Test("dead letters are listed to the last page, and all of them are sent again in as many requests as it takes")
  func pages() throws {
    let folder = try TemporaryFolder()
    let key = folder.url.appendingPathComponent("key")
    try Data("adm_key".utf8).write(to: key)
    let orders = Mutex(0)
    let server = try CannedServer { head, _ in
      guard head.hasPrefix("GET") else {
        let isFirst = orders.withLock { orders in
          orders += 1
          return orders == 1
        }
        return .http("200 OK", body: #"{"retried": \#(isFirst ? 1_000 : 7)}"#)
      }
      let next = head.contains("after=7") ? "" : #", "next": 7"#
      let event = """
        {"id": "\(String(repeating: "1", count: 32))", "kind": "saveArrived", "createdMilliseconds": 1, \
        "deadMilliseconds": 2, "reason": "refused"}
        """
      return .http("200 OK", body: #"{"events": [\#(event)]\#(next)}"#)
    }
    defer { server.stop() }
    let asked = ["--url", server.url.absoluteString, "--key-file", key.path, "--json"]
    let dead = try Self.json(try Tool.run(["admin", "webhook", "dead", "shop"] + asked))
    #expect((dead["events"] as? [Any])?.count == 2)
    let all = try Self.json(try Tool.run(["admin", "webhook", "retry", "shop"] + asked))
    #expect(all["retriedCount"] as? Int == 1_007)
    let id = String(repeating: "1", count: 32)
    let one = try Self.json(try Tool.run(["admin", "webhook", "retry", "shop", id] + asked))
    #expect(one["retriedCount"] as? Int == 7)
    #expect(server.bodies.filter { !$0.isEmpty } == ["{}", "{}", #"{"ids":["\#(id)"]}"#])
  }
}
#endif
