#if Cloud
import ArgumentParser
import Foundation
import Keepsake
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeCommand

extension Board {
  fileprivate static let easy = Board("easy", order: .descending)
  fileprivate static let lap = Board("lap\u{202E}", order: .ascending)
}

/// Support looks at a player's high scores, without the game.
@Suite struct ScoresCommandTests {
  private func inStore(_ body: (_ store: String, _ game: GameData) throws -> Void) throws {
    let folder = TemporaryFolder.url("scores")
    defer { try? FileManager.default.removeItem(at: folder) }
    let game = try GameData.open("com.example.space", at: folder)
    try body(folder.path, game)
    try game.close()
  }

  private func look(_ store: String, board: String? = nil, top: Int = 10) throws -> [ScoresCommand.Listing] {
    try ScoresCommand.look(at: store, board: board, top: top, seal: nil)
  }

  @Test("all boards are listed with their counts and best scores, while the game has the store open")
  func lists() throws {
    try inStore { store, game in
      for value in 1...20 { try game.scores.submit(value, to: .easy, player: value.isMultiple(of: 2) ? "Ada" : "Eve") }
      try game.scores.submit(59.5, to: .lap, context: "a replay").wait()
      let boards = try look(store, top: 3)
      #expect(
        boards.map(\.summary.board) == ["easy", "lap\u{202E}"]
          && boards.map(\.summary.order) == [.descending, .ascending])
      #expect(boards.map(\.summary.scores) == [20, 1] && boards.map(\.summary.players) == [2, 1])
      #expect(boards[0].lines.count == 4 && boards[0].lines[0] == "easy  (descending, 20 scores, 2 players)")
      #expect(boards[0].lines[1].hasPrefix("  1.  20  Ada  2"))
      #expect(
        boards[1].lines[0].contains(#"lap\u{202e}"#) && boards[1].lines[1].contains("59.5")
          && boards[1].lines[1].contains("bytes]"))

      guard case .store(let report) = try InspectCommand.look(at: store) else {
        Issue.record("no store")
        return
      }
      #expect(
        report.boards.first == StoreReport.Scores(board: "easy", order: "descending", scoreCount: 20, playerCount: 2))
      #expect(report.text.contains("easy: 20 scores of 2 players, descending"))
      #expect(report.text.contains("best, descending 20"))
    }
  }

  @Test("an unknown board is an error that names the existing boards, if any; a missing store is an error, too")
  func missing() throws {
    try inStore { store, game in
      var failure = #expect(throws: CommandFailure.self) { try look(store, board: "hard") }
      #expect(failure?.kind == .noInput && failure?.next == "the store has no scores")
      try game.scores.submit(1, to: .easy).wait()
      failure = #expect(throws: CommandFailure.self) { try look(store, board: "hard") }
      #expect(failure?.next?.contains("easy") == true)
      #expect(try look(store, board: "easy").count == 1)
    }
    let failure = #expect(throws: CommandFailure.self) { try look("/nowhere/at/all") }
    #expect(failure?.kind == .noInput)
  }

  @Test("invalid options are refused")
  func options() {
    #expect(throws: (any Error).self) { try ScoresCommand.parse(["store", "--top", "0"]) }
    #expect(throws: (any Error).self) { try ScoresCommand.parse(["store", "--json", "--plist"]) }
    #expect(throws: Never.self) { try ScoresCommand.parse(["store", "--board", "easy", "--top", "3", "--plist"]) }
  }
}
#endif
