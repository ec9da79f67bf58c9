import Crypto
public import Foundation
import KeepsakeInterchange
import KeepsakeReplication
import KeepsakeStore

extension HighScores {
  /// The number of scores in one commit. Each may be a synced value, and no more of them fit into one group.
  private static let importedTogether = DeviceCommit.maximumGroupCells

  /// Imports an older game's list of high scores: a property list with an array of dictionaries.
  ///
  /// ```swift
  /// let report = try game.scores.importScores(
  ///   from: bytes, to: .easy, columns: .init(score: "points", player: "name", date: "when"))
  /// ```
  ///
  /// An entry's identifier is derived from its board, player, score and date, so importing the list again, on this
  /// device or another, adds nothing; equal entries of a list are all kept. A score that was removed from the board
  /// comes back, and so does one with too low a rank to be kept, until the next trim.
  ///
  /// Durable on return: the call blocks, and waits for the disk once for each 200 scores. If a later commit fails, the
  /// earlier ones stay, and the call can be repeated.
  ///
  /// - Parameters:
  ///   - data: The property list.
  ///   - board: The board.
  ///   - columns: The keys of the dictionaries.
  ///   - player: The player of entries that don't name one.
  ///   - undated: The date of entries without one. Always pass the same, because it is part of the identifier.
  /// - Returns: The number of imported scores, and the entries that aren't scores, with the reason.
  /// - Throws: `PropertyListError` for bytes without such a list; `GameDataError` with `misuse` for an invalid board or
  ///   one that has another order, or `tooLarge` for one with too many players; `StoreError` if the store can't be read
  ///   or the disk can't be written.
  @discardableResult
  public func importScores(
    from data: Data, to board: Board, columns: ScoreColumns, player: String = "",
    undated: Date = Date(timeIntervalSince1970: 0)
  ) throws -> ScoreReport {
    // Checked before anything is read: the board must be valid and have this order.
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

  /// Imports an older game's list of high scores from a file, which is read as a whole. Otherwise as
  /// `importScores(from:to:columns:player:undated:)`: durable on return, after waiting for the disk.
  ///
  /// - Parameters:
  ///   - url: The property list.
  ///   - board: The board.
  ///   - columns: The keys of the dictionaries.
  ///   - player: The player of entries that don't name one.
  ///   - undated: The date of entries without one.
  /// - Returns: The number of imported scores, and the entries that aren't scores.
  /// - Throws: As `importScores(from:to:columns:player:undated:)`, and the error of reading the file.
  @discardableResult
  public func importScores(
    at url: URL, to board: Board, columns: ScoreColumns, player: String = "",
    undated: Date = Date(timeIntervalSince1970: 0)
  ) throws -> ScoreReport {
    try importScores(from: Data(contentsOf: url), to: board, columns: columns, player: player, undated: undated)
  }

  /// Returns an identifier for an entry: the same on every device, and a different one for each of several equal
  /// entries.
  private static func id(of entry: ScoreEntry, number: UInt64) -> ScoreID {
    var hash = SHA256()
    // Each text is preceded by its length, so that no two entries hash the same bytes.
    let value = Score(entry).value.description
    for text in ["score of an older game", entry.board, entry.player, value, "\(entry.dateMilliseconds)", "\(number)"] {
      hash.update(data: Data("\(text.utf8.count)/\(text)".utf8))
    }
    let words = hash.finalize().withUnsafeBytes { bytes in
      (
        UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
        UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      )
    }
    return ScoreID(high: words.0, low: words.1)
  }
}
