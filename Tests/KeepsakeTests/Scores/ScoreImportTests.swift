import Foundation
import Testing

@testable import Keepsake

/// Importing an older game's list of high scores.
@Suite struct ScoreImportTests {
  let device: Device

  init() throws { device = try Device() }

  private static let columns = ScoreColumns(score: "points", player: "name", date: "when")

  private static let old: PropertyList = [
    ["points": 900, "name": "Ada", "when": .date(Date(timeIntervalSince1970: 100))],
    ["points": 700.5, "name": "Eve", "when": 200],
    ["points": "800", "name": "Ada", "when": "1970-01-01 00:05:00 +0000"],
    ["points": 650, "when": "1970-01-01T00:06:40Z"],
    ["points": 900, "name": "Ada", "when": .date(Date(timeIntervalSince1970: 100))], ["points": 10, "name": 7],
  ]

  private func board(_ game: GameData, _ board: Board = .easy) throws -> [String] {
    try game.scores.top(100, of: board).map { "\($0.value) \($0.player) \(Int($0.date.timeIntervalSince1970))" }
  }

  private let expected = ["900 Ada 100", "900 Ada 100", "800 Ada 300", "700.5 Eve 200", "650  400", "10 7 0"]

  @Test(
    "an old list's scores are imported, with players and dates of any form, and a second import adds nothing",
    arguments: PropertyList.Format.allCases)
  func takes(format: PropertyList.Format) throws {
    var game = try device.open()
    let data = try Self.old.encoded(as: format)
    let report = try game.scores.importScores(from: data, to: .easy, columns: Self.columns)
    #expect(report == ScoreReport(taken: 6, known: 0, unfit: []))
    #expect(try board(game) == expected)
    #expect(
      try game.scores.importScores(from: data, to: .easy, columns: Self.columns)
        == ScoreReport(taken: 0, known: 6, unfit: []))
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(try board(game) == expected)
    // Of a longer list from later, only what is new is imported.
    guard case .array(let entries) = Self.old else {
      Issue.record("\(Self.old)")
      return
    }
    let later = PropertyList.array([["points": 1_000, "name": "Bob"]] + entries)
    #expect(try game.scores.importScores(from: later.encoded(as: .binary), to: .easy, columns: Self.columns).taken == 1)
    #expect(try board(game) == ["1000 Bob 0"] + expected)
    #expect(try game.scores.best(of: "Ada", on: .easy)?.value == .int(900) && game.incidents.isEmpty)
  }

  @Test("an entry that can't be a score is reported with its index, and the others are imported")
  func unfit() throws {
    let game = try device.open()
    defer { end(game) }
    let list: PropertyList = [
      "HighScores": [
        "easy": [
          ["points": 5, "name": "Ada"], ["name": "Ada"], ["points": "many"], ["points": true],
          ["points": .number(.nan)], "text",
          ["points": 5, "name": ["Ada"]], ["points": 5, "when": "yesterday"], ["points": 5, "when": .number(1e300)],
          ["points": 5, "name": .string(String(repeating: "x", count: 200))], ["points": 6],
        ]
      ]
    ]
    let data = try list.encoded(as: .binary)
    let columns = ScoreColumns(
      score: "points", player: "name", date: "when", numericDate: .secondsSince2001, in: ["HighScores", "easy"])
    let report = try game.scores.importScores(
      from: data, to: .easy, columns: columns, player: "me", undated: Date(timeIntervalSince1970: 50))
    #expect(report.taken == 2 && report.unfit.map(\.index) == Array(1...9))
    #expect(report.unfit.allSatisfy { !$0.reason.isEmpty })
    #expect(try board(game) == ["6 me 50", "5 Ada 50"])
    for path in [["HighScores"], ["none"], ["HighScores", "easy", "deeper"]] {
      let columns = ScoreColumns(score: "points", in: path)
      #expect(throws: PropertyListError.self) { try game.scores.importScores(from: data, to: .easy, columns: columns) }
    }
    #expect(throws: PropertyListError.self) {
      try game.scores.importScores(from: Data([1]), to: .easy, columns: columns)
    }
    let turned = Board("easy", order: .ascending)
    #expect(throws: GameDataError.self) { try game.scores.importScores(from: data, to: turned, columns: columns) }
  }

  @Test("two devices that import the same list have the same score ids, and a long list is imported completely")
  func long() throws {
    let list = PropertyList.array(
      (0..<1_000).map { ["points": .integer(Int128($0 % 900)), "name": .string("p\($0 % 50)")] })
    let data = try list.encoded(as: .binary)
    var ids: [[String]] = []
    for device in [device, try Device()] {
      let game = try device.open()
      defer { end(game) }
      let first = try game.scores.importScores(from: data, to: .easy, columns: Self.columns)
      #expect(first.taken == 1_000 && first.unfit.isEmpty)
      #expect(try game.scores.importScores(from: data, to: .easy, columns: Self.columns).known == 1_000)
      #expect(
        try game.scores.top(.max, of: .easy).count == 1_000
          && game.scores.top(.max, of: .easy, onePerPlayer: true).count == 50)
      ids.append(try game.scores.top(.max, of: .easy).map(\.id.description).sorted())
    }
    #expect(ids[0] == ids[1] && Set(ids[0]).count == 1_000)
  }
}
