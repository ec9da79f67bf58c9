public import Foundation
public import KeepsakeArchive
import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// High scores on boards, for any number of players of one device, and each player's best from all devices.
///
///     extension Board { static let easy = Board("easy", order: .descending) }
///
///     try game.scores.submit(1000, to: .easy, player: "Ada", context: run)
///     for score in try game.scores.top(10, of: .easy) { print(score.player, score.value) }
///
/// Of two equal scores the earlier stands above the later, then the one with the smaller id: the same on all devices.
///
/// Each player's best on each board is synced. All other scores stay on the device where they were made: a player who scored 900 and 800
/// here shows on other devices with the 900 alone. What was once another device's best and was seen here stays on this device's board
/// beside the better one that came after it, until it is too far down to be kept.
///
/// A score is seen at once by the calls that follow, and is durable when its `Pending` says so. Reads look into the database; the top 10 are the
/// beginning of an index, whatever the board holds. A score that is damaged, or that a seal finds to be by other hands, is left out, and an
/// incident tells. Safe to use from any thread.
public final class HighScores: Sendable {
  /// The most players of a board: each has a value that every device holds.
  public static let maximumPlayers = 1_000

  private struct State {
    /// Shown, but not yet durable; short, because the store bounds what waits.
    var waiting: [(number: UInt64, entries: [ScoreEntry])] = []
    var last: UInt64 = 0
    /// Boards that were seen to have their order, with what was submitted since they were trimmed.
    var submits: [Board: Int] = [:]
  }

  private let core: GameCore
  private let state = Mutex(State())
  private let boards = Broadcast<[String]>()

  init(core: GameCore) { self.core = core }

  // MARK: Submitting

  /// Adds a score to a board. It is written off this thread, together with others that wait; returns at once, unless 64 commits wait already.
  ///
  /// - Parameters:
  ///   - player: Who scored it; several may play on one device. Empty if it doesn't matter.
  ///   - date: When; now if nil.
  /// - Throws: `GameDataError`: `misuse` for not-a-number and infinities, for a name that is empty, too long or has control characters, and
  ///   for a board that has another order; `tooLarge` in the `Pending` for a board with too many players. Nothing is written then.
  @discardableResult
  public func submit(_ value: some ScoreNumber, to board: Board, player: String = "", date: Date? = nil) throws -> Pending<Score> {
    try submit(draft(value, board, player, date, nil))
  }

  /// The same, with a value that belongs to it: which ship, which seed, a short replay.
  ///
  /// Throws also `GameDataError.Code.tooLarge` for one of more than `Score.maximumContextBytes`, and `ArchiveError` if it can't be encoded.
  @discardableResult
  public func submit<Context: Archivable>(
    _ value: some ScoreNumber, to board: Board, player: String = "", date: Date? = nil, context: Context
  ) throws -> Pending<Score> {
    try submit(draft(value, board, player, date, Archive.encode(context)))
  }

  private func submit(_ draft: ScoreDraft) throws -> Pending<Score> {
    let pending = try performing([draft]) { try core.commit(scores: [draft]) }
    return Pending(pending.map { _ in Score(draft.entry) })
  }

  /// Checks all that can be seen to be wrong at once.
  func draft(_ value: some ScoreNumber, _ board: Board, _ player: String, _ date: Date?, _ context: Data?) throws -> ScoreDraft {
    let player = player.canonical
    try board.check(player: player)
    let value = value.scoreValue
    guard value.double.isFinite else { throw GameDataError(.misuse, "\(value) can't be a score: it has to be a finite number") }
    if let context, context.count > Score.maximumContextBytes {
      throw GameDataError(
        .tooLarge,
        "the context of a score has \(context.count) bytes; \(Score.maximumContextBytes) are the most: keep more in a saved game")
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

  /// Counts a submit. The first of a session looks whether the board has its order, and clears away what the last session left.
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
    // An empty one had its order before: the values of its players keep it, on every device.
    guard try transaction.hasScores(on: board.name, other) || transaction.bestOrder(on: board.name) == other else { return }
    throw GameDataError(
      .misuse, "the board \"\(board.name)\" has the order \(other.rawValue): an order never changes under a name, take a new name")
  }

  /// Shows the scores at once, then commits them with `commit`.
  func performing(
    _ drafts: [ScoreDraft], _ commit: () throws -> PendingCommit<GameCore.Committed>
  ) throws -> PendingCommit<GameCore.Committed> {
    guard !drafts.isEmpty else { return try commit() }
    let number = state.withLock { state in
      state.last += 1
      state.waiting.append((state.last, drafts.map(\.entry)))
      return state.last
    }
    do {
      // May block while the store is behind.
      let pending = try commit()
      // What failed is shown no longer; whoever waits for it hears why.
      pending.observe { [weak self] _ in self?.ended(number) }
      return pending
    } catch {
      ended(number)
      throw error
    }
  }

  /// Commits scores and waits for the disk.
  func commit(_ drafts: [ScoreDraft]) throws {
    _ = try performing(drafts) { try core.commit(scores: drafts) }.wait()
  }

  /// How many of the scores are in the store.
  func knownCount(_ drafts: [ScoreDraft]) throws -> Int {
    try core.translating { try core.store.read { transaction in try drafts.count { try transaction.hasScore($0.entry) } } }
  }

  private func ended(_ number: UInt64) { state.withLock { $0.waiting.removeAll { $0.number == number } } }

  // MARK: Reading

  /// The best `count` scores, best first; with `onePerPlayer` each player's best alone.
  ///
  /// Costs what it gives, whatever the board holds; with `onePerPlayer` a look-up for each of the board's players. Throws `StoreError` if
  /// the store can't be read, and `GameDataError.Code.misuse` for a board that has another order.
  public func top(_ count: Int, of board: Board, onePerPlayer: Bool = false) throws -> [Score] {
    guard count >= 0 else { throw GameDataError(.misuse, "the best \(count) scores were asked for: there can't be fewer than none") }
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

  /// The best score of a player; nil if there is none. Costs one look-up.
  public func best(of player: String = "", on board: Board) throws -> Score? { try scores(of: player, on: board, atMost: 1).first }

  /// The scores of a player that are kept here, best first.
  public func scores(of player: String = "", on board: Board, atMost count: Int = .max) throws -> [Score] {
    let player = player.canonical
    guard count >= 0 else { throw GameDataError(.misuse, "\(count) scores were asked for: there can't be fewer than none") }
    return try reading(board) { transaction, waiting in
      var found = try transaction.scores(count, of: player, on: board.name, board.scoreOrder)
      found.entries = Array((found.entries + waiting.filter { $0.player == player }).sorted { $0.precedes($1) }.prefix(count))
      return found
    }
  }

  /// The rank of a player's best among all scores of the board, from 1; nil if the player has none.
  ///
  /// Counts the scores above it: time grows with the rank.
  public func rank(of player: String = "", on board: Board) throws -> Int? {
    guard let best = try best(of: player, on: board) else { return nil }
    return try rank(of: best, on: board)
  }

  /// The rank that the score has on its board, or would have: from 1. Costs as `rank(of:on:)` for a player.
  public func rank(of score: Score, on board: Board) throws -> Int {
    guard score.board == board.name, score.entry.order == board.scoreOrder else {
      throw GameDataError(.misuse, "the score is one of the board \"\(score.board)\" and not of \"\(board.name)\", or in another order")
    }
    var above = 0
    _ = try reading(board) { transaction, waiting in
      above = try transaction.countScores(above: score.entry) + waiting.count { $0.precedes(score.entry) }
      return FoundScores()
    }
    return above + 1
  }

  /// Every player who has a score on the board, sorted. Costs a look-up for each.
  public func players(on board: Board) throws -> [String] {
    var players: Set<String> = []
    _ = try reading(board) { transaction, waiting in
      players = Set(try transaction.players(on: board.name, board.scoreOrder)).union(waiting.map(\.player))
      return FoundScores()
    }
    return players.sorted()
  }

  /// Lends the store as it is, with what of the board is on its way into it and not yet there.
  private func reading(_ board: Board, _ body: (StoreTransaction, [ScoreEntry]) throws -> FoundScores) throws -> [Score] {
    try board.check()
    // Before the store is looked at: what is in neither by then was never there.
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
      core.report(
        Incident(
          kind: objection.code == .tampered ? .tampered : .unreadable,
          message: "a score of the board \"\(board.name)\" is left out: \(objection.message)", date: core.now))
    }
    return found.entries.map(Score.init)
  }

  // MARK: Removing

  /// Removes a score from its board. If it is the player's best, it goes from every device, and the best that any of them still has takes
  /// its place: one that another device made meanwhile stays, though nobody here has seen it.
  ///
  /// Durable when the call returns: it costs one wait on the disk, and for what was submitted before. Throws
  /// `GameDataError.Code.notCaughtUp` for a player's best while this store is connected and hasn't yet once heard everything from its
  /// cloud; nothing is removed then.
  public func remove(_ score: Score) throws { try removing { try ScoreCommit.remove(score.entry, in: &$0) } }

  /// Removes all scores of a board from this device, and its players' bests from every device. What other devices keep for themselves, or
  /// made meanwhile, stays there, and isn't shown elsewhere. The board keeps its order. Costs and throws as `remove(_:)`.
  public func removeAll(from board: Board) throws {
    try board.check()
    try removing { try ScoreCommit.removeAll(on: board.name, in: &$0) }
    // Without scores, the next submit has to look at its order again.
    state.withLock { state in state.submits = state.submits.filter { $0.key.name != board.name } }
  }

  /// In order with what was submitted before.
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
    core.didCommit()
  }

  // MARK: Other devices

  /// The names of boards on which other devices changed a player's best, as they arrive. The loop ends when the game's data is closed.
  public var changes: AsyncStream<[String]> { boards.stream() }

  /// The boards show it already; tells of it.
  func received(_ keys: [CellKey]) {
    let names = Set(keys.compactMap { ScoreEntry.names(in: $0)?.board }).sorted()
    guard !names.isEmpty else { return }
    boards.send(names)
    core.emit(.scores(names))
  }

  func finish() { boards.finish() }
}
