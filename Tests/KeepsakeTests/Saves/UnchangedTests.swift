import Foundation
import GRDB
import KeepsakeStore
import TestSupport
import Testing

@testable import Keepsake

/// A game that saves each second while its player is away must not wear the disk, nor send anything.
@Suite struct UnchangedTests {
  let device: Device

  init() throws { device = try Device() }

  /// What a store has on the disk: the files' bytes, and SQLite's own count of commits.
  private struct Disk: Equatable {
    var files: [String: Data] = [:]
    var log: Int
    var commits: Int64

    init(_ folder: URL, _ watcher: DatabaseQueue) throws {
      for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) where !name.hasSuffix("-shm") {
        files[name] = try Data(contentsOf: folder.appendingPathComponent(name))
      }
      log = try Data(contentsOf: folder.appendingPathComponent(Store.databaseName + "-wal")).count
      commits = try watcher.inDatabase { try Int64.fetchOne($0, sql: "PRAGMA data_version") } ?? -1
    }
  }

  private func open(_ seal: Seal) throws -> GameData {
    try GameData.open("com.example.space", at: device.url, seal: seal, environment: device.clock.environment)
  }

  private static let seals = [
    Seal.none, .signed(Data(repeating: 7, count: 32)), .sealed(Data(repeating: 7, count: 32)),
  ]

  /// Whether `body` wrote anything to the disk.
  private func writes(_ body: () throws -> Void) throws -> Bool {
    var configuration = Configuration()
    configuration.readonly = true
    let watcher = try DatabaseQueue(
      path: device.url.appendingPathComponent(Store.databaseName).path, configuration: configuration)
    let before = try Disk(device.url, watcher)
    try body()
    let after = try Disk(device.url, watcher)
    try watcher.close()
    #expect((before.commits == after.commits) == (before == after), "the files and SQLite's count disagree")
    return before != after
  }

  @Test(
    "saves, values and checkpoints that change nothing write nothing; each that changes anything writes",
    arguments: seals)
  func unchanged(seal: Seal) throws {
    let game = try open(seal)
    defer { end(game) }
    let title = SaveMetadata(title: "Cave")
    let world = World(level: 3)
    try game.saves.capture(world, to: .main, title).wait()
    try game.progress.record(6, for: .level).wait()
    try game.progress.record(50, for: .fastest).wait()
    try game.progress.insert("hero", into: .badges).wait()
    try game.progress.set("red", for: .hat).wait()

    #expect(try !writes { try game.saves.capture(world, to: .main, title).wait() })
    #expect(try writes { try game.saves.capture(World(level: 4), to: .main, title).wait() })
    #expect(try !writes { for _ in 0..<20 { try game.saves.capture(World(level: 4), to: .main, title).wait() } })
    #expect(try writes { try game.saves.capture(World(level: 4), to: .main, SaveMetadata(title: "Hall")).wait() })

    #expect(try !writes { try game.progress.record(6, for: .level).wait() })
    #expect(try !writes { try game.progress.record(5, for: .level).wait() })
    #expect(try !writes { try game.progress.record(51, for: .fastest).wait() })
    #expect(try !writes { try game.progress.insert("hero", into: .badges).wait() })
    #expect(try writes { try game.progress.record(7, for: .level).wait() })

    func checkpoint(level: Int, world: World) throws {
      try game.checkpoint { checkpoint in
        try checkpoint.save(world, to: .main, SaveMetadata(title: "Hall"))
        try checkpoint.record(level, for: .level)
        try checkpoint.insert("hero", into: .badges)
      }.wait()
    }
    #expect(try !writes { try checkpoint(level: 7, world: World(level: 4)) })
    #expect(try writes { try checkpoint(level: 8, world: World(level: 4)) })
    #expect(try writes { try checkpoint(level: 8, world: World(level: 5)) })
    #expect(try !writes { try game.checkpoint { _ in }.wait() })

    func set(_ volume: Double, _ bindings: Bindings, _ hat: String) throws {
      try game.preferences.set(volume, for: .volume)
      try game.preferences.set(bindings, for: .bindings)
      try game.preferences.set(hat, for: .hat)
      try game.preferences.flush()
    }
    #expect(try writes { try set(0.5, Bindings(), "red") })
    #expect(try !writes { try set(0.5, Bindings(), "red") })
    // Changed and changed back between two commits, which wait for one that blocks the store's writer.
    #expect(
      try !writes {
        let gate = Gate()
        _ = try game.core.store.submit { _, _ in gate.pass() }
        gate.waitForArrival()
        try game.preferences.set(0.25, for: .volume)
        try game.preferences.set("blue", for: .hat)
        try game.preferences.set(0.5, for: .volume)
        try game.preferences.set("red", for: .hat)
        gate.open()
        try game.preferences.flush()
      })
    #expect(try writes { try set(0.5, Bindings(jump: "w"), "red") })
    #expect(try writes { try set(0.5, Bindings(jump: "w"), "green") })
    #expect(try !writes { try game.preferences.remove(.lives) })
    #expect(
      try writes {
        try game.preferences.remove(.volume)
        try game.preferences.flush()
      })

    let version = try #require(try game.saves.history(of: .main).first)
    #expect(try writes { try game.saves.pin(version.id) })
    #expect(try !writes { try game.saves.pin(version.id) })
    #expect(try !writes { try game.saves.setMetadata(version.metadata, of: .main) })
    #expect(try !writes { try game.saves.import(game.saves.export(.main), to: .main) })
    #expect(
      try !writes {
        _ = try game.saves.list()
        _ = try game.saves.load(.main)
        _ = try game.saves.history(of: .main)
      })
  }
}
