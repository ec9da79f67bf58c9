import Foundation
import GRDB
import KeepsakeReplication

/// A row of the table `score`. Its body is the context, and its body's checksum and seal cover the columns beside it.
struct ScoreRow {
  /// In the order in which `init(_:)` reads them.
  static let columns = "board, rank, date, id, player, body"
  /// The first byte of a body. A score without a context also has a body, for the checksum and the seal. Sealed bodies
  /// begin with neither byte, so that an unsealed one can be recognized.
  private enum Form { static let (bare, context) = (UInt8(ascii: "-"), UInt8(ascii: "+")) }

  var board: String
  var rank: ScoreRank
  /// Milliseconds since 1970.
  var date: Int64
  var id: ScoreID
  var player: String
  var body: Data

  /// Reads a row of `columns`.
  init(_ row: Row) throws {
    guard let rank = ScoreRank(bytes: try row.checked(at: 1, "rank")),
      let id = ScoreID(bytes: try row.checked(at: 3, "id"))
    else {
      throw StoreError(.damaged, "a score of the store has an invalid rank or id")
    }
    (self.rank, self.id) = (rank, id)
    board = try row.checked(at: 0, "board")
    date = try row.checked(at: 2, "date")
    player = try row.checked(at: 4, "player")
    body = try row.checked(at: 5, "body")
  }

  /// Converts a salvaged row; nil if it lacks a column or has one of the wrong type.
  init?(_ row: SalvagedRow) {
    guard let board = row.text("board"), let rank = row.data("rank").flatMap({ ScoreRank(bytes: $0) }),
      let date = row.integer("date"),
      let id = row.data("id").flatMap({ ScoreID(bytes: $0) }), let player = row.text("player"),
      let body = row.data("body")
    else { return nil }
    (self.board, self.rank, self.date, self.id, self.player, self.body) = (board, rank, date, id, player, body)
  }

  /// Makes the row for a score. Throws `misuse` if the value isn't a number.
  init(_ entry: ScoreEntry, _ codec: RowCodec) throws {
    guard let rank = ScoreRank(entry.value, entry.order) else {
      throw StoreError(.misuse, "a score has to be a finite number")
    }
    (board, self.rank, date, id, player, body) = (
      entry.board, rank, entry.dateMilliseconds, entry.id, entry.player, Data()
    )
    let content = entry.context.map { Data([Form.context]) + $0 } ?? Data([Form.bare])
    body = try codec.body(of: content, place: place)
  }

  var place: String { RowIdentity.score(self) }

  var arguments: StatementArguments { [board, rank.bytes, date, id.bytes, player, body] }

  /// Returns the score. Throws `damaged` or `tampered` if the body isn't what was written here.
  func entry(_ codec: RowCodec) throws -> ScoreEntry {
    let content = try codec.json(in: body, place: place)
    guard let form = content.first, form == Form.bare && content.count == 1 || form == Form.context else {
      throw StoreError(.damaged, "the data of \(place) can't be decoded")
    }
    return ScoreEntry(
      board: board, player: player, order: rank.order, value: rank.value, dateMilliseconds: date, id: id,
      context: form == Form.context ? Data(content.dropFirst()) : nil)
  }
}
