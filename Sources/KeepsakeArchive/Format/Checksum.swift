/// XXH64 of a sequence of bytes, with seed 0, as specified in doc/xxhash_spec.md of the xxHash project. It detects
/// damage, but doesn't authenticate the writer of the bytes. Chosen because plain Swift computes it at several bytes
/// per cycle on every platform.
package enum Checksum {
  private static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
  private static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
  private static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
  private static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
  private static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5

  package static func xxh64(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    guard let base = bytes.baseAddress else { return finish(prime5) }
    var p = base
    let end = base + bytes.count
    var hash: UInt64
    if bytes.count >= 32 {
      var a = prime1 &+ prime2
      var b = prime2
      var c: UInt64 = 0
      var d = 0 &- prime1
      while end - p >= 32 {
        a = round(a, word(p))
        b = round(b, word(p + 8))
        c = round(c, word(p + 16))
        d = round(d, word(p + 24))
        p += 32
      }
      hash = rotate(a, 1) &+ rotate(b, 7) &+ rotate(c, 12) &+ rotate(d, 18)
      hash = merged(merged(merged(merged(hash, a), b), c), d)
    } else {
      hash = prime5
    }
    hash = hash &+ UInt64(bytes.count)
    while end - p >= 8 {
      hash = rotate(hash ^ round(0, word(p)), 27) &* prime1 &+ prime4
      p += 8
    }
    if end - p >= 4 {
      let half = UInt64(UInt32(littleEndian: p.loadUnaligned(as: UInt32.self)))
      hash = rotate(hash ^ (half &* prime1), 23) &* prime2 &+ prime3
      p += 4
    }
    while p < end {
      hash = rotate(hash ^ (UInt64(p.load(as: UInt8.self)) &* prime5), 11) &* prime1
      p += 1
    }
    return finish(hash)
  }

  @inline(__always) private static func word(_ p: UnsafeRawPointer) -> UInt64 {
    UInt64(littleEndian: p.loadUnaligned(as: UInt64.self))
  }

  @inline(__always) private static func rotate(_ x: UInt64, _ bits: UInt64) -> UInt64 {
    (x &<< bits) | (x &>> (64 &- bits))
  }

  @inline(__always) private static func round(_ accumulator: UInt64, _ input: UInt64) -> UInt64 {
    rotate(accumulator &+ (input &* prime2), 31) &* prime1
  }

  @inline(__always) private static func merged(_ hash: UInt64, _ lane: UInt64) -> UInt64 {
    (hash ^ round(0, lane)) &* prime1 &+ prime4
  }

  private static func finish(_ value: UInt64) -> UInt64 {
    var hash = value
    hash = (hash ^ (hash >> 33)) &* prime2
    hash = (hash ^ (hash >> 29)) &* prime3
    return hash ^ (hash >> 32)
  }
}
