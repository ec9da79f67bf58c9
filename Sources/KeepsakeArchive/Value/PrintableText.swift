/// Text from an archive made safe for a terminal and short enough for a line.
package enum PrintableText {
  /// Control characters and direction overrides as escapes.
  package static func escaped(_ text: String) -> String { cut(text, .max) }

  /// Control characters and direction overrides as escapes, and a cut after `characters`.
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

  /// A type's, field's or case's name.
  package static func name(_ text: String) -> String { cut(text, ValueLine.nameCharacters) }

  /// In quotation marks, with those inside escaped.
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
    // The joiner holds emoji together and moves nothing.
    case .format where scalar == "\u{200D}": result.unicodeScalars.append(scalar)
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: result += "\\u{\(String(scalar.value, radix: 16))}"
    default: result.unicodeScalars.append(scalar)
    }
  }
}
