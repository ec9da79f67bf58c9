import Foundation
import TestSupport

/// One declaration that games or tools can name: written `public`, a requirement of a public protocol, or a case of a
/// public enumeration.
struct PublicDeclaration: Equatable {
  /// Relative to the repository.
  var file: String
  /// From 1.
  var line: Int
  /// `func`, `var`, `struct`, `case` and so on.
  var keyword: String
  /// Without labels: `save`, `init`, `Slot`, `==`.
  var name: String
  /// The argument labels, in order; `_` where an argument has none. Nil for what takes no arguments.
  var labels: [String]?
  /// Whether a public protocol requires it.
  var isRequirement = false
  /// The lines of the documentation comment directly above it, without their slashes, with nothing but attributes
  /// between them and the declaration; empty if there is none.
  var documentation: [String]
  /// Whether it is there only to explain at compile time that it can't be used.
  var isUnavailable = false
  /// Set for functions, initialisers and subscripts.
  var call: CallSignature?

  var isDocumented: Bool { !documentation.isEmpty }

  /// As documentation writes it: `save(_:to:)`, `levels`.
  var signature: String { labels.map { "\(name)(\($0.map { "\($0):" }.joined()))" } ?? name }
}

/// Finds public declarations by reading the source line by line. It relies on the formatter: a declaration begins on a
/// line of its own, with its attributes before it or above it.
struct PublicDeclarationScanner {
  private static let keywords: Set<String> = [
    "func", "var", "let", "struct", "class", "enum", "actor", "protocol", "typealias", "macro", "associatedtype",
    "init", "subscript",
    "case",
    "extension", "import",
  ]
  private static let modifiers: Set<String> = [
    "public", "package", "internal", "private", "fileprivate", "open", "static", "final", "mutating", "nonmutating",
    "nonisolated",
    "override", "required", "convenience", "indirect", "lazy", "weak", "unowned", "consuming", "borrowing", "isolated",
    "prefix", "postfix",
    "infix", "dynamic", "optional", "distributed", "sending",
  ]
  private static let types: Set<String> = ["struct", "class", "enum", "actor", "protocol", "extension"]

  /// What a brace belongs to.
  private enum Scope { case publicEnum, publicProtocol, members, code }

  private let file: String
  private let lines: [String]
  /// The lines without comments and without the contents of strings.
  private let code: [String]

  init(file: String, text: String) {
    self.file = file
    lines = text.components(separatedBy: "\n")
    code = SwiftText.withoutStringsAndComments(text).components(separatedBy: "\n")
  }

  /// The declarations of all libraries; not those of the command and the macros, which nobody imports.
  static func ofLibraries() throws -> [PublicDeclaration] { try scanned.get() }

  /// Several tests look at them; to scan the sources takes seconds.
  private static let scanned = Result { try scanLibraries() }

  private static func scanLibraries() throws -> [PublicDeclaration] {
    let products = try FileManager.default.contentsOfDirectory(atPath: Repository.root.appending(path: "Sources").path)
    let inner: Set<String> = ["KeepsakeCommand", "KeepsakeMacros", "KeepsakeMacroExpansion", "CCurl", "CZstd", "CZlib"]
    return try products.sorted().filter { !inner.contains($0) && !$0.hasPrefix(".") }.flatMap { target in
      try FloorTests.sources(of: target).flatMap { url in
        let name = "Sources/" + url.path.components(separatedBy: "/Sources/").dropFirst().joined(separator: "/Sources/")
        return PublicDeclarationScanner(file: name, text: try String(contentsOf: url, encoding: .utf8)).declarations()
      }
    }
  }

  func declarations() -> [PublicDeclaration] {
    var found: [PublicDeclaration] = []
    var scopes: [Scope] = [.members]
    var pending: Scope?
    var depth = 0
    for (number, line) in code.enumerated() {
      let inMembers = depth == 0 && scopes.last != .code
      if inMembers, let head = Self.head(of: line), let scope = scopes.last {
        let isType = Self.types.contains(head.keyword)
        let isPublic =
          head.modifiers.contains("public") || head.modifiers.contains("open")
          || head.keyword == "case" && scope == .publicEnum
          || scope == .publicProtocol && !isType
        if isPublic, head.keyword != "extension", head.keyword != "import" {
          found += declarations(head, at: number, isRequirement: scope == .publicProtocol)
        }
        pending =
          switch head.keyword {
          case "enum" where isPublic: .publicEnum
          case "protocol" where isPublic: .publicProtocol
          default: isType ? .members : .code
          }
      }
      for character in line {
        switch character {
        case "(", "[": depth += 1
        case ")", "]": depth -= 1
        case "{":
          scopes.append(depth == 0 ? pending ?? .code : .code)
          if depth == 0 { pending = nil }
        case "}": if scopes.count > 1 { scopes.removeLast() }
        default: break
        }
      }
    }
    return found
  }

  private struct Head {
    var modifiers: [String]
    var keyword: String
    /// From the keyword on.
    var rest: Substring
  }

  /// The modifiers and the keyword of a declaration that begins on this line.
  private static func head(of line: String) -> Head? {
    var rest = line.drop { $0 == " " }
    var modifiers: [String] = []
    while !rest.isEmpty {
      if rest.first == "@" {
        rest = SwiftText.afterAttribute(rest)
        continue
      }
      let word = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
      guard !word.isEmpty else { return nil }
      let after = rest.dropFirst(word.count)
      // `class func` has a modifier that is a keyword, too.
      if keywords.contains(String(word)), word != "class" || !after.hasPrefix(" func ") && !after.hasPrefix(" var ") {
        return Head(modifiers: modifiers, keyword: String(word), rest: after)
      }
      guard modifiers.contains(String(word)) || Self.modifiers.contains(String(word)) || word == "class" else {
        return nil
      }
      if after.hasPrefix("(set)") {
        rest = after.dropFirst(5)
      } else {
        modifiers.append(String(word))
        rest = after.hasPrefix("(") ? SwiftText.afterParentheses(after) : after
      }
      rest = rest.drop { $0 == " " }
    }
    return nil
  }

  private func declarations(_ head: Head, at number: Int, isRequirement: Bool) -> [PublicDeclaration] {
    // Labels may be on further lines.
    let text = head.rest + "\n" + code[(number + 1)...].prefix(12).joined(separator: "\n")
    let names: [(String, [String]?)] =
      switch head.keyword {
      case "init", "subscript": [(head.keyword, SwiftText.labels(in: text[...]))]
      case "case": SwiftText.cases(in: text[...])
      case "func", "macro":
        // An operator's arguments have no labels.
        [SwiftText.name(in: text[...])].map {
          ($0, $0.first?.isLetter == true || $0.first == "_" ? SwiftText.labels(in: text[...]) : nil)
        }
      default: [(SwiftText.name(in: text[...]), nil)]
      }
    let comment = documentation(above: number)
    let isCall = ["func", "init", "subscript"].contains(head.keyword)
    return names.map {
      PublicDeclaration(
        file: file, line: number + 1, keyword: head.keyword, name: $0.0, labels: $0.1, isRequirement: isRequirement,
        documentation: comment.lines,
        isUnavailable: comment.attributes.contains(/@available\([^)]*\bunavailable\b/),
        call: isCall ? CallSignature(text[...]) : nil)
    }
  }

  /// Returns the documentation comment whose last line is the nearest line above that belongs to no attribute, and the
  /// attributes, with the line of the declaration itself.
  private func documentation(above number: Int) -> (lines: [String], attributes: String) {
    var attributes = code[number]
    var index = number - 1
    var open = 0
    while index >= 0 {
      let line = lines[index].drop { $0 == " " }
      if open == 0, line.hasPrefix("///") {
        let above = lines[..<index].lastIndex { line in !line.drop { $0 == " " }.hasPrefix("///") }
        let comment = lines[((above ?? -1) + 1)...index]
        return (comment.map { line in String(line.drop { $0 == " " }.dropFirst(3)) }, attributes)
      }
      // An attribute may take several lines: its last one closes what its first one opens.
      for character in code[index] { open += character == ")" ? 1 : character == "(" ? -1 : 0 }
      guard open > 0 || line.hasPrefix("@") || line.hasPrefix("#") || line.hasPrefix("//") else { break }
      attributes = code[index] + "\n" + attributes
      index -= 1
    }
    return ([], attributes)
  }
}
