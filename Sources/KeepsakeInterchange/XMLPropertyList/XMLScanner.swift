/// Splits XML into start tags, end tags and texts, as far as property lists use XML.
///
/// Supports XML's five predefined entities and numeric ones, including those of control characters, which XML forbids
/// and Foundation reads. A document type may be named and is skipped; one with its own definitions is rejected, because
/// these could expand to any amount of text or to other files. Attributes are skipped. The scanner only moves forward,
/// so its time is in proportion to the bytes.
struct XMLScanner {
  enum Tag: Equatable {
    /// `isEmpty` if the element ends in the same tag.
    case begin(String, isEmpty: Bool)
    case end(String)
    case done
  }

  private let bytes: UnsafeBufferPointer<UInt8>
  private var position = 0
  /// Whether an element has begun, after which no document type can follow.
  private var isInside = false
  /// The maximum length of a name: far beyond the names in property lists, and enough to name a wrong one in an error.
  private static let longestName = 100

  /// - Parameter bytes: UTF-8 that has been validated.
  init(_ bytes: UnsafeBufferPointer<UInt8>) {
    self.bytes = bytes
  }

  func error(_ code: PropertyListError.Code, _ message: String) -> PropertyListError {
    let line = bytes[..<min(position, bytes.count)].count { $0 == UInt8(ascii: "\n") } + 1
    return PropertyListError(code, message, line: line)
  }

  // MARK: Tags

  /// Returns the next start or end tag. Only white space, comments and processing instructions may precede it.
  mutating func tag() throws -> Tag {
    while position < bytes.count {
      let byte = bytes[position]
      if XMLText.isSpace(byte) {
        position += 1
      } else if byte != UInt8(ascii: "<") {
        throw error(.damaged, "There is text outside of any value")
      } else if let tag = try markup() {
        return tag
      }
    }
    return .done
  }

  /// Reads markup that begins with `<`; returns nil for a comment and other markup without content.
  private mutating func markup() throws -> Tag? {
    guard position + 1 < bytes.count else { throw cutOff() }
    switch bytes[position + 1] {
    case UInt8(ascii: "?"): try skip(beyond: "?>")
    case UInt8(ascii: "!"):
      if begins("<!--") {
        position += 4
        try skip(beyond: "-->")
      } else if !isInside && begins("<!DOCTYPE") {
        try skipType()
      } else {
        throw error(.damaged, "Markup that begins with <! isn't allowed here")
      }
    case UInt8(ascii: "/"):
      position += 2
      let name = try name()
      skipSpace()
      guard take(">") else { throw error(.damaged, "</\(name) doesn't end with >") }
      return .end(name)
    default:
      position += 1
      isInside = true
      let name = try name()
      return .begin(name, isEmpty: try skipAttributes(name))
    }
    return nil
  }

  private mutating func name() throws -> String {
    let start = position
    while position < bytes.count, Self.isName(bytes[position]) { position += 1 }
    guard position > start, position - start <= Self.longestName else {
      throw position >= bytes.count ? cutOff() : error(.damaged, "A < isn't followed by the name of an element")
    }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private static func isName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), 0x80...0xFF,
      UInt8(ascii: "_"), UInt8(ascii: ":"), UInt8(ascii: "-"), UInt8(ascii: "."):
      true
    default: false
    }
  }

  /// Skips to the end of a start tag; returns whether the element ends with it.
  private mutating func skipAttributes(_ element: String) throws -> Bool {
    while true {
      skipSpace()
      if take(">") { return false }
      if take("/>") { return true }
      _ = try name()
      skipSpace()
      guard take("=") else { throw error(.damaged, "An attribute of <\(element)> has no value") }
      skipSpace()
      guard position < bytes.count else { throw cutOff() }
      let quote = bytes[position]
      position += 1
      guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
        throw error(.damaged, "The value of an attribute of <\(element)> isn't in quotation marks")
      }
      while position < bytes.count, bytes[position] != quote, bytes[position] != UInt8(ascii: "<") { position += 1 }
      guard position < bytes.count else { throw cutOff() }
      guard bytes[position] == quote else {
        throw error(.damaged, "The value of an attribute of <\(element)> contains a <")
      }
      position += 1
    }
  }

  private mutating func skipType() throws {
    var quote: UInt8?
    while position < bytes.count {
      let byte = bytes[position]
      position += 1
      if let open = quote {
        if byte == open { quote = nil }
        continue
      }
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "'"): quote = byte
      case UInt8(ascii: "["):
        throw error(
          .unsupported, "The document type contains definitions, which no property list needs: remove the part in [ ]")
      case UInt8(ascii: ">"): return
      default: break
      }
    }
    throw cutOff()
  }

  // MARK: Texts

  /// Reads all text up to the end of the element that began last, and its end tag.
  mutating func text(of element: String) throws -> String {
    var text = ""
    while position < bytes.count {
      switch bytes[position] {
      case UInt8(ascii: "<"):
        if begins("<![CDATA[") {
          position += 9
          let start = position
          try skip(beyond: "]]>")
          try append(start..<position - 3, to: &text)
        } else if let tag = try markup() {
          guard tag == .end(element) else {
            if case .begin(let inner, _) = tag {
              throw error(.damaged, "<\(inner)> is inside <\(element)>, which can contain only text")
            }
            throw error(.damaged, "<\(element)> has no matching end tag")
          }
          return text
        }
      case UInt8(ascii: "&"): text.unicodeScalars.append(try entity())
      default:
        let start = position
        while position < bytes.count, bytes[position] != UInt8(ascii: "<"), bytes[position] != UInt8(ascii: "&") {
          position += 1
        }
        try append(start..<position, to: &text)
      }
    }
    throw cutOff()
  }

  /// Appends text, with line ends of every kind as line feeds, as XML requires.
  private mutating func append(_ range: Range<Int>, to text: inout String) throws {
    let part = UnsafeBufferPointer(rebasing: bytes[range])
    var hasReturns = false
    for (index, byte) in part.enumerated() where byte < 0x20 {
      guard XMLText.isSpace(byte) else {
        position = range.lowerBound + index
        throw error(
          .damaged, "A string contains the control character U+\(String(byte, radix: 16)), which XML doesn't allow")
      }
      hasReturns = hasReturns || byte == 0x0D
    }
    let plain = String(decoding: part, as: UTF8.self)
    text +=
      hasReturns ? plain.split(separator: /\r\n|\r/, omittingEmptySubsequences: false).joined(separator: "\n") : plain
  }

  private mutating func entity() throws -> Unicode.Scalar {
    let start = position + 1
    while position < bytes.count, bytes[position] != UInt8(ascii: ";"), position - start < Self.longestName {
      position += 1
    }
    guard position < bytes.count else { throw cutOff() }
    let name = String(decoding: bytes[start..<position], as: UTF8.self)
    position += 1
    switch name {
    case "amp": return "&"
    case "lt": return "<"
    case "gt": return ">"
    case "quot": return "\""
    case "apos": return "'"
    default:
      let digits = name.dropFirst(name.hasPrefix("#x") ? 2 : 1)
      let value = digits.allSatisfy(\.isHexDigit) ? UInt32(digits, radix: name.hasPrefix("#x") ? 16 : 10) : nil
      guard name.hasPrefix("#"), let value, let scalar = Unicode.Scalar(value) else {
        throw error(.damaged, "Unknown entity &\(name.prefix(40));")
      }
      return scalar
    }
  }

  // MARK: Bytes

  private func cutOff() -> PropertyListError { error(.damaged, "The XML ends in the middle: the file was cut off") }

  private func begins(_ text: StaticString) -> Bool {
    guard bytes.count - position >= text.utf8CodeUnitCount else { return false }
    for index in 0..<text.utf8CodeUnitCount where bytes[position + index] != text.utf8Start[index] { return false }
    return true
  }

  private mutating func take(_ text: StaticString) -> Bool {
    guard begins(text) else { return false }
    position += text.utf8CodeUnitCount
    return true
  }

  private mutating func skipSpace() {
    while position < bytes.count, XMLText.isSpace(bytes[position]) { position += 1 }
  }

  private mutating func skip(beyond end: StaticString) throws {
    while position < bytes.count {
      if take(end) { return }
      position += 1
    }
    throw cutOff()
  }
}
