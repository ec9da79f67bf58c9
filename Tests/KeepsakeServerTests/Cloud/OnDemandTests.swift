#if Cloud
import Foundation
import Keepsake
import KeepsakeReplication
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeServer

@Archivable private struct Atlas: Equatable { var tiles: [UInt64] = [] }

/// Saves that are downloaded on request, through the public API and a real server.
@Suite("Downloads on demand, over real HTTP", .hangLimit) struct OnDemandTests {
  private let atlas = Slot<Atlas>("atlas")

  private func isNotDownloaded(_ game: GameData) throws -> Bool {
    do {
      return try game.saves.load(atlas) == nil
    } catch let error as GameDataError where error.code == .notDownloaded {
      return true
    }
  }

  /// Compares outside the expectation, which would print the whole world.
  private func holds(_ world: Atlas, _ game: GameData) throws -> Bool { try game.saves.load(atlas) == world }

  @Test("downloading a large save on request resumes after a broken connection, and works again after eviction")
  func asked() async throws {
    try await TemporaryFolder.with { folder in
      let server = try await LiveServer.start(data: folder.appendingPathComponent("server"))
      let proxy = try CuttingProxy(to: server.running.port, down: 1_500_000)
      // 3 MB, random so that they can't be compressed.
      var random = SystemRandomNumberGenerator()
      let world = Atlas(tiles: (0..<375_000).map { _ in random.next() })
      let phone = try GameData.open("com.example.atlas", at: folder.appendingPathComponent("phone"))
      let tablet = try GameData.open("com.example.atlas", at: folder.appendingPathComponent("tablet"))
      phone.cloud.connect(.server(server.url, appKey: server.appKey), deviceName: "phone")
      try await phone.saves.save(world, to: atlas)
      try await phone.cloud.sync()
      tablet.cloud.downloads = .onDemand(above: 1_000_000)
      tablet.cloud.connect(.server(proxy.url, appKey: server.appKey), deviceName: "tablet")
      try await tablet.cloud.join(try await phone.cloud.pairingCode())
      try await until("the save is listed") { try tablet.saves.list().map(\.isDownloaded) == [false] }
      #expect(try isNotDownloaded(tablet))
      #expect(proxy.count == 0 && proxy.down < 200_000, "nothing of it was downloaded")

      let seen = Fractions()
      let following = Task { [tablet] in
        for try await status in tablet.saves.statusUpdates(of: atlas) {
          if case .downloading(let fraction) = status.arrival { seen.add(fraction) }
          if status.isDownloaded { break }
        }
      }
      proxy.cut { seen.all.contains { $0 > 0.4 } }
      while try isNotDownloaded(tablet) {
        // Requested again after the connection has broken.
        do { try await tablet.saves.download(atlas) } catch let error as GameDataError where error.code == .unreachable
        {}
      }
      #expect(proxy.count == 1)
      try await following.value
      let fractions = seen.all
      #expect(try holds(world, tablet))
      #expect(
        proxy.down < 3_500_000,
        "of the 1.5 MB before the cut the device had 1.2 MB, which isn't sent again: \(proxy.down) bytes were sent")
      #expect(fractions == fractions.sorted() && fractions.contains { $0 > 0.3 && $0 < 1 }, "\(fractions)")

      try tablet.saves.evict(atlas, keepingHistory: false)
      #expect(try isNotDownloaded(tablet))
      try await tablet.saves.download(atlas)
      #expect(try holds(world, tablet))
      for game in [phone, tablet] { try game.close() }
      proxy.stop()
      try await server.stop()
    }
  }

  /// The download fractions that the status reported, in order.
  private final class Fractions: Sendable {
    private let state = Mutex<[Double]>([])
    var all: [Double] { state.withLock { $0 } }
    func add(_ fraction: Double) { state.withLock { $0.append(fraction) } }
  }
}

#endif
