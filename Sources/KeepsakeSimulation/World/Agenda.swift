/// What is to happen, the earliest first; at the same time, what was added first.
struct Agenda<Item> {
  private struct Entry {
    var time: Int64
    var order: Int
    var item: Item

    func precedes(_ other: Entry) -> Bool { (time, order) < (other.time, other.order) }
  }

  /// A binary heap: no entry precedes the one at half its index.
  private var entries: [Entry] = []
  private var last = 0

  mutating func add(_ item: Item, at time: Int64) {
    last += 1
    entries.append(Entry(time: time, order: last, item: item))
    var index = entries.count - 1
    while index > 0 {
      let parent = (index - 1) / 2
      guard entries[index].precedes(entries[parent]) else { return }
      entries.swapAt(index, parent)
      index = parent
    }
  }

  mutating func next() -> (time: Int64, item: Item)? {
    guard let first = entries.first else { return nil }
    let moved = entries.removeLast()
    guard !entries.isEmpty else { return (first.time, first.item) }
    entries[0] = moved
    var index = 0
    while true {
      var least = index
      for child in [2 * index + 1, 2 * index + 2] where child < entries.count {
        if entries[child].precedes(entries[least]) { least = child }
      }
      guard least != index else { return (first.time, first.item) }
      entries.swapAt(index, least)
      index = least
    }
  }

  mutating func removeAll(where isUnwanted: (Item) -> Bool) {
    let kept = entries.filter { !isUnwanted($0.item) }.sorted { $0.precedes($1) }
    // A sorted array is a heap, too.
    entries = kept
  }
}
