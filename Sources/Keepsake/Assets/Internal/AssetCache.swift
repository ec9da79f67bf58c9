import Foundation

/// What is held in memory, and what is evicted when something else needs the room: pure decisions, without threads and
/// files.
///
/// Invariant: resident bytes and bytes being read never exceed the budget together. A pinned asset is counted from the
/// moment it is pinned, loaded or not, so there is always room for it.
struct AssetCache {
  /// The bytes of an asset, or a value made from them, by the asset's number.
  enum Key: Hashable {
    case bytes(Int)
    case value(Int, ObjectIdentifier)
  }

  /// Whether an asset may be read into the cache.
  enum Room {
    /// Room for its bytes is reserved.
    case granted
    /// There will be room when the current reads are done.
    case later
    /// Pinned assets, or the budget itself, leave no room for it.
    case never
  }

  private struct Line {
    var value: any Sendable
    var cost: Int
    /// Neighbours in the list of evictable lines, ordered by last use.
    var older: Key?
    var newer: Key?
  }

  let budget: Int
  private var lines: [Key: Line] = [:]
  private var oldest: Key?
  private var newest: Key?
  /// The size of all lines.
  private var residentBytes = 0
  /// The size of all evictable lines.
  private var evictableBytes = 0
  /// Assets that are being read, with their sizes.
  private var reserved: [Int: Int] = [:]
  private var reservedBytes = 0
  private var pins: [Int: (count: Int, size: Int)] = [:]
  /// What was evicted, for the lock's holder to release after unlocking: a value's `deinit` is the game's code.
  private var letGo: [any Sendable] = []
  /// The size of all pinned assets, loaded or not.
  private(set) var pinnedBytes = 0

  init(budget: Int) { self.budget = budget }

  /// The bytes in memory now, and those being read into it.
  var heldBytes: Int { residentBytes + reservedBytes }

  // MARK: Looking

  /// Returns the bytes of an asset, and counts them as used now.
  mutating func bytes(of asset: Int) -> Data? { use(.bytes(asset)) as? Data }

  mutating func value<Value: Sendable>(of asset: Int, _ type: Value.Type) -> Value? {
    use(.value(asset, ObjectIdentifier(type))) as? Value
  }

  func isLoaded(_ asset: Int) -> Bool { lines[.bytes(asset)] != nil }

  private mutating func use(_ key: Key) -> (any Sendable)? {
    guard let line = lines[key] else { return nil }
    if mayGo(key) {
      unlink(key)
      link(key)
    }
    return line.value
  }

  // MARK: Pins

  /// Pins assets of the given sizes. Returns false, with nothing changed, if they don't fit beside what is already
  /// pinned.
  mutating func pin(_ assets: [(asset: Int, size: Int)]) -> Bool {
    var sum = pinnedBytes
    for (asset, size) in assets where pins[asset] == nil {
      // Each size is at most the budget here, so the loop ends before the sum could overflow.
      guard size <= budget, sum <= budget - size else { return false }
      sum += size
    }
    for (asset, size) in assets {
      if let pin = pins[asset] {
        pins[asset] = (pin.count + 1, pin.size)
        continue
      }
      pins[asset] = (1, size)
      pinnedBytes += size
      let key = Key.bytes(asset)
      if let line = lines[key] {
        unlink(key)
        evictableBytes -= line.cost
      }
    }
    return true
  }

  mutating func unpin(_ assets: some Sequence<Int>) {
    for asset in assets {
      guard let pin = pins[asset] else { continue }
      guard pin.count == 1 else {
        pins[asset] = (pin.count - 1, pin.size)
        continue
      }
      pins[asset] = nil
      pinnedBytes -= pin.size
      let key = Key.bytes(asset)
      if let line = lines[key] {
        link(key)
        evictableBytes += line.cost
      }
    }
  }

  // MARK: Reading

  /// Makes room for an asset that is about to be read, by evicting what was used least recently.
  mutating func reserve(_ asset: Int, _ size: Int) -> Room {
    let staying = heldBytes - evictableBytes
    guard staying <= budget, size <= budget - staying else {
      // What is being read and isn't pinned can be evicted as soon as it is loaded.
      let soon = reserved.reduce(0) { $0 + (pins[$1.key] == nil ? $1.value : 0) }
      return soon > 0 && size <= budget && staying - soon <= budget - size ? .later : .never
    }
    while heldBytes > budget - size, let key = oldest { drop(key) }
    reserved[asset] = size
    reservedBytes += size
    return .granted
  }

  /// Ends a read: with bytes, which are kept from now on, or without.
  mutating func finish(_ asset: Int, _ bytes: Data?) {
    guard let size = reserved.removeValue(forKey: asset) else { return }
    reservedBytes -= size
    if let bytes { insert(.bytes(asset), bytes, cost: size) }
  }

  // MARK: Values

  /// Keeps a value that was made from an asset, if there is room for it, until something else needs the room.
  ///
  /// If there is already such a value, returns that one: the second caller uses the first one's value.
  mutating func keep<Value: Sendable>(_ value: Value, of asset: Int, cost: Int) -> Value {
    let key = Key.value(asset, ObjectIdentifier(Value.self))
    if let first = use(key) as? Value { return first }
    let staying = heldBytes - evictableBytes
    guard cost >= 0, staying <= budget, cost <= budget - staying else { return value }
    while heldBytes > budget - cost, let key = oldest { drop(key) }
    insert(key, value, cost: cost)
    return value
  }

  /// Evicts everything that isn't pinned.
  mutating func empty() {
    while let key = oldest { drop(key) }
  }

  // MARK: The list by last use

  private func mayGo(_ key: Key) -> Bool {
    switch key {
    case .bytes(let asset): pins[asset] == nil
    case .value: true
    }
  }

  private mutating func insert(_ key: Key, _ value: any Sendable, cost: Int) {
    lines[key] = Line(value: value, cost: cost)
    residentBytes += cost
    if mayGo(key) {
      link(key)
      evictableBytes += cost
    }
  }

  private mutating func drop(_ key: Key) {
    unlink(key)
    guard let line = lines.removeValue(forKey: key) else { return }
    residentBytes -= line.cost
    evictableBytes -= line.cost
    letGo.append(line.value)
  }

  mutating func takeLetGo() -> [any Sendable] {
    defer { letGo = [] }
    return letGo
  }

  private mutating func link(_ key: Key) {
    lines[key]?.older = newest
    lines[key]?.newer = nil
    if let newest { lines[newest]?.newer = key } else { oldest = key }
    newest = key
  }

  private mutating func unlink(_ key: Key) {
    guard let line = lines[key] else { return }
    if let older = line.older { lines[older]?.newer = line.newer } else if oldest == key { oldest = line.newer }
    if let newer = line.newer { lines[newer]?.older = line.older } else if newest == key { newest = line.older }
    lines[key]?.older = nil
    lines[key]?.newer = nil
  }
}
