#if Cloud && os(Linux)
import Foundation
import GRDB
import Keepsake
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// Which of a player's devices have a save, through the public API, over real HTTP.
@Suite("Which devices have a save, over real HTTP", .serialized, .hangLimit)
struct SeenTests {
  private static let world = Slot<Chapter>("world")

  private func start(_ data: URL, port: Int? = nil) async throws -> LiveServer {
    try await LiveServer.start(data: data, port: port, appKeys: [ServerProcess.appKey])
  }

  private func pause(_ device: PlayedDevice) async throws {
    device.game.cloud.isEnabled = false
    try await device.until("pausing") { $0.game.cloud.status.phase == .paused }
  }

  private func resume(_ device: PlayedDevice) async throws {
    device.game.cloud.isEnabled = true
    try await device.until("listening") { $0.game.cloud.status.isListening }
  }

  /// Repeats a call that fails because its connection was to a server that has ended.
  private func insisting<Result>(_ call: () async throws -> Result) async throws -> Result {
    let start = ContinuousClock.now
    while true {
      do {
        return try await call()
      } catch let error as GameDataError
        where error.code == .unreachable && ContinuousClock.now - start < Patience.limit
      {
        try await Task.sleep(for: .milliseconds(20))
      }
    }
  }

  private func send(_ device: PlayedDevice) async throws { try await insisting { try await device.game.cloud.sync() } }

  private func names(_ device: PlayedDevice) async throws -> [String]? {
    try await insisting { try await device.game.saves.seenBy(Self.world)?.map(\.name) }
  }

  /// Waits until `device` has the chapter, and has reported its position to the server.
  private func has(_ number: Int, _ device: PlayedDevice) async throws {
    try await device.until("chapter \(number)") { try $0.game.saves.load(Self.world)?.number == number }
    for _ in 0..<2 { try await send(device) }
  }

  @Test(
    "`seenBy` lists only devices that have the newest save and aren't removed, also after server and device restart")
  func three() async throws {
    try await TemporaryFolder.with { folder in
      let data = folder.appendingPathComponent("server")
      var server = try await start(data)
      let port = try #require(server.url.port)
      let phone = try await PlayedDevice.playing("phone", in: folder, to: port)
      let tablet = try await PlayedDevice.playing("tablet", in: folder, to: port, with: phone)
      let console = try await PlayedDevice.playing("console", in: folder, to: port, with: phone)
      for device in [tablet, console] { try await pause(device) }
      try await phone.game.saves.save(Chapter(1, bytes: 300_000), to: Self.world)
      try await send(phone)
      #expect(try await names(phone) == [])
      try await resume(tablet)
      try await has(1, tablet)
      #expect(try await names(phone) == ["tablet"])
      try await resume(console)
      try await has(1, console)
      #expect(try await names(phone) == ["tablet", "console"])
      // Each device gets the others, without itself. The phone made the save and hasn't presented a newer cursor since;
      // it does so automatically with its next poll.
      phone.letMinutePass()
      for _ in 0..<2 { try await send(phone) }
      #expect(try await names(tablet) == ["phone", "console"])

      try await pause(console)
      try await phone.game.saves.save(Chapter(2, bytes: 300_000), to: Self.world)
      try await send(phone)
      try await has(2, tablet)
      #expect(try await names(phone) == ["tablet"])
      try await resume(console)
      try await has(2, console)
      #expect(try await names(phone) == ["tablet", "console"])

      try await server.stop()
      await #expect { _ = try await phone.game.saves.seenBy(Self.world) } throws: {
        ($0 as? GameDataError)?.code == .unreachable
      }
      #expect(
        try phone.game.saves.status(of: Self.world).seenBy?.map(\.name) == ["tablet", "console"], "what was known")
      server = try await start(data, port: port)
      try await phone.until("listening") { $0.game.cloud.status.isListening }
      #expect(try await names(phone) == ["tablet", "console"])
      try phone.close()
      let again = try PlayedDevice("phone", in: folder, to: port)
      #expect(try again.game.saves.status(of: Self.world).seenBy == nil)
      again.connect()
      try await send(again)
      #expect(try await names(again) == ["tablet", "console"])

      let lost = try #require(try await again.game.cloud.devices().first { $0.name == "console" })
      try await again.game.cloud.remove(lost)
      #expect(try await names(again) == ["tablet"])
      for device in [again, tablet, console] { try device.close() }
      try await server.stop()
    }
  }

  @Test("status updates report which devices have got the save without further calls, and a poll wakes no other device")
  func follows() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await start(folder.appendingPathComponent("server"))
      let port = try #require(server.url.port)
      let phone = try await PlayedDevice.playing("phone", in: folder, to: port)
      let tablet = try await PlayedDevice.playing("tablet", in: folder, to: port, with: phone)
      let console = try await PlayedDevice.playing("console", in: folder, to: port, with: phone)
      let following = Task {
        for try await status in phone.game.saves.statusUpdates(of: Self.world)
        where status.seenBy?.map(\.name) == ["tablet", "console"] {
          return true
        }
        return false
      }
      try await phone.game.saves.save(Chapter(1, bytes: 300_000), to: Self.world)
      try await send(phone)
      for device in [tablet, console] {
        try await device.until("chapter 1") { try $0.game.saves.load(Self.world)?.number == 1 }
      }
      try await settle([phone, tablet, console])
      let before = console.proxy.counts
      // A minute passes on the tablet, and its poll reports what it has. The other devices' clocks don't move, so only
      // an event could wake them.
      try await tablet.poll()
      try await settle([phone, tablet, console])
      #expect(console.proxy.counts == before)
      try await console.poll()
      try await settle([phone, tablet, console])
      try await phone.until("showing which devices have it") {
        $0.letMinutePass()
        return try $0.game.saves.status(of: Self.world).seenBy?.map(\.name) == ["tablet", "console"]
      }
      #expect(try await following.value)
      for device in [phone, tablet, console] { try device.close() }
      try await server.stop()
    }
  }

  @Test(
    "a server restored from a backup lists no device for a save made after the backup until that device syncs again")
  func restored() async throws {
    try await TemporaryFolder.with { folder in
      let (data, backup) = (folder.appendingPathComponent("server"), folder.appendingPathComponent("backup"))
      var server = try await start(data)
      let port = try #require(server.url.port)
      let phone = try await PlayedDevice.playing("phone", in: folder, to: port)
      let tablet = try await PlayedDevice.playing("tablet", in: folder, to: port, with: phone)
      try RestoredServerTests.backUp(data, to: backup)
      for number in 1...4 {
        try await phone.game.saves.save(Chapter(number, bytes: 5_000), to: Self.world)
        try await send(phone)
      }
      try await has(4, tablet)
      #expect(try await names(phone) == ["tablet"])
      try await pause(tablet)
      try await server.stop()
      try FileManager.default.moveItem(at: data, to: folder.appendingPathComponent("lost"))
      try FileManager.default.moveItem(at: backup, to: data)
      server = try await start(data, port: port)
      try await phone.until("listening") { $0.game.cloud.status.isListening }
      try await send(phone)
      #expect(try await names(phone) == [], "the tablet has it, and this server can't know")
      try await resume(tablet)
      for _ in 0..<2 { try await send(tablet) }
      #expect(try await names(phone) == ["tablet"])
      for device in [phone, tablet] { try device.close() }
      try await server.stop()
    }
  }

  @Test(
    """
    the device list names holders only of the versions in the query, and a query with invalid or too many ids is refused
    """)
  func question() async throws {
    try await LiveServer.with { server in
      let (client, _) = try await server.client.register()
      let id = String(repeating: "0", count: 31) + "1"
      func list(_ query: String) async throws -> (status: Int, devices: [AccountDevice]) {
        let answer = try await client.call("GET", "/v1/devices" + query)
        return (
          answer.status,
          answer.status == 200 ? try JSONDecoder().decode(DeviceList.self, from: answer.body).devices : []
        )
      }
      #expect(try await list("").devices.map(\.has) == [nil])
      #expect(try await list("?versions=\(id)").devices.map(\.has) == [[]])
      let most = Array(repeating: id, count: ExchangeRules.maximumAskedVersions).joined(separator: ",")
      #expect(try await list("?versions=" + most).status == 200)
      for query in ["", "nonsense", id + ",", most + "," + id] {
        #expect(try await list("?versions=" + query).status == 400, "\(query)")
      }
    }
  }
}

/// How a server stores which devices have a save.
@Suite struct ReachedStorageTests {
  private func exchange(_ request: ExchangeRequest, by device: DeviceID, in storage: SQLiteCloudStorage) async throws
    -> ExchangeResponse
  {
    let container = Self.container
    try await storage.recordDevice(Self.record(device))
    let reads = try CloudAcceptance.reads(of: request, from: device, hasQuota: false)
    return try await storage.decide(on: container, reading: reads) { storage in
      var random = SystemRandomNumberGenerator()
      return try CloudAcceptance.exchange(request, from: device, now: 5, in: &storage, using: &random)
    }
  }

  private static let container = ContainerID(high: 1, low: 1)
  private static let version = VersionRecord(
    id: VersionID(high: 1, low: 1), slot: "main", covers: [], contents: [], length: 0, savedAtMilliseconds: 5,
    writer: WriterID(3),
    provisional: false)

  private static func record(_ device: DeviceID) -> DeviceRecord {
    let identity = DeviceIdentity(
      device: device, player: PlayerID(high: 2, low: 2), container: container,
      app: AppID(bytes: Data(repeating: 7, count: 16)))
    return DeviceRecord(identity: identity, name: "iPad", createdMilliseconds: 1, seenMilliseconds: 1)
  }

  private func with(_ body: (SQLiteCloudStorage, URL) async throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      let storage = try SQLiteCloudStorage(database: folder.appendingPathComponent("cloud.sqlite"), contents: contents)
      try await body(storage, folder)
      try await storage.close()
    }
  }

  private func holders(_ storage: SQLiteCloudStorage) async throws -> Set<DeviceID>? {
    try await storage.devices(of: Self.container, holding: [Self.version.id])[Self.version.id]
  }

  @Test("a device's position is written only if it changed, and is not a change of the container")
  func writes() async throws {
    try await with { storage, _ in
      let (first, second) = (DeviceID(high: 3, low: 1), DeviceID(high: 3, low: 2))
      let answer = try await exchange(
        ExchangeRequest(cursor: .start, versions: [Self.version], limit: 10), by: first, in: storage)
      func changed(_ body: () async throws -> Void) async throws -> Int {
        func count() async throws -> Int { try await storage.pool.write { db in db.totalChangesCount } }
        let before = try await count()
        try await body()
        return try await count() - before
      }
      _ = try await exchange(ExchangeRequest(cursor: .start, limit: 10), by: second, in: storage)
      #expect(try await holders(storage) == [])
      let present = ExchangeRequest(cursor: answer.cursor, limit: 10)
      // The container's row has both what its devices have reached and its revision.
      #expect(try await changed { _ = try await exchange(present, by: second, in: storage) } == 1)
      #expect(try await holders(storage) == [second])
      #expect(try await changed { _ = try await exchange(present, by: second, in: storage) } == 0)
      #expect(try await changed { _ = try await exchange(present, by: first, in: storage) } == 1)
      #expect(try await storage.position(of: Self.container) == answer.cursor)
      #expect(try await holders(storage) == [first, second])
      _ = try await storage.retire(second, of: Self.container, now: 6)
      #expect(try await holders(storage) == [first])
    }
  }

  @Test("a migrated database of an older server knows no device's position, and records positions from then on")
  func migrated() async throws {
    try await TemporaryFolder.with { folder in
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      let database = folder.appendingPathComponent("cloud.sqlite")
      let device = DeviceID(high: 3, low: 1)
      let queue = try DatabaseQueue(path: database.path)
      try Schema.migrator(files: ContentFiles(folder: contents)).migrate(queue, upTo: Schema.migrations[3])
      try await queue.write { db in
        let record = try JSONEncoder().encode(Self.version)
        let id = Self.container.bytes
        try db.execute(sql: "INSERT INTO container (id, epoch, seq, mark) VALUES (?, 0, 1, 5)", arguments: [id])
        try db.execute(sql: "INSERT INTO mark (container, seq, mark) VALUES (?, 1, 5)", arguments: [id])
        try db.execute(
          sql: "INSERT INTO version (container, id, slot, seq, head, record) VALUES (?, ?, ?, 1, 1, ?)",
          arguments: [id, Self.version.id.bytes, Data("main".utf8), record])
        try db.execute(
          sql: "INSERT INTO device (container, id, player, app, name, created, seen) VALUES (?, ?, ?, ?, ?, 1, 1)",
          arguments: [
            id, device.bytes, PlayerID(high: 2, low: 2).bytes, Data(repeating: 7, count: 16), Data("iPad".utf8),
          ])
      }
      try queue.close()
      let storage = try SQLiteCloudStorage(database: database, contents: contents)
      #expect(try await holders(storage) == [])
      _ = try await exchange(
        ExchangeRequest(cursor: Cursor(epoch: 0, seq: 1, mark: 5), limit: 10), by: device, in: storage)
      #expect(try await holders(storage) == [device])
      try await storage.close()
    }
  }
}
#endif
