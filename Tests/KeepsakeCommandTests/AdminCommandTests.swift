#if Cloud && os(Linux)
import Foundation
import Keepsake
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeCommand

@Archivable private struct World: Equatable {
  var level = 1
  var name = "cave"
}

/// `keepsake admin` and `Examples/support.py`, beside a real server and a game.
@Suite("keepsake admin", .serialized, .hangLimit) struct AdminCommandTests {
  private static let main = Slot<World>("main")
  private static let gems = Currency("gems")

  /// A server, a game whose level went back, and a key.
  private struct Case {
    let folder: URL
    let data: URL
    let url: String
    let key: String
    let game: GameData
    let player: String

    /// The JSON of a command that asks the server.
    func run(_ words: [String], fails status: Int32 = 0) throws -> [String: Any] {
      let ended = try Tool.run(["admin"] + words + ["--url", url, "--key-file", key, "--json"], in: folder)
      #expect(ended.status == status, "\(words): \(ended.text) \(ended.errors)")
      return try #require(try JSONSerialization.jsonObject(with: ended.output) as? [String: Any], "\(words)")
    }

    func text(_ words: [String]) throws -> String {
      let ended = try Tool.run(["admin"] + words + ["--url", url, "--key-file", key], in: folder)
      return ended.text + ended.errors
    }

    /// How each command ends that takes an id beside the player's, with this one.
    func ids(_ id: String) throws -> [Int32] {
      let key = ["--url", url, "--key-file", key]
      return try [
        ["device", "remove", player, id], ["device", "clear", player, id], ["save", "show", player, id],
        ["save", "diff", player, id, id],
        ["save", "restore", player, id, "--reason", "x"], ["player", "find", "--device", id],
        ["money", "refund", player, id, "--reason", "x"],
        ["money", "grant", player, "1", "gems", "--reason", "x", "--order", id],
      ].map { try Tool.run(["admin"] + $0 + key, in: folder).status }
    }

    /// The versions of the slot, the newest first.
    func versions() throws -> [String] {
      let listed = try run(["save", "list", player, "--slot", "main"])
      return try #require(listed["versions"] as? [[String: Any]]).compactMap { $0["version"] as? String }
    }
  }

  private func with(_ body: (Case) async throws -> Void) async throws {
    try await RunningCloud.with { cloud, folder in
      let data = folder.deletingLastPathComponent().appendingPathComponent("cloud")
      let created = try Tool.run(
        [
          "admin", "key", "create", "--data", data.path, "--name", "ada", "--scopes",
          "read,saves,money,devices,bans,export,delete",
        ])
      #expect(created.status == 0 && created.text.hasPrefix("adm_"), "\(created.errors)")
      let key = folder.appendingPathComponent("key")
      try created.output.write(to: key)
      let game = try GameData.open("com.example.admin", at: folder.appendingPathComponent("game"))
      let url = try #require(URL(string: cloud.url))
      game.cloud.connect(.server(url, appKey: cloud.appKey), deviceName: "phone")
      for level in [6, 2] {
        try await game.saves.save(World(level: level), to: Self.main)
        try await game.cloud.sync()
      }
      try await body(
        Case(
          folder: folder, data: data, url: cloud.adminURL, key: key.path, game: game,
          player: try await game.cloud.player()))
      try game.close()
    }
  }

  @Test("support.py shows what changed and restores the earlier version, and the game shows it")
  func support() async throws {
    try await with { support in
      let script = Repository.root.appending(path: "Examples/support.py").path
      func run(_ more: [String]) throws -> TestSupport.ChildProcess.Ended {
        try TestSupport.ChildProcess.run(
          URL(fileURLWithPath: "/usr/bin/env"),
          ["python3", script, "--url", support.url, "--key-file", support.key, "--slot", "main"] + more)
      }
      let absent = try run(["--device", String(repeating: "1", count: 32), "--yes"])
      #expect(absent.status == 1 && absent.errors.contains("no player has this device"))
      let device = try #require(try await support.game.cloud.devices().first { $0.isThis })
      let ended = try run(["--device", "\(device.id)", "--yes", "--reason", "ticket 17"])
      #expect(ended.status == 0, "\(ended.text) \(ended.errors)")
      #expect(ended.text.contains("phone, last seen") && ended.text.contains("level"))
      #expect(ended.text.contains("restored as "))
      try await support.game.cloud.sync()
      try await until("the game shows it") { try support.game.saves.load(Self.main) == World(level: 6) }
      let audit = try Tool.run(["admin", "audit", "--data", support.data.path])
      #expect(audit.text.contains("save.restore") && audit.text.contains("reason=ticket 17"))
    }
  }

  @Test("saves are listed, shown, compared and restored")
  func saves() async throws {
    try await with { support in
      let versions = try support.versions()
      #expect(versions.count == 2)
      let (current, earlier) = (versions[0], versions[1])
      let shown = try support.run(["save", "show", support.player, current])
      #expect(shown["root"] != nil)
      let diff = try support.run(["save", "diff", support.player, earlier, current], fails: 1)
      #expect(diff["equal"] as? Bool == false)
      #expect(try support.text(["save", "diff", support.player, earlier, current]).contains("level"))
      #expect(try support.text(["save", "show", support.player, current]).contains("level"))
      _ = try support.run(["save", "show", support.player, earlier, "--output", "earlier.save"])
      let inspected = try Tool.run(["inspect", "earlier.save"], in: support.folder)
      #expect(inspected.status == 0 && inspected.text.contains("level"))
      // A file that is there isn't replaced without being asked.
      _ = try support.run(["save", "show", support.player, earlier, "--output", "earlier.save"], fails: 73)
      let restored = try support.run(["save", "restore", support.player, earlier, "--reason", "x"])
      #expect(restored["changed"] as? Bool == true && restored["slot"] as? String == "main")
      let again = try support.run(["save", "restore", support.player, earlier, "--reason", "x"])
      #expect(again["changed"] as? Bool == false && again["version"] as? String == restored["version"] as? String)
      try await support.game.cloud.sync()
      try await until("the game shows it") { try support.game.saves.load(Self.main) == World(level: 6) }
      #expect(try support.text(["save", "list", support.player]).contains("main"))
      #expect(try support.text(["save", "list", support.player, "--slot", "main"]).contains("studio"))
      _ = try support.run(["save", "show", support.player, String(repeating: "1", count: 32)], fails: 66)
    }
  }

  @Test("players are found, banned, compensated, exported and, when that is confirmed, deleted")
  func players() async throws {
    try await with { support in
      let player = support.player
      let device = try #require(try await support.game.cloud.devices().first { $0.isThis })
      let found = try support.run(["player", "find", "--device", "\(device.id)"])
      #expect((found["players"] as? [[String: Any]])?.first?["player"] as? String == player)
      #expect(try support.text(["player", "show", player]).contains("phone"))
      #expect(try support.text(["device", "list", player]).contains("\(device.id)"))

      let banned = try support.run(["player", "ban", player, "--reason", "cheating"])
      #expect((banned["ban"] as? [String: Any])?["reason"] as? String == "cheating")
      #expect(try support.text(["player", "show", player]).contains("cheating"))
      await #expect(throws: GameDataError.self) { try await support.game.cloud.sync() }
      #expect(try support.run(["player", "unban", player])["player"] as? String == player)
      try await support.game.cloud.sync()

      let order = String(repeating: "1", count: 32)
      for isAgain in [false, true] {
        let granted = try support.run(
          ["money", "grant", player, "100", "gems", "--reason", "sorry", "--order", order])
        #expect(granted["alreadyDone"] as? Bool == isAgain)
      }
      let charged = try support.run(["money", "charge", player, "30", "gems", "--reason", "mistake"])
      #expect((charged["balances"] as? [String: Int]) == ["gems": 70])
      try await support.game.cloud.sync()
      #expect(support.game.wallet[Self.gems].total == 70)
      _ = try support.run(["money", "refund", player, order, "--reason", "x"], fails: 66)
      #expect(try support.text(["money", "show", player]).contains("70"))

      let written = try support.run(["player", "export", player, "--output", "player.tar"])
      #expect(written["fileBytes"] as? Int ?? 0 > 1_000)
      let listed = try TestSupport.ChildProcess.run(
        URL(fileURLWithPath: "/usr/bin/env"),
        ["tar", "-tf", support.folder.appendingPathComponent("player.tar").path])
      #expect(listed.text.contains("about.json") && listed.text.contains("contents/"))

      for act in ["clear", "remove"] {
        _ = try support.run(["device", act, player, String(repeating: "1", count: 32)], fails: 66)
      }
      let cleared = try support.run(["device", "clear", player, "\(device.id)"])
      #expect(cleared["device"] as? String == "\(device.id)")
      // What isn't an id is never a part of an address: "..", removed from it, would leave the player's own.
      for id in ["..", ".", "", "../\(player)", "%2E%2E"] {
        #expect(try support.ids(id).allSatisfy { $0 == 64 }, "\(id)")
      }
      _ = try support.run(["player", "delete", player], fails: 64)
      #expect(try support.run(["player", "show", player])["player"] as? String == player)
      #expect(try support.run(["player", "delete", player, "--yes"])["erased"] as? Bool == true)
      _ = try support.run(["player", "show", player], fails: 66)
    }
  }

  @Test("a list is followed to its last page")
  func pages() throws {
    let folder = try TemporaryFolder()
    let key = folder.url.appendingPathComponent("key")
    try Data("adm_key".utf8).write(to: key)
    let server = try CannedServer { head, _ in
      guard head.contains("/slots") else {
        let version = """
          {"version": "\(String(repeating: "1", count: 32))", "savedAtMilliseconds": 1, "bytes": 2, "head": true, \
          "tombstone": false, "available": true, "covers": []}
          """
        let next = head.contains("before=7") ? "" : #", "next": 7"#
        return .http("200 OK", body: #"{"versions": [\#(version)]\#(next)}"#)
      }
      let isLast = head.contains("after=one")
      let slot = #"{"slot": "\#(isLast ? "two" : "one")", "versions": 1, "heads": 1}"#
      let next = isLast ? "" : #", "next": "one""#
      return .http("200 OK", body: #"{"slots": [\#(slot)]\#(next)}"#)
    }
    defer { server.stop() }
    for (name, more) in [("slots", []), ("versions", ["--slot", "main"])] as [(String, [String])] {
      let ended = try Tool.run(
        [
          "admin", "save", "list", String(repeating: "1", count: 32), "--url", server.url.absoluteString,
          "--key-file", key.path, "--json",
        ] + more)
      let listed = try JSONSerialization.jsonObject(with: ended.output) as? [String: Any]
      #expect((listed?[name] as? [Any])?.count == 2, "\(ended.text) \(ended.errors)")
    }
  }

  @Test("an order or a restore whose answer is lost names its id, with which it can be repeated")
  func lostAnswer() throws {
    let folder = try TemporaryFolder()
    let key = folder.url.appendingPathComponent("key")
    try Data("adm_key".utf8).write(to: key)
    let replies: [CannedServer.Reply] = [
      .http("200 OK", body: "cut off"), .http("500 X", body: "down"),
      .http("503 X", body: #"{"error": {"code": "busy", "message": "Busy."}}"#),
    ]
    for reply in replies {
      let server = try CannedServer { _, _ in reply }
      defer { server.stop() }
      let (player, chosen) = (String(repeating: "1", count: 32), String(repeating: "7", count: 32))
      let acts: [(option: String, words: [String])] = [
        ("--order", ["money", "grant", player, "5", "gems"]), ("--as", ["save", "restore", player, player]),
      ]
      for (option, words) in acts {
        let ways: [(more: [String], id: String)] = [([], "[0-9a-f]{32}"), ([option, chosen], chosen)]
        for (more, id) in ways {
          let common = ["--reason", "x", "--url", server.url.absoluteString, "--key-file", key.path]
          let ended = try Tool.run(["admin"] + words + common + more)
          #expect([69, 75].contains(ended.status))
          #expect(ended.errors.range(of: "\(option) \(id)", options: .regularExpression) != nil, "\(ended.errors)")
        }
      }
    }
  }

  @Test("keys are made, listed and revoked beside the server; a revoked one is refused, and the log is whole")
  func keys() async throws {
    try await with { support in
      let folder = ["--data", support.data.path]
      #expect(try Tool.run(["admin", "key", "create", "--name", "bob", "--scopes", "read,fly"] + folder).status == 64)
      let created = try Tool.run(["admin", "key", "create", "--name", "bob", "--scopes", "read", "--json"] + folder)
      let key = try #require(try JSONSerialization.jsonObject(with: created.output) as? [String: Any])
      #expect(key["scopes"] as? [String] == ["read"])
      let listed = try Tool.run(["admin", "key", "list"] + folder).text
      #expect(listed.contains("ada") && listed.contains("bob"))
      #expect(!listed.contains(try #require(key["key"] as? String)))
      #expect(try Tool.run(["admin", "key", "revoke", "--name", "ada"] + folder).status == 0)
      #expect(try Tool.run(["admin", "key", "revoke", "--name", "ada"] + folder).status == 66)
      _ = try support.run(["player", "show", support.player], fails: 77)

      let verified = try Tool.run(["admin", "audit", "--verify", "--json"] + folder)
      let found = try #require(try JSONSerialization.jsonObject(with: verified.output) as? [String: Any])
      #expect(verified.status == 0 && found["rowCount"] as? Int ?? 0 >= 3)
      let hash = try #require(found["sha256"] as? String)
      #expect(try Tool.run(["admin", "audit", "--verify", "--noted", hash] + folder).status == 0)
      let other = String(repeating: "0", count: 64)
      #expect(try Tool.run(["admin", "audit", "--verify", "--noted", other] + folder).status == 65)
      #expect(try Tool.run(["admin", "audit", "--noted", other] + folder).status == 64)
      let mine = try Tool.run(["admin", "audit", "--player", support.player, "--json"] + folder)
      #expect(mine.status == 0 && mine.text.contains("\"rows\""))
      #expect(try Tool.run(["admin", "key", "list", "--data", support.folder.path]).status == 66)
      // An address that a variable hasn't given isn't taken for the folder's database.
      #expect(try Tool.run(["admin", "key", "list", "--database", ""] + folder).status == 64)
    }
  }
}
#endif
