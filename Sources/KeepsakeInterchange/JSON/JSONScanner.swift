/// Reads the tokens of a JSON or JSON5 text; `JSONReader` knows in which order they may come.
///
/// Each error is at the first character with which the text can't be the beginning of a valid one. Only what is
/// complete and refused as a whole, such as a number that is out of range, is reported where it begins.
struct JSONScanner {
  enum Syntax {
    /// RFC 8259.
    case json
    /// JSON5, without numbers that aren't finite.
    case json5
  }

  let bytes: UnsafeBufferPointer<UInt8>
  let syntax: Syntax
  var offset = 0

  init(bytes: UnsafeBufferPointer<UInt8>, syntax: Syntax) { (self.bytes, self.syntax) = (bytes, syntax) }

  var isAtEnd: Bool { offset >= bytes.count }

  /// The next byte, or nil at the end.
  var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

  /// Skips a byte if it is the next one.
  mutating func skip(_ character: Unicode.Scalar) -> Bool {
    guard next == UInt8(ascii: character) else { return false }
    offset += 1
    return true
  }

  /// Returns the character that begins at a byte, and how many bytes it has; nil if it isn't valid UTF-8.
  func scalar(at start: Int) -> (scalar: Unicode.Scalar, count: Int)? {
    guard start < bytes.count else { return nil }
    let count =
      switch bytes[start] {
      case 0..<0x80: 1
      case 0xC0..<0xE0: 2
      case 0xE0..<0xF0: 3
      default: 4
      }
    guard start + count <= bytes.count,
      let scalar = String(validating: bytes[start..<(start + count)], as: UTF8.self)?.unicodeScalars.first
    else { return nil }
    return (scalar, count)
  }

  /// Returns the text from a byte to the next one.
  func text(from start: Int) throws -> String {
    if let text = String(validating: bytes[start..<offset], as: UTF8.self) { return text }
    var reached = self
    reached.offset = start
    while let (_, count) = scalar(at: reached.offset), reached.offset < offset { reached.offset += count }
    throw reached.expected("text in UTF-8")
  }

  // MARK: Spaces and comments

  mutating func skipSpace() throws {
    while let byte = next {
      switch byte {
      case 0x20, 0x09, 0x0A, 0x0D: offset += 1
      case _ where syntax == .json: return
      case 0x0B, 0x0C: offset += 1
      case UInt8(ascii: "/"): try skipComment()
      case 0x80...:
        guard let (scalar, count) = scalar(at: offset), Self.isSpace(scalar) else { return }
        offset += count
      default: return
      }
    }
  }

  private mutating func skipComment() throws {
    let start = offset
    offset += 1
    if skip("/") {
      while let byte = next, byte != 0x0A, byte != 0x0D, !isSeparator { offset += 1 }
      _ = try text(from: start)
      return
    }
    guard skip("*") else { throw expected("\"/\" or \"*\", which begin a comment") }
    while let byte = next {
      offset += 1
      if byte == UInt8(ascii: "*"), skip("/") {
        _ = try text(from: start)
        return
      }
    }
    _ = try text(from: start)
    throw expected("\"*/\"", note: "the comment that begins at \(position(of: start)) isn't closed")
  }

  /// Whether the next character is U+2028 or U+2029, which end a line in JSON5.
  var isSeparator: Bool {
    next == 0xE2 && offset + 2 < bytes.count && bytes[offset + 1] == 0x80
      && (bytes[offset + 2] == 0xA8 || bytes[offset + 2] == 0xA9)
  }

  private static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "\u{FEFF}", "\u{2028}", "\u{2029}": true
    default: scalar.properties.generalCategory == .spaceSeparator
    }
  }

  // MARK: Words and names

  /// Reads `true`, `false` or `null`, of which the first letter is next.
  mutating func word(_ word: StaticString) throws {
    let start = offset
    for letter in UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount) {
      guard next == letter else {
        let isWord = scalar(at: offset).map { Self.isName($0.scalar, isFirst: false) } ?? false
        throw expected("\(word)", found: isWord ? found(at: start) : nil)
      }
      offset += 1
    }
  }

  /// Whether a name without quotation marks begins here.
  var isAtName: Bool {
    next == UInt8(ascii: "\\") || scalar(at: offset).map { Self.isName($0.scalar, isFirst: true) } ?? false
  }

  /// Reads a name without quotation marks.
  mutating func name() throws -> String {
    var name = String.UnicodeScalarView()
    while true {
      let start = offset
      if skip("\\") {
        guard skip("u") else { throw expected("\"u\" and the digits of a character") }
        let value = try hexadecimal(4, after: "\\u")
        guard let scalar = Unicode.Scalar(value), Self.isName(scalar, isFirst: name.isEmpty) else {
          throw refused(from: start, "a character that a name can have")
        }
        name.append(scalar)
      } else if let (scalar, count) = scalar(at: offset), Self.isName(scalar, isFirst: name.isEmpty) {
        name.append(scalar)
        offset += count
      } else {
        return String(name)
      }
    }
  }

  /// Whether a name can have a character, by the rules for identifiers of ECMAScript 5.1, as JSON5 has them.
  static func isName(_ scalar: Unicode.Scalar, isFirst: Bool) -> Bool {
    switch scalar {
    case "a"..."z", "A"..."Z", "$", "_": return true
    case "0"..."9", "\u{200C}", "\u{200D}": return !isFirst
    case _ where scalar.isASCII: return false
    default: break
    }
    switch scalar.properties.generalCategory {
    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .letterNumber: return true
    case .nonspacingMark, .spacingMark, .decimalNumber, .connectorPunctuation: return !isFirst
    default: return false
    }
  }
}
