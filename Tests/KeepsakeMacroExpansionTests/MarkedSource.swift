import Foundation

/// A source file with one type, and the positions of this package's attributes in it.
///
/// Finds only what the tests write: an attribute of the type is before its first brace, any other begins its line with
/// the property, case or method it is attached to.
struct MarkedSource {
  struct Attribute {
    let name: String
    let range: Range<String.Index>
    /// The whole declaration that it is attached to, with its attributes.
    let declaration: Range<String.Index>
  }

  let text: String
  let attributes: [Attribute]
  /// The name after `struct`, `enum` or `class`.
  let typeName: String

  init(_ text: String) {
    self.text = text
    typeName = text.firstMatch(of: /(?:struct|enum|class|actor) (\w+)/).map { String($0.1) } ?? ""
    let brace = text.firstIndex(of: "{") ?? text.endIndex
    attributes = text.matches(of: /@(Archivable|Unsaved|Key|Merge|Coded|Fallback)\b(?:\([^()]*\))?/).map { match in
      let isOnType = match.range.lowerBound < brace
      return Attribute(
        name: String(match.1), range: match.range,
        declaration: isOnType
          ? text.startIndex..<text.endIndex : Self.declaration(around: match.range.lowerBound, in: text))
    }
  }

  /// The source without these attributes, as the compiler continues with it.
  var stripped: String {
    var result = ""
    var end = text.startIndex
    for attribute in attributes {
      result += text[end..<attribute.range.lowerBound]
      end = attribute.range.upperBound
      if end < text.endIndex, text[end].isWhitespace { end = text.index(after: end) }
    }
    return result + text[end...]
  }

  /// The source with the members and the extensions that the plugin returned.
  func expanded(by answers: [MacroPlugin.Answer]) -> String {
    func answered(_ role: String) -> String {
      answers.filter { $0.role == role }.map(\.source).joined(separator: "\n").trimmingCharacters(
        in: .whitespacesAndNewlines)
    }
    var result = stripped
    if !answered("member").isEmpty, let end = result.lastIndex(of: "}") {
      let members = answered("member").split(separator: "\n", omittingEmptySubsequences: false).map {
        $0.isEmpty ? "" : "  \($0)"
      }
      result.replaceSubrange(end..., with: "\n\(members.joined(separator: "\n"))\n}")
    }
    return answered("extension").isEmpty ? result : "\(result)\n\n\(answered("extension"))"
  }

  /// Counted from 1, the column in bytes, as in the compiler's output.
  func position(ofByte offset: Int) -> (line: Int, column: Int) {
    let before = text.utf8.prefix(offset)
    return (
      before.count { $0 == UInt8(ascii: "\n") } + 1, before.reversed().prefix { $0 != UInt8(ascii: "\n") }.count + 1
    )
  }

  func applying(_ fixIt: MacroPlugin.Diagnostic.FixIt) -> String {
    var bytes = Array(text.utf8)
    for change in fixIt.changes.sorted(by: { $0.range.startOffset > $1.range.startOffset }) {
      bytes.replaceSubrange(change.range.startOffset..<change.range.endOffset, with: Array(change.newText.utf8))
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// From the first word of the line to its end, or to the brace that closes what it opens.
  private static func declaration(around index: String.Index, in text: String) -> Range<String.Index> {
    let line = text[..<index].lastIndex(of: "\n").map(text.index(after:)) ?? text.startIndex
    let start = text[line...].firstIndex { !$0.isWhitespace } ?? index
    var depth = 0
    for position in text[start...].indices {
      switch text[position] {
      case "{": depth += 1
      case "}": depth -= 1
      case "\n" where depth == 0: return start..<position
      default: break
      }
    }
    return start..<text.endIndex
  }
}
