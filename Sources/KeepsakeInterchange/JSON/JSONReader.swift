package import Foundation

/// Reads JSON strictly by RFC 8259, and JSON5, with a stack of its own instead of recursion.
///
/// Foundation's readers accept more than RFC 8259, each of them something different: what one happens to accept,
/// another program can't read. Foundation's reader of JSON5 ends the process on Linux, at a sign that no number
/// follows.
package struct JSONReader {
  /// What is made of the text.
  enum Purpose {
    /// Nothing: it is only checked.
    case check
    case tree
    /// JSON.
    case json
  }

  /// A list or object that has not ended yet.
  private struct Open {
    let isObject: Bool
    /// The position of its first byte.
    let start: Int
    var elements: [JSONTree] = []
    var members: [JSONTree.Member] = []
    var name = ""
    /// Where its names begin, if none may come twice.
    var names: [String: Int] = [:]
    /// Whether nothing of it has been written.
    var isEmpty = true
  }

  /// The tokens that may come next.
  private enum Expected { case value, valueOrEnd, name, nameOrEnd, commaOrEnd }

  private let purpose: Purpose
  private let maximumDepth: Int
  private var scanner: JSONScanner
  private var open: [Open] = []
  private var expected = Expected.value
  private var output: [UInt8] = []
  private var rounding = JSONRounding()

  /// Returns the value in a JSON text, with all members of an object, also of the same name.
  ///
  /// - Throws: `StructuredFileError` with `malformed`, the line and the column, also for an integer of more than 128
  ///   bits and for another number that is beyond the range of `Double`.
  package static func read(_ data: Data, maximumDepth: Int = StructuredFile.maximumDepth) throws -> JSONTree {
    try reading(data, .json, .tree, maximumDepth).tree
  }

  /// Returns the value in a JSON5 text, as people write it by hand; throws the same errors as `read`.
  package static func readJSON5(_ data: Data) throws -> JSONTree { try reading(data, .json5, .tree).tree }

  /// Throws the same errors as `read`, but allows integers that are only in the range of `Double`, and refuses a name
  /// that an object has already. Takes memory only for the names of objects that haven't ended.
  static func check(_ data: Data) throws { _ = try reading(data, .json, .check) }

  /// Returns JSON with the values of a JSON5 text; throws the same errors as `check`.
  static func json(fromJSON5 data: Data) throws -> Data { Data(try reading(data, .json5, .json).output) }

  static func reading(
    _ data: Data, _ syntax: JSONScanner.Syntax, _ purpose: Purpose, _ maximumDepth: Int = StructuredFile.maximumDepth
  ) throws -> (tree: JSONTree, output: [UInt8], rounding: JSONRounding) {
    try utf8(data).withUnsafeBytes { raw in
      try raw.withMemoryRebound(to: UInt8.self) { bytes in
        let scanner = JSONScanner(bytes: bytes, syntax: syntax)
        var reader = JSONReader(purpose: purpose, maximumDepth: maximumDepth, scanner: scanner)
        let tree = try reader.text()
        return (tree, reader.output, reader.rounding)
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

  private init(purpose: Purpose, maximumDepth: Int, scanner: JSONScanner) {
    (self.purpose, self.maximumDepth, self.scanner) = (purpose, maximumDepth, scanner)
  }

  // MARK: Structure

  private mutating func text() throws -> JSONTree {
    // A byte order mark, which some editors write, is meaningless in UTF-8.
    if scanner.bytes.starts(with: [0xEF, 0xBB, 0xBF]) { scanner.offset = 3 }
    while true {
      try scanner.skipSpace()
      if let whole = try token() {
        if open.isEmpty {
          try scanner.skipSpace()
          guard scanner.isAtEnd else { throw scanner.expected("the end of the file after the value") }
          return whole
        }
        take(whole)
      }
    }
  }

  /// Reads a token and returns the next value if it is complete; nil after a token that only begins, names or separates
  /// values.
  private mutating func token() throws -> JSONTree? {
    let isLoose = scanner.syntax == .json5
    switch expected {
    case .commaOrEnd:
      if scanner.skip(",") {
        // JSON5 allows a comma after the last element.
        if open.last?.isObject == true {
          expected = isLoose ? .nameOrEnd : .name
        } else {
          expected = isLoose ? .valueOrEnd : .value
        }
        return nil
      }
      return try end()
    case .nameOrEnd where scanner.next == UInt8(ascii: "}"), .valueOrEnd where scanner.next == UInt8(ascii: "]"):
      return try end()
    case .name, .nameOrEnd:
      try name()
      return nil
    case .value, .valueOrEnd:
      if scanner.next == UInt8(ascii: "[") || scanner.next == UInt8(ascii: "{") {
        try begin()
        return nil
      }
      return try scalar()
    }
  }

  private mutating func begin() throws {
    guard open.count < maximumDepth else {
      throw scanner.expected("lists and objects at most \(maximumDepth) deep", found: "one more")
    }
    write(beginning: true)
    write(scanner.bytes[scanner.offset])
    let isObject = scanner.next == UInt8(ascii: "{")
    open.append(Open(isObject: isObject, start: scanner.offset))
    scanner.offset += 1
    expected = isObject ? .nameOrEnd : .valueOrEnd
  }

  private mutating func end() throws -> JSONTree {
    guard let last = open.last, scanner.skip(last.isObject ? "}" : "]") else { throw unexpected() }
    open.removeLast()
    write(UInt8(ascii: last.isObject ? "}" : "]"))
    expected = .commaOrEnd
    return last.isObject ? .object(last.members) : .array(last.elements)
  }

  private mutating func name() throws {
    let name: String
    let start = scanner.offset
    if scanner.isAtString {
      name = try scanner.string()
    } else if scanner.syntax == .json5, scanner.isAtName {
      name = try scanner.name()
    } else {
      throw unexpected()
    }
    // In a file that a person writes, a mistake: of two values, one would be lost. RFC 8259 leaves open which.
    if purpose != .tree, let first = open[open.count - 1].names.updateValue(start, forKey: name) {
      throw scanner.repeatedName(from: start, first: first)
    }
    try scanner.skipSpace()
    guard scanner.skip(":") else { throw unexpected("a colon after the name") }
    open[open.count - 1].name = name
    expected = .value
    write(beginning: false)
    write(string: name)
    write(UInt8(ascii: ":"))
  }

  private mutating func take(_ value: JSONTree) {
    guard purpose == .tree else { return }
    let last = open.count - 1
    if open[last].isObject {
      open[last].members.append(.init(name: open[last].name, value: value))
    } else {
      open[last].elements.append(value)
    }
  }

  private mutating func scalar() throws -> JSONTree {
    let value: JSONTree
    switch scanner.next {
    case UInt8(ascii: "t"): value = try word("true", .bool(true))
    case UInt8(ascii: "f"): value = try word("false", .bool(false))
    case UInt8(ascii: "n"): value = try word("null", .null)
    case _ where scanner.isAtString:
      let string = try scanner.string()
      write(beginning: true)
      write(string: string)
      value = .string(string)
    case _ where scanner.isAtNumber: value = try number()
    default: throw unexpected()
    }
    expected = .commaOrEnd
    return value
  }

  private mutating func word(_ word: StaticString, _ value: JSONTree) throws -> JSONTree {
    try scanner.word(word)
    write(beginning: true)
    write("\(word)")
    return value
  }

  private mutating func number() throws -> JSONTree {
    let start = scanner.offset
    let text = try scanner.number()
    write(beginning: true)
    write(text)
    guard purpose == .tree else { return .null }
    if text != "-0", !text.utf8.contains(where: { $0 == UInt8(ascii: ".") || $0 | 0x20 == UInt8(ascii: "e") }) {
      guard let integer = Int128(text) else {
        throw scanner.refused(
          from: start, "an integer of at most 128 bits", note: "put it in quotation marks to make it a string")
      }
      return .integer(integer)
    }
    guard let number = Double(text) else { throw scanner.refused(from: start, "a number") }
    if JSONRounding.isRounded(text, readAs: number) {
      if rounding.count == 0 { rounding.first = "\(scanner.position(of: start))" }
      rounding.count += 1
    }
    return .number(number)
  }

  // MARK: Writing

  /// Writes a comma if one is needed before a name, or before a value (`beginning`) of a list.
  private mutating func write(beginning isValue: Bool) {
    guard purpose == .json, let last = open.indices.last, open[last].isObject != isValue else { return }
    if !open[last].isEmpty { output.append(UInt8(ascii: ",")) }
    open[last].isEmpty = false
  }

  private mutating func write(_ byte: UInt8) { if purpose == .json { output.append(byte) } }

  private mutating func write(_ text: String) { if purpose == .json { output += text.utf8 } }

  private mutating func write(string: String) {
    guard purpose == .json else { return }
    output.append(UInt8(ascii: "\""))
    for byte in string.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): output += [UInt8(ascii: "\\"), byte]
      case 0..<0x20: output += "\\u00\(byte < 0x10 ? "0" : "")\(String(byte, radix: 16))".utf8
      default: output.append(byte)
      }
    }
    output.append(UInt8(ascii: "\""))
  }

  // MARK: Errors

  /// The error for what is next, where something else is expected.
  private func unexpected(_ what: String? = nil) -> StructuredFileError {
    var note = expected == .value || expected == .valueOrEnd ? scanner.infiniteNote : ""
    if scanner.isAtEnd, let last = open.last {
      let beginning = scanner.position(of: last.start)
      note = "the \(last.isObject ? "object" : "list") that begins at \(beginning) isn't closed"
    }
    return scanner.expected(what ?? expectation, note: note)
  }

  private var expectation: String {
    let name = scanner.syntax == .json5 ? "a name" : "a name in double quotation marks"
    return switch expected {
    case .value: "a value"
    case .valueOrEnd: "a value or \"]\""
    case .name: name
    case .nameOrEnd: "\(name) or \"}\""
    case .commaOrEnd: open.last?.isObject == true ? "a comma or \"}\"" : "a comma or \"]\""
    }
  }
}
