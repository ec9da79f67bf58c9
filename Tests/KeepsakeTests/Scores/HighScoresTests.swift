import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import Keepsake
@testable import KeepsakeStore

extension Board {
  static let easy = Board("easy", order: .descending)
  static let lap = Board("lap time", order: .ascending)
}

@Archivable struct Run: Equatable {
  var ship = "scout"
  var seed = 0
}

@Suite struct HighScoresTests {
  let device: Device

  init() throws { device = try Device() }

  private func values(_ scores: [Score]) -> [Int] { scores.compactMap(\.value.int) }

  @Test("a board has the best score first, and the earlier of equal ones, at once and after a restart")
  func staysOnBoard() throws {
    var game = try device.open()
    for (value, player) in [(700, "Ada"), (900, "Eve"), (800, "Ada"), (900, "Bob")] {
      try game.scores.submit(value, to: .easy, player: player)
      device.clock.advance(by: .seconds(1))
    }
    try game.scores.submit(59.5, to: .lap)
    try game.scores.submit(60, to: .lap)
    let last = try game.scores.submit(58.25, to: .lap, context: Run(ship: "racer", seed: 7))
    func check(_ game: GameData) throws {
      let top = try game.scores.top(10, of: .easy)
      #expect(values(top) == [900, 900, 800, 700])
      #expect(top.map(\.player) == ["Eve", "Bob", "Ada", "Ada"], "the earlier of two equal ones is above")
      #expect(try values(game.scores.top(2, of: .easy)) == [900, 900] && game.scores.top(0, of: .easy).isEmpty)
      let laps = try game.scores.top(10, of: .lap)
      #expect(laps.map(\.value.double) == [58.25, 59.5, 60] && laps.map(\.player) == ["", "", ""])
      #expect(try laps[0].context() == Run(ship: "racer", seed: 7) && laps[1].contextData == nil)
      #expect(try laps[1].context(as: Run.self) == nil)
      #expect(laps[0].date == Date(timeIntervalSince1970: 10_000_004))
    }
    try check(game)
    #expect(try last.wait().value == .double(58.25))
    try check(game)
    try game.close()
    game = try device.open()
    defer { end(game) }
    try check(game)
    #expect(game.incidents.isEmpty)
  }

  @Test("each player's best, rank and scores can be found, and a list can have one row for each player")
  func players() throws {
    let game = try device.open()
    defer { end(game) }
    for round in 0..<2 {
      // First while the scores are waiting, then from the store.
      if round == 0 {
        for (value, player) in [(10, "Ada"), (50, "Eve"), (30, "Ada"), (40, "Eve"), (20, "")] {
          try game.scores.submit(value, to: .easy, player: player)
        }
      } else {
        try game.core.store.base.drain()
      }
      #expect(try game.scores.players(on: .easy) == ["", "Ada", "Eve"])
      #expect(try game.scores.best(of: "Ada", on: .easy)?.value == .int(30))
      #expect(try game.scores.best(of: "Nobody", on: .easy) == nil && game.scores.rank(of: "Nobody", on: .easy) == nil)
      #expect(try game.scores.rank(of: "Ada", on: .easy) == 3 && game.scores.rank(of: "Eve", on: .easy) == 1)
      let ada = try game.scores.scores(of: "Ada", on: .easy)
      #expect(values(ada) == [30, 10])
      #expect(try game.scores.rank(of: ada[1], on: .easy) == 5)
      let list = try game.scores.top(10, of: .easy, onePerPlayer: true)
      #expect(values(list) == [50, 30, 20] && list.map(\.player) == ["Eve", "Ada", ""])
      #expect(try values(game.scores.top(2, of: .easy, onePerPlayer: true)) == [50, 30])
      #expect(try game.scores.top(10, of: .lap).isEmpty && game.scores.players(on: .lap).isEmpty)
    }
    #expect(gameErrorCode { _ = try game.scores.rank(of: game.scores.top(1, of: .easy)[0], on: .lap) } == .misuse)
  }

  @Test("integer scores keep all their digits, and a floating-point score without a fraction equals the integer")
  func digits() throws {
    var game = try device.open()
    let numbers: [Int64] = [.max, 9_007_199_254_740_993, 9_007_199_254_740_992, 0, -1, .min]
    for number in numbers.shuffled() { try game.scores.submit(number, to: .easy) }
    try game.scores.submit(12, to: .lap, player: "first")
    try game.scores.submit(12.0, to: .lap, player: "second", date: game.core.now + 1)
    try game.scores.submit(Float(0.5), to: .lap, player: "half")
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(try game.scores.top(10, of: .easy).map(\.value) == numbers.map { .int($0) })
    #expect(try game.scores.top(10, of: .lap).map(\.player) == ["half", "first", "second"])
  }

  @Test("invalid scores, names, dates, contexts and limits are refused at the call, and nothing is written")
  func badInput() throws {
    let game = try device.open()
    defer { end(game) }
    for number in [Double.nan, .infinity, -.infinity, .signalingNaN] {
      #expect(gameErrorCode { try game.scores.submit(number, to: .easy) } == .misuse)
      #expect(gameErrorCode { try game.scores.submit(Score.Value.double(number), to: .easy) } == .misuse)
    }
    let long = String(repeating: "x", count: 10_240)
    for name in ["", long, "a\nb", "a\0b", "\u{7F}"] {
      let board = Board(name, order: .descending)
      #expect(gameErrorCode { try game.scores.submit(1, to: board) } == .misuse, "\(name.prefix(5))")
      #expect(gameErrorCode { _ = try game.scores.top(1, of: board) } == .misuse)
      #expect(gameErrorCode { try game.scores.removeAll(from: board) } == .misuse)
      guard !name.isEmpty else { continue }
      #expect(gameErrorCode { try game.scores.submit(1, to: .easy, player: name) } == .misuse, "\(name.prefix(5))")
    }
    for date in [
      Date.distantFuture, Date(timeIntervalSince1970: .infinity), Date(timeIntervalSince1970: .nan),
      Date(timeIntervalSince1970: 1e300),
    ] {
      let code = gameErrorCode { try game.scores.submit(1, to: Board("dates", order: .ascending), date: date) }
      #expect(code == (date == .distantFuture ? nil : .misuse))
    }
    try game.scores.removeAll(from: Board("dates", order: .ascending))
    #expect(
      gameErrorCode { try game.scores.submit(1, to: .easy, context: Data(count: Score.maximumContextBytes)) }
        == .tooLarge)
    #expect(
      gameErrorCode { try game.scores.submit(1, to: Board("none", order: .ascending, keeping: .best(0))) } == .misuse)
    #expect(gameErrorCode { _ = try game.scores.top(-1, of: .easy) } == .misuse)
    try game.core.store.base.drain()
    #expect(try game.core.store.read { try $0.boards() }.isEmpty)
    #expect(try game.core.store.read { try $0.cells(in: "scores") }.allSatisfy { ScoreEntry($0) == nil })
    #expect(try game.scores.top(.max, of: .easy).isEmpty)
  }

  @Test("names with slashes and accents are kept apart, but two Unicode spellings of one name are the same")
  func names() throws {
    let game = try device.open()
    defer { end(game) }
    let (left, right) = (Board("a/b", order: .descending), Board("a", order: .descending))
    try game.scores.submit(1, to: left, player: "c")
    try game.scores.submit(2, to: right, player: "b/c")
    try game.scores.submit(3, to: Board("cafe\u{301}", order: .descending), player: "E\u{301}va")
    try game.core.store.base.drain()
    #expect(try values(game.scores.top(9, of: left)) == [1] && values(game.scores.top(9, of: right)) == [2])
    #expect(try game.scores.best(of: "\u{C9}va", on: Board("caf\u{E9}", order: .descending))?.value == .int(3))
    #expect(try game.core.store.read { try $0.cells(in: "scores") }.count == 3)
  }

  @Test("reading a context of another type, or a damaged one, throws, and the score is kept")
  func contexts() throws {
    let game = try device.open()
    defer { end(game) }
    let score = try game.scores.submit(5, to: .easy, context: Run(seed: 3)).wait()
    #expect(try score.context() == Run(seed: 3))
    #expect(throws: ArchiveError.self) { _ = try score.context(as: Garden.self) }
    #expect(throws: ArchiveError.self) { _ = try score.context(as: Int.self) }
    try game.scores.submit(4, to: .easy, context: Data([1, 2, 3])).wait()
    #expect(try game.scores.top(2, of: .easy)[1].context() == Data([1, 2, 3]))
    #expect(throws: ArchiveError.self) { _ = try game.scores.top(2, of: .easy)[1].context(as: Run.self) }
  }

  @Test("the order of a board can't be changed, not even while the board is empty")
  func otherOrder() throws {
    let game = try device.open()
    defer { end(game) }
    try game.scores.submit(5, to: .easy).wait()
    let turned = Board("easy", order: .ascending)
    #expect(gameErrorCode { try game.scores.submit(4, to: turned) } == .misuse)
    #expect(gameErrorCode { _ = try game.scores.top(1, of: turned) } == .misuse)
    #expect(try values(game.scores.top(9, of: .easy)) == [5])
    // Not when it is empty, either, because the values of its players have an order, too. The call throws and shows
    // nothing.
    try game.scores.removeAll(from: .easy)
    #expect(gameErrorCode { try game.scores.submit(4, to: turned) } == .misuse)
    #expect(gameErrorCode { _ = try game.scores.top(1, of: turned) } == .misuse)
    #expect(gameErrorCode { try game.checkpoint { try $0.submit(4, to: turned, player: "Eve") } } == .misuse)
    try game.scores.submit(6, to: .easy).wait()
    #expect(try values(game.scores.top(9, of: .easy)) == [6])
  }

  @Test("a board keeps as many of the best scores as declared, and each player's best, or all scores")
  func keeping() throws {
    let game = try device.open()
    defer { end(game) }
    let five = Board("five", order: .descending, keeping: .best(5))
    let all = Board("all", order: .descending, keeping: .all)
    for number in 1...100 {
      try game.scores.submit(
        number, to: five, player: number % 10 == 0 ? "weak" : "strong",
        date: Date(timeIntervalSince1970: Double(number)))
      try game.scores.submit(number, to: all)
    }
    try game.scores.submit(3, to: five, player: "weakest").wait()
    #expect(try values(game.scores.top(.max, of: five)) == [100, 99, 98, 97, 96, 3])
    #expect(try game.scores.players(on: five) == ["strong", "weak", "weakest"])
    #expect(try game.scores.top(.max, of: all).count == 100)
    #expect(try game.scores.rank(of: "weakest", on: five) == 6)
    // Declared to keep fewer, it does so from the next score on.
    let two = Board("five", order: .descending, keeping: .best(2))
    try game.scores.submit(1, to: two, player: "strong").wait()
    #expect(try values(game.scores.top(.max, of: two)) == [100, 99, 3])
  }

  @Test("a checkpoint stores a save and its scores, or neither")
  func checkpoint() throws {
    let game = try device.open()
    defer { end(game) }
    try game.checkpoint { checkpoint in
      try checkpoint.save(World(level: 2), to: .main)
      let score = try checkpoint.submit(500, to: .easy, player: "Ada", context: Run(seed: 1))
      #expect(score.value == .int(500))
      try checkpoint.submit(400, to: .easy, player: "Ada")
    }.wait()
    #expect(try values(game.scores.top(9, of: .easy)) == [500, 400] && game.saves.load(.main)?.level == 2)
    let failing = try game.checkpoint { checkpoint in
      try checkpoint.save(World(level: 3), to: .main)
      try checkpoint.submit(900, to: .easy, player: "Ada")
      try checkpoint.spend(50, .gems, for: "sword")
    }
    #expect(gameErrorCode { try failing.wait() } == .insufficient(0, of: 0))
    #expect(try values(game.scores.top(9, of: .easy)) == [500, 400] && game.saves.load(.main)?.level == 2)
    #expect(
      try game.core.store.read { try $0.cell(ScoreEntry.key(board: "easy", player: "Ada")) }.map {
        "\($0.value)".contains("500")
      } == true)
    #expect(gameErrorCode { try game.checkpoint { try $0.submit(.nan as Double, to: .easy) } } == .misuse)
    #expect(
      gameErrorCode {
        try game.checkpoint { checkpoint in
          for _ in 0...Checkpoint.maximumScores { try checkpoint.submit(1, to: .easy) }
        }
      } == .tooLarge)
    #expect(try values(game.scores.top(9, of: .easy)) == [500, 400])
  }

  @Test("scores from many threads at once are all kept, and each thread sees what it has submitted")
  func threads() throws {
    let game = try device.open()
    defer { end(game) }
    DispatchQueue.concurrentPerform(iterations: 8) { thread in
      for step in 0..<25 {
        do {
          let value = thread * 1_000 + step
          try game.scores.submit(value, to: .easy, player: "player \(thread)")
          #expect(try game.scores.best(of: "player \(thread)", on: .easy)?.value == .int(Int64(value)))
        } catch { Issue.record("\(error)") }
      }
    }
    let top = try game.scores.top(.max, of: .easy)
    #expect(top.count == 200 && Set(top.map(\.id)).count == 200 && values(top) == values(top).sorted(by: >))
    try game.core.store.base.drain()
    #expect(try game.scores.top(.max, of: .easy) == top)
  }

  @Test("a removed score is gone, and the player's next best takes its place; a removed board is empty")
  func removing() throws {
    let game = try device.open()
    defer { end(game) }
    // Until the gate is open, the scores wait to be committed.
    let gate = Gate()
    defer { gate.open() }
    _ = try game.core.store.submit { _, _ in gate.pass() }
    gate.waitForArrival()
    for value in [100, 5_000, 200] { try game.scores.submit(value, to: .easy, player: "Ada") }
    try game.scores.submit(50, to: .lap, player: "Ada")
    let cheated = try #require(try game.scores.best(of: "Ada", on: .easy))
    #expect(try game.core.store.read { try !$0.hasScore(cheated.entry) })
    gate.open()
    try game.scores.remove(cheated)
    #expect(try values(game.scores.top(9, of: .easy)) == [200, 100])
    let key = ScoreEntry.key(board: "easy", player: "Ada")
    let best = try #require(try game.core.store.read { try $0.cell(key) })
    #expect(ScoreEntry(CellUpdate(key: key, state: best))?.value == .int(200))
    // A copy of the old value doesn't restore what was removed.
    try arrive(cheated.entry.best, 0, "Ada", to: game)
    #expect(try values(game.scores.top(9, of: .easy)) == [200, 100])
    try game.scores.removeAll(from: .easy)
    #expect(try game.scores.top(9, of: .easy).isEmpty && game.scores.top(9, of: .lap).count == 1)
    try game.scores.submit(1, to: .easy, player: "Ada").wait()
    #expect(try values(game.scores.top(9, of: .easy)) == [1])
  }

  private func arrive(_ best: BestScore, _ generation: UInt64, _ player: String, to game: GameData) throws {
    let key = ScoreEntry.key(board: "easy", player: player)
    try game.core.store.write { transaction in
      let state = CellState(generation: generation, value: .best(best))
      try transaction.setCell(CellUpdate(key: key, state: try transaction.cell(key)?.joined(with: state) ?? state))
    }
    game.scores.received([key])
  }

  @Test("a board has a largest number of players, and a score of one more player throws")
  func tooManyPlayers() async throws {
    try await onThread { [device] in try Self.fillBoard(device) }
  }

  private static func fillBoard(_ device: Device) throws {
    let game = try device.open()
    defer { end(game) }
    for number in 1...HighScores.maximumPlayers {
      try game.scores.submit(number, to: .easy, player: "player \(number)")
    }
    try game.core.store.base.drain()
    #expect(gameErrorCode { try game.scores.submit(1, to: .easy, player: "one more").wait() } == .tooLarge)
    #expect(try game.scores.best(of: "one more", on: .easy) == nil)
    try game.scores.submit(5_000, to: .easy, player: "player 1").wait()
    #expect(try game.scores.top(1, of: .easy)[0].player == "player 1")
    #expect(try game.scores.top(.max, of: .easy, onePerPlayer: true).count == HighScores.maximumPlayers)
    // Removing a player makes room for one other.
    try game.scores.remove(try #require(try game.scores.best(of: "player 7", on: .easy)))
    try game.scores.submit(1, to: .easy, player: "one more").wait()
    #expect(gameErrorCode { try game.scores.submit(1, to: .easy, player: "player 7").wait() } == .tooLarge)
    try game.scores.remove(try #require(try game.scores.best(of: "player 9", on: .easy)))
    #expect(try game.scores.players(on: .easy).count == HighScores.maximumPlayers - 1)
    // Submitting several together doesn't get around the limit.
    let together = try game.checkpoint { checkpoint in
      for player in ["player 7", "player 9"] { try checkpoint.submit(1, to: .easy, player: player) }
    }
    #expect(gameErrorCode { try together.wait() } == .tooLarge)
    try game.scores.submit(1, to: .easy, player: "player 7").wait()
    #expect(
      try game.scores.players(on: .easy).count == HighScores.maximumPlayers
        && game.scores.players(on: .easy).contains("player 7"))
    try game.scores.removeAll(from: .easy)
    #expect(try game.scores.players(on: .easy).isEmpty)
    for number in 1...9 { try game.scores.submit(number, to: .easy, player: "other \(number)").wait() }
    #expect(try game.scores.players(on: .easy).count == 9)
  }

  @Test("a score that is damaged while the game runs is left out, and an incident names its board")
  func damaged() throws {
    var game = try device.open()
    for value in 1...20 { try game.scores.submit(value, to: .easy) }
    try game.core.store.base.drain()
    let hands = try DatabaseQueue(path: device.url.appendingPathComponent(Store.databaseName).path)
    try hands.write { database in
      try database.execute(
        sql: "UPDATE score SET body = x'00112233445566778899' WHERE rank = (SELECT MIN(rank) FROM score)")
    }
    try hands.close()
    #expect(try values(game.scores.top(3, of: .easy)) == [19, 18, 17])
    #expect(try game.scores.best(on: .easy)?.value == .int(19))
    #expect(game.incidents.map(\.kind) == [.unreadable] && game.incidents[0].message.contains("easy"))
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(game.incidents.map(\.kind) == [.recovered])
    // The best is also a value of its own beside the board, which was intact.
    #expect(try values(game.scores.top(3, of: .easy)) == [20, 19, 18])
  }

  @Test(
    "a score written directly into the database is left out at once, and set aside at the next start",
    arguments: [false, true])
  func forged(isSealed: Bool) throws {
    let secret = Data((0..<32).map { UInt8($0) })
    func open() throws -> GameData {
      try GameData.open(
        "com.example.space", at: device.url, seal: isSealed ? .sealed(secret) : .signed(secret),
        environment: device.clock.environment)
    }
    var game = try open()
    try game.scores.submit(100, to: .easy, player: "Ada").wait()
    let forged = ScoreEntry(
      board: "easy", player: "Eve", order: .descending, value: .int(999), dateMilliseconds: 1,
      id: ScoreID(high: 0, low: 9))
    let hands = try DatabaseQueue(path: device.url.appendingPathComponent(Store.databaseName).path)
    try hands.write { database in
      try database.execute(
        sql: "INSERT INTO score (\(ScoreRow.columns)) VALUES (?, ?, ?, ?, ?, ?)",
        arguments: ScoreRow(forged, RowCodec(seal: .none)).arguments)
    }
    try hands.close()
    #expect(try game.scores.top(9, of: .easy).map(\.player) == ["Ada"])
    #expect(game.incidents.map(\.kind) == [.tampered])
    try game.close()
    game = try open()
    defer { end(game) }
    #expect(game.incidents.map(\.kind) == [.tampered])
    #expect(try game.scores.top(9, of: .easy).map(\.player) == ["Ada"] && game.scores.players(on: .easy) == ["Ada"])
  }

  @Test("a score whose commit failed is no longer shown, and its `Pending` throws the error")
  func failedCommit() throws {
    let game = try device.open()
    try game.scores.submit(1, to: .easy).wait()
    let hands = try DatabaseQueue(path: device.url.appendingPathComponent(Store.databaseName).path)
    // SQLite refuses another row.
    try hands.write {
      try $0.execute(sql: "CREATE TRIGGER full BEFORE INSERT ON score BEGIN SELECT RAISE(ABORT, 'no'); END")
    }
    let pending = try game.scores.submit(2, to: .easy)
    #expect(throws: StoreError.self) { try pending.wait() }
    #expect(try values(game.scores.top(9, of: .easy)) == [1])
    #expect(game.incidents.map(\.kind) == [.failedCommit])
    try hands.write { try $0.execute(sql: "DROP TRIGGER full") }
    try hands.close()
    try game.close()
    #expect(gameErrorCode { try game.scores.submit(3, to: .lap) } == .closed)
  }
}
