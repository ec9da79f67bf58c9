import Foundation
import Keepsake
import KeepsakeStore
import Testing

/// Versions that a player pins, and those that the history rules keep.
@Suite struct PinTests {
  let device: Device

  init() throws { device = try Device() }

  private func open(_ history: HistoryRules = .standard) throws -> GameData {
    try GameData.open("com.example.space", at: device.url, history: history, environment: device.clock.environment)
  }

  private func play(_ levels: ClosedRange<Int>, _ game: GameData) throws {
    for level in levels { try game.saves.capture(World(level: level), to: .main) }
    _ = try game.saves.load(.main)
  }

  @Test("a pinned version isn't pruned, is shown as pinned and can be restored; once unpinned, it is pruned")
  func pins() throws {
    var game = try open()
    let pinned = try game.saves.capture(World(level: 1), to: .main, SaveMetadata(title: "before the battle")).wait()
    #expect(!pinned.isPinned)
    let loose = try game.saves.capture(World(level: 2), to: .main).wait()
    try game.saves.pin(pinned.id)
    try game.saves.pin(pinned.id)
    try play(3...300, game)
    try game.close()

    game = try open()
    defer { end(game) }
    try play(301...400, game)
    let history = try game.saves.history(of: .main)
    #expect(history.count == 21 && history.filter(\.isPinned).map(\.id) == [pinned.id])
    #expect(try game.saves.value(of: pinned.id, in: .main).level == 1)
    #expect(gameErrorCode { try game.saves.pin(loose.id) } == .missing)
    #expect(gameErrorCode { try game.saves.restore(loose.id, in: .main) } == .missing)

    // Restored, and the restore undone.
    let battle = try #require(history.first)
    let restored = try game.saves.restore(pinned.id, in: .main)
    #expect(!restored.isPinned && restored.metadata.title == "before the battle")
    #expect(try game.saves.load(.main)?.level == 1)
    try game.saves.restore(battle.id, in: .main)
    #expect(try game.saves.load(.main)?.level == 400)
    try game.saves.restore(restored.id, in: .main)
    #expect(try game.saves.load(.main)?.level == 1)
    #expect(try game.saves.list().first?.isConflicted == false)

    try game.saves.unpin(pinned.id)
    #expect(try !game.saves.history(of: .main).contains { $0.id == pinned.id })
  }

  @Test("the newest version can be pinned, too, which the list shows; a tombstone can't be pinned")
  func pinsHeads() throws {
    let game = try open(HistoryRules(newest: 1, hourly: 0, daily: 0, weekly: 0))
    defer { end(game) }
    let first = try game.saves.capture(World(level: 1), to: .main).wait()
    try game.saves.pin(first.id)
    #expect(try game.saves.list().map(\.current.isPinned) == [true])
    // Capturing the same world again returns the existing version.
    #expect(try game.saves.capture(World(level: 1), to: .main).wait().isPinned)
    try play(2...5, game)
    #expect(try game.saves.list().map(\.current.isPinned) == [false])
    #expect(try game.saves.history(of: .main).contains { $0.id == first.id && $0.isPinned })
    let deleted = try game.saves.delete(.main)
    #expect(gameErrorCode { try game.saves.pin(deleted.id) } == .missing)
    #expect(gameErrorCode { try game.saves.pin(VersionID(high: 5, low: 5)) } == .missing)
    try game.saves.restore(first.id, in: .main)
    #expect(try game.saves.load(.main)?.level == 1)
  }

  @Test("a slot keeps as many versions as the game's history rules say", arguments: [1, 5, 40])
  func rules(newest: Int) throws {
    let game = try open(HistoryRules(newest: newest, hourly: 0, daily: 0, weekly: 0))
    defer { end(game) }
    try play(1...60, game)
    let history = try game.saves.history(of: .main)
    #expect(history.count == newest)
    let oldest = try #require(history.last)
    try game.saves.restore(oldest.id, in: .main)
    #expect(try game.saves.load(.main)?.level == 61 - newest)
  }

  @Test("a game that keeps everything can restore its first version after hundreds of others")
  func everything() throws {
    let game = try open(.everything)
    defer { end(game) }
    try play(1...300, game)
    let history = try game.saves.history(of: .main)
    #expect(history.count == 300)
    try game.saves.restore(history[299].id, in: .main)
    #expect(try game.saves.load(.main)?.level == 1)
  }
}
