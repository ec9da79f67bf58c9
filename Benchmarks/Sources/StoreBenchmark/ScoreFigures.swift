import BenchmarkKit
import Foundation
import GameWorlds
import Keepsake

/// What a board costs by how many scores it has, beside the list that games kept of old: an array of dictionaries in a
/// property list, sorted and written atomically at each score.
struct ScoreFigures: Codable {
  struct List: Codable {
    var submitMicroseconds: Double
    var openingMicroseconds: Double
    var bytes: Int
  }

  var count: Int
  /// To the call's return; while others wait to be written.
  var submitMicroseconds = 0.0
  var durableMicroseconds = 0.0
  var topMicroseconds = 0.0
  var rankMicroseconds = 0.0
  var bestMicroseconds = 0.0
  var openingMicroseconds = 0.0
  var sealedOpeningMicroseconds = 0.0
  /// Of the database.
  var bytes = 0
  /// Nil where one submit takes seconds.
  var list: List?

  static let players = 500
  /// With more, a list takes seconds for a submit.
  private static let longestList = 100_000

  static func measure(upTo most: Int) throws -> [ScoreFigures] {
    try [1_000, 10_000, 100_000, 1_000_000].filter { $0 <= most }.map { count in
      Progress.report("scores: a board of \(Format.grouped(count))")
      var figures = ScoreFigures(count: count)
      try measureBoard(&figures)
      figures.sealedOpeningMicroseconds = try FilledBoard(count, seal: .sealed((0..<32).map { UInt8($0) })).opening()
      if count <= longestList { figures.list = try measureList(count) }
      return figures
    }
  }

  private static func measureBoard(_ figures: inout ScoreFigures) throws {
    let filled = try FilledBoard(figures.count, seal: .none)
    let (scores, board) = (try filled.game().scores, FilledBoard.board)
    var random = SeededRandom(seed: 5)
    func score() -> (Int, String) { (Int(random.next() % 1_000_000), "player \(random.next() % UInt64(players))") }
    figures.submitMicroseconds = try median(of: 500) {
      let (value, player) = score()
      try scores.submit(value, to: board, player: player)
    }
    try scores.submit(1, to: board).wait()
    figures.durableMicroseconds = try median(of: 50) {
      let (value, player) = score()
      try scores.submit(value, to: board, player: player).wait()
    }
    figures.topMicroseconds = try median(of: 200) {
      try BenchmarkError.require(scores.top(10, of: board).count == 10, "The board lost scores")
    }
    let middle = try scores.scores(of: "middle", on: board)
    try BenchmarkError.require(middle.count == 1, "The middle is not in its place")
    figures.rankMicroseconds = try median(of: 10) {
      try BenchmarkError.require(
        scores.rank(of: middle[0], on: board) > figures.count / 3, "The middle is not in the middle")
    }
    figures.bestMicroseconds = try median(of: 200) { _ = try scores.best(of: score().1, on: board) }
    figures.openingMicroseconds = try filled.opening()
    figures.bytes = try filled.databaseBytes()
  }

  private static func measureList(_ count: Int) throws -> List {
    let file = FileManager.default.temporaryDirectory.appending(
      path: "keepsake-list-\(ProcessInfo.processInfo.processIdentifier).plist")
    defer {
      // Only leaves a file behind among the temporary files.
      try? FileManager.default.removeItem(at: file)
    }
    var random = SeededRandom(seed: 6)
    func entry() -> [String: Any] {
      ["score": Int(random.next() % 1_000_000), "player": "player \(random.next() % UInt64(players))", "date": Date()]
    }
    var list = (0..<count).map { _ in entry() }
    func submit() throws {
      list.append(entry())
      list.sort { ($0["score"] as? Int ?? 0) > ($1["score"] as? Int ?? 0) }
      try PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0).write(
        to: file, options: .atomic)
    }
    let submitted = try median(of: count > 10_000 ? 3 : 15, submit)
    let opened = try median(of: count > 10_000 ? 3 : 15) {
      let read =
        try PropertyListSerialization.propertyList(from: Data(contentsOf: file), format: nil) as? [[String: Any]]
      try BenchmarkError.require(read?.count == list.count, "The list lost scores")
    }
    let bytes = try file.resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
    return List(submitMicroseconds: submitted, openingMicroseconds: opened, bytes: bytes)
  }

  static func median(of count: Int, _ body: () throws -> Void) throws -> Double {
    let clock = ContinuousClock()
    return try (0..<count).map { _ in
      let began = clock.now
      try body()
      return (clock.now - began) / .microseconds(1)
    }.sorted()[count / 2]
  }
}

/// A game's data with one full board, which keeps everything; removed at its end.
private final class FilledBoard {
  static let board = Board("scores", order: .descending, keeping: .all)
  /// As many as a checkpoint takes.
  private static let together = 1_000

  private let folder: URL
  private let seal: Seal
  private var open: GameData?

  init(_ count: Int, seal: Seal) throws {
    self.seal = seal
    folder = FileManager.default.temporaryDirectory.appending(
      path: "keepsake-board-\(ProcessInfo.processInfo.processIdentifier)")
    var random = SeededRandom(seed: 4)
    let game = try game()
    for start in stride(from: 0, to: count - 1, by: Self.together) {
      try game.checkpoint { checkpoint in
        for _ in start..<min(start + Self.together, count - 1) {
          try checkpoint.submit(
            Int(random.next() % 1_000_000), to: Self.board,
            player: "player \(random.next() % UInt64(ScoreFigures.players))")
        }
      }
    }
    try game.scores.submit(500_000, to: Self.board, player: "middle").wait(within: .seconds(600))
    // As after a start.
    try close()
  }

  deinit {
    do {
      try close()
      try FileManager.default.removeItem(at: folder)
    } catch {
      Progress.report("\(folder.path) could not be removed: \(error)")
    }
  }

  func game() throws -> GameData {
    if let open { return open }
    let game = try GameData.open("benchmark", at: folder, seal: seal)
    open = game
    return game
  }

  private func close() throws {
    try open?.close(within: .seconds(600))
    open = nil
  }

  /// The middle one of five.
  func opening() throws -> Double {
    let clock = ContinuousClock()
    return try (0..<5).map { _ in
      try close()
      let began = clock.now
      let game = try game()
      let took = (clock.now - began) / .microseconds(1)
      try BenchmarkError.require(game.incidents.isEmpty, "Something was amiss with the board")
      return took
    }.sorted()[2]
  }

  func databaseBytes() throws -> Int {
    try close()
    return try folder.appending(path: "store.sqlite").resourceValues(forKeys: [.fileSizeKey]).fileSize ?? 0
  }
}
