#if Cloud
import Foundation
import GRDB
import Keepsake
import KeepsakeReplication
import Logging
import KeepsakeSync
import TestSupport
import Testing

@testable import KeepsakeServer

/// What remains of a player whom the studio deletes: it is searched for in every file.
@Suite("A deleted player leaves nothing", .hangLimit) struct ErasureTests {
  /// Random-looking text that is in a save, a value, a name.
  private static let mark = "Zq7XmarkerW4t"

  /// Saves of many sizes, each with the mark, so that some are inline in pages, some on pages of their own, some in
  /// files.
  private func play(_ device: Device, sizes: [Int]) async throws {
    for (index, size) in sizes.enumerated() {
      // Incompressible around the mark, which a frame then has as it is.
      var source = SystemRandomNumberGenerator()
      var bytes = Data((0..<size / 8).flatMap { _ in withUnsafeBytes(of: source.next()) { Array($0) } })
      bytes.insert(contentsOf: Data("\(Self.mark)\(index)".utf8), at: size / 2)
      try device.save(bytes, to: "slot \(index % 5)")
      try device.set("name-\(index)", to: "\(Self.mark) \(index)")
      if index % 3 == 0 { try await device.sync.sync() }
    }
    try await device.sync.sync()
  }

  @Test(
    "neither ids nor contents are in the database, its log, files or the server's log; other players keep theirs",
    .enabled(if: !TestDatabase.isUsedByServers, "the database's files aren't the server's"))
  func leavesNothing() async throws {
    let log = RecordedLog()
    try await AdminStage.with(logger: log.logger) { stage in
      var others: [Device] = []
      for _ in 0..<3 { others.append(try await stage.device()) }
      let device = try await stage.device()
      let second = try await stage.device(with: device)
      let sizes = [24, 200, 600, 1_000, 1_500, 5_000, 40_000, 700_000, 2_500_000]
      for round in 0..<3 {
        // Between those of others, whose pages they share.
        for other in others {
          try other.save(saveBytes(700 + 100 * round, seed: UInt64(round)), to: "main")
          try await other.sync.sync()
        }
        try await play(device, sizes: sizes)
        try await second.sync.sync()
      }
      let client = try stage.client()
      let grant = """
        {"id": "\(OperationID(high: 5, low: 6))", "kind": "grant", "currency": "gems", "amount": 5,
        "reason": "\(Self.mark)"}
        """
      #expect(try await client.call("POST", AdminStage.path(device, "/money/orders"), json: grant).status == 200)
      let ids: [any CustomStringConvertible] = [
        device.credentials.player, device.credentials.device, second.credentials.device, device.credentials.container,
      ]
      let bytes = [
        device.credentials.player.bytes, device.credentials.device.bytes, second.credentials.device.bytes,
        device.credentials.container.bytes,
      ]
      var marks = bytes + ids.map { Data($0.description.utf8) }
      let version = try #require(try device.headIDs(of: "slot 1").first)
      marks += [version.bytes, Data(Self.mark.utf8)]
      // They are found while the player is there.
      let before = try Traces.files(of: stage.data, having: marks)
      #expect(before.contains { $0.hasPrefix("contents/") } && before.contains { $0.hasPrefix("cloud.sqlite") })

      let answer = try await client.call("DELETE", AdminStage.path(device))
      #expect(answer.status == 200 && answer.json["erased"] as? Bool == true)
      // The reason of the order was the studio's own text, and stays in the audit log.
      let kept = try stage.audit().filter { $0.details["reason"] == Self.mark }
      #expect(kept.count == 1)
      try await until("the files are gone") {
        try !Traces.files(of: stage.data, having: marks.dropLast()).contains { $0.hasPrefix("contents/") }
      }
      #expect(try Traces.files(of: stage.data, having: Array(marks.dropLast())) == [])
      #expect(try Traces.count(Data(Self.mark.utf8), in: stage.data) == kept.count)
      let lines = log.lines.value.map(\.text).joined(separator: "\n")
      for id in ids { #expect(!lines.contains(id.description)) }
      #expect(!lines.contains(Self.mark))

      #expect(try await client.call("GET", AdminStage.path(device)).code == "player_unknown")
      await #expect(throws: (any Error).self) { try await second.sync.sync() }
      for other in others {
        try await other.sync.sync()
        #expect(try await stage.versions(of: other, client).contains { $0.head && $0.available })
      }
      let row = try #require(try stage.audit().first { $0.act == "player.delete" })
      #expect(row.result == "done" && row.player == AuditEntry.hash(device.credentials.player))
      for device in others + [device, second] { try await device.close() }
    }
  }

  @Test("what has pages of its own is overwritten also in a database that is too large to be written anew")
  func large() async throws {
    try await TemporaryFolder.with { folder in
      let storage = try AdminStage.storage(in: folder)
      let container = ContainerID(high: 1, low: 2)
      let bytes = Data((0..<2_000).flatMap { Data("\(Self.mark) \($0) ".utf8) })
      let content = KeptContent(hash: ContentHash(of: bytes), length: bytes.count, bytes: .memory(bytes))
      _ = try await storage.putContent(content, of: container, quota: nil)
      let mark = Data(Self.mark.utf8)
      #expect(try Traces.count(mark, in: folder) >= 1_900)
      try await storage.delete(container, now: 1)
      #expect(await storage.erase(vacuumedBytes: 0) == false)
      #expect(try Traces.count(mark, in: folder) == 0)
      #expect(await storage.erase())
      try await storage.close()
    }
  }

  @Test("what can't be erased is said, and is no failure: a file that stays, a database that fails")
  func failing() async throws {
    try await TemporaryFolder.with { folder in
      let storage = try AdminStage.storage(in: folder)
      let bytes = Data("a save".utf8)
      let content = KeptContent(hash: ContentHash(of: bytes), length: bytes.count, bytes: .memory(bytes))
      for number in [UInt64(1), 2] {
        let container = ContainerID(high: 1, low: number)
        _ = try await storage.putContent(content, of: container, quota: nil)
        // No system has files of such names, so that nothing can be done to one.
        if number == 1 {
          try await storage.pool.write { db in
            try db.execute(sql: "UPDATE content SET file = ?", arguments: [String(repeating: "x", count: 5_000)])
          }
        }
        #expect(try await storage.delete(container, now: 1, auditing: nil).areFilesGone == (number == 2))
        #expect(await storage.erase())
      }
      try await storage.close()
      #expect(await storage.erase() == false)
    }
  }

  @Test(
    "a deletion whose files can't all be removed is done, and says that something is left",
    .enabled(if: !TestDatabase.isUsedByServers, "contents aren't in files"))
  func saidFiles() async throws {
    try await AdminStage.with { stage in
      let device = try await stage.device()
      try device.save(Data("a save".utf8), to: "main")
      try await device.sync.sync()
      try await AdminDatabase.run(
        stage.data, "UPDATE content SET file = ?", [String(repeating: "x", count: 5_000)])
      let answer = try await stage.client().call("DELETE", AdminStage.path(device))
      #expect(answer.status == 200 && answer.json["deleted"] as? Bool == true)
      #expect(answer.json["erased"] as? Bool == false)
      try await device.close()
    }
  }

  @Test("a device that was removed before its player was deleted isn't named by what it used and signed in to either")
  func removedBefore() async throws {
    try await TemporaryFolder.with { folder in
      let storage = try AdminStage.storage(in: folder)
      func device(_ number: UInt64) async throws -> DeviceIdentity {
        let made = DeviceIdentity(
          device: DeviceID(high: 7, low: number), player: PlayerID(high: 8, low: number),
          container: ContainerID(high: 9, low: number), app: AppID(ofKey: "an app key"))
        try await storage.recordDevice(
          DeviceRecord(identity: made, name: "A", createdMilliseconds: 1, seenMilliseconds: 1))
        return made
      }
      let (phone, guest) = (try await device(1), try await device(2))
      var ada = VerifiedIdentity(id: VerifiedIdentity.id(of: "ada", at: "", named: "login"), issuer: "login")
      _ = try await storage.link(ada, to: phone, now: 2)
      ada.uses = [.init(key: ContentHash(of: Data("a token".utf8)), expiresMilliseconds: 1_000)]
      let new = NewDevice(device: DeviceID(high: 7, low: 3), name: "new")
      _ = try await storage.signIn(with: ada, by: guest, as: new, now: 3)
      _ = try await storage.retire(guest.device, of: guest.container, now: 4)
      func named() async throws -> [Int] {
        try await storage.reading { db in
          try ["identity WHERE joiner", "identityUse WHERE device"].map { place in
            try Int.fetchOne(db, sql: "SELECT count(*) FROM \(place) = ?", arguments: [guest.device.bytes]) ?? 0
          }
        }
      }
      #expect(try await named() == [1, 2])
      try await storage.delete(guest.container, now: 5)
      #expect(try await named() == [0, 0])
      try await storage.close()
    }
  }

  @Test("a token of a deleted player is refused after a restart too, and nothing of it comes back")
  func staysDeleted() async throws {
    try await TemporaryFolder.with { folder in
      let data = folder.appendingPathComponent("server")
      func start() async throws -> LiveServer {
        try await LiveServer.start(data: data, change: { ($0.adminPort, $0.saves) = (0, TextReader()) })
      }
      var server = try await start()
      let stage = AdminStage(server: server, data: data, folder: folder)
      let device = try await stage.device()
      try device.save(Data("a save".utf8), to: "main")
      try await device.sync.sync()
      let client = try stage.client()
      let answer = try await client.call("DELETE", AdminStage.path(device))
      #expect(answer.status == 200)
      // What the database keeps of deleted rows isn't the server's to erase.
      if TestDatabase.isUsedByServers { #expect(answer.json["erased"] as? Bool == false) }
      for isRestarted in [false, true] {
        if isRestarted {
          try await server.stop()
          server = try await start()
        }
        let former = Client(server: server, token: device.credentials.token)
        for (method, route) in [("GET", "/v1/devices"), ("GET", "/v1/export"), ("POST", "/v1/pairing")] {
          #expect(try await former.call(method, route).code == "retired", "\(route)")
        }
      }
      try device.save(Data("later".utf8), to: "main")
      await #expect(throws: (any Error).self) { try await device.sync.sync() }
      #expect(try Traces.files(of: data, having: [device.credentials.container.bytes]) == [])
      try await device.close()
      try await server.stop()
    }
  }
}
#endif
