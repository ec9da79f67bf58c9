extension JSONScanner {
  /// Whether a number begins here.
  var isAtNumber: Bool {
    switch next {
    case let byte? where (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte): true
    case UInt8(ascii: "-"): true
    case UInt8(ascii: "+"), UInt8(ascii: "."): syntax == .json5
    default: false
    }
  }

  /// Reads a number and returns it as it is written in JSON.
  mutating func number() throws -> String {
    let start = offset
    var text = ""
    let isSigned = skip("-")
    if isSigned { text = "-" }
    let hasSign = isSigned || (syntax == .json5 && skip("+"))
    if syntax == .json5, next == UInt8(ascii: "0"), offset + 1 < bytes.count,
      bytes[offset + 1] | 0x20 == UInt8(ascii: "x")
    {
      offset += 2
      return text + (try hexadecimalNumber(from: start))
    }
    let whole = digits()
    if whole.isEmpty {
      guard syntax == .json5, next == UInt8(ascii: ".") else {
        throw expected(hasSign ? "a digit after the sign" : "a digit", note: infiniteNote)
      }
    } else if whole.count > 1, whole.first == UInt8(ascii: "0") {
      offset -= whole.count - 1
      throw expected("no further digit after a zero at the beginning of a number")
    }
    text += whole.isEmpty ? "0" : String(decoding: whole, as: UTF8.self)
    if skip(".") {
      let fraction = digits()
      guard !fraction.isEmpty || (syntax == .json5 && !whole.isEmpty) else {
        throw expected("a digit after the decimal point")
      }
      if !fraction.isEmpty { text += "." + String(decoding: fraction, as: UTF8.self) }
    }
    let exponent = offset
    let hasExponent = skip("e") || skip("E")
    if hasExponent {
      if !skip("-") { _ = skip("+") }
      guard !digits().isEmpty else { throw expected("a digit of the exponent") }
      text += String(decoding: bytes[exponent..<offset], as: UTF8.self)
    }
    // Only an exponent or many digits lead out of the range.
    if hasExponent || text.utf8.count > 300 { try checkRange(of: text, from: start) }
    return text
  }

  /// Refuses a number that would be read as infinity, or as zero without being zero.
  private func checkRange(of text: String, from start: Int) throws {
    guard let value = Double(text), value.isFinite else {
      throw refused(from: start, "a number between -1.8e308 and 1.8e308")
    }
    let digits = text.utf8.prefix { $0 | 0x20 != UInt8(ascii: "e") }
    guard value != 0 || !digits.contains(where: { (UInt8(ascii: "1")...UInt8(ascii: "9")).contains($0) }) else {
      throw refused(from: start, "zero, or a number that is not nearer to it than 5e-324")
    }
  }

  /// What is said of a word that JSON5 has and Keepsake doesn't read.
  var infiniteNote: String {
    bytes[offset...].starts(with: "Infinity".utf8) || bytes[offset...].starts(with: "NaN".utf8)
      ? "numbers that aren't finite aren't supported" : ""
  }

  /// Skips digits and returns them.
  private mutating func digits() -> Slice<UnsafeBufferPointer<UInt8>> {
    let start = offset
    while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { offset += 1 }
    return bytes[start..<offset]
  }

  private mutating func hexadecimalNumber(from start: Int) throws -> String {
    guard var value = digit().map(UInt64.init) else { throw expected("a hexadecimal digit after 0x") }
    var fits = true
    while let digit = digit() {
      if value >> 60 != 0 { fits = false }
      value = value << 4 | UInt64(digit)
    }
    guard fits else { throw refused(from: start, "a hexadecimal number of at most 64 bits") }
    return "\(value)"
  }

  /// Reads a hexadecimal digit, if one is next.
  private mutating func digit() -> UInt32? {
    guard let byte = next, byte < 0x80, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { return nil }
    offset += 1
    return UInt32(digit)
  }

  /// Reads a number of hexadecimal digits.
  mutating func hexadecimal(_ count: Int, after sequence: String) throws -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<count {
      guard let digit = digit() else {
        throw expected("\(count == 2 ? "two" : "four") hexadecimal digits after \(sequence)")
      }
      value = value << 4 | digit
    }
    return value
  }
}
