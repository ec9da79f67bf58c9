package import Foundation

extension JSONWriter {
  /// Writes a value that is JSON already, in this writer's own layout. Names keep their order.
  ///
  /// - Parameter text: A whole value as an encoder wrote it. What isn't JSON gives something that isn't, either.
  package mutating func value(json text: Data) {
    text.withUnsafeBytes { bytes in
      /// For each object or list that is open: whether it is an object.
      var open: [Bool] = []
      var isName = false
      var index = 0
      while index < bytes.count {
        switch bytes[index] {
        case UInt8(ascii: "{"):
          beginObject()
          open.append(true)
          isName = true
        case UInt8(ascii: "["):
          beginArray()
          open.append(false)
          isName = false
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
          end()
          open.removeLast(min(1, open.count))
        case UInt8(ascii: ","): isName = open.last ?? false
        case UInt8(ascii: "\""):
          let end = Self.endOfText(in: bytes, from: index + 1)
          let text = Self.text(UnsafeRawBufferPointer(rebasing: bytes[index + 1..<end]))
          if isName { key(text) } else { value(text) }
          isName = false
          index = end
        case UInt8(ascii: ":"), 0x20, 0x09, 0x0A, 0x0D: break
        default:
          let rest = bytes[index...]
          let end = rest.firstIndex { Self.endsToken($0) } ?? bytes.count
          token(bytes[index..<end])
          index = end - 1
        }
        index += 1
      }
    }
  }

  private static func endsToken(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: ","), UInt8(ascii: "]"), UInt8(ascii: "}"), 0x20, 0x09, 0x0A, 0x0D: true
    default: false
    }
  }

  /// Returns the index of the quote that ends a text.
  private static func endOfText(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
    var index = start
    while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
      index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
    }
    return min(index, bytes.count)
  }

  /// Returns a text without its escapes.
  private static func text(_ bytes: UnsafeRawBufferPointer) -> String {
    guard bytes.contains(UInt8(ascii: "\\")) else { return String(decoding: bytes, as: UTF8.self) }
    // UTF-16, because that is what escapes with digits are.
    var units: [UInt16] = []
    let source = Array(String(decoding: bytes, as: UTF8.self).utf16)
    var index = 0
    while index < source.count {
      guard source[index] == UInt16(UInt8(ascii: "\\")), index + 1 < source.count else {
        units.append(source[index])
        index += 1
        continue
      }
      index += 2
      switch UInt8(truncatingIfNeeded: source[index - 1]) {
      case UInt8(ascii: "b"): units.append(0x08)
      case UInt8(ascii: "f"): units.append(0x0C)
      case UInt8(ascii: "n"): units.append(0x0A)
      case UInt8(ascii: "r"): units.append(0x0D)
      case UInt8(ascii: "t"): units.append(0x09)
      case UInt8(ascii: "u"):
        let digits = source[index..<min(index + 4, source.count)]
        units.append(UInt16(String(decoding: digits, as: UTF16.self), radix: 16) ?? 0xFFFD)
        index += digits.count
      case let other: units.append(UInt16(other))
      }
    }
    return String(decoding: units, as: UTF16.self)
  }
}
