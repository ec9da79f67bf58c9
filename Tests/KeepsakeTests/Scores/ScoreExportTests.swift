import Foundation
import KeepsakeReplication
import Testing

@testable import Keepsake

@Archivable private struct Seed { var seed = UInt64.max }

/// Exporting a board for other programs, and taking over the scores of an older version of the game.
@Suite struct ScoreExportTests {
  let device: Device

  init() throws { device = try Device() }

  private func play(_ game: GameData) throws {
    try game.scores.submit(
      Int64.max, to: .easy, player: "A<d&a>\u{FFFF}", context: Run(ship: "racer", seed: 9_007_199_254_740_993))
    try game.scores.submit(1_000.5, to: .easy, player: "Eve", date: Date(timeIntervalSince1970: 12.345))
    try game.scores.submit(-3, to: .easy, date: Date(timeIntervalSince1970: -9e12))
  }

  @Test(
    "a property list is the array of dictionaries in which games used to keep scores, in XML and binary",
    arguments: [ScoreFormat.propertyList, .binaryPropertyList])
  func propertyLists(format: ScoreFormat) throws {
    let game = try device.open()
    defer { end(game) }
    try play(game)
    let data = try game.scores.export(.easy, as: format)
    #expect(data.starts(with: Data((format == .propertyList ? "<?xml" : "bplist").utf8)))
    let list = try #require(try PropertyListSerialization.propertyList(from: data, format: nil) as? [[String: Any]])
    #expect(list.map { $0["rank"] as? Int } == [1, 2, 3])
    #expect(list.map { $0["player"] as? String } == ["A<d&a>\u{FFFF}", "Eve", ""])
    #expect(
      list[0]["score"] as? Int64 == .max && list[1]["score"] as? Double == 1_000.5 && list[2]["score"] as? Int == -3)
    let context = try #require(list[0]["context"] as? Data)
    #expect(try Archive.decode(Run.self, from: context).seed == 9_007_199_254_740_993 && list[1]["context"] == nil)
    let date = try #require(list[1]["date"] as? Date)
    #expect(abs(date.timeIntervalSince1970 - 12.345) < 1 && list[2]["date"] == nil)
    #expect(list.map { $0["id"] as? String } == (try game.scores.top(9, of: .easy).map(\.id.description)))
  }

  @Test("JSON has sorted keys, every digit, and the values of each context")
  func json() throws {
    let game = try device.open()
    defer { end(game) }
    try play(game)
    let data = try game.scores.export(.easy, as: .json)
    let ids = try game.scores.top(9, of: .easy).map(\.id.description)
    let expected = """
      [
        {
          "context" : {
            "seed" : 9007199254740993,
            "ship" : "racer"
          },
          "date" : "1970-04-26T17:46:40.000Z",
          "dateMilliseconds" : 10000000000,
          "id" : "\(ids[0])",
          "player" : "A<d&a>\u{FFFF}",
          "rank" : 1,
          "score" : 9223372036854775807
        },
        {
          "date" : "1970-01-01T00:00:12.345Z",
          "dateMilliseconds" : 12345,
          "id" : "\(ids[1])",
          "player" : "Eve",
          "rank" : 2,
          "score" : 1000.5
        },
        {
          "dateMilliseconds" : -9000000000000000,
          "id" : "\(ids[2])",
          "player" : "",
          "rank" : 3,
          "score" : -3
        }
      ]

      """
    #expect(String(decoding: data, as: UTF8.self) == expected)
    let isStable = try game.scores.export(.easy, as: .json) == data
    #expect(isStable)
    #expect(
      try String(decoding: game.scores.export(.lap, as: .json), as: UTF8.self).filter { !$0.isWhitespace } == "[]")
  }

  @Test("a context that can't be decoded without the game's types is exported as its bytes")
  func unreadableContext() throws {
    let score = ScoreEntry(
      board: "easy", player: "", order: .ascending, value: .int(1), dateMilliseconds: 0, id: ScoreID(high: 1, low: 2),
      context: Data([1, 2, 3]))
    let text = String(decoding: try ScoreExport.data(of: [score], as: .json), as: UTF8.self)
    #expect(text.contains(#""contextBytes" : "AQID""#) && !text.contains(#""context" :"#))
  }

  @Test("an older game's scores can be submitted with their dates, which decide between equal scores")
  func comesIn() throws {
    let game = try device.open()
    defer { end(game) }
    let old: [[String: Any]] = [
      ["name": "Ada", "score": 900, "date": Date(timeIntervalSince1970: 1_000)],
      ["name": "Eve", "score": 900, "date": Date(timeIntervalSince1970: 500)],
    ]
    for entry in old {
      try game.scores.submit(
        try #require(entry["score"] as? Int), to: .easy, player: try #require(entry["name"] as? String),
        date: entry["date"] as? Date)
    }
    #expect(try game.scores.top(9, of: .easy).map(\.player) == ["Eve", "Ada"])
  }

  @Test("JSON keeps all digits of an unsigned number in a context")
  func largeSeed() throws {
    let game = try device.open()
    defer { end(game) }
    try game.scores.submit(1, to: .easy, context: Seed())
    let text = String(decoding: try game.scores.export(.easy, as: .json), as: UTF8.self)
    #expect(text.contains(#""seed" : 18446744073709551615"#), "\(text)")
  }
}
