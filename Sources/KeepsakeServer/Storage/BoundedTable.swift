#if Cloud
/// A table of bounded size that keeps what was put into it last: at least the newest half of what it may have.
struct BoundedTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let half: Int
  private var young: [Key: Value] = [:]
  /// What was put here before `young` was empty.
  private var old: [Key: Value] = [:]

  init(most: Int) { half = max(1, most / 2) }

  var count: Int { young.count + old.count }

  subscript(key: Key) -> Value? { young[key] ?? old[key] }

  /// - Returns: What is forgotten for it: let go of that outside of any lock, since there may be thousands.
  mutating func put(_ value: Value, for key: Key) -> [Key: Value] {
    var forgotten: [Key: Value] = [:]
    if young[key] == nil, young.count >= half { (forgotten, old, young) = (old, young, [:]) }
    young[key] = value
    old[key] = nil
    return forgotten
  }

  mutating func remove(_ key: Key) {
    young[key] = nil
    old[key] = nil
  }
}
#endif
