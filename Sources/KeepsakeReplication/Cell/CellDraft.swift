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
    fileprivate var onlyTakes: Bool {
      switch self {
      case .removeElements, .optional(nil): true
      case .entries(let changes): changes.values.allSatisfy(\.onlyTakes)
      case .optional(let change?): change.onlyTakes
      case .max, .min, .set, .insert, .add, .reset, .best, .withdraw, .insertElements: false
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
    fileprivate var counter: WriterID

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
      generation: known?.generation ?? 0, value: try Self.value(of: change, over: known?.value, key, context))
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
    let state = CellState(generation: generation, value: try Self.value(of: change, over: nil, key, context))
    return (state, state)
  }

  private static func mismatch(_ key: CellKey, _ known: CellValue?, asked: String) -> CellError {
    if let rule = known?.laterRule { return .laterRule(key, rule) }
    return .ruleMismatch(key, holds: known?.ruleName ?? "none", asked: asked)
  }

  /// The smallest value whose join with `known` is what the change asks for.
  private static func value(
    of change: Change, over known: CellValue?, _ key: CellKey, _ context: Context
  ) throws(CellError) -> CellValue {
    func mismatch(_ asked: String) -> CellError { Self.mismatch(key, known, asked: asked) }
    func checked(_ value: Scalar) throws(CellError) -> Scalar {
      guard value.isOrdered else { throw .notANumber(key) }
      return value.normalized
    }
    switch change {
    case .max(let value):
      switch known {
      case nil, .max?: return .max(try checked(value))
      default: throw mismatch("max")
      }
    case .min(let value):
      switch known {
      case nil, .min?: return .min(try checked(value))
      default: throw mismatch("min")
      }
    case .set(let value):
      let checked = try checked(value)
      var milliseconds = Swift.max(-Stamp.maximumMilliseconds, Swift.min(Stamp.maximumMilliseconds, context.nowMilliseconds))
      switch known {
      case nil: break
      case .latest(let stamp, let held)?:
        // Setting what is held already would only stir the other devices.
        let stands = context.outranked.map { $0 < stamp } ?? true
        if held == checked, stands, stamp.caughtUp || !context.caughtUp { return .latest(stamp, held) }
        if context.followsStamps {
          milliseconds = Swift.max(milliseconds, Swift.min(stamp.milliseconds, Stamp.maximumMilliseconds - 1) + 1)
        }
      default: throw mismatch("latest")
      }
      if let outranked = context.outranked {
        milliseconds = Swift.max(milliseconds, Swift.min(outranked.milliseconds, Stamp.maximumMilliseconds - 1) + 1)
      }
      let stamp = Stamp(caughtUp: context.caughtUp, milliseconds: milliseconds, writer: context.writer)
      return .latest(stamp, checked)
    case .insert(let values):
      var normalized: Set<Scalar> = []
      for value in values { normalized.insert(try checked(value)) }
      switch known {
      case nil: return .union(normalized)
      case .union(let held)?: return .union(normalized.subtracting(held))
      default: throw mismatch("union")
      }
    case .add(let plus, let minus):
      var entry = CounterEntry()
      switch known {
      case nil: break
      case .counter(let entries)?:
        guard plus != 0 || minus != 0 else { return .counter([:]) }
        entry = entries[context.counter] ?? CounterEntry()
      default: throw mismatch("counter")
      }
      let (up, upOverflow) = entry.plus.addingReportingOverflow(plus)
      let (down, downOverflow) = entry.minus.addingReportingOverflow(minus)
      guard !upOverflow, !downOverflow else { throw .overflow(key) }
      return .counter([context.counter: CounterEntry(plus: up, minus: down)])
    case .best(var best), .withdraw(var best):
      if let entry = best.entry { best.entry?.score = try checked(entry.score) }
      switch known {
      case nil: return .best(best)
      case .best(let held)? where held.order == best.order: return .best(best)
      default: throw mismatch("best, \(best.order.rawValue)")
      }
    case .reset(let inner):
      return try value(of: inner, over: nil, key, context)
    case .insertElements, .removeElements, .entries, .optional:
      return try gathered(change, over: known, key, context)
    }
  }

  /// The same for values of many parts.
  private static func gathered(
    _ change: Change, over known: CellValue?, _ key: CellKey, _ context: Context
  ) throws(CellError) -> CellValue {
    func mismatch(_ asked: String) -> CellError { Self.mismatch(key, known, asked: asked) }
    switch change {
    case .insertElements(let elements), .removeElements(let elements):
      var normalized: Set<Scalar> = []
      for element in elements {
        guard element.isOrdered else { throw .notANumber(key) }
        normalized.insert(element.normalized)
      }
      let held: ObservedSet
      switch known {
      case nil: held = ObservedSet()
      case .set(let set)?: held = set
      default: throw mismatch("set")
      }
      if case .removeElements = change { return .set(held.removing(normalized)) }
      guard let delta = held.adding(normalized, by: context.counter) else { throw .overflow(key) }
      return .set(delta)
    case .entries(let changes):
      let held: [Scalar: CellValue]
      switch known {
      case nil: held = [:]
      case .dictionary(let entries)?: held = entries
      default: throw mismatch("dictionary")
      }
      var delta: [Scalar: CellValue] = [:]
      for (name, change) in changes {
        guard name.isOrdered else { throw .notANumber(key) }
        let name = name.normalized
        let before = held[name]
        let value = try inner(change, over: before, key, context)
        guard before != nil || held.isEmpty || held.values.contains(where: { $0.hasRule(of: value) }) else {
          throw mismatch("dictionary of \(value.ruleName)")
        }
        // What is known already isn't sent again.
        if let before, before.joined(with: value) == before { continue }
        if before == nil, change.onlyTakes { continue }
        delta[name] = value
      }
      return .dictionary(delta)
    case .optional(let change):
      let held: CellValue?
      switch known {
      case nil: held = nil
      case .optional(let value)?: held = value
      default: throw mismatch("optional")
      }
      guard let change else { return .optional(nil) }
      return .optional(try inner(change, over: held, key, context))
    case .max, .min, .set, .insert, .add, .reset, .best, .withdraw:
      return try value(of: change, over: known, key, context)
    }
  }

  /// The same for a value that stands in another one.
  private static func inner(
    _ change: Change, over known: CellValue?, _ key: CellKey, _ context: Context
  ) throws(CellError) -> CellValue {
    switch change {
    case .reset: throw .notInside(key, "a reset")
    case .best, .withdraw: throw .notInside(key, "a best score")
    case .max, .min, .set, .insert, .add, .insertElements, .removeElements, .entries, .optional:
      return try value(of: change, over: known, key, context)
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

extension Stamp {
  /// Times further away than this are refused: far beyond any clock, and one can still be added to them.
  package static let maximumMilliseconds: Int64 = 1 << 53
}
