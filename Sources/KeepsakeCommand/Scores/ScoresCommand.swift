#if Cloud
import ArgumentParser
import Foundation
import Keepsake
import KeepsakeArchive
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
      Scores that can't be read are left out, with a line on standard error, or in "unreadable" of --json; use \
      keepsake doctor to find out why.
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
        let all = Set(boards.map(\.board)).sorted()
        let names = all.prefix(5).joined(separator: ", ")
        throw CommandFailure(
          .noInput, "there is no board \"\(Printable.text(board))\" in \(path)",
          next: boards.isEmpty
            ? "the store has no scores"
            : all.count <= 5
              ? "it has \(Printable.text(names))" : "it has \(all.count), among them \(Printable.text(names))")
      }
      return try chosen.map { Listing(summary: $0, scores: try transaction.topScores(top, on: $0.board, $0.order)) }
    }
  }

  /// Returns one object with `boards`, each with its `scores` as games export them, and what can't be read.
  static func json(of listings: [Listing], in path: String) throws -> Data {
    var json = JSONWriter()
    json.beginObject()
    json.key("boards")
    json.beginArray()
    for listing in listings {
      json.beginObject()
      json.key("board")
      json.value(listing.summary.board)
      json.key("order")
      json.value(listing.summary.order.rawValue)
      json.key("scores")
      json.value(json: try ScoreExport.data(of: listing.scores.entries, as: .json))
      json.key("unreadable")
      json.beginArray()
      for objection in listing.scores.objections {
        json.beginObject()
        json.key("message")
        json.value(objection.message)
        json.end()
      }
      json.end()
      json.end()
    }
    json.end()
    json.key("path")
    json.value(path)
    json.end()
    return json.take() + Data("\n".utf8)
  }

  func run() async throws {
    try await CommandRun.reporting(json: json, looksInside: true) {
      let listings = try Self.look(at: store, board: board, top: top, seal: seal.request())
      for listing in listings where !json {
        for objection in listing.scores.objections {
          Output.complaint(
            "a score of \(Printable.text(listing.summary.board)) is left out: \(Printable.text(objection.message))")
        }
      }
      if json {
        Output.bytes(try Self.json(of: listings, in: store))
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
