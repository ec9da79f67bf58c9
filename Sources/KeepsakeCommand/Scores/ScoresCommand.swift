#if Cloud
import ArgumentParser
import Foundation
import Keepsake
import KeepsakeReplication
import KeepsakeStore

/// `keepsake scores`: shows the high scores in a store.
struct ScoresCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "scores",
    abstract: "Show the high scores of a store, board by board.",
    discussion: """
      Shows all boards, or one with --board, the best score first. The store is not changed. --json and --plist are \
      for other programs, with rank, player, score, date, id and context of each score; --plist has one board. \
      Scores that can't be read are left out, with a line on standard error; use keepsake doctor to find out why.
      """,
    examples: [
      "keepsake scores STORE --board easy --plist"
    ])

  @Argument(help: "The store's folder.", completion: .directory)
  var store: String

  @Option(help: "Only this board.")
  var board: String?

  @Option(name: [.customShort("n"), .long], help: "How many scores of each board to show.")
  var top = 10

  @OptionGroup var seal: SealOptions

  @Flag(name: .shortAndLong, help: "Print JSON.")
  var json = false

  @Flag(name: .long, help: "Print an XML property list.")
  var plist = false

  func validate() throws {
    guard top > 0 else { throw ValidationError("--top takes a number that is at least 1.") }
    guard !json || !plist else { throw ValidationError("--json and --plist can't be used together.") }
  }

  /// One board with its best scores.
  struct Listing {
    var summary: BoardSummary
    var scores: FoundScores

    var lines: [String] {
      let title =
        """
        \(Printable.text(summary.board))  (\(summary.order.rawValue), \(CountText.of(summary.scores, "score")), \
        \(CountText.of(summary.players, "player")))
        """
      return [title]
        + scores.entries.enumerated().map { index, score in
          let player = score.player.isEmpty ? "" : "  \(Printable.text(score.player))"
          let context = score.context.map { "  [\(Printable.size(Int64($0.count)))]" } ?? ""
          return
            """
              \(index + 1).  \(Self.text(of: score.value))\(player)  \
            \(TimeText.iso(milliseconds: score.dateMilliseconds))\(context)
            """
        }
    }

    private static func text(of value: Scalar) -> String {
      switch value {
      case .int(let number): "\(number)"
      case .double(let number): "\(number)"
      case .string, .data: "?"
      }
    }
  }

  /// - Throws: `CommandFailure` if the requested board doesn't exist.
  static func look(at path: String, board: String?, top: Int, seal: SealRequest?) throws -> [Listing] {
    let url = try StoreInput.url(of: path)
    return try StoreReader.open(at: url, seal: seal).read { transaction in
      let boards = try transaction.boards()
      let name = board?.canonical
      let chosen = boards.filter { name == nil || $0.board == name }
      if let board, chosen.isEmpty {
        let names = Set(boards.map(\.board)).sorted().prefix(5).joined(separator: ", ")
        throw CommandFailure(
          .noInput, "there is no board \"\(Printable.text(board))\" in \(path)",
          next: boards.isEmpty
            ? "the store has no scores" : "it has \(boards.count), among them \(Printable.text(names))")
      }
      return try chosen.map { Listing(summary: $0, scores: try transaction.topScores(top, on: $0.board, $0.order)) }
    }
  }

  /// Returns one object with `boards`, each with its `scores` as games export them.
  static func json(of listings: [Listing]) throws -> Data {
    struct Board: Encodable {
      var board: String
      var order: String
    }
    let boards = try listings.map { listing in
      let board = Board(board: listing.summary.board, order: listing.summary.order.rawValue)
      // Both are whole documents: the closing brace of the first is replaced by what it lacks.
      return Data(Output.json(board).dropLast().utf8) + Data(", \"scores\": ".utf8)
        + (try ScoreExport.data(of: listing.scores.entries, as: .json)) + Data("}".utf8)
    }
    return Data("{\"boards\": [\n".utf8) + Data(boards.joined(separator: Data(",\n".utf8))) + Data("\n]}\n".utf8)
  }

  func run() async throws {
    try await CommandRun.reporting(json: json, looksInside: true) {
      let listings = try Self.look(at: store, board: board, top: top, seal: seal.request())
      for listing in listings {
        for objection in listing.scores.objections {
          Output.complaint(
            "a score of \(Printable.text(listing.summary.board)) is left out: \(Printable.text(objection.message))")
        }
      }
      if json {
        Output.bytes(try Self.json(of: listings))
      } else if plist {
        guard listings.count <= 1 else {
          let names = Set(listings.map(\.summary.board)).sorted().map { Printable.text($0) }.joined(separator: ", ")
          throw CommandFailure(
            .data, "the store has \(listings.count) boards, but --plist writes one",
            next: "choose one with --board: \(names)")
        }
        Output.bytes(try ScoreExport.data(of: listings.first?.scores.entries ?? [], as: .propertyList))
      } else {
        Output.text(
          listings.isEmpty
            ? "no scores yet" : listings.map { $0.lines.joined(separator: "\n") }.joined(separator: "\n\n"))
      }
    }
  }
}
#endif
