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
    try await RunningCloud.with(hasWebhook: true) { cloud, folder in
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
      let other = try Tool.run(["admin", "webhook", "dead", "other"] + asked)
      #expect(other.status == 66 && other.errors.contains("keepsake admin webhook list"), "\(other.errors)")
      // What is no name is never a part of an address.
      for name in ["..", ".", "", "../shop", "%2E%2E", "shop/dead", "Shop"] {
        for act in ["dead", "retry"] {
          #expect(try Tool.run(["admin", "webhook", act, name] + asked).status == 64, "\(act) \(name)")
        }
      }
      let none = try Tool.run(["admin", "webhook", "dead", "shop"] + asked)
      #expect(none.status == 0 && none.text == "shop has no dead letters\n")
      #expect(try Tool.run(["admin", "webhook", "retry", "shop", "not an id"] + asked).status == 64)
      let reader = try key("bob", ["--scopes", "read"])
      #expect(try Tool.run(["admin", "webhook", "list"] + reader).status == 77)
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
        {"id": "\(String(repeating: "1", count: 32))", "kind": "saveArrived", "createdMilliseconds": 1764230399950, \
        "deadMilliseconds": 1764316799950, "reason": "refused"}
        """
      return .http("200 OK", body: #"{"events": [\#(event)]\#(next)}"#)
    }
    defer { server.stop() }
    let asked = ["--url", server.url.absoluteString, "--key-file", key.path, "--json"]
    let listed = try Tool.run(["admin", "webhook", "dead", "shop"] + asked)
    let dead = try Self.json(listed)
    #expect((dead["events"] as? [Any])?.count == 2)
    var style = JSONStyle()
    style.check(listed.text, isLine: false, of: "admin webhook dead")
    #expect(style.objections.isEmpty, "\(style.objections)")
    let all = try Self.json(try Tool.run(["admin", "webhook", "retry", "shop"] + asked))
    #expect(all["retriedCount"] as? Int == 1_007)
    let id = String(repeating: "1", count: 32)
    let one = try Self.json(try Tool.run(["admin", "webhook", "retry", "shop", id] + asked))
    #expect(one["retriedCount"] as? Int == 7)
    let text = try Tool.run(["admin", "webhook", "retry", "shop", id] + asked.dropLast()).text
    #expect(text == "7 dead letters of shop will be sent again\n")
    #expect(server.bodies.filter { !$0.isEmpty } == ["{}", "{}"] + Array(repeating: #"{"ids":["\#(id)"]}"#, count: 2))
  }

  @Test("a cloud without webhooks says how one is set up, and an event that is no dead letter any more is counted")
  func nothing() throws {
    let folder = try TemporaryFolder()
    let key = folder.url.appendingPathComponent("key")
    try Data("adm_key".utf8).write(to: key)
    let server = try CannedServer { head, _ in
      .http("200 OK", body: head.hasPrefix("GET") ? #"{"endpoints": []}"# : #"{"retried": 1}"#)
    }
    defer { server.stop() }
    let asked = ["--url", server.url.absoluteString, "--key-file", key.path]
    let listed = try Tool.run(["admin", "webhook", "list"] + asked)
    #expect(listed.status == 0 && listed.text == "no webhooks: keepsake serve --webhook sets one up\n")
    // The same one twice is one.
    let ids = ["1", "2", "2"].map { String(repeating: $0, count: 32) }
    let retried = try Tool.run(["admin", "webhook", "retry", "shop"] + ids + asked)
    #expect(retried.status == 0, "\(retried.errors)")
    #expect(
      retried.text == """
        1 dead letter of shop will be sent again
        not among its dead letters: 1 event

        """)
  }
}
#endif
