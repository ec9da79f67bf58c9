package import Foundation

/// Numbers of a JSON text that have more digits than a `Double` holds, so that they are read as others.
package struct JSONRounding: Equatable, Sendable {
  package internal(set) var count = 0
  /// Where the first one is: its line and column.
  package internal(set) var first = ""

  /// Returns whether a number that isn't an integer was read as another one. The shortest text for the number that was
  /// read has the same digits otherwise.
  static func isRounded(_ text: String, readAs number: Double) -> Bool {
    decimal(text) != decimal("\(number)")
  }

  private struct Decimal: Equatable {
    /// Without zeros at either end.
    var digits: [UInt8]
    var exponent: Int
  }

  private static func decimal(_ text: String) -> Decimal {
    var (digits, exponent) = ([UInt8](), 0)
    let parts = text.lowercased().split(separator: "e", maxSplits: 1)
    var isFraction = false
    for byte in parts.first?.utf8 ?? "".utf8[...] {
      switch byte {
      case UInt8(ascii: "."): isFraction = true
      case UInt8(ascii: "0")...UInt8(ascii: "9"):
        digits.append(byte)
        if isFraction { exponent -= 1 }
      default: continue  // The sign, which is never lost.
      }
    }
    while digits.last == UInt8(ascii: "0") {
      digits.removeLast()
      exponent += 1
    }
    digits.removeFirst(digits.prefix { $0 == UInt8(ascii: "0") }.count)
    guard !digits.isEmpty else { return Decimal(digits: [], exponent: 0) }
    // Numbers with a larger exponent aren't read.
    return Decimal(digits: digits, exponent: exponent + (parts.count > 1 ? Int(parts[1]) ?? 0 : 0))
  }
}

extension JSONReader {
  /// Returns which numbers of a text are rounded when it is read; throws the same errors as `read`.
  package static func rounding(in data: Data, isJSON5: Bool) throws -> JSONRounding {
    try reading(data, isJSON5 ? .json5 : .json, .tree).rounding
  }
}
