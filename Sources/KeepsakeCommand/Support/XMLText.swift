#if Cloud
/// Text from outside, as the text or an attribute of an XML document.
enum XMLText {
  /// Returns text that every XML parser reads: control characters and direction overrides are shown as escapes, and
  /// what no document may have is replaced.
  static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in Printable.text(text).unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      // `]]>` is an error in text.
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      case "\u{FFFE}", "\u{FFFF}": result += "\u{FFFD}"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
#endif
