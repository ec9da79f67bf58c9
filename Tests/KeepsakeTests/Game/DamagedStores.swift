import Foundation
import Keepsake
import KeepsakeSimulation
import KeepsakeStore
import TestSupport
import Testing

/// A player's data, of which a test alters one copy after the other, and checks what can be loaded from each.
final class DamagedStores {
  /// The outcome for one altered store.
  enum Outcome: String, CaseIterable {
    /// Everything is as it was saved.
    case newest = "all as it was kept"
    /// The same, after damage was found and repaired.
    case mended = "all as it was kept, with an incident"
    /// Something is older than it was saved, or missing, and an incident reports it.
    case older = "something older, with an incident"
    /// A slot can't be read, which its error and an incident report.
    case unreadable = "a slot refused by a typed error, the rest given"
    /// The store isn't opened; a typed error says why, and not a byte was changed.
    case refused = "opening refused by a typed error, nothing touched"
  }

  static let slots = ["cave", "garden", "island"]
  let levels: Int
  /// Bytes that don't compress, in each save.
  let ballast: Int

  private let work: TemporaryFolder
  private let clock = TestClock()
  /// Name and bytes of each file.
  let files: [String: Data]
  /// The broken promises, with their seed and location. They aren't recorded as issues at once, because a thread of its
  /// own belongs to no test.
  private(set) var broken: [String] = []

  /// Makes the store. With `isRunning` its files are those of a process that was killed: a part is in the write-ahead
  /// log.
  init(levels: Int, ballast: Int, isRunning: Bool, keepsBackups: Bool = false, seed: UInt64) throws {
    (self.levels, self.ballast) = (levels, ballast)
    work = try TemporaryFolder()
    let url = work.url.appendingPathComponent("pristine")
    var random = SeededGenerator(seed: seed)
    var game = try GameData.open("com.example.space", at: url, environment: clock.environment)
    for level in 1...levels {
      // In a killed store, only the first half has reached the database.
      if isRunning, level == levels / 2 + 1 {
        try game.close()
        game = try GameData.open("com.example.space", at: url, environment: clock.environment)
      }
      for slot in Self.slots {
        try game.saves.capture(
          Self.world(level, ballast, &random), to: Slot<World>(slot), SaveMetadata(title: "level \(level)")
        ).wait()
      }
      try game.progress.record(level, for: .level).wait()
      try game.progress.add(2, to: .coinsFound).wait()
      try game.progress.insert("badge \(level)", into: .badges).wait()
      try game.wallet.earn(10, .gems, for: "level \(level)")
      game.preferences[.lives] = level
      game.preferences[.nick] = "level \(level)"
      try game.preferences.flush()
    }
    if !isRunning { try game.close() }
    var files: [String: Data] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: url.path)
    // The index beside the log outlives the process, though not a power cut.
    where ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm"].contains(name)
      || keepsBackups && name.hasPrefix("backup")
    {
      files[name] = try Data(contentsOf: url.appendingPathComponent(name))
    }
    self.files = files
    if isRunning { try game.close() }
  }

  private static func world(_ level: Int, _ ballast: Int, _ random: inout SeededGenerator) -> World {
    var world = World(level: level)
    world.heading = Double(level) / 3
    world.cleared = Set((1...level).map { "cave \($0)" })
    if ballast > 0 { world.cleared.insert((0..<ballast / 16).map { _ in String(random.next(), radix: 16) }.joined()) }
    return world
  }

  // MARK: One altered store

  /// Opens the store with one file altered, reads all of it, and saves. Any promise that is broken is recorded, under
  /// `name`.
  func outcome(of file: String, altered bytes: Data, _ name: String) throws -> Outcome? {
    let url = work.url.appendingPathComponent("altered")
    if FileManager.default.fileExists(atPath: url.path) { try FileManager.default.removeItem(at: url) }
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    for (other, whole) in files { try (other == file ? bytes : whole).write(to: url.appendingPathComponent(other)) }
    let game: GameData
    do {
      game = try GameData.open("com.example.space", at: url, environment: clock.environment)
    } catch let error as StoreError {
      let now = try Data(contentsOf: url.appendingPathComponent(file))
      let isUntouched = now == bytes
      expect(isUntouched, "\(name): refused with \(error), and the file was changed")
      expect([.damaged, .newerFormat, .misuse].contains(error.code), "\(name): \(error)")
      return .refused
    }
    defer {
      do { try game.close() } catch { broken.append("\(name): closing failed: \(error)") }
    }
    var (isOlder, isUnreadable) = (false, false)
    for slot in Self.slots {
      do {
        let world = try game.saves.load(Slot<World>(slot))
        if world?.level != levels { isOlder = true }
        if let world {
          let isKept = (1...levels).contains(world.level) && world.heading == Double(world.level) / 3
          expect(
            isKept,
            "\(name): the slot \(slot) holds what was never saved: level \(world.level), heading \(world.heading)")
        }
      } catch let error as StoreError where error.code == .damaged {
        isUnreadable = true
      }
    }
    let (level, coins) = (game.progress[.level], game.progress[.coinsFound])
    let badges = game.progress[.badges]
    if level != levels || coins != 2 * levels || badges.count != levels { isOlder = true }
    expect(level <= levels && coins <= 2 * levels && badges.count <= levels, "\(name): more progress than was made")
    let (lives, nick) = (game.preferences[.lives], game.preferences[.nick])
    if lives != levels || nick != "level \(levels)" { isOlder = true }
    expect(
      lives >= 1 && lives <= levels && (nick == "player" || nick.hasPrefix("level ")),
      "\(name): \(lives) lives for \(nick)")
    let gems = game.wallet[.gems].total
    if gems != 10 * levels { isOlder = true }
    let isEarned = gems >= 0 && gems <= 10 * levels && gems % 10 == 0
    expect(isEarned, "\(name): \(gems) gems")
    let incidents = game.incidents
    expect(
      !(isOlder || isUnreadable) || !incidents.isEmpty, "\(name): what was loaded is older, and no incident reports it")
    try saveAgain(in: game, name)
    if isUnreadable { return .unreadable }
    if isOlder { return .older }
    return incidents.isEmpty ? .newest : .mended
  }

  private func expect(_ condition: Bool, _ problem: @autoclosure () -> String) {
    if !condition { broken.append(problem()) }
  }

  /// Saves again, which has to succeed whatever was damaged.
  private func saveAgain(in game: GameData, _ name: String) throws {
    do {
      for slot in Self.slots {
        try game.saves.capture(World(level: levels + 1), to: Slot<World>(slot)).wait()
        let level = try game.saves.load(Slot<World>(slot))?.level
        expect(level == levels + 1, "\(name): after a new save the slot \(slot) has level \(level ?? 0)")
      }
      try game.progress.record(levels + 1, for: .level).wait()
      try game.wallet.earn(1, .gems, for: "going on")
      try game.preferences.set(levels + 1, for: .lives)
      try game.preferences.flush()
    } catch {
      broken.append("\(name): saving afterwards failed: \(error)")
    }
  }
}
