import Foundation
import Keepsake
import KeepsakeTesting
import TestSupport
import Testing

/// The player's switch for the cloud: off remains off over restarts, and nothing is lost by it.
@Suite struct CloudSwitchTests {
  let device: Device
  let cloud = MemoryCloud()

  init() throws { device = try Device() }

  /// Does everything that would use the cloud.
  private func play(_ game: GameData, level: Int) async throws {
    try await game.saves.save(World(level: level), to: .main)
    try await game.progress.record(level, for: .level).value
    try game.wallet.earn(1, .gems, for: "a quest")
    #expect(await thrownCode(\GameDataError.code) { try await game.cloud.sync() } == .notConnected)
    #expect(await thrownCode(\GameDataError.code) { _ = try await game.cloud.pairingCode() } == .notConnected)
    #expect(await thrownCode(\GameDataError.code) { try await game.cloud.join("ABCDEFGH") } == .notConnected)
    #expect(await thrownCode(\GameDataError.code) { _ = try await game.cloud.devices() } == .notConnected)
    #expect(game.cloud.status.phase == .paused)
  }

  @Test("a cloud that is switched off stays off over restarts and receives nothing; switched on, it gets everything")
  func survivesRestarts() async throws {
    var game = try device.open()
    #expect(game.cloud.isEnabled)
    game.cloud.isEnabled = false
    game.cloud.connect(cloud.address)
    try await play(game, level: 2)
    for level in 3...4 {
      try game.close()
      game = try device.open()
      #expect(!game.cloud.isEnabled)
      game.cloud.connect(cloud.address)
      try await play(game, level: level)
    }
    #expect(cloud.exchanges == 0)
    game.cloud.isEnabled = true
    try await game.cloud.sync()
    #expect(game.cloud.status.waitingCommits == 0)
    try game.close()

    game = try device.open()
    #expect(game.cloud.isEnabled)
    try game.close()
    let tablet = try Device(clock: device.clock)
    let there = try tablet.open()
    defer { end(there) }
    there.cloud.connect(cloud.address)
    try await there.cloud.sync()
    #expect(try there.saves.load(.main)?.level == 4 && there.progress[.level] == 4 && there.wallet[.gems].total == 3)
  }

  @Test("after the cloud was switched off and on again, both devices have what the other one did meanwhile")
  func inTheMiddle() async throws {
    let game = try device.open()
    let there = try Device(clock: device.clock).open()
    defer {
      end(game)
      end(there)
    }
    for device in [game, there] {
      device.cloud.connect(cloud.address)
      try await device.cloud.sync()
    }
    game.cloud.isEnabled = false
    try await until { game.cloud.status.phase == .paused }
    try await play(game, level: 5)
    try there.progress.add(3, to: .coinsFound)
    try await there.cloud.sync()
    #expect(game.progress[.coinsFound] == 0 && there.progress[.level] == 1)
    game.cloud.isEnabled = true
    try await game.cloud.sync()
    try await there.cloud.sync()
    #expect(game.progress[.coinsFound] == 3 && there.progress[.level] == 5)
  }

  @Test("a shared folder is not written to while the cloud is switched off")
  func folder() async throws {
    let folder = try TemporaryFolder()
    let game = try device.open()
    defer { end(game) }
    game.cloud.isEnabled = false
    game.cloud.connect(.folder(folder.url))
    try await play(game, level: 6)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).isEmpty)
    game.cloud.isEnabled = true
    try await game.cloud.sync()
    #expect(try !FileManager.default.contentsOfDirectory(atPath: folder.url.path).isEmpty)
  }
}
