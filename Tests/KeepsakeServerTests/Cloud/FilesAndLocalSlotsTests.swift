#if Cloud
import Foundation
import Keepsake
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

@Archivable private struct Cave: Equatable { var level = 1 }

/// Tracked files that are synced to another device, and slots that stay local: through the public API and a real
/// server.
@Suite("Tracked files and local slots, over real HTTP", .hangLimit) struct FilesAndLocalSlotsTests {
  private let cave = Slot<Cave>("cave")

  private func hash(_ url: URL) throws -> ContentHash { ContentHash(of: try Data(contentsOf: url)) }

  @Test("a large file reaches another device complete over a connection that breaks; a local slot stays local")
  func file() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder.appendingPathComponent("server"))
      // Cuts the connection once, after half of the file has been downloaded.
      let proxy = try CuttingProxy(to: server.running.port, down: 1_500_000)
      let (mine, theirs) = (folder.appendingPathComponent("level.dat"), folder.appendingPathComponent("placed.dat"))
      // Random, so that it can't be compressed.
      var random = SystemRandomNumberGenerator()
      let words = (0..<375_000).map { _ in random.next() }
      try words.withUnsafeBytes { Data($0) }.write(to: mine)
      let phone = try GameData.open("com.example.files", at: folder.appendingPathComponent("phone"))
      let tablet = try GameData.open("com.example.files", at: folder.appendingPathComponent("tablet"))
      phone.cloud.connect(.server(server.url, appKey: server.appKey), deviceName: "phone")
      try phone.saves.keepLocal(cave, cloudCopy: .kept)
      try await phone.saves.save(Cave(level: 4), to: cave)
      let file = try phone.files.track(mine, as: "level")
      try await phone.cloud.sync()
      #expect(try file.status().state == .stored && phone.saves.status(of: cave).state == .local(.kept))

      tablet.cloud.connect(.server(proxy.url, appKey: server.appKey), deviceName: "tablet")
      try await tablet.cloud.join(try await phone.cloud.pairingCode())
      try await until("the file is there") { try tablet.files.list().map(\.name) == ["level"] }
      #expect(proxy.count == 1)
      let placed = try tablet.files.place("level", at: theirs)
      #expect(try hash(theirs) == hash(mine))
      #expect(try tablet.saves.load(cave) == nil && tablet.saves.list().isEmpty)

      // A change is sent back.
      var bytes = try Data(contentsOf: theirs)
      bytes[1_000_000] ^= 0xFF
      try bytes.write(to: theirs)
      _ = try await placed.capture().value
      try await tablet.cloud.sync()
      try await until("the change is known") { try file.heads().map(\.savedAt) != [] && file.history().count == 2 }
      guard case .updated = try file.update() else { throw NeverHappened("the update") }
      #expect(try hash(mine) == hash(theirs))

      // Removed from the cloud: the file on the other device isn't touched.
      try file.keepLocal(cloudCopy: .removed)
      try await phone.cloud.sync()
      try await until("it went") { try tablet.files.list().isEmpty }
      #expect(try hash(mine) == hash(theirs) && file.heads().count == 1)
      for game in [phone, tablet] { try game.close() }
      proxy.stop()
      try await server.stop()
    }
  }
}

#endif
