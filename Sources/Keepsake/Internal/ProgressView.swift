import KeepsakeReplication

/// What a game sees of its progress: what the store holds, joined with what is on its way into it. It can't retreat, but for
/// a record that the store could not keep.
struct ProgressView: Sendable {
  private var held: [CellKey: CellState] = [:]
  /// Shown, but not yet durable; oldest first. Short: the store bounds what waits.
  private var waiting: [(number: UInt64, cells: [CellKey: CellState])] = []
  private var last: UInt64 = 0

  init(_ cells: [CellUpdate]) { join(cells) }

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
    for cell in cells { held[cell.key] = held[cell.key]?.joined(with: cell.state) ?? cell.state }
  }

  /// Shows a change before the store has it; the number is for `end`.
  mutating func begin(_ cells: [CellKey: CellState]) -> UInt64 {
    last += 1
    waiting.append((last, cells))
    return last
  }

  /// The change is in the store, as `cells`, or it failed.
  mutating func end(_ number: UInt64, with cells: [CellUpdate]) {
    waiting.removeAll { $0.number == number }
    join(cells)
  }
}
