import Foundation

/// Converts JSON5 to JSON, token by token, so that the JSON reader reports its errors. The order of the tokens isn't
/// checked here.
///
/// Foundation's own JSON5 reader isn't used: on Linux it ends the process at a sign that no number follows.
struct JSON5Text {
  /// The last token, ignoring white space and comments.
  private enum Token { case opener, comma, other }

  private let bytes: [UInt8]
  private var offset = 0
  private var output: [UInt8] = []
  private var last = Token.opener
  /// The position in the output of the last comma, which is removed if a closing bracket follows.
  private var comma: Int?

  /// - Throws: `StructuredFileError` with `malformed` and the line, for text that can't be converted to JSON.
  static func json(_ utf8: Data) throws -> Data {
    var text = JSON5Text(bytes: [UInt8](utf8))
    text.output.reserveCapacity(text.bytes.count)
    while text.offset < text.bytes.count { try text.step() }
    return Data(text.output)
  }

  private init(bytes: [UInt8]) { self.bytes = bytes }

  private func peek(_ distance: Int = 0) -> UInt8 { offset + distance < bytes.count ? bytes[offset + distance] : 0 }

  private mutating func step() throws {
    if skipSpace() { return }
    let byte = peek()
    switch byte {
    case UInt8(ascii: "/") where peek(1) == UInt8(ascii: "/"): skipLine()
    case UInt8(ascii: "/") where peek(1) == UInt8(ascii: "*"): try skipComment()
    case UInt8(ascii: "\""), UInt8(ascii: "'"): try string(byte)
    case UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "0")...UInt8(ascii: "9"): try number()
    case UInt8(ascii: ","):
      comma = last == .other ? output.count : nil
      pass(.comma)
    case UInt8(ascii: "["), UInt8(ascii: "{"): pass(.opener)
    case UInt8(ascii: "]"), UInt8(ascii: "}"):
      // One comma before a closing bracket is allowed, and removed.
      if last == .comma, let comma { output[comma] = 0x20 }
      pass(.other)
    case _ where Self.isName(byte): try name()
    default: pass(.other)
    }
  }

  private mutating func pass(_ token: Token) {
    output.append(bytes[offset])
    offset += 1
    last = token
  }

  // MARK: Space

  /// Skips white space. Line ends stay, so that lines are counted correctly.
  private mutating func skipSpace() -> Bool {
    switch peek() {
    case 0x20, 0x09, 0x0A, 0x0D:
      output.append(peek())
      offset += 1
    case 0x0B, 0x0C: skipForeignSpace(1)
    case 0xC2 where peek(1) == 0xA0: skipForeignSpace(2)
    case 0xE2 where peek(1) == 0x80 && (peek(2) == 0xA8 || peek(2) == 0xA9): skipForeignSpace(3)
    case 0xEF where peek(1) == 0xBB && peek(2) == 0xBF: skipForeignSpace(3)
    default: return false
    }
    return true
  }

  /// Replaces white space that JSON doesn't have by a space, which keeps the tokens around it apart.
  private mutating func skipForeignSpace(_ count: Int) {
    output.append(0x20)
    offset += count
  }

  private mutating func skipLine() {
    while offset < bytes.count, peek() != 0x0A, peek() != 0x0D { offset += 1 }
  }

  private mutating func skipComment() throws {
    offset += 2
    // A space keeps the tokens around the comment apart.
    output.append(0x20)
    while offset < bytes.count {
      if peek() == UInt8(ascii: "*"), peek(1) == UInt8(ascii: "/") {
        offset += 2
        return
      }
      if peek() == 0x0A { output.append(0x0A) }
      offset += 1
    }
    throw error("a comment isn't closed")
  }

  // MARK: Texts and names

  private mutating func string(_ quote: UInt8) throws {
    output.append(UInt8(ascii: "\""))
    offset += 1
    last = .other
    while offset < bytes.count {
      let byte = peek()
      offset += 1
      switch byte {
      case quote:
        output.append(UInt8(ascii: "\""))
        return
      case UInt8(ascii: "\""): output += "\\\"".utf8
      case UInt8(ascii: "\\"): try escape()
      case 0x0A, 0x0D: throw error("a string contains a line break that isn't escaped")
      case 0..<0x20: escape(UInt32(byte))
      default: output.append(byte)
      }
    }
    throw error("a string isn't closed")
  }

  /// Converts an escape sequence, after its backslash.
  private mutating func escape() throws {
    guard offset < bytes.count else { throw error("a string isn't closed") }
    let byte = peek()
    offset += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"),
      UInt8(ascii: "r"),
      UInt8(ascii: "t"), UInt8(ascii: "u"):
      output += [UInt8(ascii: "\\"), byte]
    case UInt8(ascii: "v"): escape(0x0B)
    case UInt8(ascii: "0"): escape(0)
    case UInt8(ascii: "1")...UInt8(ascii: "9"):
      throw error("unknown escape sequence \\\(Character(Unicode.Scalar(byte)))")
    case UInt8(ascii: "x"):
      guard let first = Self.digit(peek()), let second = Self.digit(peek(1)) else {
        throw error("\\x has fewer than two digits")
      }
      offset += 2
      escape(first << 4 | second)
    // An escaped line break continues the text on the next line.
    case 0x0A: break
    case 0x0D: if peek() == 0x0A { offset += 1 }
    case 0xE2 where peek() == 0x80 && (peek(1) == 0xA8 || peek(1) == 0xA9): offset += 2
    case 0..<0x20: escape(UInt32(byte))
    default: output.append(byte)
    }
  }

  private mutating func escape(_ value: UInt32) {
    let digits = String(value, radix: 16)
    output += ("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8
  }

  private static func digit(_ byte: UInt8) -> UInt32? {
    byte < 0x80 ? Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt32($0) } : nil
  }

  private static func isName(_ byte: UInt8) -> Bool {
    byte >= 0x80 || byte == UInt8(ascii: "$") || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "\\")
      || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }

  /// Converts a word, or a name without quotation marks, which is followed by a colon.
  private mutating func name() throws {
    let start = offset
    while offset < bytes.count, Self.isName(peek()) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(peek()) {
      offset += 1
    }
    let word = bytes[start..<offset]
    last = .other
    if isBeforeColon() {
      output.append(UInt8(ascii: "\""))
      output += word
      output.append(UInt8(ascii: "\""))
    } else if word.elementsEqual("Infinity".utf8) || word.elementsEqual("NaN".utf8) {
      throw error("numbers that aren't finite are not supported")
    } else {
      output += word
    }
  }

  /// Looks ahead beyond white space and comments, without consuming them.
  private func isBeforeColon() -> Bool {
    var ahead = JSON5Text(bytes: bytes)
    ahead.offset = offset
    while ahead.offset < bytes.count {
      if ahead.skipSpace() { continue }
      if ahead.peek() == UInt8(ascii: "/"), ahead.peek(1) == UInt8(ascii: "/") {
        ahead.skipLine()
      } else if ahead.peek() == UInt8(ascii: "/"), ahead.peek(1) == UInt8(ascii: "*") {
        // A comment without an end is reported when its beginning is read.
        guard (try? ahead.skipComment()) != nil else { return false }
      } else {
        return ahead.peek() == UInt8(ascii: ":")
      }
    }
    return false
  }

  // MARK: Numbers

  private mutating func number() throws {
    last = .other
    if peek() == UInt8(ascii: "+") { offset += 1 } else if peek() == UInt8(ascii: "-") { pass(.other) }
    if peek() == UInt8(ascii: "0"), peek(1) | 0x20 == UInt8(ascii: "x") { return try hexadecimal() }
    let whole = digits()
    if whole == 0 {
      guard peek() == UInt8(ascii: "."), (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(peek(1)) else {
        throw error(
          "a sign or a decimal point isn't followed by a number; numbers that aren't finite are not supported")
      }
      output.append(UInt8(ascii: "0"))
    }
    if peek() == UInt8(ascii: ".") {
      let place = output.count
      pass(.other)
      // A decimal point without digits after it is removed.
      if digits() == 0 { output.removeSubrange(place...) }
    }
    if peek() | 0x20 == UInt8(ascii: "e") {
      pass(.other)
      if peek() == UInt8(ascii: "+") || peek() == UInt8(ascii: "-") { pass(.other) }
      _ = digits()
    }
  }

  private mutating func digits() -> Int {
    let start = offset
    while offset < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(peek()) { pass(.other) }
    return offset - start
  }

  private mutating func hexadecimal() throws {
    offset += 2
    let start = offset
    var value: UInt64 = 0
    while let digit = Self.digit(peek()), offset < bytes.count {
      guard value >> 60 == 0 else { throw error("a hexadecimal number takes more than 64 bits") }
      value = value << 4 | UInt64(digit)
      offset += 1
    }
    guard offset > start else { throw error("a hexadecimal number has no digits") }
    output += "\(value)".utf8
  }

  private func error(_ message: String) -> StructuredFileError {
    let line = bytes[..<min(offset, bytes.count)].count { $0 == 0x0A } + 1
    return StructuredFileError(.malformed, "line \(line): \(message)")
  }
}
