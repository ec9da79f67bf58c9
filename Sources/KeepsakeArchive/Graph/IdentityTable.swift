/// Object addresses to numbers, in the order in which objects were met.
///
/// Open addressing over two plain arrays; every object in it is kept alive by the writer, so an address can't be
/// reused while it is here.
struct IdentityTable {
  private var keys: [UInt]
  private var numbers: [Int32]
  private var count = 0
  private var mask: Int

  init() {
    keys = Array(repeating: 0, count: 64)
    numbers = Array(repeating: 0, count: 64)
    mask = 63
  }

  /// The object's number, or `next` entered for it.
  mutating func number(for object: AnyObject, next: Int32) -> Int32 {
    let key = UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
    var slot = Self.hash(key) & mask
    while keys[slot] != 0 {
      if keys[slot] == key { return numbers[slot] }
      slot = (slot &+ 1) & mask
    }
    keys[slot] = key
    numbers[slot] = next
    count += 1
    if count &* 2 > mask { grow() }
    return next
  }

  private mutating func grow() {
    let oldKeys = keys
    let oldNumbers = numbers
    mask = (mask &+ 1) &* 2 &- 1
    keys = Array(repeating: 0, count: mask + 1)
    numbers = Array(repeating: 0, count: mask + 1)
    for (index, key) in oldKeys.enumerated() where key != 0 {
      var slot = Self.hash(key) & mask
      while keys[slot] != 0 { slot = (slot &+ 1) & mask }
      keys[slot] = key
      numbers[slot] = oldNumbers[index]
    }
  }

  /// Fibonacci hashing: addresses differ in their middle bits, the product spreads them to the top.
  private static func hash(_ key: UInt) -> Int {
    Int(truncatingIfNeeded: (UInt64(key) &* 0x9E37_79B9_7F4A_7C15) >> 24)
  }
}
