/// A line of assets by priority, then by order of request: a heap, since a game may request all of its assets at the
/// same time.
struct AssetLine {
  struct Position {
    var priority: AssetPriority
    var order: UInt64
    var asset: Int

    func isBefore(_ other: Position) -> Bool {
      priority == other.priority ? order < other.order : priority > other.priority
    }
  }

  private var heap: [Position] = []

  mutating func insert(_ place: Position) {
    heap.append(place)
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard heap[child].isBefore(heap[parent]) else { return }
      heap.swapAt(child, parent)
      child = parent
    }
  }

  mutating func popFirst() -> Position? {
    guard let first = heap.first, let last = heap.popLast() else { return nil }
    guard !heap.isEmpty else { return first }
    heap[0] = last
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child].isBefore(heap[least]) {
        least = child
      }
      guard least != parent else { return first }
      heap.swapAt(parent, least)
      parent = least
    }
  }
}
