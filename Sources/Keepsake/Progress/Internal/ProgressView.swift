import KeepsakeReplication

/// What a game sees of its progress: what the store holds, joined with the changes that are still being committed. It
/// never goes backwards, except for a change that the store could not commit.
struct ProgressView: Sendable {
  private var held: [CellKey: CellState] = [:]
  /// Changes that are shown but not yet durable, oldest first. Short, because the store limits how many can wait.
  private var waiting: [(number: UInt64, cells: [CellKey: CellState], growth: Int)] = []
  /// The size of the names and values in `held`.
  private var heldBytes = 0
  private var last: UInt64 = 0
  /// Changes up to this number may have been applied to the cells that were held before the last replacement.
  private var lastBeforeReplacing: UInt64 = 0

  init(_ cells: [CellUpdate]) { join(cells) }

  /// Replaces everything held with what the store holds. This is the one case where a view goes backwards by design: a
  /// store that joins another player gives up what only counted for the previous one. Returns the keys whose held state
  /// changed.
  mutating func replace(with cells: [CellUpdate]) -> [CellKey] {
    let before = held
    held = [:]
    heldBytes = 0
    join(cells)
    lastBeforeReplacing = last
    return Set(before.keys).union(held.keys).filter { before[$0] != held[$0] }.sorted()
  }

  subscript(key: CellKey) -> CellState? {
    var state = held[key]
    for change in waiting {
      if let shown = change.cells[key] { state = state?.joined(with: shown) ?? shown }
    }
    return state
  }

  var keys: Set<CellKey> {
    var keys = Set(held.keys)
    for change in waiting { keys.formUnion(change.cells.keys) }
    return keys
  }

  /// Joins what the store holds into the view.
  mutating func join(_ cells: [CellUpdate]) {
    for cell in cells {
      let known = held[cell.key]
      let joined = CellUpdate(key: cell.key, state: known?.joined(with: cell.state) ?? cell.state)
      heldBytes += joined.size - (known.map { CellUpdate(key: cell.key, state: $0).size } ?? 0)
      held[cell.key] = joined.state
    }
  }

  /// The size of all names and values, including the changes that aren't durable yet.
  var bytes: Int { waiting.reduce(heldBytes) { $0 + $1.growth } }

  /// Shows a change before the store has it. Returns the number to pass to `end`.
  mutating func begin(_ cells: [CellKey: CellState], growth: Int) -> UInt64 {
    last += 1
    waiting.append((last, cells, growth))
    return last
  }

  /// Ends a change that is in the store, as `cells`, or that failed. Returns the keys whose cells may be older than
  /// what is held; they have to be read again.
  mutating func end(_ number: UInt64, with cells: [CellUpdate]) -> [CellKey] {
    waiting.removeAll { $0.number == number }
    guard number > lastBeforeReplacing else { return cells.map(\.key) }
    join(cells)
    return []
  }
}
