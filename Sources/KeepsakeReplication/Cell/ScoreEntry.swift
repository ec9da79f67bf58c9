package import Foundation

/// One score on a board, with everything that is kept for it.
///
/// A player's best score on each board is sent as a cell of the collection `scores`: its key contains board and player,
/// its value the rest.
package struct ScoreEntry: Hashable, Sendable {
  package static let collection = "scores"
  /// Board and player form one key of at most `ExchangeRules.maximumKeyBytes`, with a number and two slashes.
  package static let maximumBoardBytes = 100
  package static let maximumPlayerBytes = 150
  /// The context of a score is read with it, ten or a hundred at a time, and that of each player's best is sent to all
  /// devices.
  package static let maximumContextBytes = 16 * 1024

  package var board: String
  package var player: String
  package var order: ScoreOrder
  /// A finite number; a whole one that fits is an `int`.
  package let value: Scalar
  package var dateMilliseconds: Int64
  package var id: ScoreID
  package var context: Data?

  package init(
    board: String, player: String, order: ScoreOrder, value: Scalar, dateMilliseconds: Int64, id: ScoreID,
    context: Data? = nil
  ) {
    self.board = board
    self.player = player
    self.order = order
    self.value = value.plainNumber
    self.dateMilliseconds = dateMilliseconds
    self.id = id
    self.context = context
  }

  /// Returns whether it ranks above `other` on a board: the better score, then the earlier, then the smaller id.
  package func precedes(_ other: ScoreEntry) -> Bool {
    if value != other.value { return order == .descending ? value > other.value : value < other.value }
    if dateMilliseconds != other.dateMilliseconds { return dateMilliseconds < other.dateMilliseconds }
    return id < other.id
  }

  // MARK: As a cell

  package var key: CellKey { Self.key(board: board, player: player) }

  /// The key starts with the length of the board's name, so that no two pairs of names have the same key.
  package static func key(board: String, player: String) -> CellKey {
    CellKey(collection: collection, key: keyPrefix(of: board) + player)
  }

  /// The prefix that all keys of a board have, and no others.
  package static func keyPrefix(of board: String) -> String { "\(board.utf8.count)/\(board)/" }

  /// Returns the names in a cell's key; nil if no compatible release wrote it.
  package static func names(in key: CellKey) -> (board: String, player: String)? {
    guard key.collection == collection else { return nil }
    let bytes = Array(key.key.utf8)
    guard let stroke = bytes.firstIndex(of: UInt8(ascii: "/")),
      let length = Int(String(decoding: bytes[..<stroke], as: UTF8.self)),
      (1...maximumBoardBytes).contains(length), stroke + 1 + length < bytes.count
    else { return nil }
    let board = String(decoding: bytes[(stroke + 1)..<(stroke + 1 + length)], as: UTF8.self)
    let player = String(decoding: bytes[(stroke + 2 + length)...], as: UTF8.self)
    // Accepts only a key that would be written the same way again: half a character, another spelling or another number
    // was written by something else.
    guard objection(board: board, player: player) == nil, self.key(board: board, player: player) == key else {
      return nil
    }
    return (board, player)
  }

  package var best: BestScore {
    BestScore(
      order: order,
      entry: BestScore.Entry(
        score: value, dateMilliseconds: dateMilliseconds, payload: id.bytes + (context ?? Data())))
  }

  /// Creates the score that a cell holds; nil if it holds none, or one that this release can't read.
  package init?(_ update: CellUpdate) {
    guard case .best(let best) = update.state.value, best.objection == nil, let entry = best.entry,
      let names = Self.names(in: update.key), let id = Self.id(in: entry.payload),
      entry.payload.count <= Self.maximumPayloadBytes
    else { return nil }
    let context = Data(entry.payload.dropFirst(ScoreID.byteCount))
    self.init(
      board: names.board, player: names.player, order: best.order, value: entry.score,
      dateMilliseconds: entry.dateMilliseconds,
      id: id, context: context.isEmpty ? nil : context)
  }

  /// Returns the id that a payload begins with; nil if the payload is too short.
  static func id(in payload: Data) -> ScoreID? {
    ScoreID(bytes: payload.prefix(ScoreID.byteCount))
  }

  package static let maximumPayloadBytes = ScoreID.byteCount + maximumContextBytes

  // MARK: Names

  /// Returns why there can be no score under these names; nil if there can.
  package static func objection(board: String, player: String) -> String? {
    if let objection = NameRule.board.objection(to: board) ?? NameRule.player.objection(to: player) { return objection }
    for (kind, name) in [(NameRule.board.kind, board), (NameRule.player.kind, player)] {
      guard name.canonical.utf8.elementsEqual(name.utf8) else {
        return "\(kind) must be in Unicode's normalization form NFC: \(NameRule.shown(name)) isn't"
      }
    }
    return nil
  }
}

extension Scalar {
  /// A whole number as an `int` if it fits, so that 12 and 12.0 are the same score.
  fileprivate var plainNumber: Scalar {
    guard case .double(let value) = self, let whole = Int64(exactly: value) else { return self }
    return .int(whole)
  }
}
