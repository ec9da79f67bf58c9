#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import KeepsakeSync
import TestSupport
import Testing

@testable import KeepsakeServer

/// Shared containers over HTTP, asked for by whoever shouldn't, and what follows a player of a game.
@Suite("Shared containers at a server", .hangLimit) struct SharedRouteTests {
  private static let hash = String(repeating: "0", count: 64)
  /// All routes of a container, with which answers nobody minds: none of them may be given.
  private static func routes(_ device: DeviceID) -> [(method: String, path: String)] {
    [
      ("GET", "/v1/devices"), ("GET", "/v1/export"), ("POST", "/v1/pairing"), ("GET", "/v1/events"),
      ("GET", "/v1/events/next"), ("GET", "/v1/recovery"), ("PUT", "/v1/recovery"), ("POST", "/v1/exchange"),
      ("POST", "/v1/wallet/leave"), ("GET", "/v1/contents/\(hash)"), ("PUT", "/v1/contents/\(hash)"),
      ("GET", "/v1/contents/\(hash)/upload"), ("GET", "/v1/identities"), ("POST", "/v1/identities"),
      ("POST", "/v1/identities/join"), ("POST", "/v1/identities/nonce"), ("DELETE", "/v1/identities/\(hash)"),
      ("DELETE", "/v1/devices/\(device)"), ("POST", "/v1/token"), ("DELETE", "/v1/player"),
    ]
  }

  private func call(_ client: Client, _ route: (method: String, path: String)) async throws -> Client.Answer {
    try await client.call(
      route.method, route.path, headers: ["Keepsake-App-Key": client.appKey],
      body: route.method == "GET" ? nil : Data("{}".utf8))
  }

  @Test("a player's devices of one game share one container, each player another, and the game's own is another one")
  func oneContainer() async throws {
    try await StudioServer.with { studio in
      try studio.grant("garden")
      let (phone, account) = try await studio.client("garden").register("phone")
      let code = try #require(try await phone.call("POST", "/v1/pairing").json["code"] as? String)
      let tablet = try await studio.joined(studio.client("garden"), "/v1/pairing/join", code).client
      let (other, _) = try await studio.client("garden").register("other")
      let containers = try await [phone, tablet, other].asyncMap { try await studio.shared($0).account.container }
      #expect(containers[0] == containers[1] && containers[0] != containers[2])
      #expect(!containers.contains(account.container))
    }
  }

  @Test("another team's container is refused by name as one that doesn't exist, whatever else is known of it")
  func strangers() async throws {
    try await StudioServer.with { studio in
      try studio.grant("garden")
      let garden = try await studio.client("garden").register().0
      let mine = try await studio.shared(garden)
      let code = try #require(try await mine.client.call("POST", "/v1/pairing").json["code"] as? String)
      let content = Data("a hero's portrait".utf8)
      let hash = ContentHash(of: content)
      let put = try await mine.client.call(
        "PUT", "/v1/contents/\(hash)", headers: ["Keepsake-Length": "5"], body: content)
      #expect(put.status == 201)
      for app in ["pinball", "bakery"] {
        let (stranger, account) = try await studio.client(app).register()
        var bodies: Set<Data> = []
        for name in [StudioServer.container, "no.such.container", "Studio%20Coins", "a%2Fb", "..."] {
          for (path, json) in [
            ("devices", "{}"), ("pairing/join", #"{"code": "\#(code)"}"#),
            ("recovery/join", #"{"code": "\#(code)", "next": "\#(Self.hash)"}"#),
          ] {
            let answer = try await stranger.call("POST", "/v1/shared/\(name)/\(path)", json: json)
            #expect(answer.status == 403 && answer.code == "not_entitled", "\(name) \(path)")
            bodies.insert(answer.body)
          }
        }
        #expect(bodies.count == 1, "nothing says whether there is one")
        // By the ids and hashes of somebody else's container there is nothing in its own.
        #expect(try await stranger.call("GET", "/v1/contents/\(hash)").code == "content_missing")
        #expect(try await stranger.call("DELETE", "/v1/devices/\(mine.account.device)").code == "not_found")
        let export = String(decoding: try await stranger.call("GET", "/v1/export").body, as: UTF8.self)
        #expect(export.contains("\(account.device)") && !export.contains("\(mine.account.device)"))
        #expect(!export.contains("\(hash)"))
      }
      // The code wasn't used up by them.
      let bakery = try await studio.client("bakery").register().0
      try studio.grant("bakery")
      let joined = try await studio.joined(bakery, "/v1/shared/\(StudioServer.container)/pairing/join", code)
      #expect(joined.account.container == mine.account.container)
    }
  }

  @Test("no app key and no device's own token opens a shared container, and its token is good for no game's")
  func tokens() async throws {
    try await StudioServer.with { studio in
      for app in ["garden", "bakery"] { try studio.grant(app) }
      let garden = try await studio.client("garden").register().0
      var mine = try await studio.shared(garden).client
      let path = "/v1/shared/\(StudioServer.container)/devices"
      let withoutToken = try await studio.client("garden").call(
        "POST", path, headers: ["Keepsake-App-Key": garden.appKey], json: "{}")
      #expect(withoutToken.status == 401)
      // A shared container has none of its own.
      #expect(try await mine.call("POST", path, json: "{}").code == "not_entitled")
      // Renewed by a key of the same game, for the same container.
      let renewed = try await mine.call("POST", "/v1/token", headers: ["Keepsake-App-Key": garden.appKey])
      #expect(renewed.status == 200)
      let before = try await mine.call("GET", "/v1/export").body
      mine.token = try #require(renewed.json["token"] as? String)
      #expect(try await mine.call("GET", "/v1/export").body == before)
      for app in ["bakery", "pinball"] {
        let key = try studio.client(app).appKey
        #expect(try await mine.call("POST", "/v1/token", headers: ["Keepsake-App-Key": key]).code == "bad_app_key")
      }
      // A recovery code of one is none of the other.
      let code = RecoveryCode.random
      let digest = #"{"digest": "\#(code.digest)"}"#
      #expect(try await mine.call("PUT", "/v1/recovery", json: digest).status == 204)
      let typed = #"{"code": "\#(code.text)", "next": "\#(RecoveryCode.random.digest)"}"#
      func joinAsGame() async throws -> String? {
        try await studio.client("garden").call(
          "POST", "/v1/recovery/join", headers: ["Keepsake-App-Key": garden.appKey], json: typed
        ).code
      }
      #expect(try await joinAsGame() == "bad_app_key")
      // Nor once the game that made it has no right any more.
      try studio.withdraw("garden")
      #expect(try await joinAsGame() == "bad_app_key")
      let bakery = try await studio.client("bakery").register().0
      let came = try await bakery.call(
        "POST", "/v1/shared/\(StudioServer.container)/recovery/join", json: typed)
      #expect(came.status == 201)
    }
  }

  @Test("an identity is somebody else in a shared container: it leads games there together, and no game's own data")
  func identities() async throws {
    let issuer = TestIssuer()
    try await StudioServer.with(issuer: issuer) { studio in
      for app in ["garden", "bakery"] { try studio.grant(app) }
      func post(_ client: Client, _ path: String) async throws -> Client.Answer {
        let proof = try issuer.token(of: "ada")
        return try await client.call(
          "POST", path, json: #"{"issuer": "login", "proof": "\#(proof)", "name": "new"}"#)
      }
      let garden = try await studio.client("garden").register().0
      let bakery = try await studio.client("bakery").register().0
      let (mine, theirs) = (try await studio.shared(garden), try await studio.shared(bakery))
      let linked = try await post(mine.client, "/v1/identities")
      #expect(linked.status == 200)
      for client in [garden, bakery] {
        #expect(try await post(client, "/v1/identities/join").code == "identity_unknown")
      }
      let own = try await post(garden, "/v1/identities")
      #expect(own.status == 200 && own.json["id"] as? String != linked.json["id"] as? String)
      let joined = try await post(theirs.client, "/v1/identities/join")
      #expect(joined.status == 201 && joined.json["container"] as? String == "\(mine.account.container)")
      // What its game has from then on.
      let again = try await studio.shared(bakery)
      #expect(again.account.container == mine.account.container)
      let proven = VerifiedIdentity(id: ContentHash(of: Data("ada".utf8)), issuer: "login")
      let ids = Set([proven.id] + (1...2).map { proven.scoped(to: AppID(word: $0)).id })
      #expect(ids.count == 3, "another one in each")
    }
  }

  @Test("a right that is withdrawn ends with the next request on every route, also in the middle of an upload")
  func withdrawn() async throws {
    try await StudioServer.with { studio in
      try studio.grant("garden")
      let garden = try await studio.client("garden").register().0
      let (mine, account) = try await studio.shared(garden)
      let frame = frameBytes(300_000, seed: 3)
      let hash = ContentHash(of: frame)
      func put(_ range: Range<Int>) async throws -> Client.Answer {
        try await mine.call(
          "PUT", "/v1/contents/\(hash)",
          headers: [
            "Keepsake-Length": "5", "Keepsake-Frame": "\(ContentHash(of: frame))",
            "Content-Range": "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(frame.count)",
          ], body: frame[range])
      }
      #expect(try await put(0..<frame.count / 2).status == 202)
      try studio.withdraw("garden")
      #expect(try await put(frame.count / 2..<frame.count).code == "not_entitled")
      for route in Self.routes(account.device) {
        let answer = try await call(mine, route)
        #expect(answer.status == 403 && answer.code == "not_entitled", "\(route)")
      }
      #expect(try await garden.call("GET", "/v1/devices").status == 200)
      // Given again, it goes on where it was.
      try studio.grant("garden")
      let rest = try await put(frame.count / 2..<frame.count)
      #expect(rest.status == 201)
      // An app that is revoked has no right either, and is told so.
      try studio.revoke("garden")
      #expect(try await mine.call("GET", "/v1/devices").code == "app_revoked")
    }
  }

  @Test("an event stream that is open when the right is withdrawn ends before the next change")
  func withdrawnStream() async throws {
    try await StudioServer.with { studio in
      for app in ["garden", "bakery"] { try studio.grant(app) }
      let mine = try await studio.shared(try await studio.client("garden").register().0).client
      let code = try #require(try await mine.call("POST", "/v1/pairing").json["code"] as? String)
      let bakery = try await studio.client("bakery").register().0
      let theirs = try await studio.joined(bakery, "/v1/shared/\(StudioServer.container)/pairing/join", code)
      let stream = try RawConnection(port: studio.server.running.port)
      await stream.send(
        """
        GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \(theirs.account.token)\r\n\
        Connection: close\r\n\r\n
        """)
      let first = #"{"seq":0}"#
      #expect(await stream.read(until: first).contains(first))
      try studio.withdraw("bakery")
      let cell = CellUpdate(
        key: CellKey(collection: "progress", key: "level"), state: CellState(value: .max(.int(5))))
      let request = ExchangeRequest(cursor: .start, cells: [cell], limit: 1)
      #expect(try await mine.call("POST", "/v1/exchange", body: try JSONEncoder().encode(request)).status == 200)
      let rest = await stream.read(until: #""seq":"#)
      #expect(!rest.contains(#""seq":"#) && !rest.contains("silence"), "\(rest)")
    }
  }

  @Test("a game that may only read changes nothing, on any route")
  func readOnly() async throws {
    try await StudioServer.with { studio in
      try studio.grant("garden")
      let garden = try await studio.client("garden").register().0
      let (mine, account) = try await studio.shared(garden)
      let (other, _) = try await studio.shared(garden)
      try studio.grant("garden", .readOnly)
      // Streams stay open.
      for route in Self.routes(account.device) where !route.path.hasPrefix("/v1/events") {
        let answer = try await call(other, route)
        let isRefused = answer.status == 403 && answer.code == "read_only"
        let writes: Set = [
          "POST /v1/pairing", "PUT /v1/recovery", "PUT /v1/contents/\(Self.hash)", "POST /v1/identities",
          "DELETE /v1/identities/\(Self.hash)", "DELETE /v1/devices/\(account.device)", "DELETE /v1/player",
        ]
        #expect(isRefused == writes.contains("\(route.method) \(route.path)"), "\(route) \(answer.status)")
      }
      #expect(try await mine.call("DELETE", "/v1/devices/\(account.device)").status == 204, "it may leave")
      #expect(try await other.call("GET", "/v1/devices").status == 200)
    }
  }

  @Test("removing a device of a game, by the player or the studio, removes its devices in shared containers alone")
  func removed() async throws {
    try await StudioServer.with { studio in
      try studio.grant("garden")
      for byStudio in [false, true] {
        let (phone, _) = try await studio.client("garden").register("phone")
        let code = try #require(try await phone.call("POST", "/v1/pairing").json["code"] as? String)
        let (tablet, account) = try await studio.joined(studio.client("garden"), "/v1/pairing/join", code)
        let (phones, tablets) = (try await studio.shared(phone), try await studio.shared(tablet))
        if byStudio {
          let path = "/admin/v1/players/\(account.player)/devices/\(account.device)"
          #expect(try await studio.admin().call("DELETE", path).status == 204)
        } else {
          #expect(try await phone.call("DELETE", "/v1/devices/\(account.device)").status == 204)
        }
        for route in Self.routes(tablets.account.device) {
          // Whoever has left may still ask what became of the money.
          let code = route.path == "/v1/wallet/leave" ? "bad_json" : "retired"
          #expect(try await call(tablets.client, route).code == code, "\(route)")
        }
        let path = "/v1/shared/\(StudioServer.container)/devices"
        #expect(try await tablet.call("POST", path, json: "{}").code == "retired")
        let left = try await phones.client.call("GET", "/v1/devices").json["devices"] as? [[String: Any]]
        #expect(left?.map { $0["device"] as? String } == ["\(phones.account.device)"])
      }
    }
  }

  @Test("who is removed from a shared container by others isn't back with the next device, and leaves nothing alone")
  func removedByOthers() async throws {
    try await StudioServer.with { studio in
      for app in ["garden", "bakery"] { try studio.grant(app) }
      let (garden, account) = try await studio.client("garden").register()
      let mine = try await studio.shared(garden)
      let code = try #require(try await mine.client.call("POST", "/v1/pairing").json["code"] as? String)
      let stranger = try await studio.client("bakery").register().0
      let path = "/v1/shared/\(StudioServer.container)/pairing/join"
      let theirs = try await studio.joined(stranger, path, code)
      #expect(try await mine.client.call("DELETE", "/v1/devices/\(theirs.account.device)").status == 204)
      let back = try await studio.shared(stranger)
      #expect(back.account.container != mine.account.container)
      // One that lost its device keeps what the player has.
      let recovery = RecoveryCode.random
      #expect(try await garden.call("PUT", "/v1/recovery", json: #"{"digest": "\#(recovery.digest)"}"#).status == 204)
      let again = try await studio.client("garden").call(
        "POST", "/v1/recovery/join", headers: ["Keepsake-App-Key": garden.appKey],
        json: #"{"code": "\#(recovery.text)", "next": "\#(RecoveryCode.random.digest)"}"#)
      let token = try #require(again.json["token"] as? String)
      let phone = Client(url: garden.url, appKey: garden.appKey, token: token)
      #expect(try await phone.call("DELETE", "/v1/devices/\(account.device)").status == 204)
      #expect(try await studio.shared(phone).account.container == mine.account.container)
      // Somebody who was there once doesn't keep it from being deleted.
      #expect(try await phone.call("DELETE", "/v1/player").status == 204)
      #expect(try await studio.rows("SELECT count(*) FROM shared") == 1)
    }
  }

  @Test("a registry of apps from before the team, or none, makes no game's own container of a shared one")
  func olderRegistry() async throws {
    try await StudioServer.with { studio in
      let file = studio.data.appendingPathComponent(AppRegistry.fileName)
      let before = try Data(contentsOf: file)
      try studio.grant("garden")
      let garden = try await studio.client("garden").register().0
      let mine = try await studio.shared(garden).client
      let code = RecoveryCode.random
      #expect(try await mine.call("PUT", "/v1/recovery", json: #"{"digest": "\#(code.digest)"}"#).status == 204)
      var contents = try #require(try JSONSerialization.jsonObject(with: before) as? [String: Any])
      (contents["teams"], contents["format"]) = (nil, 1)
      try JSONSerialization.data(withJSONObject: contents).write(to: file)
      #expect(try await mine.call("GET", "/v1/devices").status != 200)
      let renewed = try await mine.call("POST", "/v1/token", headers: ["Keepsake-App-Key": garden.appKey])
      #expect(renewed.status == 403 && renewed.code == "not_entitled")
      let came = try await studio.client("garden").call(
        "POST", "/v1/recovery/join", headers: ["Keepsake-App-Key": garden.appKey],
        json: #"{"code": "\#(code.text)", "next": "\#(RecoveryCode.random.digest)"}"#)
      #expect(came.code == "bad_app_key")
    }
  }

  @Test("a banned player's devices are refused in shared containers, those of other games aren't, also after a restart")
  func banned() async throws {
    try await StudioServer.with { studio in
      for app in ["garden", "bakery"] { try studio.grant(app) }
      let (garden, account) = try await studio.client("garden").register()
      let mine = try await studio.shared(garden)
      let code = try #require(try await mine.client.call("POST", "/v1/pairing").json["code"] as? String)
      let bakery = try await studio.client("bakery").register().0
      let theirs = try await studio.joined(bakery, "/v1/shared/\(StudioServer.container)/pairing/join", code)
      let path = "/admin/v1/players/\(account.player)/ban"
      #expect(try await studio.admin().call("PUT", path, json: #"{"reason": "cheating"}"#).status == 200)
      try await studio.restarting { () async throws in
        for route in Self.routes(mine.account.device) {
          #expect(try await call(mine.client, route).code == "banned", "\(route)")
        }
        #expect(try await theirs.client.call("GET", "/v1/devices").status == 200)
      }
      #expect(try await studio.admin().call("DELETE", path).status == 204)
      #expect(try await mine.client.call("GET", "/v1/devices").status == 200)
    }
  }

  @Test("deleting a player deletes what nobody else has in shared containers, and leaves none of the player's ids")
  func deleted() async throws {
    try await StudioServer.with { studio in
      for app in ["garden", "bakery"] { try studio.grant(app) }
      let (garden, account) = try await studio.client("garden").register()
      let mine = try await studio.shared(garden)
      // Nobody's any more, once it has joined another one.
      let (bakery, bakerys) = try await studio.client("bakery").register()
      let alone = try await studio.shared(bakery)
      let code = try #require(try await mine.client.call("POST", "/v1/pairing").json["code"] as? String)
      let path = "/v1/shared/\(StudioServer.container)/pairing/join"
      let theirs = try await studio.joined(bakery, path, code)
      let shown = try await studio.admin().call("GET", "/admin/v1/players/\(bakerys.player)").json
      let players = (shown["shared"] as? [[String: Any]])?.compactMap { $0["player"] as? String }
      #expect(players.map(Set.init) == ["\(alone.account.player)", "\(mine.account.player)"])
      let names = (shown["shared"] as? [[String: Any]])?.compactMap { $0["name"] as? String }
      #expect(names == [StudioServer.container, StudioServer.container])
      let common = try await studio.admin().call("GET", "/admin/v1/players/\(mine.account.player)").json
      let parents = (common["parents"] as? [[String: Any]])?.compactMap { $0["player"] as? String }
      #expect(parents.map(Set.init) == ["\(account.player)", "\(bakerys.player)"])
      let export = String(decoding: try await bakery.call("GET", "/v1/export").body, as: UTF8.self)
      let lines = export.split(separator: "\n").filter { $0.hasPrefix(#"{"shared":"#) }
      #expect(lines.count == 2 && lines.contains { $0.contains("\(mine.account.container)") })

      #expect(try await studio.admin().call("DELETE", "/admin/v1/players/\(bakerys.player)").status == 200)
      for client in [alone.client, theirs.client] {
        #expect(try await client.call("GET", "/v1/devices").code == "retired")
      }
      let left = try await mine.client.call("GET", "/v1/devices").json["devices"] as? [[String: Any]]
      #expect(left?.count == 1, "the other game keeps its own")
      let marks = [bakerys.container.bytes, bakerys.device.bytes, alone.account.container.bytes]
      #expect(try Traces.files(of: studio.data, having: marks) == [])

      #expect(try await garden.call("DELETE", "/v1/player").status == 204)
      #expect(try await mine.client.call("GET", "/v1/devices").code == "retired")
      let tables = try await studio.rows("SELECT (SELECT count(*) FROM shared) + (SELECT count(*) FROM sharedDevice)")
      #expect(tables == 0)
      #expect(try await garden.call("POST", "/v1/shared/\(StudioServer.container)/devices", json: "{}").status == 403)
      _ = account
    }
  }

  @Test("a key of the studio's that is limited to a game reaches that game's players, and no shared container")
  func adminKeys() async throws {
    try await StudioServer.with { studio in
      try studio.grant("garden")
      let (garden, account) = try await studio.client("garden").register()
      let mine = try await studio.shared(garden)
      let limited = try studio.admin("limited", appKeys: [garden.appKey])
      let all = try studio.admin()
      #expect(try await limited.call("GET", "/admin/v1/players/\(account.player)").status == 200)
      #expect(try await limited.call("GET", "/admin/v1/players/\(mine.account.player)").code == "player_unknown")
      #expect(try await all.call("GET", "/admin/v1/players/\(mine.account.player)").status == 200)
    }
  }
}

extension RecoveryCode {
  fileprivate static var random: RecoveryCode {
    var source = SystemRandomNumberGenerator()
    return RecoveryCode(using: &source)
  }
}

extension Sequence {
  fileprivate func asyncMap<Result>(_ body: (Element) async throws -> Result) async rethrows -> [Result] {
    var results: [Result] = []
    for element in self { results.append(try await body(element)) }
    return results
  }
}
#endif
