#if Cloud
import Foundation
import Keepsake
import KeepsakeReplication
import KeepsakeSync
import TestSupport
import Testing

@testable import KeepsakeServer

/// What the studio does with players: finding, banning, compensating, removing devices, exporting and deleting.
@Suite("Players in the studio's hand", .hangLimit) struct AdminPlayerTests {
  private static let level = ProgressKey("level", default: 1, rule: .max)
  private static let cave = Slot<String>("cave")
  private static let gems = Currency("gems")

  private func open(_ name: String, _ stage: AdminStage) throws -> GameData {
    let game = try GameData.open("com.example.admin", at: stage.folder.appendingPathComponent(name))
    game.cloud.connect(.server(stage.server.url, appKey: stage.server.appKey), deviceName: name)
    return game
  }

  @Test("a player is found by id and by device, with devices, room and last visits; a removed device is out")
  func finding() async throws {
    try await AdminStage.with { stage in
      let device = try await stage.device()
      let second = try await stage.device(with: device)
      _ = try await stage.device()
      try device.save(Data("a save".utf8), to: "main")
      for device in [device, second] { try await device.sync.sync() }
      let client = try stage.client([.read, .devices])
      for query in ["player=\(device.credentials.player)", "device=\(second.credentials.device)"] {
        let answer = try await client.call("GET", "/admin/v1/players?\(query)")
        let players = try #require(answer.json["players"] as? [[String: Any]])
        #expect(players.count == 1 && players[0]["player"] as? String == "\(device.credentials.player)")
        let devices = try #require(players[0]["devices"] as? [[String: Any]])
        #expect(Set(devices.compactMap { $0["name"] as? String }) == ["First", "Second"])
        #expect(devices.allSatisfy { ($0["seenMilliseconds"] as? Int ?? 0) > 0 })
        #expect(players[0]["usedBytes"] as? Int ?? 0 > 0 && answer.headers["keepsake-request"]?.count == 16)
      }
      let none = try await client.call("GET", "/admin/v1/players?device=\(String(repeating: "1", count: 32))")
      #expect((none.json["players"] as? [Any])?.isEmpty == true)
      _ = try await client.call("GET", "/admin/v1/players?player=\(String(repeating: "2", count: 32))")
      // Who was asked for, also if nobody was found.
      let asked = try stage.audit().filter { $0.act == "player.find" }.suffix(2)
      #expect(asked.first?.subject == ContentHash(of: Data(String(repeating: "1", count: 32).utf8)))
      #expect(asked.last?.player == ContentHash(of: Data(String(repeating: "2", count: 32).utf8)))

      let path = AdminStage.path(device, "/devices/\(second.credentials.device)")
      #expect(try await client.call("DELETE", path).status == 204)
      #expect(
        try await client.call("DELETE", AdminStage.path(device, "/devices/\(String(repeating: "1", count: 32))")).status
          == 404)
      await #expect(throws: (any Error).self) { try await second.sync.sync() }
      try await device.sync.sync()
      let left = try await client.call("GET", AdminStage.path(device, "/devices"))
      #expect((left.json["devices"] as? [Any])?.count == 1)
      #expect(try stage.audit().filter { $0.act == "device.remove" }.map(\.result) == ["done", "not_found"])
      for device in [device, second] { try await device.close() }
    }
  }

  @Test("a banned player's device is refused with the reason and plays on; once the ban is lifted, nothing was lost")
  func banning() async throws {
    try await AdminStage.with { stage in
      let game = try open("phone", stage)
      try await game.saves.save("deep", to: Self.cave)
      try await game.cloud.sync()
      let player = try await game.cloud.player()
      let client = try stage.client([.read, .bans])
      let path = "/admin/v1/players/\(player)"
      let ban = try await client.call("PUT", "\(path)/ban", json: #"{"reason": "cheating"}"#)
      #expect(ban.status == 200 && ban.json["reason"] as? String == "cheating")
      let shown = try await client.call("GET", path)
      #expect((shown.json["ban"] as? [String: Any])?["reason"] as? String == "cheating")

      await #expect {
        try await game.cloud.sync()
      } throws: { error in
        "\(error)".contains("banned") && "\(error)".contains("cheating")
      }
      // It plays on, without the cloud.
      try await game.saves.save("deeper", to: Self.cave)
      try game.progress.record(9, for: Self.level)
      #expect(try game.saves.load(Self.cave) == "deeper" && game.progress[Self.level] == 9)
      await #expect(throws: GameDataError.self) { try await game.cloud.pairingCode() }
      await #expect(throws: GameDataError.self) { try await game.cloud.makeRecoveryCode() }

      #expect(try await client.call("DELETE", "\(path)/ban").status == 204)
      try await game.cloud.sync()
      let tablet = try open("tablet", stage)
      try await tablet.cloud.join(try await game.cloud.pairingCode())
      try await tablet.cloud.sync()
      #expect(try tablet.saves.load(Self.cave) == "deeper" && tablet.progress[Self.level] == 9)
      for game in [game, tablet] { try game.close() }
    }
  }

  @Test("every request of a banned player's device is refused by one code, also after a restart of the server")
  func bannedRoutes() async throws {
    try await TemporaryFolder.with { folder in
      func start() async throws -> LiveServer {
        try await LiveServer.start(
          data: folder.appendingPathComponent("server"), change: { ($0.adminPort, $0.saves) = (0, TextReader()) })
      }
      var server = try await start()
      let (device, account) = try await server.client.register()
      let stage = AdminStage(server: server, data: folder.appendingPathComponent("server"), folder: folder)
      let path = "/admin/v1/players/\(account.player)/ban"
      #expect(try await stage.client().call("PUT", path, json: #"{"reason": "x"}"#).status == 200)
      for isRestarted in [false, true] {
        if isRestarted {
          try await server.stop()
          server = try await start()
        }
        let client = Client(server: server, token: device.token)
        for (method, route) in [
          ("GET", "/v1/devices"), ("GET", "/v1/export"), ("DELETE", "/v1/player"), ("POST", "/v1/pairing"),
          ("GET", "/v1/events"), ("GET", "/v1/events/next"), ("GET", "/v1/recovery"), ("POST", "/v1/exchange"),
          ("POST", "/v1/wallet/leave"),
          ("DELETE", "/v1/devices/\(account.device)"), ("GET", "/v1/contents/\(String(repeating: "0", count: 64))"),
          ("PUT", "/v1/contents/\(String(repeating: "0", count: 64))"), ("POST", "/v1/token"),
        ] {
          let answer = try await client.call(
            method, route, headers: ["Keepsake-App-Key": server.appKey],
            body: method == "GET" ? nil : Data("{}".utf8))
          let details = answer.json["error"] as? [String: Any]
          #expect(answer.status == 403 && answer.code == "banned" && details?["reason"] as? String == "x", "\(route)")
        }
      }
      try await server.stop()
    }
  }

  @Test("money is granted and refunded as by a server key, and each order is in the audit log once")
  func money() async throws {
    try await AdminStage.with { stage in
      let game = try open("phone", stage)
      try game.progress.record(2, for: Self.level)
      try await game.cloud.sync()
      let player = try await game.cloud.player()
      let client = try stage.client([.read, .money])
      let order = """
        {"id": "\(String(repeating: "1", count: 32))", "kind": "grant", "currency": "gems", "amount": 100,
        "reason": "sorry", "goods": ["sword", "shield"]}
        """
      for isAgain in [false, true] {
        let answer = try await client.call("POST", "/admin/v1/players/\(player)/money/orders", json: order)
        #expect(answer.status == 200 && answer.json["alreadyDone"] as? Bool == isAgain)
      }
      try await until("the grant arrives") { game.wallet[Self.gems].total == 100 }
      let account = try await client.call("GET", "/admin/v1/players/\(player)/money")
      #expect((account.json["balances"] as? [String: Int]) == ["gems": 100])
      let refund = try await client.call(
        "POST", "/admin/v1/players/\(player)/money/refunds",
        json: #"{"purchase": "\#(String(repeating: "2", count: 32))", "reason": "sorry"}"#)
      #expect(refund.status == 404 && refund.code == "purchase_unknown")
      try await until("the money can be spent") { game.wallet[Self.gems].spendable >= 30 }
      let bought = try game.wallet.spend(30, Self.gems, for: "a hat")
      try await game.cloud.sync()
      for _ in 0..<2 {
        let answer = try await client.call(
          "POST", "/admin/v1/players/\(player)/money/refunds", json: #"{"purchase": "\#(bought)", "reason": "sorry"}"#)
        #expect(answer.status == 200, "\(answer.json)")
      }
      let rows = try stage.audit().filter { $0.act.hasPrefix("money.") && $0.act != "money.show" }
      #expect(rows.map(\.result) == ["done", "done", "purchase_unknown", "done", "done"])
      let granted = [
        "kind": "grant", "currency": "gems", "amount": "100", "reason": "sorry", "goods": "sword, shield",
      ]
      #expect(rows[0].details == granted && rows[2].details == ["reason": "sorry"])
      let refunded = ["currency": "gems", "amount": "30", "reason": "sorry"]
      #expect(rows[3].details == refunded)
      // What was repeated is told from what was done.
      let repeated = ["alreadyDone": "true"]
      #expect(rows[1].details == granted.merging(repeated) { $1 })
      #expect(rows[4].details == refunded.merging(repeated) { $1 })
      try game.close()
    }
  }

  @Test("an archive is whole by its headers, whatever is in its files and however long the last one is")
  func wholeArchives() throws {
    func file(_ path: String, _ data: Data) -> Data {
      let entry = TarEntry(path: path, size: Int64(data.count), modified: 1)
      return entry.header + data + Data(count: entry.padding)
    }
    let folder = try TemporaryFolder()
    let place = folder.url.appendingPathComponent("a.tar")
    func isWhole(_ archive: Data) throws -> Bool {
      try archive.write(to: place)
      return try PlayerArchive.isWhole(place)
    }
    let about = file("about.json", Data("{}".utf8))
    // What looks like an archive's end, inside of a content that is cut off.
    let end = file("end.json", Data(count: 2_000_000)) + TarEntry.end
    #expect(try isWhole(about + end))
    #expect(try !isWhole(about + file("contents/x", end + Data(count: 10_000)).dropLast(10_000)))
    #expect(try !isWhole(about + end + end) && !isWhole(about + TarEntry.end) && !isWhole(Data()))
  }

  @Test("an export has every line and the bytes of every content, and programs for tar can read it")
  func exporting() async throws {
    try await AdminStage.with { stage in
      let device = try await stage.device()
      let large = saveBytes(3_000_000, seed: 7)
      try device.save(Data("a save".utf8), to: "main")
      try device.save(large, to: "large")
      try await device.sync.sync()
      let client = try stage.client([.export])
      let answer = try await client.call("GET", AdminStage.path(device, "/export"))
      #expect(answer.status == 200 && answer.headers["content-type"] == "application/x-tar")
      let file = stage.folder.appendingPathComponent("export.tar")
      try answer.body.write(to: file)
      let place = stage.folder.appendingPathComponent("export")
      try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
      let tar = try ChildProcess.run(
        URL(fileURLWithPath: "/usr/bin/env"), ["tar", "-xf", file.path, "-C", place.path])
      #expect(tar.status == 0, "\(tar)")
      func read(_ name: String) throws -> Data { try Data(contentsOf: place.appendingPathComponent(name)) }
      #expect(try read("contents/\(ContentHash(of: Data("a save".utf8)))") == Data("a save".utf8))
      let lines = String(decoding: try read("lines/000001"), as: UTF8.self)
      #expect(lines.contains(#""slot":"main""#) && lines.contains(#""slot":"large""#))
      let end = try #require(try JSONSerialization.jsonObject(with: try read("end.json")) as? [String: Any])
      let contents = try FileManager.default.contentsOfDirectory(atPath: place.appendingPathComponent("contents").path)
      #expect(end["contents"] as? Int == contents.count && (end["unreadable"] as? [Any])?.isEmpty == true)
      for name in contents { #expect("\(ContentHash(of: try read("contents/\(name)")))" == name) }
      #expect(try stage.audit().last?.act == "player.export")
      // It replaces what is there only as a whole.
      let target = stage.folder.appendingPathComponent("target.tar")
      try Data("before".utf8).write(to: target)
      for count in [0, 1, 512, 1_536, answer.body.count / 2, answer.body.count - 1_024, answer.body.count - 1] {
        try answer.body.prefix(count).write(to: file)
        #expect(try !PlayerArchive.accept(file, as: target), "\(count)")
      }
      #expect(try Data(contentsOf: target) == Data("before".utf8))
      try answer.body.write(to: file)
      #expect(try PlayerArchive.accept(file, as: target))
      #expect(try Data(contentsOf: target) == answer.body)
      try await device.close()
    }
  }
}
#endif
