/// The checksum of an archive, for the encoder that is written by hand.
enum XXH64 {
  private static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
  private static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
  private static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
  private static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
  private static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5

  static func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
    guard let start = bytes.baseAddress else { return finish(prime5) }
    let end = start + bytes.count
    var next = start
    var hash = prime5
    if bytes.count >= 32 {
      var (a, b, c, d) = (prime1 &+ prime2, prime2, UInt64(0), 0 &- prime1)
      while end - next >= 32 {
        a = mix(a, next.loadUnaligned(as: UInt64.self))
        b = mix(b, next.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
        c = mix(c, next.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
        d = mix(d, next.loadUnaligned(fromByteOffset: 24, as: UInt64.self))
        next += 32
      }
      hash = rotate(a, 1) &+ rotate(b, 7) &+ rotate(c, 12) &+ rotate(d, 18)
      hash = join(join(join(join(hash, a), b), c), d)
    }
    hash &+= UInt64(truncatingIfNeeded: bytes.count)
    while end - next >= 8 {
      hash = rotate(hash ^ mix(0, next.loadUnaligned(as: UInt64.self)), 27) &* prime1 &+ prime4
      next += 8
    }
    if end - next >= 4 {
      hash = rotate(hash ^ UInt64(next.loadUnaligned(as: UInt32.self)) &* prime1, 23) &* prime2 &+ prime3
      next += 4
    }
    while next < end {
      hash = rotate(hash ^ UInt64(next.load(as: UInt8.self)) &* prime5, 11) &* prime1
      next += 1
    }
    return finish(hash)
  }

  @inline(__always) private static func rotate(_ value: UInt64, _ bits: UInt64) -> UInt64 {
    value &<< bits | value &>> (64 &- bits)
  }
  @inline(__always) private static func mix(_ lane: UInt64, _ input: UInt64) -> UInt64 {
    rotate(lane &+ input &* prime2, 31) &* prime1
  }
  @inline(__always) private static func join(_ hash: UInt64, _ lane: UInt64) -> UInt64 {
    (hash ^ mix(0, lane)) &* prime1 &+ prime4
  }

  private static func finish(_ hash: UInt64) -> UInt64 {
    var hash = hash
    hash = (hash ^ hash >> 33) &* prime2
    hash = (hash ^ hash >> 29) &* prime3
    return hash ^ hash >> 32
  }
}
