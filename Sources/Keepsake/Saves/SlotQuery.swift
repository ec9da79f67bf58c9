import KeepsakeStore

/// The slots that match a pattern, as a live sequence: for a screen of saved games while it is open.
///
/// ```swift
/// for try await update in try game.saves.query(matching: "level-*", where: { !$0.isConflicted }) {
///   switch update {
///   case .gathered(let slots): show(slots)
///   case .updated(let changes): animate(changes.added, changes.changed, changes.removed)
///   }
/// }
/// ```
///
/// The first update has all matching slots; each later one has what changed since the one before: saves of this game,
/// once durable, and saves of other devices (`Cloud.delivery` determines when). Changes between two calls are combined,
/// so none is missed, and a slot that has not changed isn't listed.
///
/// Each loop is a query of its own. It ends when the game's data is closed or the task is cancelled, and throws
/// `StoreError` if the store can't be read. Each update costs what `SaveSlots.list` costs, and memory for the matching
/// summaries. As with `list`, a listed slot counts as shown: a save over a slot that the game didn't load replaces the
/// listed version.
public struct SlotQuery: AsyncSequence, Sendable {
  /// An element of the sequence.
  public enum Update: Sendable, Hashable {
    /// All matching slots, sorted by name. The first update is always of this kind, and no other is.
    case gathered([SlotSummary])
    /// The differences from the previous update.
    case updated(Changes)
  }

  /// The differences between two updates. Each list is sorted by name and contains a slot once.
  public struct Changes: Sendable, Hashable {
    /// Slots that match now and didn't before.
    public var added: [SlotSummary]
    /// Slots that still match and have changed, as they are now.
    public var changed: [SlotSummary]
    /// Slots that no longer match, or are deleted, as they were before.
    public var removed: [SlotSummary]
  }

  public typealias Failure = any Error

  let saves: SaveSlots
  let pattern: NamePattern
  let predicate: @Sendable (SlotSummary) -> Bool

  public func makeAsyncIterator() -> Iterator { Iterator(self) }

  /// The state of one loop. Reads the store on the calling actor.
  public struct Iterator: AsyncIteratorProtocol {
    private let query: SlotQuery
    private var ticks: AsyncStream<Void>.Iterator
    /// The slots of the last update, by name; nil before the first.
    private var emitted: [String: SlotSummary]?

    init(_ query: SlotQuery) {
      self.query = query
      // Subscribes before the first read, so that no change after it is missed.
      ticks = query.saves.core.events.slotTicks.stream().makeAsyncIterator()
    }

    public mutating func next(isolation actor: isolated (any Actor)?) async throws -> Update? {
      while true {
        if emitted != nil {
          guard await ticks.next(isolation: actor) != nil else { return nil }
        }
        let core = query.saves.core
        guard let update = try core.whileOpen({ try look() }) else { return nil }
        if let update { return update }
      }
    }

    /// Returns what has changed; nil if nothing has.
    private mutating func look() throws -> Update? {
      let (slots, heads) = try query.saves.summaries()
      let matching = slots.filter { query.pattern.matches($0.name) && query.predicate($0) }
      let now = Dictionary(uniqueKeysWithValues: matching.map { ($0.name, $0) })
      let before = emitted
      emitted = now
      let seen = Set(now.keys).union(before?.keys ?? [:].keys)
      query.saves.core.slotParents.show(heads.filter { seen.contains($0.key) })
      guard let before else { return .gathered(Self.sorted(now.values)) }
      let changes = Changes(
        added: Self.sorted(now.values.filter { before[$0.name] == nil }),
        changed: Self.sorted(now.values.filter { slot in before[slot.name].map { $0 != slot } ?? false }),
        removed: Self.sorted(before.values.filter { now[$0.name] == nil }))
      return changes.added.isEmpty && changes.changed.isEmpty && changes.removed.isEmpty ? nil : .updated(changes)
    }

    private static func sorted(_ slots: some Sequence<SlotSummary>) -> [SlotSummary] {
      slots.sorted { $0.name < $1.name }
    }
  }
}

extension SaveSlots {
  /// Makes a live query for slots by name.
  ///
  /// - Parameters:
  ///   - pattern: Matched against whole names, case-sensitively: `*` matches any characters, `?` one, `[abc]` and
  ///     `[0-9]` one of these, `[!abc]` one that is none of these. Brackets quote a special character: `[*]`.
  ///   - predicate: Filters the matching slots. Called on every change, so it should be fast.
  /// - Returns: A sequence for `for try await`.
  /// - Throws: `GameDataError` with `misuse` for a bracket that is empty or not closed, and for a pattern of more than
  ///   1,024 bytes.
  public func query(
    matching pattern: String = "*", where predicate: @escaping @Sendable (SlotSummary) -> Bool = { _ in true }
  ) throws -> SlotQuery {
    SlotQuery(saves: self, pattern: try NamePattern(pattern), predicate: predicate)
  }
}
