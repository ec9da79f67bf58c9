import Crypto
public import Foundation
import KeepsakeInterchange
import KeepsakeReplication
import KeepsakeStore

extension HighScores {
  /// Scores that one commit takes: each may be a value that is synced, and no more of them go into one group.
  private static let importedTogether = DeviceCommit.maximumGroupCells

  /// Takes an older game's list of high scores: a property list with an array of dictionaries.
  ///
  ///     let report = try game.scores.importScores(
  ///       from: bytes, to: .easy, columns: .init(score: "points", player: "name", date: "when"))
  ///
  /// Each entry gets a name that follows from its board, player, score and date, so that taking the same list again, here or on another device, doubles nothing; of equal entries all stay.
  /// A score that was removed from the board comes back, and so does one that was too far down to be kept, until the next is cleared away.
  ///
  /// Durable when the call returns: it blocks for the disk, once for each 200 scores; the first of them stay if a later commit fails, and the call can be repeated.
  ///
  /// - Parameters:
  ///   - columns: The keys of the dictionaries.
  ///   - player: Of entries that don't say who scored.
  ///   - undated: Of entries that don't say when. Always give the same, or they are other scores.
  /// - Returns: How many came, and the entries that can be no score, with the reason.
  /// - Throws: `PropertyListError` for bytes that have no such list; `GameDataError` with `misuse` for a board that has another order, `tooLarge` for one with too many players.
  @discardableResult
  public func importScores(
    from data: Data, to board: Board, columns: ScoreColumns, player: String = "", undated: Date = Date(timeIntervalSince1970: 0)
  ) throws -> ScoreReport {
    // Before anything is read: the board must be one, of this order.
    _ = try top(0, of: board)
    var report = ScoreReport()
    var drafts: [ScoreDraft] = []
    var met: [ScoreID: UInt64] = [:]
    for (index, entry) in try columns.entries(in: data).enumerated() {
      do {
        let (value, name, date) = try columns.read(entry)
        var draft = try draft(value, board, name ?? player, date ?? undated, nil)
        let first = Self.id(of: draft.entry, number: 0)
        draft.entry.id = Self.id(of: draft.entry, number: met[first, default: 0])
        met[first, default: 0] += 1
        drafts.append(draft)
      } catch let error as PropertyListError {
        report.unfit.append(.init(index: index, reason: "\(error)"))
      } catch let error as GameDataError where error.code == .misuse {
        report.unfit.append(.init(index: index, reason: error.message))
      }
    }
    for start in stride(from: 0, to: drafts.count, by: Self.importedTogether) {
      let together = Array(drafts[start..<min(start + Self.importedTogether, drafts.count)])
      let known = try knownCount(together)
      try commit(together)
      report.known += known
      report.taken += together.count - known
    }
    return report
  }

  /// The same from a file. Also throws what reading it throws.
  @discardableResult
  public func importScores(
    at url: URL, to board: Board, columns: ScoreColumns, player: String = "", undated: Date = Date(timeIntervalSince1970: 0)
  ) throws -> ScoreReport {
    try importScores(from: Data(contentsOf: url), to: board, columns: columns, player: player, undated: undated)
  }

  /// A name for an entry: the same on every device, and another for each of several equal ones.
  private static func id(of entry: ScoreEntry, number: UInt64) -> ScoreID {
    var hash = SHA256()
    // Each behind its length, so that no two entries say the same.
    let value = Score(entry).value.description
    for text in ["score of an older game", entry.board, entry.player, value, "\(entry.dateMilliseconds)", "\(number)"] {
      hash.update(data: Data("\(text.utf8.count)/\(text)".utf8))
    }
    let words = hash.finalize().withUnsafeBytes { bytes in
      (UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)), UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }
    return ScoreID(high: words.0, low: words.1)
  }
}
