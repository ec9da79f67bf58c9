/// Makes text from an archive safe for a terminal and short enough for a line.
package enum PrintableText {
  /// Returns a text with control characters and direction overrides as escapes.
  package static func escaped(_ text: String) -> String { cut(text, .max) }

  /// Returns a text with control characters and direction overrides as escapes, truncated after `characters`.
  package static func cut(_ text: String, _ characters: Int) -> String {
    var result = ""
    var count = 0
    for scalar in text.unicodeScalars {
      guard count < characters else { return result + "..." }
      count += 1
      append(scalar, to: &result)
    }
    return result
  }

  /// Returns a number of things: "1 key", "2 keys".
  package static func count(_ count: some BinaryInteger, _ noun: String) -> String {
    "\(count) \(noun)\(count == 1 ? "" : "s")"
  }

  /// Returns the name of a type, field or case, escaped and truncated.
  package static func name(_ text: String) -> String { cut(text, ValueLine.nameCharacters) }

  /// Returns a text in quotation marks, with those inside escaped.
  package static func quoted(_ text: String, longest: Int) -> String {
    var result = "\""
    var count = 0
    for scalar in text.unicodeScalars {
      guard count < longest else { return result + "...\"" }
      count += 1
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\t": result += "\\t"
      default: append(scalar, to: &result)
      }
    }
    return result + "\""
  }

  private static func append(_ scalar: Unicode.Scalar, to result: inout String) {
    switch scalar.properties.generalCategory {
    // The zero-width joiner holds emoji together and doesn't move text.
    case .format where scalar == "\u{200D}": result.unicodeScalars.append(scalar)
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate:
      result += "\\u{\(String(scalar.value, radix: 16))}"
    default: result.unicodeScalars.append(scalar)
    }
  }
}
