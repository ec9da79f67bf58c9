#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeServer
@testable import KeepsakeSync

@Suite("Two devices over real HTTP", .hangLimit)
struct TwoDevicesTests {
  /// Runs `body` with a server and two devices of one player, and removes everything afterwards.
  private func with(
    _ body: (_ server: LiveServer, _ first: Device, _ second: Device, _ folder: URL) async throws -> Void
  ) async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder.appendingPathComponent("server"))
      let first = try await Device.register(with: server, in: folder)
      let second = try await first.pair(with: server, in: folder)
      do {
        try await body(server, first, second, folder)
      } catch {
        try await first.close()
        try await second.close()
        try await server.stop()
        throw error
      }
      try await first.close()
      try await second.close()
      try await server.stop()
    }
  }

  @Test("small and large saves reach the other device byte for byte, and a save made there reaches the first one")
  func saves() async throws {
    try await with { _, first, second, _ in
      try await first.sync.start()
      try await second.sync.start()
      for (slot, count) in [("small", 100), ("middle", 200_000), ("large", 4_000_000)] {
        for version in 0..<3 as Range<UInt64> {
          try first.save(saveBytes(count, seed: version / 2), to: slot)
        }
      }
      try await first.sync.sync()
      try await second.sync.sync()
      for (slot, count) in [("small", 100), ("middle", 200_000), ("large", 4_000_000)] {
        #expect(try second.heads(of: slot) == [saveBytes(count, seed: 1)])
      }
      // And back: a save made from the loaded one.
      let loaded = try second.headIDs(of: "large")
      try second.save(saveBytes(4_000_000, seed: 9), to: "large", parents: .versions(loaded))
      try await second.sync.sync()
      try await first.sync.sync()
      #expect(try first.heads(of: "large") == [saveBytes(4_000_000, seed: 9)])
      #expect(first.sync.status.phase == .idle)
      #expect(first.sync.status.waitingCommits == 0)
    }
  }

  @Test("of a save in segments only the change is sent and received, and the other device has the whole save")
  func largeSaves() async throws {
    try await with { _, first, second, _ in
      try await first.sync.start()
      try await second.sync.start()
      var bytes = saveBytes(9_000_000, seed: 1)
      try first.save(bytes, to: "world")
      try await first.sync.sync()
      try await second.sync.sync()
      let sent = try #require(first.traffic).bytesSent
      let received = try #require(second.traffic).bytesReceived
      // Inserted near the beginning, so that everything behind it moves.
      bytes.insert(contentsOf: Data("a new room\n".utf8), at: 2_000_000)
      try first.save(bytes, to: "world", parents: .versions(first.headIDs(of: "world")))
      let head = try #require(first.headIDs(of: "world").first)
      let parts = try first.store.read { try $0.version(head)?.record.contents.count }
      #expect(parts ?? 0 > 4)
      try await first.sync.sync()
      try await second.sync.sync()
      let isSame = try second.heads(of: "world") == [bytes]
      #expect(isSame)
      #expect((first.traffic?.bytesSent ?? .max) - sent < 20_000)
      #expect((second.traffic?.bytesReceived ?? .max) - received < 20_000)
    }
  }

  @Test("progress made on one device reaches the other by an event, without a request")
  func events() async throws {
    try await with { _, first, second, _ in
      try await first.sync.start()
      try await second.sync.start()
      try await second.until("listening") { second.sync.status.isListening }
      try await second.sync.sync()
      let sent = try #require(second.traffic).bytesSent
      let notifications = second.sync.notifications
      try first.raise("level", to: 7)
      var cells: [CellKey] = []
      for await item in notifications {
        if case .cells(let keys) = item {
          cells = keys
          break
        }
      }
      #expect(cells == [CellKey(collection: "progress", key: "level")])
      #expect(try second.cell("level") == .max(.int(7)))
      // The event contained the value: no request was sent.
      #expect(second.traffic?.bytesSent == sent)
    }
  }

  @Test("a value reaches the other device automatically even behind a proxy that withholds event streams")
  func heldStreams() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder.appendingPathComponent("server"))
      let proxy = try CuttingProxy(holdingStreamsOf: server.running.port)
      let first = try await Device.register(with: server, in: folder)
      var credentials = try await first.pair(with: server, in: folder).credentials
      credentials.url = proxy.url
      credentials.device = DeviceID(high: credentials.device.high, low: 0)
      let second = try Device(credentials, in: folder, transport: HTTPTransport(credentials, eventIdleSeconds: 1))
      try await first.sync.start()
      try await second.sync.start()
      try await second.until("listening") { second.sync.status.isListening }
      try first.raise("level", to: 7)
      try await second.until("the level") { try second.cell("level") == .max(.int(7)) }
      try await first.close()
      try await second.close()
      proxy.stop()
      try await server.stop()
    }
  }

  @Test("concurrent saves are both kept on both devices, and resolving the conflict on one resolves it on the other")
  func conflict() async throws {
    try await with { _, first, second, _ in
      try first.save(Data("common".utf8), to: "quest")
      try await first.sync.start()
      try await second.sync.start()
      try await first.sync.sync()
      try await second.sync.sync()
      let parents = SaveParents.versions(try first.headIDs(of: "quest"))
      await first.sync.pause()
      await second.sync.pause()
      try first.save(Data("mine".utf8), to: "quest", parents: parents)
      try second.save(Data("yours".utf8), to: "quest", parents: parents)
      try await first.sync.start()
      try await second.sync.start()
      for device in [first, second, first] { try await device.sync.sync() }
      #expect(Set(try first.heads(of: "quest")) == [Data("mine".utf8), Data("yours".utf8)])
      #expect(try first.headIDs(of: "quest") == (try second.headIDs(of: "quest")))
      try second.save(Data("both".utf8), to: "quest", parents: .versions(try second.headIDs(of: "quest")))
      try await second.sync.sync()
      try await first.sync.sync()
      #expect(try first.heads(of: "quest") == [Data("both".utf8)])
    }
  }

  @Test(
    "everything arrives exactly once over a network that cuts every connection at some point",
    arguments: [1, 2, 3] as [UInt64])
  func cutNetwork(seed: UInt64) async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder.appendingPathComponent("server"))
      let proxy = try CuttingProxy(to: server.running.port, seed: seed)
      let first = try await Device.register(with: server, in: folder)
      let second = try await first.pair(with: server, in: folder)
      let devices = try [first, second].map { device in
        var credentials = device.credentials
        credentials.url = proxy.url
        credentials.device = DeviceID(high: device.credentials.device.high, low: 0)
        return try Device(credentials, in: folder)
      }
      for device in devices { try await device.sync.start() }
      for step in 0..<20 as Range<UInt64> {
        for (index, device) in devices.enumerated() {
          try device.add("coins", 1)
          try device.save(saveBytes(20_000, seed: step), to: "own-\(index)", parents: .everyHead)
        }
        try devices[0].save(saveBytes(900_000, seed: step / 7), to: "big", parents: .everyHead)
        try await Task.sleep(for: .milliseconds(20))
      }
      try await devices[0].until("a cut") { proxy.count > 3 }
      proxy.heal()
      for device in [devices[0], devices[1], devices[0], devices[1]] { await device.retrySend() }
      for device in devices {
        #expect(try device.count("coins") == 40, "seed \(seed)")
        for index in 0..<2 {
          #expect(try device.heads(of: "own-\(index)") == [saveBytes(20_000, seed: 19)], "seed \(seed)")
        }
        #expect(try device.heads(of: "big") == [saveBytes(900_000, seed: 2)], "seed \(seed)")
        try await device.close()
      }
      for device in [first, second] { try await device.close() }
      proxy.stop()
      try await server.stop()
    }
  }

  @Test("while the server is unreachable saving works and `sync` throws; the save is sent when the server is back")
  func unreachable() async throws {
    try await TemporaryFolder.with { folder in
      let data = folder.appendingPathComponent("server")
      let server = try await LiveServer.start(data: data)
      let port = server.running.port
      let device = try await Device.register(with: server, in: folder)
      let other = try await device.pair(with: server, in: folder)
      try await server.stop()
      try await until("the port \(port) to be closed") { !TestPort.isOpen(port) }
      try await device.sync.start()
      try device.save(Data("offline".utf8), to: "a")
      await #expect {
        try await device.sync.sync()
      } throws: {
        guard case .transport(let failure) = $0 as? SyncError else { return false }
        return failure.kind == .unreachable
      }
      #expect(device.sync.status.waitingCommits == 1)
      let again = try await LiveServer.start(data: data, port: port)
      // Automatically, when the pause after a failure or the event stream ends.
      try await device.until("sending") { device.sync.status.phase == .idle && device.sync.status.waitingCommits == 0 }
      try await other.sync.start()
      try await other.sync.sync()
      #expect(try other.heads(of: "a") == [Data("offline".utf8)])
      try await device.close()
      try await other.close()
      try await again.stop()
    }
  }

  @Test("while sync is paused nothing is sent and `sync` throws; afterwards everything is sent")
  func pause() async throws {
    try await with { _, first, second, _ in
      try await first.sync.start()
      try await second.sync.start()
      try await first.sync.sync()
      await first.sync.pause()
      #expect(first.sync.status.phase == .paused)
      try first.raise("level", to: 3)
      await #expect(throws: SyncError.self) { try await first.sync.sync() }
      try await second.sync.sync()
      #expect(try second.cell("level") == nil)
      try await first.sync.start()
      try await first.sync.sync()
      try await second.sync.sync()
      #expect(try second.cell("level") == .max(.int(3)))
    }
  }

  @Test("a store connects to another player's container only if rebinding is requested, and then loses nothing")
  func otherContainer() async throws {
    try await with { server, first, _, folder in
      try first.save(Data("guest".utf8), to: "a")
      try first.raise("level", to: 4)
      try await first.sync.start()
      try await first.sync.sync()
      await first.sync.stop()
      let stranger = try await Device.register(with: server, in: folder)
      try stranger.raise("level", to: 2)
      try await stranger.sync.start()
      try await stranger.sync.sync()
      let joined = SyncService(
        store: first.store, transport: HTTPTransport(stranger.credentials), container: stranger.credentials.container)
      await #expect {
        try await joined.start()
      } throws: {
        guard case .otherContainer(let held, let offered) = $0 as? SyncError else { return false }
        return held == first.credentials.container && offered == stranger.credentials.container
      }
      #expect(joined.status.phase == .stopped)
      try await joined.start(rebinding: true)
      try await joined.sync()
      try await stranger.sync.sync()
      #expect(try stranger.heads(of: "a") == [Data("guest".utf8)])
      #expect(try stranger.cell("level") == .max(.int(4)))
      await joined.stop()
      try await stranger.close()
    }
  }

  @Test("a refused token halts sync, which the status reports, and everything is kept on the device")
  func wrongToken() async throws {
    try await with { _, first, _, folder in
      var credentials = first.credentials
      credentials.token = String(credentials.token.dropLast(2)) + "zz"
      credentials.device = DeviceID(high: 1, low: 1)
      let device = try Device(credentials, in: folder)
      try device.save(Data("kept".utf8), to: "a")
      try await device.sync.start()
      await #expect(throws: SyncError.self) { try await device.sync.sync() }
      guard case .halted(let failure) = device.sync.status.phase else {
        Issue.record("\(device.sync.status)")
        return
      }
      #expect(failure.kind == .unauthorized)
      #expect(device.sync.status.waitingCommits == 1)
      #expect(try device.heads(of: "a") == [Data("kept".utf8)])
      try await device.close()
    }
  }

  @Test("after a server is restored from a backup, a player's devices send it what it lost")
  func restoredServer() async throws {
    try await TemporaryFolder.with { folder in
      let data = folder.appendingPathComponent("server")
      let backup = folder.appendingPathComponent("backup.sqlite")
      let database = data.appendingPathComponent("cloud.sqlite")
      var server = try await LiveServer.start(data: data)
      let port = server.running.port
      let first = try await Device.register(with: server, in: folder)
      try await first.sync.start()
      try first.save(Data("one".utf8), to: "a")
      try await first.sync.sync()
      await first.sync.pause()
      try await server.stop()
      try FileManager.default.copyItem(at: database, to: backup)
      server = try await LiveServer.start(data: data, port: port)
      try await first.sync.start()
      try first.save(Data("two".utf8), to: "a")
      try first.raise("level", to: 9)
      await first.retrySend()
      // Registered after the backup.
      let second = try await first.pair(with: server, in: folder)
      await first.sync.pause()
      try await server.stop()
      try FileManager.default.removeItem(at: database)
      try FileManager.default.copyItem(at: backup, to: database)
      server = try await LiveServer.start(data: data, port: port)
      try await first.sync.start()
      try await second.sync.start()
      await first.retrySend()
      await second.retrySend()
      #expect(try second.heads(of: "a") == [Data("two".utf8)])
      #expect(try second.cell("level") == .max(.int(9)))
      try await first.close()
      try await second.close()
      try await server.stop()
    }
  }
}
#endif
