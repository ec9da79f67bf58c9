/// SQLite's checksum over pairs of 32-bit words, as in the headers of a write-ahead log, of its frames and of its
/// index.
struct LogChecksum {
  let isBigEndian: Bool
  var first: UInt32 = 0
  var second: UInt32 = 0

  mutating func restart(_ first: UInt32, _ second: UInt32) { (self.first, self.second) = (first, second) }

  mutating func add(_ bytes: ArraySlice<UInt8>) {
    bytes.withUnsafeBytes { raw in
      var (left, right) = (first, second)
      var offset = 0
      while offset + 8 <= raw.count {
        let a = raw.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
        let b = raw.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
        left = left &+ (isBigEndian ? UInt32(bigEndian: a) : UInt32(littleEndian: a)) &+ right
        right = right &+ (isBigEndian ? UInt32(bigEndian: b) : UInt32(littleEndian: b)) &+ left
        offset += 8
      }
      (first, second) = (left, right)
    }
  }
}
