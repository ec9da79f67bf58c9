#if Cloud
import Foundation

/// What decoding a text as JSON will cost, found out without decoding it.
///
/// Counts values, keys and levels in one pass. It doesn't check the text: what isn't JSON is left to the decoder, which
/// then reads no more of it than was counted.
struct JSONScan: Hashable, Sendable {
  /// Values and keys.
  private(set) var tokens = 0
  /// Arrays and objects inside each other.
  private(set) var depth = 0

  /// Counts the tokens of `json`, until there are more than `limit` of them, or the text is deeper than `deepest`.
  init(_ json: Data, limit: Int = .max, deepest: Int = .max) {
    json.withUnsafeBytes { bytes in
      var level = 0
      var isInText = false
      var isInWord = false
      var index = 0
      while index < bytes.count {
        let byte = bytes[index]
        index += 1
        if isInText {
          // An escaped character is skipped, whatever it is.
          if byte == UInt8(ascii: "\\") { index += 1 } else if byte == UInt8(ascii: "\"") { isInText = false }
          continue
        }
        switch byte {
        case UInt8(ascii: "\""):
          (isInText, isInWord) = (true, false)
          tokens += 1
        case UInt8(ascii: "["), UInt8(ascii: "{"):
          isInWord = false
          tokens += 1
          level += 1
          depth = max(depth, level)
        case UInt8(ascii: "]"), UInt8(ascii: "}"):
          isInWord = false
          level -= 1
        case UInt8(ascii: ","), UInt8(ascii: ":"), 0x20, 0x09, 0x0A, 0x0D:
          isInWord = false
        default:
          if !isInWord { tokens += 1 }
          isInWord = true
        }
        if tokens > limit || depth > deepest { return }
      }
    }
  }

  /// The bytes of memory that decoding takes at most, beside the text itself: what the decoder's map of the text and
  /// the values take, with room to grow.
  var decodingBytes: Int { tokens * 96 }
}
#endif
