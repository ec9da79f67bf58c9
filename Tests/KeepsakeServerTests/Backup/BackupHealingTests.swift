#if Cloud && os(Linux)
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import Keepsake
@testable import KeepsakeServer

/// A backup of a cloud that is played on, which is restored after everything was lost.
@Suite("A backup made under load, restored", .serialized, .hangLimit) struct BackupHealingTests {
  /// How many rounds of saves each device makes at least while the backup is being made.
  private static let rounds = 3

  @Test("a backup is made while devices play; after everything was lost and restored, they bring all of today")
  func healing() async throws {
    try await TemporaryFolder.with { folder in
      let (data, backup) = (folder.appendingPathComponent("server"), folder.appendingPathComponent("backup"))
      var server = try await ServerProcess.start(data: data)
      let port = server.port
      let phone = try await PlayedDevice.playing("phone", in: folder, to: port)
      let tablet = try await PlayedDevice.playing("tablet", in: folder, to: port, with: phone)
      let devices = [phone, tablet]
      try await phone.game.saves.save(Chapter(1, bytes: 2_500_000), to: Slot("world"))
      try await phone.game.progress.record(1, for: ProgressKey("level", default: 0, rule: .max)).value
      try await settle(devices)

      // Both play while the backup is made.
      let isMade = Shared(false)
      let summary = try await withThrowingTaskGroup(of: Void.self) { group in
        for device in devices { group.addTask { try await Self.play(on: device) { isMade.value } } }
        let made: Result<BackupSummary, any Error>
        do {
          made = .success(try await onThread { try CloudBackup.make(of: data, to: backup) })
        } catch {
          made = .failure(error)
        }
        isMade.value = true
        try await group.waitForAll()
        return try made.get()
      }
      #expect(summary.contents > 0 && summary.databaseBytes > 0)

      // And go on afterwards.
      try await settle(devices)
      _ = try tablet.game.saves.load(Slot<Chapter>("world"))
      try await tablet.game.saves.save(Chapter(5, bytes: 2_600_000), to: Slot("world"))
      try await phone.game.progress.record(9, for: ProgressKey("level", default: 0, rule: .max)).value
      try await settle(devices)
      let today = try Seen(on: phone)
      #expect(try Seen(on: tablet) == today)
      #expect(today.slots["world"] == [5] && today.progress["level"] == 9)

      // Everything is lost.
      for device in devices { device.proxy.cutOff() }
      await server.end(by: SIGTERM)
      try FileManager.default.removeItem(at: data)
      #expect(try await onThread { try BackupRestore.restore(backup, to: data) } == summary)
      server = try await ServerProcess.start(data: data, port: port)
      for device in devices { device.proxy.heal() }
      let before = devices.map(\.proxy.exchanges)
      for (device, count) in zip(devices, before) {
        try await device.until("offering what it has") { try $0.proxy.exchanges > count && $0.isQuiet }
      }
      try await settle(devices)
      for device in devices { #expect(try Seen(on: device) == today, "\(device.name)") }
      // It is really in the cloud, and not only on the devices.
      let fresh = try await PlayedDevice.playing("fresh", in: folder, to: port, with: phone)
      try await settle(devices + [fresh])
      #expect(try Seen(on: fresh) == today)
      for device in devices + [fresh] { try device.close() }
      await server.end(by: SIGTERM)
    }
  }

  /// Saves small and large slots and a value, at least a few times and until `isDone`.
  private static func play(on device: PlayedDevice, until isDone: () -> Bool) async throws {
    var number = 10
    while !isDone() || number < 10 + rounds {
      number += 1
      try await device.game.saves.save(Chapter(number, bytes: 20_000), to: Slot(device.name))
      // Beyond what the cloud keeps in its database.
      try await device.game.saves.save(Chapter(number, bytes: 1_100_000), to: Slot("\(device.name) world"))
      try await device.game.progress.record(number, for: ProgressKey("coins", default: 0, rule: .max)).value
    }
  }
}
#endif
