/// Identifiers as hexadecimal digits. They are read and written by the thousand whenever a store is opened, so this
/// doesn't use general number parsing.
package enum Hexadecimal {
  /// Returns the words in `text`, of sixteen digits each; nil if the text contains anything else.
  static func words(in text: some StringProtocol, count: Int) -> [UInt64]? {
    var text = String(text)
    return text.withUTF8 { digits in
      guard digits.count == 16 * count else { return nil }
      var words = [UInt64](repeating: 0, count: count)
      for (index, digit) in digits.enumerated() {
        guard let value = value(of: digit) else { return nil }
        words[index / 16] = words[index / 16] << 4 | value
      }
      return words
    }
  }

  /// Returns sixteen lowercase digits for each word.
  package static func text(_ words: UInt64...) -> String {
    String(unsafeUninitializedCapacity: 16 * words.count) { digits in
      for (index, word) in words.enumerated() {
        for place in 0..<16 {
          digits[16 * index + place] = digit(of: UInt8(truncatingIfNeeded: word >> UInt64(60 - 4 * place)) & 15)
        }
      }
      return 16 * words.count
    }
  }

  private static func value(of digit: UInt8) -> UInt64? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt64(digit - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt64(digit - UInt8(ascii: "a") + 10)
    case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt64(digit - UInt8(ascii: "A") + 10)
    default: nil
    }
  }

  private static func digit(of value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }
}
