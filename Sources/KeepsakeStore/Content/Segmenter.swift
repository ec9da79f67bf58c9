import Foundation

/// Cuts large saves into segments of about a MiB, at positions determined by their bytes.
///
/// Inserting or removing a byte moves everything after it, but not the positions at which the bytes determine a cut.
/// All other segments stay the same, and cost nothing to store again. (Content-defined chunking with a gear hash: Xia
/// et al., "FastCDC", USENIX ATC 2016.)
enum Segmenter {
  /// A save of at most this size isn't cut: zstd finds the matches by itself.
  static let threshold = 4 << 20
  /// A save of at most this size isn't cut even if the previous one was.
  static let wholeBytes = threshold / 2
  static let minimum = 256 << 10
  static let maximum = 4 << 20
  /// Cuts where these bits of the hash are zero: once per MiB beyond the minimum. They are high bits, which depend on
  /// all of the last 64 bytes.
  private static let mask: UInt64 = 0xFFFF_F000_0000_0000

  /// Returns the segments of `bytes`, in order; together they are all of it. A small save is one segment. A save whose
  /// size varies around the threshold must not differ completely from the previous one each time: one that was whole
  /// stays whole up to twice the threshold, and one that was cut stays cut down to half of it.
  ///
  /// Costs one pass over the bytes that may be a cut. The same bytes are cut in the same way everywhere.
  static func segments(of bytes: Data, wasCut: Bool? = nil) -> [Data] {
    let most = wasCut.map { $0 ? wholeBytes : threshold * 2 } ?? threshold
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
      // Bytes further back have no effect on the hash.
      for index in minimum - 64..<minimum { hash = hash << 1 &+ gears[Int(bytes[index])] }
      for index in minimum..<end {
        hash = hash << 1 &+ gears[Int(bytes[index])]
        if hash & mask == 0 { return index + 1 }
      }
      return end
    }
  }

  /// A random number for each byte value, from SplitMix64 with the seed 0, so that it never changes.
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
