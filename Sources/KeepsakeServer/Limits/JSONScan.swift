#if Cloud
import Foundation

/// What decoding a text as JSON will cost, found out without decoding it, and while it arrives.
///
/// Counts values, keys and levels in one pass. It doesn't check the text: what isn't JSON is left to the decoder, which
/// then reads no more of it than was counted.
struct JSONScan: Hashable, Sendable {
  /// Values and keys.
  private(set) var tokens = 0
  /// Arrays and objects inside each other.
  private(set) var depth = 0
  private let limit: Int
  private let deepest: Int
  /// Bytes of the text's length that haven't come yet.
  private var lengthLeft: Int
  /// Bytes of the text that haven't come yet, as far as its length is known.
  private var textLeft: Int
  private var level = 0
  private var isInText = false
  private var isEscaped = false
  private var isInWord = false

  /// - Parameters:
  ///   - limit: Beyond this many tokens, nothing more is counted.
  ///   - deepest: The same for levels.
  ///   - lengthBytes: How many bytes come before the text, with its length as a big-endian number: at most 4. What
  ///     follows the text isn't counted.
  init(limit: Int = .max, deepest: Int = .max, lengthBytes: Int = 0) {
    (self.limit, self.deepest, lengthLeft) = (limit, deepest, lengthBytes)
    textLeft = lengthBytes == 0 ? .max : 0
  }

  /// Counts the tokens of `json`.
  init(_ json: Data, limit: Int = .max, deepest: Int = .max) {
    self.init(limit: limit, deepest: deepest)
    json.withUnsafeBytes { read($0) }
  }

  /// Whether there are more tokens or levels than was asked about.
  var isBeyond: Bool { tokens > limit || depth > deepest }

  /// Counts the tokens of the next bytes. About a nanosecond for each.
  mutating func read(_ bytes: UnsafeRawBufferPointer) {
    var index = 0
    while lengthLeft > 0, index < bytes.count {
      textLeft = textLeft << 8 | Int(bytes[index])
      lengthLeft -= 1
      index += 1
    }
    let end = index + min(bytes.count - index, textLeft)
    textLeft -= end - index
    while index < end, !isBeyond {
      count(bytes[index])
      index += 1
    }
  }

  @inline(__always) private mutating func count(_ byte: UInt8) {
    if isInText {
      if isEscaped {
        // It is skipped, whatever it is.
        isEscaped = false
      } else if byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else if byte == UInt8(ascii: "\"") {
        isInText = false
      }
      return
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
  }

  /// The bytes of memory that decoding takes at most, beside the text itself: what the decoder's map of the text and
  /// the values take, with room to grow.
  var decodingBytes: Int { tokens * 96 }
}
#endif
