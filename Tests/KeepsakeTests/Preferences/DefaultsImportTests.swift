import Foundation
import TestSupport
import Testing

@testable import Keepsake

/// Settings of an older game, in the property list that `UserDefaults` keeps.
@Suite struct DefaultsImportTests {
  let device: Device

  init() throws { device = try Device() }

  private static let old: PropertyList = [
    "SoundVolume": 0.25, "muted": 1, "lives": 5, "zoom": 1, "gamma": 200, "Difficulty": "hard", "hand": 0,
    "LastScores": [3, 1, 2],
    "seen": .date(Date(timeIntervalSince1970: 5)), "token": .data(Data([1, 2])), "keys": ["jump": "up", "fire": ["z"]],
    "nick": "Ünal", "tooLarge": 300, "unknown": "nightmare", "word": "loud", "AppleLocale": "de_CH",
  ]

  private static let rules: [DefaultsRule] = [
    .init("SoundVolume", as: .volume), .init("muted", as: .isMuted), .init("lives", as: .lives),
    .init("zoom", as: .zoom),
    .init("gamma", as: .gamma), .init("Difficulty", as: .difficulty), .init("hand", as: .hand),
    .init("LastScores", as: .order),
    .init("seen", as: .seen), .init("token", as: .token), .init("keys", as: .bindings), .init("nick", as: .nick),
    .init("nick", as: .hat) { $0.string.map { $0 + "'s hat" } }, .init("gone", as: .page),
  ]

  private func bytes(_ list: PropertyList, _ format: PropertyList.Format = .binary) throws -> Data {
    try list.encoded(as: format)
  }

  @Test(
    "an old game's settings become preferences of every type, and are kept over a restart",
    arguments: PropertyList.Format.allCases)
  func takes(format: PropertyList.Format) throws {
    var game = try device.open()
    let report = try game.preferences.importDefaults(from: bytes(Self.old, format), rules: Self.rules)
    func check(_ game: GameData) {
      let preferences = game.preferences
      #expect(
        preferences[.volume] == 0.25 && preferences[.isMuted] && preferences[.lives] == 5 && preferences[.zoom] == 1)
      #expect(preferences[.gamma] == 200 && preferences[.difficulty] == .hard && preferences[.hand] == .left)
      #expect(preferences[.order] == [3, 1, 2] && preferences[.seen] == Date(timeIntervalSince1970: 5))
      #expect(preferences[.token] == Data([1, 2]) && preferences[.bindings] == Bindings(jump: "up", fire: ["z"]))
      #expect(preferences[.nick] == "Ünal" && preferences[.hat] == "Ünal's hat")
    }
    check(game)
    #expect(report.taken == Self.rules.dropLast().map(\.name))
    #expect(report.missing == ["gone"] && report.kept.isEmpty && report.unfit.isEmpty)
    #expect(Set(report.others) == ["tooLarge", "unknown", "word", "AppleLocale"])
    try game.close()
    game = try device.open()
    defer { end(game) }
    check(game)
    #expect(game.incidents.isEmpty)
  }

  @Test("preferences that the player has set are kept unless the game replaces them; a second import changes nothing")
  func keeps() throws {
    let game = try device.open()
    defer { end(game) }
    game.preferences[.volume] = 0.5
    let data = try bytes(Self.old)
    let first = try game.preferences.importDefaults(from: data, rules: Self.rules)
    #expect(first.kept == ["SoundVolume"] && game.preferences[.volume] == 0.5 && game.preferences[.lives] == 5)
    game.preferences[.lives] = 1
    let second = try game.preferences.importDefaults(from: data, rules: Self.rules)
    #expect(second.taken.isEmpty && second.kept.count == Self.rules.count - 1 && game.preferences[.lives] == 1)
    let third = try game.preferences.importDefaults(from: data, rules: Self.rules, isReplacing: true)
    #expect(third.kept.isEmpty && game.preferences[.volume] == 0.25 && game.preferences[.lives] == 5)
  }

  @Test("values that don't fit are reported with the reason, and all others are imported")
  func unfit() throws {
    let game = try device.open()
    defer { end(game) }
    let rules: [DefaultsRule] = [
      .init("tooLarge", as: .gamma), .init("unknown", as: .difficulty), .init("word", as: .volume),
      .init("AppleLocale", as: .lives),
      .init("SoundVolume", as: .hat) { $0.string }, .init("nick", as: .nick),
      .init("keys", as: .token) { _ in throw PropertyListError(.mismatch, "not today") },
    ]
    let report = try game.preferences.importDefaults(from: bytes(Self.old), rules: rules)
    try #require(report.unfit.map(\.name) == ["tooLarge", "unknown", "word", "AppleLocale", "SoundVolume", "keys"])
    #expect(report.taken == ["nick"] && game.preferences.names == ["nick"])
    #expect(report.unfit[2].reason.contains("loud") && report.unfit[5].reason.contains("not today"))
    for list in [["list"], "text", 5] as [PropertyList] {
      #expect(throws: PropertyListError.self) { try game.preferences.importDefaults(from: bytes(list), rules: rules) }
    }
    #expect(throws: PropertyListError.self) {
      try game.preferences.importDefaults(from: Data("no list".utf8), rules: rules)
    }
    #expect(game.incidents.isEmpty)
  }

  @Test("all settings can be imported under names of the game's own, and read with keys of their types")
  func all() throws {
    var game = try device.open()
    let old: PropertyList = [
      "game.volume": 1, "game.muted": true, "game.nick": "A", "game.order": [1, 2],
      "game.levels": ["one": 1, "two": 2],
      "game.mixed": [1, "x"],
      "game.ratios": [1, 2.5], "game.deep": [[1]], "AppleLocale": "de_CH", "game.wide": .integer(Int128(Int64.max) * 4),
      "game.seen": .date(Date(timeIntervalSince1970: 9)),
    ]
    func names(_ key: String) -> String? { key.hasPrefix("game.") ? String(key.dropFirst(5)) : nil }
    let report = try game.preferences.importDefaults(from: bytes(old), named: names)
    #expect(
      Set(report.unfit.map(\.name)) == ["game.mixed", "game.deep", "game.wide"] && report.others == ["AppleLocale"])
    #expect(try game.preferences.importDefaults(from: bytes(old), named: names).kept == report.taken)
    try game.close()
    game = try device.open()
    defer { end(game) }
    let preferences = game.preferences
    #expect(preferences[.volume] == 1 && preferences[.isMuted])
    #expect(preferences[.nick] == "A" && preferences[.order] == [1, 2])
    let levels = PreferenceKey<[String: Int]>("levels", default: [:])
    #expect(preferences[levels] == ["one": 1, "two": 2])
    let ratios = PreferenceKey<[Double]>("ratios", default: [0])
    #expect(preferences[ratios] == [1, 2.5])
    #expect(preferences[.seen] == Date(timeIntervalSince1970: 9))
    #expect(game.incidents.isEmpty)
  }

  @Test("an older game's values become progress by the rule of each key: never less, and the same from two devices")
  func progress() throws {
    let level = ProgressKey<Int>("level", default: 0, rule: .max)
    let badges = ProgressKey<Set<String>>("badges", rule: .union)
    let hat = ProgressKey<String>("hat", default: "none", rule: .latest)
    let steps = ProgressKey<Int>("steps", rule: .counter)
    let game = try device.open()
    defer { end(game) }
    let rules: [DefaultsRule] = [
      .init("level", as: level, in: game.progress), .init("badges", as: badges, in: game.progress),
      .init("hat", as: hat, in: game.progress), .init("steps", as: steps, in: game.progress),
      .init("volume", as: .volume), .init("wrong", as: level, in: game.progress),
    ]
    let old: [String: Any] = [
      "level": 7, "badges": ["first", "second"], "hat": "tall", "steps": 3, "volume": 0.5, "wrong": "seven",
      "other": true,
    ]
    var report = try game.preferences.importDefaults(old, rules: rules)
    #expect(report.taken == ["level", "badges", "hat", "volume"] && report.others == ["other"])
    #expect(report.unfit.map(\.name) == ["steps", "wrong"])
    #expect(game.progress[level] == 7 && game.progress[badges] == ["first", "second"] && game.progress[hat] == "tall")
    #expect(!game.progress.contains(steps) && game.preferences[.volume] == 0.5)
    // The player goes on, and the import is repeated.
    try game.progress.record(9, for: level)
    try game.progress.insert("third", into: badges)
    try game.progress.set("flat", for: hat)
    report = try game.preferences.importDefaults(old, rules: rules, isReplacing: true)
    #expect(report.kept == ["hat"])
    #expect(game.progress[level] == 9 && game.progress[hat] == "flat")
    #expect(game.progress[badges] == ["first", "second", "third"])
    #expect(game.incidents.isEmpty)
  }

  @Test("a value that no property list has is refused, and nothing is imported")
  func noPropertyList() throws {
    let game = try device.open()
    defer { end(game) }
    #expect {
      try game.preferences.importDefaults(["volume": 0.25, "url": URL(fileURLWithPath: "/")], rules: Self.rules)
    } throws: {
      ($0 as? PropertyListError)?.code == .mismatch && "\($0)".contains("url")
    }
    #expect(!game.preferences.contains(.volume))
  }

  @Test("settings can be imported from a file, but not after the game's data is closed")
  func files() throws {
    let game = try device.open()
    let file = device.folder.url.appending(path: "com.example.old.plist")
    try bytes(Self.old).write(to: file)
    #expect(try game.preferences.importDefaults(at: file, rules: Self.rules).missing == ["gone"])
    #expect(throws: (any Error).self) {
      try game.preferences.importDefaults(at: device.folder.url.appending(path: "none"), rules: Self.rules)
    }
    try game.close()
    #expect {
      try game.preferences.importDefaults(from: bytes(Self.old), rules: Self.rules, isReplacing: true)
    } throws: {
      ($0 as? GameDataError)?.code == .closed
    }
  }
}
