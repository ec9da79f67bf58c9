import Foundation

/// Reading Swift source as text, as far as the tests about it need.
enum SwiftText {
  /// The text with the same lines, but without comments and the contents of strings.
  static func withoutStringsAndComments(_ text: String) -> String {
    var result = ""
    var rest = text[...]
    while let character = rest.first {
      if rest.hasPrefix("//") {
        rest = rest.drop { $0 != "\n" }
      } else if rest.hasPrefix("/*") {
        rest = skip(to: "*/", in: rest.dropFirst(2), into: &result)
      } else if let opening = stringOpening(rest) {
        rest = afterString(rest.dropFirst(opening.count), opening, into: &result)
      } else {
        result.append(character)
        rest.removeFirst()
      }
    }
    return result
  }

  /// The opening of a string that begins here: `"`, `"""` or either with number signs.
  private static func stringOpening(_ rest: Substring) -> Substring? {
    guard rest.first == "\"" || rest.first == "#" else { return nil }
    let signs = rest.prefix { $0 == "#" }
    let quotes = rest.dropFirst(signs.count)
    guard quotes.first == "\"" else { return nil }
    return rest.prefix(signs.count + (quotes.hasPrefix("\"\"\"") ? 3 : 1))
  }

  private static func afterString(_ rest: Substring, _ opening: Substring, into result: inout String) -> Substring {
    let signs = opening.filter { $0 == "#" }
    let closing = opening.filter { $0 == "\"" } + signs
    let escape = "\\" + signs
    var rest = rest
    while !rest.isEmpty {
      if rest.hasPrefix(closing) { return rest.dropFirst(closing.count) }
      if rest.hasPrefix(escape) {
        rest = rest.dropFirst(escape.count)
        if rest.first == "(" {
          // An interpolation may contain strings again.
          rest = afterInterpolation(rest.dropFirst(), into: &result)
          continue
        }
      }
      if rest.first == "\n" { result.append("\n") }
      rest = rest.dropFirst()
    }
    return rest
  }

  private static func afterInterpolation(_ rest: Substring, into result: inout String) -> Substring {
    var rest = rest
    var depth = 1
    while let character = rest.first, depth > 0 {
      if let opening = stringOpening(rest) {
        rest = afterString(rest.dropFirst(opening.count), opening, into: &result)
        continue
      }
      if character == "(" { depth += 1 }
      if character == ")" { depth -= 1 }
      if character == "\n" { result.append("\n") }
      rest = rest.dropFirst()
    }
    return rest
  }

  private static func skip(to end: String, in rest: Substring, into result: inout String) -> Substring {
    var rest = rest
    while !rest.isEmpty, !rest.hasPrefix(end) {
      if rest.first == "\n" { result.append("\n") }
      rest = rest.dropFirst()
    }
    return rest.dropFirst(end.count)
  }

  /// What follows an attribute and its arguments.
  static func afterAttribute(_ text: Substring) -> Substring {
    let rest = text.dropFirst().drop { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." }
    return (rest.first == "(" ? afterParentheses(rest) : rest).drop { $0 == " " }
  }

  /// What follows the parentheses that begin here.
  static func afterParentheses(_ text: Substring) -> Substring {
    var depth = 0
    for index in text.indices {
      if text[index] == "(" { depth += 1 }
      if text[index] == ")" {
        depth -= 1
        if depth == 0 { return text[text.index(after: index)...] }
      }
    }
    return ""
  }

  /// The first name: an identifier, or an operator.
  static func name(in text: Substring) -> String {
    let text = text.drop { $0 == " " || $0 == "`" }
    let name = text.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
    return String(name.isEmpty ? text.prefix { !$0.isWhitespace && $0 != "(" } : name)
  }

  /// The argument labels of the parentheses that come next, behind a name and its generic parameters: `_` where there
  /// is none.
  static func labels(in text: Substring) -> [String] {
    guard let start = text.firstIndex(of: "(") else { return [] }
    return arguments(in: text[start...]).compactMap { argument in
      var argument = argument.drop { $0.isWhitespace }
      while argument.first == "@" { argument = afterAttribute(argument) }
      guard !argument.isEmpty else { return nil }
      let label = argument.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
      return label.isEmpty || argument.dropFirst(label.count).drop(while: { $0 != ":" && $0 != "<" }).first != ":"
        ? "_" : String(label)
    }
  }

  /// The names that a function's body has for its parameters, in order, without those that are `_`.
  static func parameters(in text: Substring) -> [String] {
    guard let start = text.firstIndex(of: "(") else { return [] }
    return arguments(in: text[start...]).compactMap { argument in
      var argument = argument.drop { $0.isWhitespace }
      while argument.first == "@" { argument = afterAttribute(argument) }
      // The label, and the name if it is another one.
      guard let match = argument.prefixMatch(of: /(?<label>\w+)(?:\s+(?<name>\w+))?\s*:/) else { return nil }
      let name = match.name ?? match.label
      return name == "_" ? nil : String(name)
    }
  }

  /// The names of the cases of one `case`, with the labels of what each holds.
  static func cases(in text: Substring) -> [(String, [String]?)] {
    var found: [(String, [String]?)] = []
    var rest = text
    while true {
      rest = rest.drop { $0.isWhitespace || $0 == "`" }
      let name = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
      guard !name.isEmpty else { return found }
      rest = rest.dropFirst(name.count)
      if rest.first == "`" { rest = rest.dropFirst() }
      if rest.first == "(" {
        found.append((String(name), labels(in: rest)))
        rest = afterParentheses(rest)
      } else {
        found.append((String(name), nil))
      }
      // A raw value.
      if rest.hasPrefix(" = ") { rest = rest.dropFirst(3).drop { $0 != "," && $0 != "\n" } }
      guard rest.first == "," else { return found }
      rest = rest.dropFirst()
    }
  }

  /// The text between the outermost commas of the parentheses that begin here.
  private static func arguments(in text: Substring) -> [Substring] {
    var depth = 0
    var found: [Substring] = []
    var start = text.startIndex
    for index in text.indices {
      switch text[index] {
      case "(", "[", "{":
        depth += 1
        if depth == 1 { start = text.index(after: index) }
      case ")", "]", "}":
        depth -= 1
        if depth == 0 { return found + [text[start..<index]] }
      case "," where depth == 1:
        found.append(text[start..<index])
        start = text.index(after: index)
      default: break
      }
    }
    return found
  }

  /// The words of a name in camel case, in small letters: `hasMuchToSay` has four, `XMLReader` two.
  static func words(of name: String) -> [String] {
    var words: [String] = []
    var word = ""
    let characters = Array(name)
    for (index, character) in characters.enumerated() {
      guard character.isLetter else {
        if !word.isEmpty { words.append(word.lowercased()) }
        word = ""
        continue
      }
      let beginsWord =
        character.isUppercase
        && (index > 0 && !characters[index - 1].isUppercase
          || index + 1 < characters.count && characters[index + 1].isLowercase)
      if beginsWord, !word.isEmpty {
        words.append(word.lowercased())
        word = ""
      }
      word.append(character)
    }
    if !word.isEmpty { words.append(word.lowercased()) }
    return words
  }
}
