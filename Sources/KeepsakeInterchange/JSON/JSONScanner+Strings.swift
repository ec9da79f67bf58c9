extension JSONScanner {
  /// Whether a string begins here.
  var isAtString: Bool { next == UInt8(ascii: "\"") || (syntax == .json5 && next == UInt8(ascii: "'")) }

  /// Reads a string, from its first quotation mark on.
  mutating func string() throws -> String {
    let begin = offset
    let quote = bytes[offset]
    offset += 1
    var string = ""
    var start = offset
    while let byte = next {
      switch byte {
      case quote:
        string += try text(from: start)
        offset += 1
        return string
      case UInt8(ascii: "\\"):
        string += try text(from: start)
        if let scalar = try escape() { string.unicodeScalars.append(scalar) }
        start = offset
      case 0x0A, 0x0D,
        0..<0x20 where syntax == .json:
        _ = try text(from: start)
        throw expected(
          "the end of the string", found: "\(found(at: offset)), which must be escaped", note: beginning(begin))
      default: offset += 1
      }
    }
    _ = try text(from: start)
    throw expected("the end of the string", note: beginning(begin))
  }

  private func beginning(_ begin: Int) -> String { "the string begins at \(position(of: begin))" }

  /// Reads an escape sequence, from its backslash on; returns nil for a line that is continued.
  private mutating func escape() throws -> Unicode.Scalar? {
    let start = offset
    offset += 1
    guard let byte = next else { throw expected("an escape sequence after the backslash") }
    offset += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{C}"
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "u"): return try unicode(from: start)
    case _ where syntax == .json:
      offset -= 1
      throw expected("an escape sequence after the backslash, one of \" \\ / b f n r t u")
    case UInt8(ascii: "v"): return "\u{B}"
    case UInt8(ascii: "x"): return Unicode.Scalar(try hexadecimal(2, after: "\\x"))
    case UInt8(ascii: "0"):
      guard let after = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(after) else { return "\0" }
      throw expected("no digit after \\0")
    case UInt8(ascii: "1")...UInt8(ascii: "9"):
      offset -= 1
      throw expected("an escape sequence after the backslash")
    case 0x0A: return nil
    case 0x0D:
      _ = skip("\n")
      return nil
    case 0x80...:
      offset -= 1
      let continues = isSeparator
      guard let (scalar, count) = scalar(at: offset) else { throw expected("text in UTF-8") }
      offset += count
      return continues ? nil : scalar
    default: return Unicode.Scalar(byte)
    }
  }

  /// Reads the character after `\u`: four digits, or two groups of four with another `\u` in between.
  private mutating func unicode(from start: Int) throws -> Unicode.Scalar {
    let first = try hexadecimal(4, after: "\\u")
    if let scalar = Unicode.Scalar(first) { return scalar }
    guard first < 0xDC00 else {
      throw refused(from: start, "a character, or the first half of a surrogate pair")
    }
    let second = offset
    guard skip("\\"), skip("u") else { throw expected("\\u with the second half of a surrogate pair") }
    let low = try hexadecimal(4, after: "\\u")
    guard (0xDC00...0xDFFF).contains(low),
      let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (low - 0xDC00))
    else { throw refused(from: second, "the second half of a surrogate pair") }
    return scalar
  }
}
