/// A change that a game requests for a cell, before it is known what the cell holds.
package struct CellDraft: Hashable, Sendable {
  package enum Change: Hashable, Sendable {
    case max(Scalar)
    case min(Scalar)
    /// Sets a `latest` value, which wins until a later one is set.
    case set(Scalar)
    case insert(Set<Scalar>)
    /// Counts up and down by these amounts.
    case add(plus: UInt64, minus: UInt64)
    /// Starts a new generation with the result of this change on an empty cell: the only allowed way back.
    indirect case reset(Change)
    /// Offers a score for the best.
    case best(BestScore)
    /// Takes the best back on every device, and replaces it by another one or none.
    case withdraw(BestScore)
    /// Inserts elements into a `set`. Elements that are in it already aren't inserted again.
    case insertElements(Set<Scalar>)
    /// Removes elements from a `set`, as far as their insertions are known here.
    case removeElements(Set<Scalar>)
    /// Changes values in a dictionary, each under its key.
    case entries([Scalar: Change])
    /// Changes the value of an optional; nil asks for none, and changes nothing if there is a value.
    indirect case optional(Change?)

    /// Whether it has no effect on a cell that holds nothing.
    var onlyTakes: Bool {
      switch self {
      case .removeElements, .optional(nil): true
      case .entries(let changes): changes.values.allSatisfy(\.onlyTakes)
      case .optional(let change?): change.onlyTakes
      case .max, .min, .set, .insert, .add, .reset, .best, .withdraw, .insertElements: false
      }
    }

    /// The rule whose values it changes.
    var rule: CellRule {
      switch self {
      case .max: .max
      case .min: .min
      case .set: .latest
      case .insert: .union
      case .add: .counter
      case .reset(let change): change.rule
      case .best, .withdraw: .best
      case .insertElements, .removeElements: .set
      case .entries: .dictionary
      case .optional: .optional
      }
    }
  }
  package var key: CellKey
  package var change: Change
  /// Other cells whose `latest` values a value set here has to outrank, because the game shows them as one.
  package var outranks: [CellKey]

  package init(_ key: CellKey, _ change: Change, outranks: [CellKey] = []) {
    self.key = key
    self.change = change
    self.outranks = outranks
  }

  /// The writer and the time of a change, in the order that all devices share.
  package struct Context: Hashable, Sendable {
    package var writer: WriterID
    package var caughtUp: Bool
    /// The device's clock, corrected by the server's.
    package var nowMilliseconds: Int64
    /// The store was never connected to a cloud: what is taken back was never anywhere else, except in copies of the
    /// store.
    package var neverConnected: Bool
    /// A value that is set outranks the one that it replaces, whenever that was written. False only in tests.
    package var followsStamps: Bool
    /// How often the data here has joined another player's container.
    package var moves: UInt64
    /// The greatest known stamp that a value set now has to outrank, besides the one that it replaces.
    package var outranked: Stamp?
    /// The name under which the writer counts and inserts.
    fileprivate(set) var counter: WriterID

    package init(
      writer: WriterID, caughtUp: Bool, nowMilliseconds: Int64, neverConnected: Bool = false,
      followsStamps: Bool = true, moves: UInt64 = 0
    ) {
      self.writer = writer
      self.moves = moves
      counter = writer
      self.caughtUp = caughtUp
      self.nowMilliseconds = nowMilliseconds
      self.neverConnected = neverConnected
      self.followsStamps = followsStamps
    }
  }

  /// Returns the context for this draft, given what other cells hold.
  package func context(_ context: Context, _ cell: (CellKey) throws -> CellState?) rethrows -> Context {
    guard !outranks.isEmpty else { return context }
    var context = context
    context.outranked = try outranks.compactMap { try cell($0)?.value.stamp }.max()
    return context
  }

  /// Returns the new state of the cell, and what has to be sent of it; nil if nothing changes.
  ///
  /// - Throws: ``CellError`` for a value of another rule, an unknown rule, not-a-number, a full counter, or a reset too
  ///   early.
  package func applied(to known: CellState?, _ context: Context) throws(CellError) -> (
    state: CellState, delta: CellState
  )? {
    let delta: CellState
    var context = context
    context.counter = context.writer.counting(inGeneration: known?.generation ?? 0, afterMoves: context.moves)
    switch change {
    case .reset, .withdraw:
      // A game can't mean to remove a value that isn't known here.
      if let rule = known?.value.laterRule { throw .laterRule(key, rule) }
    default: break
    }
    switch change {
    case .reset(let change):
      guard context.caughtUp else { throw .resetBeforeCatchUp(key) }
      return try raised(over: known, change, context)
    case .withdraw(var best):
      guard let known else { return nil }
      guard context.caughtUp || context.neverConnected else { throw .resetBeforeCatchUp(key) }
      if case .best(let held) = known.value { best = best.replacing(held, of: known.generation) }
      return try raised(over: known, .best(best), context)
    default: break
    }
    if known == nil, change.onlyTakes { return nil }
    delta = CellState(
      generation: known?.generation ?? 0,
      value: try Application(key: key, context: context).value(of: change, over: known?.value))
    guard let known else { return (delta, delta) }
    let joined = known.joined(with: delta)
    return joined == known ? nil : (joined, delta)
  }

  /// Returns the next generation, which starts with the result of `change` on an empty cell.
  private func raised(
    over known: CellState?, _ change: Change, _ context: Context
  ) throws(CellError) -> (state: CellState, delta: CellState) {
    let (generation, overflow) = (known?.generation ?? 0).addingReportingOverflow(1)
    guard !overflow, generation <= Cursor.maximumSeq else { throw .overflow(key) }
    var context = context
    context.counter = context.writer.counting(inGeneration: generation, afterMoves: context.moves)
    let state = CellState(
      generation: generation, value: try Application(key: key, context: context).value(of: change, over: nil))
    return (state, state)
  }
}

extension CellDraft {
  /// Applies a change to a value: holds what rules need besides the two.
  struct Application {
    let key: CellKey
    let context: Context

    /// Returns the smallest value whose join with `known` gives what the change asks for.
    func value(of change: Change, over known: CellValue?) throws(CellError) -> CellValue {
      if case .reset(let inner) = change { return try value(of: inner, over: nil) }
      return try change.rule.apply(change, known, self)
    }

    /// Does the same for a value inside another one.
    func inner(_ change: Change, over known: CellValue?) throws(CellError) -> CellValue {
      switch change {
      case .reset: throw .notInside(key, "a reset")
      case .best, .withdraw: throw .notInside(key, "a best score")
      case .max, .min, .set, .insert, .add, .insertElements, .removeElements, .entries, .optional:
        return try value(of: change, over: known)
      }
    }

    func checked(_ value: Scalar) throws(CellError) -> Scalar {
      guard value.isOrdered else { throw .notANumber(key) }
      return value.normalized
    }

    func checked(_ values: Set<Scalar>) throws(CellError) -> Set<Scalar> {
      var checked: Set<Scalar> = []
      for value in values { checked.insert(try self.checked(value)) }
      return checked
    }

    func mismatch(_ known: CellValue?, asked: String) -> CellError {
      if let rule = known?.laterRule { return .laterRule(key, rule) }
      return .ruleMismatch(key, holds: known?.ruleName ?? "none", asked: asked)
    }
  }
}

extension WriterID {
  /// Returns the name under which the writer counts, and inserts into sets, in a generation of a cell: its own at
  /// first, another one after each reset, and after each time that all data here joined another player's container.
  ///
  /// In that container generations start anew, and what a copy of the store sent may be there already. Under one name,
  /// what was counted since would be mistaken for that: the result would be the greater of both, and not the sum.
  fileprivate func counting(inGeneration generation: UInt64, afterMoves moves: UInt64) -> WriterID {
    generation > 0 || moves > 0 ? alias([generation, moves]) : self
  }
}
