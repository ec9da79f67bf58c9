import KeepsakeStore

/// The slots that match, and how that changes: what a screen of saved games shows while it is open.
///
///     for try await update in try game.saves.query(matching: "level-*", where: { !$0.isConflicted }) {
///       switch update {
///       case .gathered(let slots): show(slots)
///       case .updated(let changes): animate(changes.added, changes.changed, changes.removed)
///       }
///     }
///
/// It begins with what there is, and then tells what became different since the last time: whatever the game saved, and what arrived from other
/// devices (`Cloud.delivery` says when). Changes that come while nobody asks are put together, so none is missed, and a slot that is as it was
/// is not told. Saves show when they are durable.
///
/// Each loop is a query of its own; it ends when the game's data is closed or its task is cancelled. Throws `StoreError` if the store can't be
/// read. Costs what `SaveSlots.list` costs, each time that something changed, and memory for the summaries that match. As with `list`, what was
/// told has been shown: a save over a slot that the game didn't load replaces it.
public struct SlotQuery: AsyncSequence, Sendable {
  /// What a loop over a query gets.
  public enum Update: Sendable, Hashable {
    /// All that match, by name; the first update, and only that.
    case gathered([SlotSummary])
    /// What is different since the update before.
    case updated(Changes)
  }

  /// By name, each slot once.
  public struct Changes: Sendable, Hashable {
    /// Slots that match now and didn't before.
    public var added: [SlotSummary]
    /// Slots that matched before, as they are now.
    public var changed: [SlotSummary]
    /// Slots that match no more, or are deleted, as they were.
    public var removed: [SlotSummary]
  }

  public typealias Failure = any Error

  let saves: SaveSlots
  let pattern: NamePattern
  let predicate: @Sendable (SlotSummary) -> Bool

  public func makeAsyncIterator() -> Iterator { Iterator(self) }

  /// One loop's place. Looks into the store on the actor that asks.
  public struct Iterator: AsyncIteratorProtocol {
    private let query: SlotQuery
    private var ticks: AsyncStream<Void>.Iterator
    /// What was told, by name; nil before the first update.
    private var emitted: [String: SlotSummary]?

    init(_ query: SlotQuery) {
      self.query = query
      // Before the first look: what changes after it is heard of.
      ticks = query.saves.core.slotTicks.stream().makeAsyncIterator()
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

    /// What is new; nil if nothing is.
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

    private static func sorted(_ slots: some Sequence<SlotSummary>) -> [SlotSummary] { slots.sorted { $0.name < $1.name } }
  }
}

extension SaveSlots {
  /// The slots whose names match, live: see `SlotQuery`.
  ///
  /// - Parameters:
  ///   - pattern: For whole names: `*` stands for any characters, `?` for one, `[abc]` and `[0-9]` for one of these, `[!abc]` for one of no such.
  ///     A sign that shall be itself stands in brackets: `[*]`. Capitals count.
  ///   - predicate: Looks at what matches; called whenever something changed, so it should be quick.
  /// - Throws: `GameDataError` with `misuse` for a bracket that isn't closed, or is empty, and for a pattern of more than 1,024 bytes.
  public func query(
    matching pattern: String = "*", where predicate: @escaping @Sendable (SlotSummary) -> Bool = { _ in true }
  ) throws -> SlotQuery {
    SlotQuery(saves: self, pattern: try NamePattern(pattern), predicate: predicate)
  }
}
