package import Foundation

/// Reads JSON strictly by RFC 8259, with a stack of its own instead of recursion.
///
/// Foundation's readers accept more than that, each of them something different: what one happens to accept, another
/// program can't read.
package struct JSONReader {
  /// A list or object that has not ended yet.
  private struct Open {
    let isObject: Bool
    /// The position of its first byte.
    let start: Int
    var elements: [JSONTree] = []
    var members: [JSONTree.Member] = []
    var name = ""
  }

  /// The tokens that may come next.
  private enum Expected { case value, valueOrEnd, name, nameOrEnd, commaOrEnd }

  private let bytes: UnsafeBufferPointer<UInt8>
  /// Whether values are returned; if not, they are only checked.
  private let keepsValues: Bool
  private let maximumDepth: Int
  private var offset = 0
  private var open: [Open] = []
  private var expected = Expected.value

  /// Returns the value in a JSON text.
  ///
  /// - Throws: `StructuredFileError` with `malformed`, the line and the column.
  package static func read(_ data: Data, maximumDepth: Int = StructuredFile.maximumDepth) throws -> JSONTree {
    try reading(data, keepsValues: true, maximumDepth)
  }

  /// Returns the value in a JSON5 text, as people write it by hand.
  package static func readJSON5(_ data: Data) throws -> JSONTree { try read(JSON5Text.json(utf8(data))) }

  /// Throws the same errors as `read`, but takes no memory for values.
  static func check(_ data: Data) throws {
    _ = try reading(data, keepsValues: false, StructuredFile.maximumDepth)
  }

  private static func reading(_ data: Data, keepsValues: Bool, _ maximumDepth: Int) throws -> JSONTree {
    try utf8(data).withUnsafeBytes { raw in
      try raw.withMemoryRebound(to: UInt8.self) { bytes in
        var reader = JSONReader(bytes: bytes, keepsValues: keepsValues, maximumDepth: maximumDepth)
        return try reader.text()
      }
    }
  }

  /// Converts to UTF-8. UTF-16 and UTF-32, which other programs sometimes write, have zeros among the first four bytes,
  /// or a byte order mark.
  static func utf8(_ data: Data) throws -> Data {
    let start = data.prefix(4)
    let isUTF8 = !start.contains(0) && !start.starts(with: [0xFE, 0xFF]) && !start.starts(with: [0xFF, 0xFE])
    if isUTF8 || data.count < 2 { return data }
    // The first characters are ASCII, except for a byte order mark, so their zeros show width and byte order.
    let zeros = start.map { $0 == 0 }
    let encoding: String.Encoding
    if zeros.starts(with: [true, true]) {
      encoding = .utf32BigEndian
    } else if zeros.count == 4, zeros[2], zeros[3] {
      encoding = .utf32LittleEndian
    } else {
      encoding = zeros[0] || start.first == 0xFE ? .utf16BigEndian : .utf16LittleEndian
    }
    guard let text = String(data: data, encoding: encoding) else {
      throw StructuredFileError(.malformed, "the text is neither UTF-8 nor UTF-16 nor UTF-32")
    }
    return Data((text.hasPrefix("\u{FEFF}") ? String(text.dropFirst()) : text).utf8)
  }

  private init(bytes: UnsafeBufferPointer<UInt8>, keepsValues: Bool, maximumDepth: Int) {
    (self.bytes, self.keepsValues, self.maximumDepth) = (bytes, keepsValues, maximumDepth)
  }

  // MARK: Structure

  private mutating func text() throws -> JSONTree {
    // A byte order mark, which some editors write, is meaningless in UTF-8.
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { offset = 3 }
    while true {
      skipSpace()
      if let whole = try token() {
        if open.isEmpty {
          skipSpace()
          guard offset == bytes.count else { throw error("there is more text after the end of the value") }
          return whole
        }
        take(whole)
      }
    }
  }

  /// Reads a token and returns the next value if it is complete; nil after a token that only begins, names or separates
  /// values.
  private mutating func token() throws -> JSONTree? {
    guard offset < bytes.count else {
      throw error(
        open.last.map { $0.isObject ? "an object isn't closed" : "a list isn't closed" } ?? "there is no value")
    }
    let byte = bytes[offset]
    switch (byte, expected) {
    case (UInt8(ascii: ","), .commaOrEnd):
      offset += 1
      expected = open.last?.isObject == true ? .name : .value
      return nil
    case (UInt8(ascii: "]"), .commaOrEnd), (UInt8(ascii: "]"), .valueOrEnd):
      guard let list = open.last, !list.isObject else { throw error("] has no matching [") }
      return close(.array(list.elements))
    case (UInt8(ascii: "}"), .commaOrEnd), (UInt8(ascii: "}"), .nameOrEnd):
      guard let object = open.last, object.isObject else { throw error("} has no matching {") }
      return close(.object(object.members))
    case (_, .commaOrEnd): throw error("expected a comma or the end of the list or object, found \(found)")
    case (UInt8(ascii: "\""), .name), (UInt8(ascii: "\""), .nameOrEnd):
      let name = try string()
      skipSpace()
      guard offset < bytes.count, bytes[offset] == UInt8(ascii: ":") else {
        throw error("expected a colon after a name, found \(found)")
      }
      offset += 1
      open[open.count - 1].name = name
      expected = .value
      return nil
    case (_, .name), (_, .nameOrEnd): throw error("expected a name in quotation marks, found \(found)")
    case (UInt8(ascii: "["), _): return try begin(isObject: false)
    case (UInt8(ascii: "{"), _): return try begin(isObject: true)
    default:
      let value = try scalar(byte)
      expected = .commaOrEnd
      return value
    }
  }

  private mutating func begin(isObject: Bool) throws -> JSONTree? {
    guard open.count < maximumDepth else { throw error("lists and objects are nested more than \(maximumDepth) deep") }
    open.append(Open(isObject: isObject, start: offset))
    offset += 1
    expected = isObject ? .nameOrEnd : .valueOrEnd
    return nil
  }

  private mutating func close(_ value: JSONTree) -> JSONTree {
    open.removeLast()
    offset += 1
    expected = .commaOrEnd
    return value
  }

  private mutating func take(_ value: JSONTree) {
    guard keepsValues else { return }
    let last = open.count - 1
    if open[last].isObject {
      open[last].members.append(.init(name: open[last].name, value: value))
    } else {
      open[last].elements.append(value)
    }
  }

  // MARK: Values

  private mutating func scalar(_ byte: UInt8) throws -> JSONTree {
    switch byte {
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number(try number())
    default: throw error("expected a value, found \(found)")
    }
  }

  private mutating func word(_ word: StaticString, _ value: JSONTree) throws -> JSONTree {
    let text = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
    guard bytes[offset...].starts(with: text) else { throw error("expected a value, found \(found)") }
    offset += text.count
    return value
  }

  private mutating func number() throws -> String {
    let start = offset
    if bytes[offset] == UInt8(ascii: "-") { offset += 1 }
    let whole = digits()
    guard whole > 0 else { throw error("a number has no digits") }
    guard whole == 1 || bytes[offset - whole] != UInt8(ascii: "0") else {
      throw error("a number begins with an extra zero")
    }
    if offset < bytes.count, bytes[offset] == UInt8(ascii: ".") {
      offset += 1
      guard digits() > 0 else { throw error("a number has no digits after its decimal point") }
    }
    if offset < bytes.count, bytes[offset] | 0x20 == UInt8(ascii: "e") {
      offset += 1
      if offset < bytes.count, bytes[offset] == UInt8(ascii: "+") || bytes[offset] == UInt8(ascii: "-") { offset += 1 }
      guard digits() > 0 else { throw error("a number has no digits in its exponent") }
    }
    return keepsValues ? String(decoding: bytes[start..<offset], as: UTF8.self) : ""
  }

  /// Skips digits and returns how many there were.
  private mutating func digits() -> Int {
    let start = offset
    while offset < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[offset]) { offset += 1 }
    return offset - start
  }

  private mutating func string() throws -> String {
    offset += 1
    var text = ""
    var start = offset
    while offset < bytes.count {
      switch bytes[offset] {
      case UInt8(ascii: "\""):
        text += try piece(start)
        offset += 1
        return text
      case UInt8(ascii: "\\"):
        text += try piece(start)
        text.unicodeScalars.append(try escape())
        start = offset
      case 0..<0x20: throw error("a string contains a control character that isn't escaped")
      default: offset += 1
      }
    }
    throw error("a string isn't closed")
  }

  private func piece(_ start: Int) throws -> String {
    guard let text = String(validating: bytes[start..<offset], as: UTF8.self) else {
      throw error("a string is not valid UTF-8")
    }
    return text
  }

  private mutating func escape() throws -> Unicode.Scalar {
    offset += 1
    guard offset < bytes.count else { throw error("a string isn't closed") }
    let byte = bytes[offset]
    let scalar: Unicode.Scalar
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): scalar = Unicode.Scalar(byte)
    case UInt8(ascii: "b"): scalar = "\u{8}"
    case UInt8(ascii: "f"): scalar = "\u{C}"
    case UInt8(ascii: "n"): scalar = "\n"
    case UInt8(ascii: "r"): scalar = "\r"
    case UInt8(ascii: "t"): scalar = "\t"
    case UInt8(ascii: "u"): return try unicode()
    default: throw error("a backslash is followed by \(found), which is not an escape sequence")
    }
    offset += 1
    return scalar
  }

  /// Reads the character after `\u`: four digits, or two groups of four with another `\u` in between.
  private mutating func unicode() throws -> Unicode.Scalar {
    let first = try hexadecimal()
    guard (0xD800...0xDFFF).contains(first) else {
      guard let scalar = Unicode.Scalar(first) else { throw error("a \\u escape isn't a character") }
      return scalar
    }
    guard first < 0xDC00, offset + 1 < bytes.count, bytes[offset] == UInt8(ascii: "\\"),
      bytes[offset + 1] == UInt8(ascii: "u")
    else {
      throw error("a \\u escape is only half of a surrogate pair")
    }
    offset += 1
    let second = try hexadecimal()
    guard (0xDC00...0xDFFF).contains(second),
      let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
    else {
      throw error("a \\u escape is only half of a surrogate pair")
    }
    return scalar
  }

  /// Reads four digits, from the `u` on.
  private mutating func hexadecimal() throws -> UInt32 {
    offset += 1
    guard offset + 4 <= bytes.count else { throw error("\\u has fewer than four digits") }
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard bytes[offset] < 0x80, let digit = Character(Unicode.Scalar(bytes[offset])).hexDigitValue else {
        throw error("\\u has fewer than four digits")
      }
      value = value << 4 | UInt32(digit)
      offset += 1
    }
    return value
  }

  // MARK: Telling

  private mutating func skipSpace() {
    while offset < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[offset]) { offset += 1 }
  }

  /// A description of what was found instead of the expected token.
  private var found: String {
    guard offset < bytes.count else { return "the end" }
    let byte = bytes[offset]
    return (0x21...0x7E).contains(byte)
      ? "\"\(Character(Unicode.Scalar(byte)))\"" : "the byte 0x\(String(byte, radix: 16))"
  }

  private func error(_ message: String) -> StructuredFileError {
    let read = bytes[..<min(offset, bytes.count)]
    let line = read.count { $0 == 0x0A } + 1
    let column = read.reversed().prefix { $0 != 0x0A }.count + 1
    return StructuredFileError(.malformed, "line \(line), column \(column): \(message)")
  }
}
