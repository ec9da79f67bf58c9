import Foundation

/// Object addresses to numbers, in the order in which objects were met.
///
/// Open addressing in zeroed memory; every object in it is kept alive by the writer, so an address can't be reused while it is here.
struct IdentityTable: ~Copyable {
  struct Entry {
    var address: UInt
    var number: Int32
    /// Whether the object is to be written: one that was only referred to weakly is not.
    var isQueued: Bool
  }

  private var table: UnsafeMutablePointer<Entry>?
  private var count = 0
  /// One less than the capacity.
  private var mask: Int
  private let expected: Int

  @inline(__always) private var entries: UnsafeMutablePointer<Entry> { table.unsafelyUnwrapped }

  /// Takes memory with the first object: most small values have none.
  ///
  /// - Parameter expected: How many objects there may be; more only cost time.
  init(expected: Int) {
    self.expected = expected
    mask = -1
  }

  deinit { free(table) }

  private static func zeroed(_ capacity: Int) -> UnsafeMutablePointer<Entry> {
    guard let memory = calloc(capacity, MemoryLayout<Entry>.stride) else { preconditionFailure("Out of memory") }
    return memory.bindMemory(to: Entry.self, capacity: capacity)
  }

  /// The object's entry; a new one has the number `next` and makes `isNew` true. Valid until the next call.
  @inline(__always) mutating func entry(for object: AnyObject, next: Int32) -> (entry: UnsafeMutablePointer<Entry>, isNew: Bool) {
    let address = UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
    if (count &+ 1) &* 2 > mask { grow() }
    var slot = Self.hash(address) & mask
    while entries[slot].address != 0 {
      if entries[slot].address == address { return (entries + slot, false) }
      slot = (slot &+ 1) & mask
    }
    count &+= 1
    entries[slot] = Entry(address: address, number: next, isQueued: false)
    return (entries + slot, true)
  }

  private mutating func grow() {
    let old = table
    let oldCapacity = mask + 1
    var capacity = max(64, oldCapacity * 4)
    while capacity < expected * 2 { capacity *= 2 }
    mask = capacity - 1
    table = Self.zeroed(capacity)
    guard let old else { return }
    for index in 0..<oldCapacity where old[index].address != 0 {
      var slot = Self.hash(old[index].address) & mask
      while entries[slot].address != 0 { slot = (slot &+ 1) & mask }
      entries[slot] = old[index]
    }
    free(old)
  }

  /// Fibonacci hashing: addresses differ in their middle bits, the product spreads them to the top.
  @inline(__always) private static func hash(_ key: UInt) -> Int {
    Int(truncatingIfNeeded: (UInt64(key) &* 0x9E37_79B9_7F4A_7C15) >> 24)
  }
}
