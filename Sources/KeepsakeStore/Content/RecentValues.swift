/// Values by key, of which the least recently used are dropped when all of them together cost too much.
///
/// The keys are linked in the order of their use. Each call costs a few look-ups, however many values there are: a
/// cache may hold the small saves of ten thousand slots.
struct RecentValues<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct Entry {
    var value: Value
    var cost: Int
    var newer: Key?
    var older: Key?
  }

  private let maximumCost: Int
  private var entries: [Key: Entry] = [:]
  private var newest: Key?
  private var oldest: Key?
  private(set) var cost = 0

  init(maximumCost: Int) { self.maximumCost = maximumCost }

  var count: Int { entries.count }

  /// Returns the value, which becomes the most recently used one.
  mutating func value(of key: Key) -> Value? {
    guard let entry = entries[key] else { return nil }
    if entry.newer != nil {
      unlink(entry)
      link(key)
    }
    return entry.value
  }

  /// Inserts or replaces a value, which becomes the most recently used one. It stays even if it alone costs too much.
  mutating func insert(_ value: Value, for key: Key, cost: Int) {
    remove(key)
    entries[key] = Entry(value: value, cost: cost)
    self.cost += cost
    link(key)
    while self.cost > maximumCost, let oldest, entries.count > 1 { remove(oldest) }
  }

  mutating func removeAll() { self = Self(maximumCost: maximumCost) }

  private mutating func remove(_ key: Key) {
    guard let entry = entries.removeValue(forKey: key) else { return }
    unlink(entry)
    cost -= entry.cost
  }

  /// Connects the neighbours of an entry with each other.
  private mutating func unlink(_ entry: Entry) {
    if let newer = entry.newer { entries[newer]?.older = entry.older } else { newest = entry.older }
    if let older = entry.older { entries[older]?.newer = entry.newer } else { oldest = entry.newer }
  }

  /// Makes an entry without neighbours the newest.
  private mutating func link(_ key: Key) {
    if let newest { entries[newest]?.newer = key } else { oldest = key }
    entries[key]?.older = newest
    entries[key]?.newer = nil
    newest = key
  }
}
