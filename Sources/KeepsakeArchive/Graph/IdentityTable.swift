import Foundation

/// Object addresses to numbers, in the order in which objects were met.
///
/// Open addressing in zeroed memory; every object in it is kept alive by the writer, so an address can't be reused while it is here.
struct IdentityTable: ~Copyable {
  struct Entry: BitwiseCopyable {
    var address: UInt
    var number: Int32
    /// Whether the object is to be written: one that was only referred to weakly is not.
    var isQueued: Bool
    /// Of another round than the table's: the entry is empty. So emptying the table touches no entry.
    var round: UInt16
  }

  private var table: UnsafeMutablePointer<Entry>?
  private var count = 0
  /// One less than the capacity; takes memory with the first object, because most small values have none.
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

  /// The object's entry; a new one has the number `next` and makes `isNew` true. Valid until the next call.
  @inline(__always) mutating func entry(for object: AnyObject, next: Int32) -> (entry: UnsafeMutablePointer<Entry>, isNew: Bool) {
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

  /// Fibonacci hashing: addresses differ in their middle bits, the product spreads them to the top.
  @inline(__always) private static func hash(_ key: UInt) -> Int {
    Int(truncatingIfNeeded: (UInt64(truncatingIfNeeded: key) &* 0x9E37_79B9_7F4A_7C15) &>> 24)
  }
}
