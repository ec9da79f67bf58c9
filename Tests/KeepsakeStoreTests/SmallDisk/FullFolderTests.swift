#if os(Linux)
import Foundation
import Keepsake
import TestSupport
import Testing

/// The folder that a player's devices share is full or read-only: what was saved waits on the device.
@Suite struct FullFolderTests {
  @Test(
    "a full or read-only shared folder loses nothing, and everything is sent when it can be written again",
    .needsPrivateMounts)
  func waits() async throws {
    let failure = try await onThread { try SmallDisk.run("FullFolderOnDisk") }
    #expect(failure == nil)
  }
}

/// The test that runs on the small disk. The stores are elsewhere.
@Suite(.serialized, .partOfAnotherTest(where: SmallDisk.mounted != nil))
struct FullFolderOnDisk {
  private static let level = ProgressKey("level", default: 0, rule: .max)

  private func open(_ folder: TemporaryFolder, _ cloud: URL) throws -> GameData {
    let game = try GameData.open("com.example.space", at: folder.store)
    game.cloud.connect(.folder(cloud))
    return game
  }

  private func play(_ number: Int, _ game: GameData) async throws {
    try game.progress.record(number, for: Self.level)
    try await game.saves.save(Run(number: number), to: Slot<Run>("run"))
  }

  private func fill(_ file: URL) throws {
    try Data().write(to: file)
    let handle = try FileHandle(forWritingTo: file)
    for size in [65_536, 4_096, 512, 1] {
      do {
        while true { try handle.write(contentsOf: Data(count: size)) }
      } catch {
        // Full.
      }
    }
    try handle.close()
  }

  @Test func waitsForRoom() async throws {
    let disk = try #require(SmallDisk.mounted)
    let cloud = disk.appendingPathComponent("cloud")
    try FileManager.default.createDirectory(at: cloud, withIntermediateDirectories: true)
    let (phone, tablet) = (try TemporaryFolder(), try TemporaryFolder())
    let game = try open(phone, cloud)
    try await play(1, game)
    try await game.cloud.sync()

    let filler = disk.appendingPathComponent("filler")
    try fill(filler)
    try await play(2, game)
    await #expect { try await game.cloud.sync() } throws: { ($0 as? GameDataError)?.code == .unreachable }
    guard case .waiting(let reason) = game.cloud.status.phase else {
      Issue.record("\(game.cloud.status.phase)")
      return
    }
    #expect(reason.contains("No space left"))
    #expect(game.cloud.status.waitingCommits > 0)
    try FileManager.default.removeItem(at: filler)
    try await game.cloud.sync()

    try SmallDisk.remount("ro")
    try await play(3, game)
    await #expect { try await game.cloud.sync() } throws: { ($0 as? GameDataError)?.code == .unreachable }
    // A device that can only read still fetches.
    let reader = try open(tablet, cloud)
    try await reader.cloud.sync()
    #expect(try reader.saves.load(Slot<Run>("run"))?.number == 2)
    try SmallDisk.remount("rw")
    try await game.cloud.sync()
    try await reader.cloud.sync()
    #expect(try reader.saves.load(Slot<Run>("run"))?.number == 3)
    // The values that a game holds in memory are updated automatically.
    try await until("the level") { reader.progress[Self.level] == 3 }
    let left = try FileManager.default.subpathsOfDirectory(atPath: cloud.path).filter { $0.hasSuffix(".partial") }
    #expect(left == [])
    try game.close()
    try reader.close()
  }
}

@Archivable struct Run {
  var number = 0
}
#endif
