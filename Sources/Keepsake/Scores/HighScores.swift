public import Foundation
public import KeepsakeArchive
import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// High scores on boards, for any number of players on one device, with each player's best from all devices.
///
/// ```swift
/// extension Board { static let easy = Board("easy", order: .descending) }
///
/// try game.scores.submit(1000, to: .easy, player: "Ada", context: run)
/// for score in try game.scores.top(10, of: .easy) { print(score.player, score.value) }
/// ```
///
/// Of two equal scores the earlier ranks first, then the one with the smaller identifier: the same on all devices.
///
/// Each player's best on each board is synced. Other scores stay on the device that made them: a player who scored 900
/// and 800 here shows on other devices with 900 only. A former best of another device stays on this device's board
/// until its rank is too low to be kept.
///
/// A score is visible immediately, and durable when its `Pending` reports so. Reads query the database; the top 10 are
/// the start of an index, at any size of the board. A damaged score, or one that doesn't verify under the seal, is left
/// out, and an incident reports it. Safe to use from any thread.
public final class HighScores: Sendable {
  /// The maximum number of players on a board. Each has a value on every device.
  public static let maximumPlayers = ScoreCommit.maximumPlayers

  private struct State {
    /// Scores that are shown but not yet durable. Short, because the store limits how many can wait.
    var waiting: [(number: UInt64, entries: [ScoreEntry])] = []
    var last: UInt64 = 0
    /// Boards whose order was checked, with the number of submits since the last trim.
    var submits: [Board: Int] = [:]
  }

  private let core: GameCore
  private let state = Mutex(State())
  private let boards = Broadcast<[String]>()

  init(core: GameCore) { self.core = core }

  // MARK: Submitting

  /// Adds a score to a board. Returns immediately, unless 64 commits are already waiting for the disk.
  ///
  /// Discard the handle if nothing depends on it: if the commit fails then, because the disk is full, say, or the
  /// game's folder was deleted, `incidents` of the game's data reports it, and the score is no longer shown.
  ///
  /// - Parameters:
  ///   - value: The score.
  ///   - board: The board.
  ///   - player: Who scored; empty if it doesn't matter.
  ///   - date: When it was scored; now if nil.
  /// - Returns: A handle that reports when the score is durable.
  /// - Throws: `GameDataError` with `misuse` for NaN and infinities, for an invalid name or date, or for a board that
  ///   has another order, or with `closed` if the game's data is closed; `StoreError` if the board can't be read. The
  ///   handle throws `tooLarge` for a board with too many players. Nothing is written then.
  @discardableResult
  public func submit(_ value: some ScoreNumber, to board: Board, player: String = "", date: Date? = nil) throws
    -> Pending<Score>
  {
    try submit(draft(value, board, player, date, nil))
  }

  /// Adds a score with a value that belongs to it: which ship, which seed, a short replay.
  ///
  /// - Parameters:
  ///   - value: The score.
  ///   - board: The board.
  ///   - player: Who scored; empty if it doesn't matter.
  ///   - date: When it was scored; now if nil.
  ///   - context: The value, at most `Score.maximumContextBytes` as an archive.
  /// - Returns: A handle that reports when the score is durable.
  /// - Throws: As `submit(_:to:player:date:)`; `GameDataError` with `tooLarge`; `ArchiveError` if the context can't be
  ///   encoded.
  @discardableResult
  public func submit<Context: Archivable>(
    _ value: some ScoreNumber, to board: Board, player: String = "", date: Date? = nil, context: Context
  ) throws -> Pending<Score> {
    try submit(draft(value, board, player, date, Archive.encode(context)))
  }

  private func submit(_ draft: ScoreDraft) throws -> Pending<Score> {
    let pending = try performing([draft]) { try core.commits.submit(scores: [draft]) }
    return Pending(pending.map { _ in Score(draft.entry) })
  }

  /// Makes a draft, and throws for every error that can be detected immediately.
  func draft(_ value: some ScoreNumber, _ board: Board, _ player: String, _ date: Date?, _ context: Data?) throws
    -> ScoreDraft
  {
    let player = player.canonical
    try board.check(player: player)
    let value = value.scoreValue
    guard value.double.isFinite else {
      throw GameDataError(.misuse, "\(value) can't be a score: it has to be a finite number")
    }
    if let context, context.count > Score.maximumContextBytes {
      throw GameDataError(
        .tooLarge,
        """
        the context of a score has \(context.count) bytes; at most \(Score.maximumContextBytes) are allowed: keep \
        larger data in a saved game
        """)
    }
    let milliseconds: Int64
    if let date {
      let exact = (date.timeIntervalSince1970 * 1_000).rounded()
      guard exact.magnitude <= Double(ExchangeRules.maximumMilliseconds) else {
        throw GameDataError(.misuse, "the date of a score is out of range")
      }
      milliseconds = Int64(exact)
    } else {
      milliseconds = core.environment.nowMilliseconds()
    }
    var random = SystemRandomNumberGenerator()
    let entry = ScoreEntry(
      board: board.name, player: player, order: board.scoreOrder, value: value.scalar, dateMilliseconds: milliseconds,
      id: ScoreID(using: &random), context: context)
    if try isTrimDue(board) { return ScoreDraft(entry: entry, trimmedTo: board.keptCount) }
    return ScoreDraft(entry: entry, trimmedTo: nil)
  }

  /// Counts a submit, and returns whether it has to trim the board. The first submit of a session checks the board's
  /// order, and trims what the last session left.
  private func isTrimDue(_ board: Board) throws -> Bool {
    if state.withLock({ $0.submits[board] }) == nil {
      try core.translating { try core.store.read { try Self.checkOrder(of: board, in: $0) } }
    }
    return state.withLock { state in
      guard let count = state.submits[board], count + 1 < board.trimInterval else {
        state.submits[board] = 0
        return board.keptCount != nil
      }
      state.submits[board] = count + 1
      return false
    }
  }

  private static func checkOrder(of board: Board, in transaction: StoreTransaction) throws {
    let other: ScoreOrder = board.scoreOrder == .ascending ? .descending : .ascending
    guard try !transaction.hasScores(on: board.name, board.scoreOrder) else { return }
    // An empty board may have had an order before: its players' values keep it, on every device.
    guard try transaction.hasScores(on: board.name, other) || transaction.bestOrder(on: board.name) == other else {
      return
    }
    throw GameDataError(
      .misuse,
      "the board \"\(board.name)\" has the order \(other.rawValue): a board never changes its order, use a new name")
  }

  /// Shows the scores immediately, then commits them with `commit`.
  func performing(
    _ drafts: [ScoreDraft], _ commit: () throws -> PendingCommit<CommitPipeline.Committed>
  ) throws -> PendingCommit<CommitPipeline.Committed> {
    guard !drafts.isEmpty else { return try commit() }
    let number = state.withLock { state in
      state.last += 1
      state.waiting.append((state.last, drafts.map(\.entry)))
      return state.last
    }
    do {
      // May block while the store is behind.
      let pending = try commit()
      // A failed score is no longer shown. Its pending commit has the error.
      pending.observe { [weak self] _ in self?.ended(number) }
      return pending
    } catch {
      ended(number)
      throw error
    }
  }

  /// Commits scores and waits for the disk.
  func commit(_ drafts: [ScoreDraft]) throws {
    _ = try performing(drafts) { try core.commits.submit(scores: drafts) }.wait()
  }

  /// Returns how many of the scores are already in the store.
  func knownCount(_ drafts: [ScoreDraft]) throws -> Int {
    try core.translating {
      try core.store.read { transaction in try drafts.count { try transaction.hasScore($0.entry) } }
    }
  }

  private func ended(_ number: UInt64) { state.withLock { $0.waiting.removeAll { $0.number == number } } }

  // MARK: Reading

  /// Returns the best scores of a board, best first.
  ///
  /// The cost depends on the number of scores returned, not on the board's size; with `onePerPlayer` it is one look-up
  /// for each player of the board.
  ///
  /// - Parameters:
  ///   - count: The most scores to return.
  ///   - board: The board.
  ///   - onePerPlayer: Whether to return only each player's best.
  /// - Returns: The scores.
  /// - Throws: `StoreError` if the store can't be read; `GameDataError` with `misuse` for a board that has another
  ///   order.
  public func top(_ count: Int, of board: Board, onePerPlayer: Bool = false) throws -> [Score] {
    guard count >= 0 else {
      throw GameDataError(.misuse, "the best \(count) scores were requested: the number can't be negative")
    }
    return try reading(board) { transaction, waiting in
      var found = FoundScores()
      if onePerPlayer {
        for player in try transaction.players(on: board.name, board.scoreOrder) {
          let one = try transaction.scores(1, of: player, on: board.name, board.scoreOrder)
          found.entries += one.entries
          found.objections += one.objections
        }
      } else {
        found = try transaction.topScores(count, on: board.name, board.scoreOrder)
      }
      found.entries = (found.entries + waiting).sorted { $0.precedes($1) }
      if onePerPlayer {
        var seen: Set<String> = []
        found.entries = found.entries.filter { seen.insert($0.player).inserted }
      }
      found.entries = Array(found.entries.prefix(count))
      return found
    }
  }

  /// Returns the best score of a player. Costs one look-up.
  ///
  /// - Parameters:
  ///   - player: The player.
  ///   - board: The board.
  /// - Returns: The score; nil if the player has none.
  /// - Throws: As `top`.
  public func best(of player: String = "", on board: Board) throws -> Score? {
    try scores(of: player, on: board, atMost: 1).first
  }

  /// Returns the scores of a player that are kept on this device, best first.
  ///
  /// - Parameters:
  ///   - player: The player.
  ///   - board: The board.
  ///   - count: The most scores to return.
  /// - Returns: The scores.
  /// - Throws: As `top`.
  public func scores(of player: String = "", on board: Board, atMost count: Int = .max) throws -> [Score] {
    let player = player.canonical
    guard count >= 0 else {
      throw GameDataError(.misuse, "\(count) scores were requested: the number can't be negative")
    }
    return try reading(board) { transaction, waiting in
      var found = try transaction.scores(count, of: player, on: board.name, board.scoreOrder)
      found.entries = Array(
        (found.entries + waiting.filter { $0.player == player }).sorted { $0.precedes($1) }.prefix(count))
      return found
    }
  }

  /// Returns the rank of a player's best score among all scores of the board. Counts the better scores, so the cost
  /// grows with the rank.
  ///
  /// - Parameters:
  ///   - player: The player.
  ///   - board: The board.
  /// - Returns: The rank, from 1; nil if the player has no score.
  /// - Throws: As `top`.
  public func rank(of player: String = "", on board: Board) throws -> Int? {
    guard let best = try best(of: player, on: board) else { return nil }
    return try rank(of: best, on: board)
  }

  /// Returns the rank that a score has on a board, or would have. The cost grows with the rank.
  ///
  /// - Parameters:
  ///   - score: The score.
  ///   - board: The board.
  /// - Returns: The rank, from 1.
  /// - Throws: As `top`.
  public func rank(of score: Score, on board: Board) throws -> Int {
    guard score.board == board.name, score.entry.order == board.scoreOrder else {
      throw GameDataError(
        .misuse, "the score is on the board \"\(score.board)\" and not on \"\(board.name)\", or in another order")
    }
    var above = 0
    _ = try reading(board) { transaction, waiting in
      above = try transaction.countScores(above: score.entry) + waiting.count { $0.precedes(score.entry) }
      return FoundScores()
    }
    return above + 1
  }

  /// Lists every player who has a score on a board. Costs a look-up for each.
  ///
  /// - Parameter board: The board.
  /// - Returns: The names, sorted.
  /// - Throws: As `top`.
  public func players(on board: Board) throws -> [String] {
    var players: Set<String> = []
    _ = try reading(board) { transaction, waiting in
      players = Set(try transaction.players(on: board.name, board.scoreOrder)).union(waiting.map(\.player))
      return FoundScores()
    }
    return players.sorted()
  }

  /// Runs `body` with a snapshot of the store, and with the board's scores that are still being committed and aren't in
  /// the snapshot.
  private func reading(_ board: Board, _ body: (StoreTransaction, [ScoreEntry]) throws -> FoundScores) throws -> [Score]
  {
    try board.check()
    // Read before the store, so that a score that is committed in the meantime is in at least one of the two.
    let waiting = state.withLock { state in
      state.waiting.flatMap(\.entries).filter { $0.board == board.name && $0.order == board.scoreOrder }
    }
    let found = try core.translating {
      try core.store.read { transaction in
        try Self.checkOrder(of: board, in: transaction)
        return try body(transaction, waiting.filter { try !transaction.hasScore($0) })
      }
    }
    for objection in found.objections {
      core.events.report(
        Incident(
          kind: objection.code == .tampered ? .tampered : .unreadable,
          message: "a score of the board \"\(board.name)\" was left out: \(objection.message)", date: core.now))
    }
    return found.entries.map(Score.init)
  }

  // MARK: Removing

  /// Removes a score from its board. Durable on return.
  ///
  /// A player's best is removed from every device, and the best score that any of them still has takes its place; a
  /// better one that another device made in the meantime stays. Costs one wait for the disk.
  ///
  /// - Parameter score: The score.
  /// - Throws: `GameDataError` with `notCaughtUp` for a player's best while this store is connected and hasn't received
  ///   everything from its cloud yet; `StoreError`. Nothing is removed then.
  public func remove(_ score: Score) throws { try removing { try ScoreCommit.remove(score.entry, in: &$0) } }

  /// Removes all scores of a board from this device, and the players' bests from every device. Durable on return.
  ///
  /// Other devices keep their own other scores, which aren't shown elsewhere. The board keeps its order. Costs as much
  /// as `remove(_:)`.
  ///
  /// - Parameter board: The board.
  /// - Throws: As `remove(_:)`.
  public func removeAll(from board: Board) throws {
    try board.check()
    try removing { try ScoreCommit.removeAll(on: board.name, in: &$0) }
    // Without scores, the next submit has to check the board's order again.
    state.withLock { state in state.submits = state.submits.filter { $0.key.name != board.name } }
  }

  /// Removes scores, after everything that was submitted before. Durable on return.
  private func removing(_ body: @escaping @Sendable (inout StoreTransaction) throws -> [CellDraft]) throws {
    let (now, writer) = (core.environment.nowMilliseconds(), core.store.writer)
    try core.translating {
      try core.store.submit { transaction, _ in
        do {
          try ScoreCommit.withdraw(body(&transaction), now: now, writer: writer, in: &transaction)
        } catch {
          throw GameDataError.translated(error)
        }
      }.wait()
    }
    core.cloud.didCommit()
  }

  // MARK: Other devices

  /// The names of boards on which other devices changed a player's best, as the changes arrive. Ends when the game's
  /// data is closed.
  public var changes: AsyncStream<[String]> { boards.stream() }

  /// Emits a change of the boards, which already show what was received.
  func received(_ keys: [CellKey]) {
    let names = Set(keys.compactMap { ScoreEntry.names(in: $0)?.board }).sorted()
    guard !names.isEmpty else { return }
    boards.send(names)
    core.events.emit(.scores(names))
  }

  func finish() { boards.finish() }
}
