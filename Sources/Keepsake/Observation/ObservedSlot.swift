public import Observation

/// A slot as an observable object: what is saved in it, whether it is in conflict, and how far it has come. A SwiftUI
/// view that reads it is updated when it changes.
///
/// ```swift
/// struct SaveIcon: View {
///   @State var slot: ObservedSlot      // SaveIcon(slot: game.saves.observed(.main))
///
///   var body: some View {
///     if slot.isConflicted { Image(systemName: "exclamationmark.triangle") }
///     Text(slot.summary?.current.metadata.title ?? "New game")
///   }
/// }
/// ```
///
/// Reads the store on another thread at each change, which costs what `SaveSlots.list` costs, and is shown on the main
/// actor a moment later: for a list of slots, use one ``ObservedSaves``. Ends with the last reference to it, and when
/// the game's data is closed; what it shows then stays. Doesn't decode saves: `SaveSlots.load` does. As with
/// `SaveSlots.list`, a slot that it shows counts as shown.
@MainActor
@Observable
public final class ObservedSlot {
  /// The slot's name.
  public let name: String
  /// What is saved; nil if nothing is, and until it is first read.
  public private(set) var summary: SlotSummary?
  /// How far the current save has come; nil until it is first read.
  public private(set) var status: SlotStatus?
  /// Why nothing is shown any more: the store can't be read. Nil as long as all is well.
  public private(set) var error: (any Error)?

  @ObservationIgnored private let following = Following()

  /// Whether the slot has an unresolved conflict: `SaveSlots.conflict` has its sides.
  public var isConflicted: Bool { summary?.isConflicted ?? false }

  init(_ name: String, of saves: SaveSlots) {
    self.name = name
    let query = SlotQuery(saves: saves, pattern: NamePattern(exactly: name), predicate: { _ in true })
    following.begin(
      query, for: self,
      show: { slot, update in
        switch update {
        case .gathered(let slots): slot.summary = slots.first
        case .updated(let changes): slot.summary = changes.added.first ?? changes.changed.first
        }
      },
      failed: { $0.error = $1 })
    following.begin(
      saves.statusUpdates(of: name), for: self, show: { $0.status = $1 }, failed: { $0.error = $1 })
  }
}

/// The saved games for views, as they are.
///
/// ```swift
/// List(saves.slots) { slot in Text(slot.current.metadata.title ?? slot.name) }
/// ```
///
/// Each change costs what `SaveSlots.list` costs, on another thread. Ends as an ``ObservedSlot`` does.
@MainActor
@Observable
public final class ObservedSaves {
  /// The slots, sorted by name; empty until they are first read.
  public private(set) var slots: [SlotSummary] = []
  /// Why nothing is shown any more: the store can't be read. Nil as long as all is well.
  public private(set) var error: (any Error)?

  @ObservationIgnored private let following = Following()

  init(_ query: SlotQuery) {
    following.begin(
      query, for: self,
      show: { saves, update in
        switch update {
        case .gathered(let slots): saves.slots = slots
        case .updated(let changes):
          let gone = Set((changes.removed + changes.changed).map(\.name))
          saves.slots = (saves.slots.filter { !gone.contains($0.name) } + changes.changed + changes.added)
            .sorted { $0.name < $1.name }
        }
      },
      failed: { $0.error = $1 })
  }
}

extension SaveSlots {
  /// Returns a slot for views.
  ///
  /// - Parameter slot: The slot.
  /// - Returns: An object that changes with the slot.
  @MainActor
  public func observed<Value>(_ slot: Slot<Value>) -> ObservedSlot { ObservedSlot(slot.name, of: self) }

  /// Returns the saved games for views.
  ///
  /// - Parameter pattern: As for `query(matching:where:)`.
  /// - Returns: An object that changes with them.
  /// - Throws: As `query(matching:where:)`.
  @MainActor
  public func observed(matching pattern: String = "*") throws -> ObservedSaves {
    ObservedSaves(try query(matching: pattern))
  }
}
