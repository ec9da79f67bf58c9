#if Cloud
import Foundation
import GRDB
import Keepsake
import KeepsakeReplication
import KeepsakeSync
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite("A store to which an old copy is put back, over real HTTP", .hangLimit)
struct SetBackStoreTests {
  private static let cave = Slot<String>("cave")

  private func open(_ credentials: CloudCredentials, _ stage: AdminStage) async throws -> Device {
    let device = try Device(credentials, in: stage.folder)
    try await device.sync.start()
    return device
  }

  /// A device of a new player that has played on since a copy of its store was made, and has the copy again.
  private func putBack(_ stage: AdminStage) async throws -> Device {
    var device = try await stage.device()
    let credentials = device.credentials
    let store = stage.folder.appendingPathComponent("device-\(credentials.device)")
    let copy = stage.folder.appendingPathComponent("copy")
    try device.save(Data("one".utf8), to: "main")
    try await device.sync.sync()
    try await device.close()
    try FileManager.default.copyItem(at: store, to: copy)
    device = try await open(credentials, stage)
    for text in ["two", "three"] {
      try device.save(Data(text.utf8), to: "main")
      try await device.sync.sync()
    }
    // Now the cloud knows how far it has come.
    try await device.sync.sync()
    try await device.close()
    try FileManager.default.removeItem(at: store)
    try FileManager.default.copyItem(at: copy, to: store)
    return try await open(credentials, stage)
  }

  private func mark(of device: Device, _ client: Client) async throws -> [String: Any]? {
    let answer = try await client.call("GET", AdminStage.path(device, "/devices"))
    let devices = try #require(answer.json["devices"] as? [[String: Any]])
    let own = devices.first { $0["device"] as? String == "\(device.credentials.device)" }
    return try #require(own)["setBack"] as? [String: Any]
  }

  @Test("it is shown to the studio and told to its backend, once, and syncs as ever; a device that played on isn't")
  func flagged() async throws {
    let secrets = try TemporaryFolder()
    let sender = RecordingSender()
    let endpoint = try WebhookLab.endpoint("shop", in: secrets.url, url: "http://127.0.0.1:9/hook")
    try await AdminStage.with(webhooks: [endpoint], sender: sender) { stage in
      let client = try stage.client()
      let device = try await putBack(stage)
      for _ in 0..<4 { try await device.sync.sync() }
      let shown = try await mark(of: device, client)
      let mark = try #require(shown)
      #expect(mark["count"] as? Int == 1 && mark["lastMilliseconds"] as? Int ?? 0 > 0)
      let (from, to) = (try #require(mark["from"] as? Int), try #require(mark["to"] as? Int))
      #expect(from > to && to > 0)
      #expect(device.sync.status.setBackMark == nil, "the operator doesn't want games to know")
      let second = try await stage.device(with: device)
      try device.save(Data("after".utf8), to: "other")
      for device in [device, second] { try await device.sync.sync() }
      try await second.until("the save") { try second.heads(of: "other") == [Data("after".utf8)] }
      #expect(try await self.mark(of: second, client) == nil)
      try await until("the webhook") { sender.kinds.contains("deviceSetBack") }
      let told = sender.requests.map(RecordingSender.body).filter { $0["kind"] as? String == "deviceSetBack" }
      let data = try #require(told.first?["data"] as? [String: Any])
      #expect(told.count == 1 && data["device"] as? String == "\(device.credentials.device)")
      #expect(data["count"] as? Int == 1 && data["from"] as? Int == from && data["to"] as? Int == to)
      // It is among everything that is kept of the player.
      let own = Client(url: stage.server.url, appKey: stage.server.appKey, token: device.credentials.token)
      let export = String(decoding: try await own.call("GET", "/v1/export").body, as: UTF8.self)
      #expect(export.contains(#""setBack":{"count":1,"from":\#(from),"lastMilliseconds":"#))
      // It goes with the device.
      let removed = AdminStage.path(device, "/devices/\(device.credentials.device)")
      #expect(try await client.call("DELETE", removed).status == 204)
      #expect(try await client.call("DELETE", "\(removed)/set-back").status == 404)
      for device in [device, second] { try await device.close() }
    }
  }

  @Test("nothing is taken of a refused one, which gets everything, until the studio clears it; then nothing is lost")
  func refused() async throws {
    try await AdminStage.with(setBackPolicy: .refuse) { stage in
      let client = try stage.client()
      let device = try await putBack(stage)
      try await device.until("the mark") { device.sync.status.phase == .idle }
      // The request that confirms is refused already.
      try await device.sync.sync()
      try device.save(Data("after".utf8), to: "other")
      try device.raise("level", to: 7)
      try await device.until("the refusal") {
        !device.sync.status.refusals.isEmpty && device.sync.status.phase == .idle
      }
      #expect(device.sync.status.refusals.allSatisfy { $0.refusal.reason == .setBack })
      #expect(device.sync.status.setBackMark?.isRefused == true)
      let second = try await stage.device(with: device)
      try await second.sync.sync()
      #expect(try second.heads(of: "other").isEmpty && second.cell("level") == nil)
      try second.save(Data("elsewhere".utf8), to: "third")
      try await second.sync.sync()
      try await device.until("the other's save") { try device.heads(of: "third") == [Data("elsewhere".utf8)] }

      let path = AdminStage.path(device, "/devices/\(device.credentials.device)/set-back")
      #expect(try await stage.client([.read, .saves], name: "eve").call("DELETE", path).code == "scope_missing")
      let unknown = AdminStage.path(device, "/devices/\(String(repeating: "1", count: 32))/set-back")
      #expect(try await client.call("DELETE", unknown).status == 404)
      for _ in 0..<2 { #expect(try await client.call("DELETE", path).status == 204) }
      #expect(try await mark(of: device, client) == nil)
      let acts = try stage.audit().filter { $0.act == "device.clear" }
      #expect(acts.map(\.result) == ["scope_missing", "not_found", "done", "done"])
      try await device.sync.sync()
      try await device.until("sending") {
        device.sync.status.waitingCommits == 0 && device.sync.status.refusals.isEmpty
      }
      #expect(device.sync.status.setBackMark == nil)
      try await second.until("the save") {
        try second.heads(of: "other") == [Data("after".utf8)] && second.cell("level") == .max(.int(7))
      }
      for device in [device, second] { try await device.close() }
    }
  }

  @Test("a game is told that its data went back, also after a restart, and syncs as ever, until the studio clears it")
  func asked() async throws {
    try await AdminStage.with(setBackPolicy: .ask) { stage in
      let place = stage.folder.appendingPathComponent("phone")
      func open() throws -> GameData { try GameData.open("com.example.setback", at: place) }
      func connect(_ game: GameData) async throws {
        game.cloud.connect(.server(stage.server.url, appKey: stage.server.appKey), deviceName: "phone")
        for _ in 0..<3 { try await game.cloud.sync() }
      }
      var game = try open()
      try await game.saves.save("deep", to: Self.cave)
      try await connect(game)
      #expect(game.cloud.status.setBack == nil)
      try game.close()
      let copy = stage.folder.appendingPathComponent("copy")
      try FileManager.default.copyItem(at: place, to: copy)
      game = try open()
      for text in ["deeper", "deepest"] { try await game.saves.save(text, to: Self.cave) }
      try await connect(game)
      try game.close()
      try FileManager.default.removeItem(at: place)
      try FileManager.default.copyItem(at: copy, to: place)
      game = try open()
      #expect(game.cloud.status.setBack == nil)
      try await connect(game)
      try await until("the news") { game.cloud.status.setBack != nil }
      let shown = try #require(game.cloud.status.setBack)
      #expect(!shown.isRefused && shown.noticed > Date(timeIntervalSince1970: 1_600_000_000))
      #expect(try game.saves.load(Self.cave) == "deepest", "what the cloud has comes back")
      try await game.saves.save("out again", to: Self.cave)
      try await game.cloud.sync()
      #expect(game.cloud.status.waitingCommits == 0 && game.cloud.status.refusals.isEmpty)
      let player = try await game.cloud.player()
      try game.close()
      game = try open()
      #expect(game.cloud.status.setBack == shown)
      let client = try stage.client()
      let answer = try await client.call("GET", "/admin/v1/players/\(player)/devices")
      let device = try #require((answer.json["devices"] as? [[String: Any]])?.first?["device"] as? String)
      let path = "/admin/v1/players/\(player)/devices/\(device)/set-back"
      #expect(try await client.call("DELETE", path).status == 204)
      try await connect(game)
      try await until("the end") { game.cloud.status.setBack == nil }
      try game.close()
    }
  }

  @Test("the devices of an older server's database aren't marked")
  func migrated() async throws {
    try await TemporaryFolder.with { folder in
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      let database = folder.appendingPathComponent("cloud.sqlite")
      let container = ContainerID(high: 2, low: 1)
      let queue = try DatabaseQueue(path: database.path)
      try Schema.migrator(files: ContentFiles(folder: contents)).migrate(queue, upTo: Schema.migrations[14])
      try await queue.write { db in
        try db.execute(
          sql: "INSERT INTO device (container, id, player, app, name, created, seen) VALUES (?, ?, ?, ?, ?, 1, 1)",
          arguments: [
            container.bytes, DeviceID(high: 3, low: 1).bytes, PlayerID(high: 2, low: 2).bytes,
            Data(repeating: 7, count: 16), Data("iPad".utf8),
          ])
      }
      try queue.close()
      let storage = try SQLiteCloudStorage(database: database, contents: contents)
      #expect(try await storage.devices(of: container).map(\.setBack) == [nil])
      #expect(try await storage.clearSetBack(of: DeviceID(high: 3, low: 1), in: container))
      #expect(try await !storage.clearSetBack(of: DeviceID(high: 3, low: 2), in: container))
      try await storage.close()
    }
  }
}
#endif
