/// What a game wants done to a cell, before it is known what the cell holds.
package struct CellDraft: Hashable, Sendable {
  package enum Change: Hashable, Sendable {
    case max(Scalar)
    case min(Scalar)
    /// Sets a `latest` value: it wins until a later one is set.
    case set(Scalar)
    case insert(Set<Scalar>)
    /// Counts up and down, each by as much as said.
    case add(plus: UInt64, minus: UInt64)
    /// Starts a new generation with what this change makes of an empty cell: the only legal way back.
    indirect case reset(Change)
    /// Offers a score for the best.
    case best(BestScore)
    /// Takes the best back, on every device, and puts another or none in its place.
    case withdraw(BestScore)
    /// Puts elements into a `set`. Those that are in already aren't put in again.
    case insertElements(Set<Scalar>)
    /// Takes elements out of a `set`: what was put in as far as it is known here.
    case removeElements(Set<Scalar>)
    /// Changes values in a dictionary, each under its key.
    case entries([Scalar: Change])
    /// Changes the value of an optional; nil asks for none, and changes nothing where there is one.
    indirect case optional(Change?)

    /// Whether it leaves nothing behind where nothing was.
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
  /// Other cells above whose `latest` values one has to rank that is set here, because the game shows them as one.
  package var outranks: [CellKey]

  package init(_ key: CellKey, _ change: Change, outranks: [CellKey] = []) {
    self.key = key
    self.change = change
    self.outranks = outranks
  }

  /// Who writes, and when, in the order that all devices share.
  package struct Context: Hashable, Sendable {
    package var writer: WriterID
    package var caughtUp: Bool
    /// The device's clock, corrected by the server's.
    package var nowMilliseconds: Int64
    /// No cloud was ever there: what is taken back was never anywhere else, but in copies of the store.
    package var neverConnected: Bool
    /// What is set ranks above the value that it replaces, whenever that was written. Only a test has it otherwise.
    package var followsStamps: Bool
    /// How often what is held here joined another player's container.
    package var moves: UInt64
    /// The greatest stamp that is known of what a value set now has to rank above, beside the one that it replaces.
    package var outranked: Stamp?
    /// Under which name the writer counts and puts in.
    fileprivate(set) var counter: WriterID

    package init(
      writer: WriterID, caughtUp: Bool, nowMilliseconds: Int64, neverConnected: Bool = false, followsStamps: Bool = true, moves: UInt64 = 0
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

  /// The same context for this draft, where other cells hold these.
  package func context(_ context: Context, _ cell: (CellKey) throws -> CellState?) rethrows -> Context {
    guard !outranks.isEmpty else { return context }
    var context = context
    context.outranked = try outranks.compactMap { try cell($0)?.value.stamp }.max()
    return context
  }

  /// What the cell becomes, and what has to be sent of it; nil if nothing changes.
  ///
  /// - Throws: ``CellError`` for another rule's value, a rule that isn't known here, not-a-number, a full counter, or a reset too early.
  package func applied(to known: CellState?, _ context: Context) throws(CellError) -> (state: CellState, delta: CellState)? {
    let delta: CellState
    var context = context
    context.counter = context.writer.counting(inGeneration: known?.generation ?? 0, afterMoves: context.moves)
    switch change {
    case .reset, .withdraw:
      // What isn't known here can't be meant to go.
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
      generation: known?.generation ?? 0, value: try Application(key: key, context: context).value(of: change, over: known?.value))
    guard let known else { return (delta, delta) }
    let joined = known.joined(with: delta)
    return joined == known ? nil : (joined, delta)
  }

  /// The next generation, begun with what `change` makes of an empty cell.
  private func raised(
    over known: CellState?, _ change: Change, _ context: Context
  ) throws(CellError) -> (state: CellState, delta: CellState) {
    let (generation, overflow) = (known?.generation ?? 0).addingReportingOverflow(1)
    guard !overflow, generation <= Cursor.maximumSeq else { throw .overflow(key) }
    var context = context
    context.counter = context.writer.counting(inGeneration: generation, afterMoves: context.moves)
    let state = CellState(generation: generation, value: try Application(key: key, context: context).value(of: change, over: nil))
    return (state, state)
  }
}

extension CellDraft {
  /// A change on its way into a value: what the rules need to know beside both.
  struct Application {
    let key: CellKey
    let context: Context

    /// The smallest value whose join with `known` is what the change asks for.
    func value(of change: Change, over known: CellValue?) throws(CellError) -> CellValue {
      if case .reset(let inner) = change { return try value(of: inner, over: nil) }
      return try change.rule.apply(change, known, self)
    }

    /// The same for a value that stands in another one.
    func inner(_ change: Change, over known: CellValue?) throws(CellError) -> CellValue {
      switch change {
      case .reset: throw .notInside(key, "a reset")
      case .best, .withdraw: throw .notInside(key, "a best score")
      case .max, .min, .set, .insert, .add, .insertElements, .removeElements, .entries, .optional: return try value(of: change, over: known)
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
  /// Under which name the writer counts, and puts into sets, in a generation of a cell: its own at first, another after each reset, and after
  /// each time that all that is held here joined another player's container.
  ///
  /// There generations begin anew, and what a copy of the store brought may be there already. Under one name what was counted since would be
  /// taken for that: the greater of both would stand, and not the sum.
  fileprivate func counting(inGeneration generation: UInt64, afterMoves moves: UInt64) -> WriterID {
    generation > 0 || moves > 0 ? alias([generation, moves]) : self
  }
}
