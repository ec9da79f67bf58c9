import Foundation

/// Cuts large saves into segments of about a MiB, at places that their bytes choose.
///
/// A byte put in or taken out moves everything behind it, but not the places where the bytes say "cut here": all other segments stay what
/// they were, and cost nothing to keep again. (Content-defined chunking with a gear hash: Xia et al., "FastCDC", USENIX ATC 2016.)
enum Segmenter {
  /// What is no larger stays whole: zstd finds the rest by itself.
  static let threshold = 4 << 20
  static let minimum = 256 << 10
  static let maximum = 4 << 20
  /// A cut where these bits of the hash are zero: once in a MiB behind the minimum. They are high bits, which the last 64 bytes decide
  /// together.
  private static let mask: UInt64 = 0xFFFF_F000_0000_0000

  /// The segments of `bytes`, in order; together they are all of it. One, if it is small. A save whose size goes up and down about
  /// the threshold must not be like nothing before it each time: one that was whole stays whole up to twice the threshold, and one that was
  /// cut stays cut down to half of it.
  ///
  /// Costs one pass over the bytes that may be a cut. The same bytes are cut alike everywhere.
  static func segments(of bytes: Data, wasCut: Bool? = nil) -> [Data] {
    let most = wasCut.map { $0 ? threshold / 2 : threshold * 2 } ?? threshold
    guard bytes.count > most else { return [bytes] }
    var segments: [Data] = []
    var start = bytes.startIndex
    bytes.withUnsafeBytes { raw in
      var offset = 0
      while offset < raw.count {
        let length = firstCut(UnsafeRawBufferPointer(rebasing: raw[offset...]))
        segments.append(bytes[start..<start + length])
        offset += length
        start += length
      }
    }
    return segments
  }

  private static func firstCut(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard bytes.count > minimum else { return bytes.count }
    let end = min(bytes.count, maximum)
    return gears.withUnsafeBufferPointer { gears in
      var hash: UInt64 = 0
      // Of what is farther back nothing is left in the hash.
      for index in minimum - 64..<minimum { hash = hash << 1 &+ gears[Int(bytes[index])] }
      for index in minimum..<end {
        hash = hash << 1 &+ gears[Int(bytes[index])]
        if hash & mask == 0 { return index + 1 }
      }
      return end
    }
  }

  /// A random number for each byte: from SplitMix64 with the seed 0, so that it never changes.
  private static let gears: [UInt64] = {
    var state: UInt64 = 0
    return (0..<256).map { _ in
      state &+= 0x9E37_79B9_7F4A_7C15
      var value = state
      value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
      value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
      return value ^ value >> 31
    }
  }()
}
