import Foundation

/// A hash table from object addresses to numbers, which are assigned in the order in which objects are first reached.
///
/// Uses open addressing in zeroed memory. The writer retains every object in the table, so an address can't be reused
/// while it is in there.
struct IdentityTable: ~Copyable {
  struct Entry: BitwiseCopyable {
    var address: UInt
    var number: Int32
    /// Whether the object is to be written. An object that has only weak references is not.
    var isQueued: Bool
    /// The table's round when the entry was set. If the table's round is another one, the entry is empty, so emptying
    /// the table touches no entry.
    var round: UInt16
  }

  private var table: UnsafeMutablePointer<Entry>?
  private var count = 0
  /// One less than the capacity. Memory is allocated with the first object, because most small values have none.
  private var mask = -1
  private var round: UInt16 = 1

  init() {}

  deinit { free(table) }

  var byteCount: Int { (mask + 1) * MemoryLayout<Entry>.stride }

  mutating func removeAll() {
    count = 0
    round &+= 1
    guard round == 0 else { return }
    if let table { memset(table, 0, byteCount) }
    round = 1
  }

  /// Returns the object's entry. If the object is new, the entry has the number `next` and `isNew` is true. Valid until
  /// the next call.
  @inline(__always) mutating func entry(for object: AnyObject, next: Int32) -> (
    entry: UnsafeMutablePointer<Entry>, isNew: Bool
  ) {
    let address = UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
    if (count &+ 1) &* 4 > mask &* 3 { grow() }
    let entries = table.unsafelyUnwrapped
    var slot = Self.hash(address) & mask
    while (entries + slot).pointee.round == round {
      if (entries + slot).pointee.address == address { return (entries + slot, false) }
      slot = (slot &+ 1) & mask
    }
    count &+= 1
    (entries + slot).initialize(to: Entry(address: address, number: next, isQueued: false, round: round))
    return (entries + slot, true)
  }

  private mutating func grow() {
    let old = table
    let oldCapacity = mask + 1
    let capacity = max(64, oldCapacity * 4)
    guard let memory = calloc(capacity, MemoryLayout<Entry>.stride) else { preconditionFailure("Out of memory") }
    let entries = memory.bindMemory(to: Entry.self, capacity: capacity)
    mask = capacity - 1
    table = entries
    guard let old else { return }
    for index in 0..<oldCapacity where old[index].round == round {
      var slot = Self.hash(old[index].address) & mask
      while entries[slot].round == round { slot = (slot &+ 1) & mask }
      entries[slot] = old[index]
    }
    free(old)
  }

  /// Fibonacci hashing: addresses differ in their middle bits, and the product spreads those to the top.
  @inline(__always) private static func hash(_ key: UInt) -> Int {
    Int(truncatingIfNeeded: (UInt64(truncatingIfNeeded: key) &* 0x9E37_79B9_7F4A_7C15) &>> 24)
  }
}
