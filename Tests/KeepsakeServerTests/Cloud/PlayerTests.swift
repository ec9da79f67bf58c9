#if Cloud
import Foundation
import GRDB
import Keepsake
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

@Archivable private struct Cave: Equatable { var level = 1 }

/// A player's devices, removing them, signing out, and deleting everything: through the public API and a real server.
@Suite("Devices, accounts and signing out, over real HTTP", .hangLimit) struct PlayerTests {
  private static let level = ProgressKey("level", default: 1, rule: .max)
  private static let cave = Slot<Cave>("cave")
  private static let gems = Currency("gems")

  private func with(_ body: (LiveServer, URL) async throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder.appendingPathComponent("server"))
      do {
        try await body(server, folder)
      } catch {
        try await server.stop()
        throw error
      }
      try await server.stop()
    }
  }

  private func open(_ account: Account, on device: String, in folder: URL, _ server: LiveServer) throws -> GameData {
    let game = try GameData.open("com.example.players", account: account, in: folder.appendingPathComponent(device))
    game.cloud.connect(.server(server.url, appKey: server.appKey), deviceName: device)
    return game
  }

  /// Two devices of one player, with money of which each may spend half.
  private func pair(in folder: URL, _ server: LiveServer) async throws -> (phone: GameData, tablet: GameData) {
    let phone = try open(.named("ada"), on: "phone", in: folder, server)
    try await phone.saves.save(Cave(level: 6), to: Self.cave)
    try phone.wallet.earn(100, Self.gems, for: "a quest")
    try await phone.cloud.sync()
    let tablet = try open(.named("ada"), on: "tablet", in: folder, server)
    try await tablet.cloud.join(try await phone.cloud.pairingCode())
    for game in [tablet, phone, tablet, phone] {
      try game.wallet.earn(1, Self.gems, for: "a round")
      try await game.cloud.sync()
    }
    return (phone, tablet)
  }

  private func credential(_ name: String, of game: GameData) throws -> String {
    let file = game.url.appendingPathComponent("cloud.json")
    let contents = try #require(try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any])
    return try #require((contents["credentials"] as? [String: Any])?[name] as? String)
  }

  private func container(of game: GameData) throws -> ContainerID {
    try #require(ContainerID(try credential("container", of: game)))
  }

  private func refusal(_ game: GameData) -> String? {
    if case .refused(let reason) = game.cloud.status.phase { reason } else { nil }
  }

  @Test(
    "a removed device is refused with that reason and keeps its data; others can spend its money; a code readmits it")
  func removes() async throws {
    try await with { server, folder in
      let (phone, tablet) = try await pair(in: folder, server)
      #expect(tablet.wallet[Self.gems].spendable > 0 && phone.wallet[Self.gems].spendable < 104)
      #expect(try tablet.saves.load(Self.cave)?.level == 6)
      try await tablet.saves.save(Cave(level: 7), to: Self.cave)
      try await tablet.cloud.sync()
      let devices = try await phone.cloud.devices()
      #expect(devices.map(\.name) == ["phone", "tablet"] && devices.map(\.isThis) == [true, false])
      #expect(devices.allSatisfy { abs($0.lastSeen.timeIntervalSinceNow) < 3_600 && $0.added <= $0.lastSeen })
      let lost = try #require(devices.last)

      try await tablet.saves.save(Cave(level: 8), to: Self.cave)
      for _ in 0..<2 { try await phone.cloud.remove(lost) }
      #expect(try await phone.cloud.devices().map(\.name) == ["phone"])
      #expect(await thrownCode(\GameDataError.code) { try await tablet.cloud.sync() } == .refused)
      try await until("the refusal") { refusal(tablet)?.contains("was removed") == true }
      #expect(await thrownCode(\GameDataError.code) { _ = try await tablet.cloud.pairingCode() } == .refused)
      #expect(await thrownCode(\GameDataError.code) { _ = try await tablet.cloud.devices() } == .refused)
      #expect(try tablet.saves.load(Self.cave)?.level == 8)
      // All money can be spent on the remaining device.
      try phone.wallet.earn(1, Self.gems, for: "a round")
      try await phone.cloud.sync()
      #expect(phone.wallet[Self.gems] == Balance(total: 105, spendable: 105, pending: 0))
      try phone.wallet.spend(105, Self.gems, for: "a castle")
      try await phone.cloud.sync()

      try await tablet.cloud.join(try await phone.cloud.pairingCode())
      try await tablet.cloud.sync()
      try await phone.cloud.sync()
      #expect(try phone.saves.load(Self.cave)?.level == 8)
      #expect(tablet.wallet[Self.gems].total == 0 && phone.wallet[Self.gems].total == 0)
      for game in [phone, tablet] { try game.close() }
    }
  }

  @Test("the event stream of a removed device ends; those of the player's other devices continue")
  func streams() async throws {
    let hub = EventHub()
    let (lost, kept, container) = (DeviceID(high: 0, low: 1), DeviceID(high: 0, low: 2), ContainerID(high: 0, low: 1))
    let ended = try hub.subscribe(lost, to: container)
    let going = try hub.subscribe(kept, to: container)
    hub.end(lost, of: container)
    for await notice in ended.notices { Issue.record("\(notice)") }
    #expect(hub.count == 1)
    hub.publish(5, nil, of: container, from: lost)
    var notices = going.notices.makeAsyncIterator()
    #expect(await notices.next()?.seq == 5)
    hub.end(nil, of: container)
    #expect(await notices.next() == nil && hub.count == 0)
  }

  @Test("every route refuses a removed device's token, and a player can't remove another player's device")
  func doors() async throws {
    try await with { server, _ in
      let (first, account) = try await server.client.register()
      let (other, _) = try await server.client.register("B")
      let path = "/v1/devices/\(account.device)"
      #expect(try await other.call("DELETE", path).status == 404)
      #expect(try await other.call("DELETE", "/v1/devices/nonsense").status == 400)
      #expect(try await server.client.call("DELETE", path).status == 401)
      #expect(try await first.call("GET", "/v1/devices").status == 200)
      #expect(try await first.call("DELETE", path).status == 204)
      let content = "/v1/contents/" + String(repeating: "0", count: 64)
      for (method, path) in [
        ("POST", "/v1/exchange"), ("POST", "/v1/pairing"), ("GET", content), ("PUT", content),
        ("GET", content + "/upload"),
        ("GET", "/v1/events"),
        ("GET", "/v1/events/next"), ("GET", "/v1/devices"), ("DELETE", path), ("GET", "/v1/export"),
        ("DELETE", "/v1/player"),
      ] {
        let answer = try await first.call(method, path, json: method == "POST" || method == "PUT" ? "{}" : "")
        #expect(answer.status == 403 && answer.code == "retired", "\(method) \(path)")
      }
      #expect(try await other.call("GET", "/v1/devices").status == 200)
    }
  }

  @Test("an export of several pages contains all of a player's data, and none of another player's")
  func exports() async throws {
    try await with { server, folder in
      let other = try open(.guest, on: "other", in: folder, server)
      try other.progress.record(99, for: ProgressKey("theirs", default: 1, rule: .max))
      try await other.cloud.sync()
      let game = try open(.guest, on: "phone", in: folder, server)
      for number in 0..<2_500 {
        try game.progress.record(number, for: ProgressKey("level \(number)", default: -1, rule: .max))
      }
      try await game.saves.save(Cave(level: 6), to: Self.cave)
      try game.wallet.earn(7, Self.gems, for: "a quest")
      try await game.cloud.sync()
      let client = Client(server: server, token: try credential("token", of: game))
      let answer = try await client.call("GET", "/v1/export")
      let lines = try answer.body.split(separator: UInt8(ascii: "\n")).map {
        try #require(try JSONSerialization.jsonObject(with: $0) as? [String: [String: Any]])
      }
      func all(_ kind: String) -> [[String: Any]] { lines.compactMap { $0[kind] } }
      #expect(answer.status == 200 && lines.last?["end"]?["lines"] as? Int == lines.count - 1)
      #expect(Set(all("cell").compactMap { $0["key"] as? String }).count == 2_500)
      #expect(!String(decoding: answer.body, as: UTF8.self).contains("theirs"))
      #expect(
        all("version").compactMap { $0["slot"] as? String } == ["cave"]
          && all("device").compactMap { $0["name"] as? String } == ["phone"])
      #expect(all("balances").first?["gems"] as? Int == 7 && all("operation").count == 1)
      let hash = try #require(all("content").first?["hash"] as? String)
      #expect((all("version").first?["contents"] as? [String]) == [hash])
      #expect(try await client.call("GET", "/v1/contents/\(hash)").status == 200)
      for game in [game, other] { try game.close() }
    }
  }

  @Test("deleting everything removes only that player's data; the player's devices keep theirs and are refused")
  func deletes() async throws {
    try await with { server, folder in
      let (phone, tablet) = try await pair(in: folder, server)
      let other = try open(.guest, on: "other", in: folder, server)
      // A content large enough to be stored in a file of its own.
      let (client, account) = try await server.client.register("B")
      let file = PartedUpload(client, "large", frameBytes(2_000_000, seed: 1))
      #expect(try await file.sendRest()?.status == 201)
      try await other.saves.save(Cave(level: 3), to: Self.cave)
      try await other.cloud.sync()
      /// The tables that contain rows of a player, except `retired`, by which the player's tokens are refused. The
      /// others left out are about no player, or name none (events for webhooks: WebhookOutboxTests).
      var numbers: [ContainerID: Int64] = [:]
      func traces(_ container: ContainerID) throws -> Set<String> {
        let database = try DatabaseQueue(path: folder.appendingPathComponent("server/cloud.sqlite").path)
        return try database.read { db in
          var found: Set<String> = []
          let tables = try String.fetchAll(
            db, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'grdb%'")
          let sql = "SELECT number FROM container WHERE id = ?"
          numbers[container] = try Int64.fetchOne(db, sql: sql, arguments: [container.bytes]) ?? numbers[container]
          let others = [
            "retired", "number", "identityUse", "adminKey", "audit", "webhookEvent", "webhookDropped",
            "sqlite_sequence",
          ]
          for table in tables where !others.contains(table) {
            let column = table == "container" ? "id" : "container"
            // Some name it by its number.
            if try Row.fetchOne(
              db, sql: "SELECT 1 FROM \(table) WHERE \(column) IN (?, ?)",
              arguments: [container.bytes, numbers[container]]) != nil
            {
              found.insert(table)
            }
          }
          return found
        }
      }
      let (ada, theirs) = (try container(of: phone), try container(of: other))
      try phone.progress.record(7, for: Self.level)
      try await phone.cloud.sync()
      _ = try await phone.cloud.pairingCode()
      // A part of an offer that was never completed, and what the bank keeps of much older operations.
      try await DatabaseQueue(path: folder.appendingPathComponent("server/cloud.sqlite").path).write { db in
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        try db.execute(sql: "INSERT INTO offerPart VALUES (?, x'01', 0, 1, ?, x'00')", arguments: [ada.bytes, now])
        for sql in [
          "INSERT INTO packedDecision VALUES (?, 0, zeroblob(16), zeroblob(22))",
          "INSERT INTO paidClaim (container, key) VALUES (?, x'01')", "INSERT INTO good VALUES (?, x'68', 1, 1)",
          "INSERT INTO closedChain (container, chain, count, hash) VALUES (?, x'01', 0, x'01')",
          "INSERT INTO bankOrder VALUES (?, 1, x'01', 'grant', x'00')",
          "INSERT INTO receipt VALUES (x'01', x'02', ?, x'03')",
          "INSERT INTO paidVoucher VALUES (?, x'02', x'01')", "INSERT INTO vouchedClaim VALUES (?, x'02', x'01', 1)",
        ] {
          try db.execute(sql: sql, arguments: [ada.bytes])
        }
      }
      let all: Set = [
        "offerPart", "container", "mark", "cell", "version", "head", "content", "decision",
        "packedDecision", "paidClaim", "good", "closedChain", "bankOrder", "receipt", "paidVoucher",
        "vouchedClaim", "device", "deviceChain", "pairing",
      ]
      #expect(try traces(ada) == all)
      func contentFiles() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: folder.appendingPathComponent("server/contents").path).count
      }
      #expect(try contentFiles() == 1)
      try await phone.cloud.deleteEverythingInTheCloud()
      #expect(try await client.call("DELETE", "/v1/player").status == 204)
      try await other.cloud.sync()
      #expect(try traces(ada).isEmpty && traces(account.container).isEmpty && contentFiles() == 0)
      #expect(try traces(theirs).isSuperset(of: ["container", "device", "version", "content"]))
      for game in [phone, tablet] {
        #expect(await thrownCode(\GameDataError.code) { try await game.cloud.sync() } == .refused)
        #expect(try game.saves.load(Self.cave)?.level == 6)
      }
      #expect(try traces(ada).isEmpty)
      for game in [phone, tablet, other] { try game.close() }
    }
  }

  @Test(
    "signing out keeps the local data; signing out with forgetting sends it first, deletes it, and returns its money")
  func signsOut() async throws {
    try await with { server, folder in
      var (phone, tablet) = try await pair(in: folder, server)
      try await tablet.signOut()
      tablet = try open(.named("ada"), on: "tablet", in: folder, server)
      #expect(try tablet.saves.load(Self.cave)?.level == 6)
      #expect(try tablet.saves.load(Self.cave)?.level == 6)
      try await tablet.saves.save(Cave(level: 9), to: Self.cave)
      try tablet.wallet.spend(4, Self.gems, for: "a hat")
      let place = tablet.url
      try await tablet.signOut(forgetting: true)
      #expect(!FileManager.default.fileExists(atPath: place.path))
      #expect(try GameData.accounts(of: "com.example.players", in: folder.appendingPathComponent("tablet")) == [])
      try await phone.cloud.sync()
      try phone.wallet.earn(1, Self.gems, for: "a round")
      try await phone.cloud.sync()
      #expect(try phone.saves.load(Self.cave)?.level == 9)
      #expect(phone.wallet[Self.gems] == Balance(total: 101, spendable: 101, pending: 0))
      #expect(try await phone.cloud.devices().map(\.name) == ["phone"])
      // Signing in again restores all of it.
      tablet = try open(.named("ada"), on: "tablet", in: folder, server)
      try await tablet.cloud.join(try await phone.cloud.pairingCode())
      try await tablet.cloud.sync()
      #expect(try tablet.saves.load(Self.cave)?.level == 9)
      for game in [phone, tablet] { try game.close() }
    }
  }

  @Test("forgetting an account while offline fails and lists the unsent data, unless its loss is accepted")
  func wouldBeLost() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder.appendingPathComponent("server"))
      let game = try open(.named("ada"), on: "phone", in: folder, server)
      try game.progress.record(5, for: Self.level)
      try await game.cloud.sync()
      // Everything was sent, but a server that can't be notified would keep listing the device.
      try await server.stop()
      #expect(await thrownCode(\GameDataError.code) { try await game.signOut(forgetting: true) } == .unreachable)
      #expect(FileManager.default.fileExists(atPath: game.url.path))
      try game.progress.record(6, for: Self.level)
      try game.wallet.earn(1, Self.gems, for: "a quest")
      try await game.saves.save(Cave(level: 6), to: Self.cave)
      var unsent = UnsentData()
      (unsent.saves, unsent.values, unsent.currencies) = (["cave"], ["progress/level"], ["gems"])
      #expect(
        await thrownCode(\GameDataError.code) { try await game.signOut(forgetting: true) } == .wouldBeLost(unsent))
      #expect(try game.saves.load(Self.cave)?.level == 6, "the game remains usable")
      game.cloud.isEnabled = false
      #expect(
        await thrownCode(\GameDataError.code) { try await game.signOut(forgetting: true) } == .wouldBeLost(unsent))
      try await game.signOut(forgetting: true, losing: true)
      #expect(!FileManager.default.fileExists(atPath: game.url.path))
    }
  }

  private func forget(_ account: Account, on device: String, in folder: URL) throws {
    try GameData.forget(account, of: "com.example.players", in: folder.appendingPathComponent(device))
  }

  @Test("after everything was deleted in the cloud, forgetting a device's copy fails unless its loss is accepted")
  func forgetsAfterDeletion() async throws {
    try await with { server, folder in
      let (phone, tablet) = try await pair(in: folder, server)
      try phone.progress.record(7, for: Self.level)
      for _ in 0..<2 { for game in [phone, tablet] { try await game.cloud.sync() } }
      try await phone.cloud.deleteEverythingInTheCloud()
      var all = UnsentData()
      (all.saves, all.values, all.currencies) = (["cave"], ["progress/level"], ["gems"])
      for game in [phone, tablet] {
        #expect(await thrownCode(\GameDataError.code) { try await game.signOut(forgetting: true) } == .wouldBeLost(all))
        #expect(try game.saves.load(Self.cave)?.level == 6, "the game remains usable")
        try game.close()
      }
      #expect(gameCode { try forget(.named("ada"), on: "tablet", in: folder) } == .wouldBeLost(all))
      // Also for a game that never connects again.
      let away = try GameData.open(
        "com.example.players", account: .named("ada"), in: folder.appendingPathComponent("tablet"))
      #expect(await thrownCode(\GameDataError.code) { try await away.signOut(forgetting: true) } == .wouldBeLost(all))
      try await away.signOut(forgetting: true, losing: true)
      #expect(!FileManager.default.fileExists(atPath: away.url.path))
    }
  }

  @Test("forgetting fails right after everything was deleted in the cloud, also on a device that hasn't learned of it")
  func forgetsAtOnceAfterDeletion() async throws {
    try await with { server, folder in
      let (phone, tablet) = try await pair(in: folder, server)
      try await tablet.signOut()
      try await phone.cloud.deleteEverythingInTheCloud()
      try phone.close()
      var all = UnsentData()
      (all.saves, all.currencies) = (["cave"], ["gems"])
      #expect(gameCode { try forget(.named("ada"), on: "phone", in: folder) } == .wouldBeLost(all))
      // This device hasn't learned of the deletion, and is signed out with `forgetting` without ever connecting.
      let away = try GameData.open(
        "com.example.players", account: .named("ada"), in: folder.appendingPathComponent("tablet"))
      #expect(await thrownCode(\GameDataError.code) { try await away.signOut(forgetting: true) } == .wouldBeLost(all))
      try away.close()
    }
  }

  @Test("forgetting fails on the player's last device, unless the loss of access to the cloud's copy is accepted")
  func lastDevice() async throws {
    try await with { server, folder in
      let (phone, tablet) = try await pair(in: folder, server)
      for game in [phone, tablet] { try await game.cloud.sync() }
      try await tablet.signOut(forgetting: true)
      try await phone.cloud.sync()
      #expect(await thrownCode(\GameDataError.code) { try await phone.signOut(forgetting: true) } == .lastDevice)
      #expect(try phone.saves.load(Self.cave)?.level == 6, "the game remains usable")
      #expect(try await phone.cloud.devices().map(\.name) == ["phone"])
      try await phone.signOut(forgetting: true, losing: true)
      #expect(!FileManager.default.fileExists(atPath: phone.url.path))
    }
  }

  @Test("a removed device can't rejoin with a pairing code that it requested before it was removed")
  func codeOfRemoved() async throws {
    try await with { server, folder in
      let (phone, tablet) = try await pair(in: folder, server)
      let old = try await tablet.cloud.pairingCode()
      let lost = try #require(try await phone.cloud.devices().last)
      try await phone.cloud.remove(lost)
      #expect(await thrownCode(\GameDataError.code) { try await tablet.cloud.join(old) } == .refused)
      #expect(try await phone.cloud.devices().map(\.name) == ["phone"])
      func unsent() throws -> UnsentData? {
        try GameData.accounts(of: "com.example.players", in: folder.appendingPathComponent("tablet")).first?.contents?
          .unsent
      }
      #expect(await thrownCode(\GameDataError.code) { try await tablet.cloud.sync() } == .refused)
      #expect(try unsent()?.saves == ["cave"], "it isn't known what the cloud has by now")
      try await tablet.cloud.join(try await phone.cloud.pairingCode())
      for _ in 0..<2 { try await tablet.cloud.sync() }
      #expect(try await phone.cloud.devices().count == 2)
      #expect(try unsent()?.isEmpty == true)
      for game in [phone, tablet] { try game.close() }
    }
  }

  @Test(
    "adopting a guest that had its own cloud gives the account's devices all of its data, and counts its money once")
  func adopts() async throws {
    try await with { server, folder in
      let guest = try open(.guest, on: "phone", in: folder, server)
      try guest.progress.record(60, for: Self.level)
      try await guest.saves.save(Cave(level: 5), to: Self.cave)
      try guest.wallet.claim(100, Self.gems, key: "starter", for: "welcome")
      try guest.wallet.earn(50, Self.gems, for: "a quest")
      try await guest.cloud.sync()
      try await guest.signOut()
      let phone = try open(.named("ada"), on: "phone", in: folder, server)
      try phone.wallet.claim(100, Self.gems, key: "starter", for: "welcome")
      try await phone.cloud.sync()
      let adoption = try phone.adopt(.guest)
      #expect(adoption.money.isEmpty && adoption.pendingMoney == [Self.gems: 150] && adoption.saves == ["cave"])
      // The guest's bank settles what it had, of which the account has the payment for the starter already.
      try await until("the money is there") {
        phone.wallet[Self.gems] == Balance(total: 150, spendable: 150, pending: 0)
      }
      let tablet = try open(.named("ada"), on: "tablet", in: folder, server)
      try await tablet.cloud.join(try await phone.cloud.pairingCode())
      try await tablet.cloud.sync()
      #expect(tablet.progress[Self.level] == 60 && tablet.wallet[Self.gems].total == 150)
      #expect(try tablet.saves.load(Self.cave)?.level == 5)
      let again = try open(.guest, on: "phone", in: folder, server)
      try await again.cloud.sync()
      #expect(again.wallet[Self.gems] == Balance(total: 0, spendable: 0, pending: 0))
      #expect(
        gameCode { try again.wallet.spend(1, Self.gems, for: "a hat") }
          == .insufficient(spendable: 0, total: 0, held: []))
      for game in [phone, tablet, again] { try game.close() }
    }
  }

  private func gameCode(_ body: () throws -> Void) -> GameDataError.Code? {
    do {
      try body()
      return nil
    } catch {
      return (error as? GameDataError)?.code
    }
  }
}
#endif
