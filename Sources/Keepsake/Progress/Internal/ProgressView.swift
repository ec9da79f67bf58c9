import KeepsakeReplication

/// What a game sees of its progress: what the store holds, joined with what is on its way into it. It can't retreat, but for
/// a record that the store could not keep.
struct ProgressView: Sendable {
  private var held: [CellKey: CellState] = [:]
  /// Shown, but not yet durable; oldest first. Short: the store bounds what waits.
  private var waiting: [(number: UInt64, cells: [CellKey: CellState], growth: Int)] = []
  /// Of names and values in `held`.
  private var heldBytes = 0
  private var last: UInt64 = 0
  /// Changes up to this one may have been made to what was held before it was replaced.
  private var lastBeforeReplacing: UInt64 = 0

  init(_ cells: [CellUpdate]) { join(cells) }

  /// Takes what the store holds in place of all that was held. The one way in which a view retreats: a store that joins another player
  /// gives up what only counted for the one before. Gives the keys that show something else now.
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

  /// Takes what the store holds.
  mutating func join(_ cells: [CellUpdate]) {
    for cell in cells {
      let known = held[cell.key]
      let joined = CellUpdate(key: cell.key, state: known?.joined(with: cell.state) ?? cell.state)
      heldBytes += joined.size - (known.map { CellUpdate(key: cell.key, state: $0).size } ?? 0)
      held[cell.key] = joined.state
    }
  }

  /// Of all names and values, with those that wait.
  var bytes: Int { waiting.reduce(heldBytes) { $0 + $1.growth } }

  /// Shows a change before the store has it; the number is for `end`.
  mutating func begin(_ cells: [CellKey: CellState], growth: Int) -> UInt64 {
    last += 1
    waiting.append((last, cells, growth))
    return last
  }

  /// The change is in the store, as `cells`, or it failed. Gives the keys whose cells may be older than what is held; they have to be read
  /// again.
  mutating func end(_ number: UInt64, with cells: [CellUpdate]) -> [CellKey] {
    waiting.removeAll { $0.number == number }
    guard number > lastBeforeReplacing else { return cells.map(\.key) }
    join(cells)
    return []
  }
}
