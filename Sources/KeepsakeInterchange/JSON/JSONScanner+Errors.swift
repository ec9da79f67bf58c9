extension JSONScanner {
  /// How much of what was found is shown.
  private static let longest = 40

  func position(of offset: Int) -> JSONPosition { JSONPosition(of: offset, in: bytes) }

  /// Returns the error for what is next. All errors are worded alike: position, what was expected, what was found.
  ///
  /// - Parameters:
  ///   - what: What was expected.
  ///   - found: What was found, if that isn't what is next.
  ///   - note: Something to add; may be empty.
  func expected(_ what: String, found: String? = nil, note: String = "") -> StructuredFileError {
    error(at: offset, what, found ?? self.found(at: offset), note)
  }

  /// Returns the error for what was read from a byte on, and is refused as a whole.
  func refused(from start: Int, _ what: String, note: String = "") -> StructuredFileError {
    let read = String(decoding: bytes[start..<offset], as: UTF8.self)
    return error(at: start, what, Self.quoted(read), note)
  }

  /// Returns the error for a name that was read from a byte on, and that the object has already, at `first`.
  func repeatedName(from start: Int, first: Int) -> StructuredFileError {
    var name = bytes[start..<offset]
    // An unquoted name has no quotation marks.
    if let quote = name.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
      name = name.dropFirst().dropLast()
    }
    return error(
      at: start, "another name", Self.quoted(String(decoding: name, as: UTF8.self)),
      "the object has this name already, at \(position(of: first))")
  }

  private func error(at offset: Int, _ what: String, _ found: String, _ note: String) -> StructuredFileError {
    StructuredFileError(
      .malformed, "\(position(of: offset)): expected \(what), found \(found)\(note.isEmpty ? "" : "; \(note)")")
  }

  private static func quoted(_ text: String) -> String {
    "\"\(text.prefix(longest))\(text.count > longest ? "..." : "")\""
  }

  /// Describes the word or the character at a byte.
  func found(at start: Int) -> String {
    guard start < bytes.count else { return "the end of the file" }
    guard let (first, _) = scalar(at: start) else {
      return "the byte 0x\(String(bytes[start], radix: 16, uppercase: true)), which isn't UTF-8"
    }
    if Self.isName(first, isFirst: false), first.properties.generalCategory != .format {
      var end = start
      // One more than is shown.
      while end - start <= 4 * Self.longest, let (scalar, count) = scalar(at: end),
        Self.isName(scalar, isFirst: false) || scalar == "."
      { end += count }
      return Self.quoted(String(decoding: bytes[start..<end], as: UTF8.self))
    }
    switch first {
    case "\n", "\r": return "a line break"
    case "\t": return "a tab"
    case "\"": return "a double quotation mark"
    case "'": return "a single quotation mark"
    case "\u{21}"..."\u{7E}": return "\"\(first)\""
    default: break
    }
    let code = String(first.value, radix: 16, uppercase: true)
    let name = "U+" + String(repeating: "0", count: max(0, 4 - code.count)) + code
    switch first.properties.generalCategory {
    // Showing these would show nothing, or change how the text around them is shown.
    case .control, .format, .surrogate, .privateUse, .unassigned, .spaceSeparator, .lineSeparator, .paragraphSeparator,
      .nonspacingMark, .spacingMark, .enclosingMark:
      return name
    default: return "\"\(first)\" (\(name))"
    }
  }
}
