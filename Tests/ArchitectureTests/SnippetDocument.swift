import Foundation
import TestSupport

/// The Swift snippets of a document, made into source files that the compiler can check.
///
/// The snippets of a document are one program: each may use what an earlier one declares. The statements of each become
/// the body of a function. What a snippet needs but doesn't show is in a comment before it, which readers don't see:
///
///     <!-- snippet
///     let session: Session            a parameter of the function
///     var world: World                the same, as a variable
///     | @Archivable struct Level { }  anything else: a declaration of the program. The bar is removed; it keeps
///                                     DocC from taking a line with an attribute for a directive, even in a comment
///     before: switch event {          is inserted before the snippet's text
///     after: }                        is inserted after it
///     new                             begins another program
///     manifest                        a part of a Package.swift
///     skip: SwiftUI                   isn't compiled, and why
///     -->
///
/// Every snippet has `game: GameData`, `url: URL` and `key: String` without declaring them.
struct SnippetDocument {
  struct Program {
    var isManifest = false
    var imports: Set<String> = []
    var source = ""
  }

  private struct Directives {
    var parameters: [(name: String, type: String, isVariable: Bool)] = []
    var declarations: [String] = []
    var before = ""
    var after = ""
    var isNew = false
    var isManifest = false
    var reasonToSkip: String?

    init(_ lines: [String]) {
      for line in lines {
        let text = line.trimmingCharacters(in: .whitespaces)
        if let match = text.wholeMatch(of: /(let|var) (\w+): ([^={]+)/) {
          parameters.append((String(match.2), String(match.3), match.1 == "var"))
        } else if text.hasPrefix("before: ") {
          before += text.dropFirst(8) + "\n"
        } else if text.hasPrefix("after: ") {
          after += text.dropFirst(7) + "\n"
        } else if text.hasPrefix("skip: ") {
          reasonToSkip = String(text.dropFirst(6))
        } else if text == "new" {
          isNew = true
        } else if text == "manifest" {
          isManifest = true
        } else {
          declarations.append(line.hasPrefix("| ") ? String(line.dropFirst(2)) : line)
        }
      }
    }
  }

  private static let declarationKeywords: Set<String> = [
    "struct", "class", "enum", "actor", "protocol", "extension", "typealias", "func", "import",
  ]
  private static let modifiers: Set<String> = ["public", "final", "private", "fileprivate", "nonisolated", "indirect"]

  private(set) var programs: [Program] = []
  /// The number of blocks of Swift, including those that aren't compiled.
  private(set) var count = 0
  /// Why some blocks aren't compiled.
  private(set) var skipped: [String] = []

  /// - Parameter name: The document's name in the messages of the compiler, which have its line numbers.
  init(_ text: String, name: String) {
    let lines = text.components(separatedBy: "\n")
    var comment: [String] = []
    var index = 0
    while index < lines.count {
      let line = lines[index]
      index += 1
      if line.hasPrefix("<!-- snippet") {
        comment = []
        while index < lines.count, !lines[index].hasPrefix("-->") {
          comment.append(lines[index])
          index += 1
        }
        index += 1
      } else if line == "```swift" {
        let start = index
        while index < lines.count, lines[index] != "```" { index += 1 }
        count += 1
        let directives = Directives(comment)
        add(Array(lines[start..<index]), directives, at: start + 1, of: name)
        comment = []
        index += 1
      } else if !line.isEmpty {
        comment = []
        // A block of another kind may hold anything.
        if line.hasPrefix("```") {
          while index < lines.count, lines[index] != "```" { index += 1 }
          index += 1
        }
      }
    }
  }

  private mutating func add(_ lines: [String], _ directives: Directives, at line: Int, of name: String) {
    if let reason = directives.reasonToSkip {
      skipped.append(reason)
      return
    }
    let isManifest = directives.isManifest || lines.contains("import PackageDescription")
    if programs.isEmpty || directives.isNew || isManifest || programs[programs.count - 1].isManifest {
      programs.append(Program(isManifest: isManifest))
    }
    let (imports, declarations, statements) = Self.split(lines)
    let last = programs.count - 1
    programs[last].imports.formUnion(imports)
    for line in directives.declarations where line.hasPrefix("import ") { programs[last].imports.insert(line) }
    let further = directives.declarations.filter { !$0.hasPrefix("import ") }
    programs[last].source += (further + [""]).joined(separator: "\n")
    func located(_ text: [(offset: Int, line: String)], after head: String = "") -> String {
      var result = ""
      var expected: Int?
      for (offset, code) in text {
        if offset != expected {
          // Before the head, because a `switch` may contain only cases.
          let first = result.isEmpty ? head : ""
          let number = line + offset - first.count { $0 == "\n" }
          result += "#sourceLocation(file: \"\(name)\", line: \(max(number, 1)))\n" + first
        }
        result += code + "\n"
        expected = offset + 1
      }
      return result
    }
    programs[last].source += located(declarations)
    guard !statements.isEmpty else { return }
    let given = isManifest ? [] : [("game", "GameData", false), ("url", "URL", false), ("key", "String", false)]
    let all = given.filter { own in !directives.parameters.contains { $0.name == own.0 } } + directives.parameters
    let parameters = all.map { "\($0.0): \($0.1)" }.joined(separator: ", ")
    // Some names are overloaded by `async`: a snippet without `await` is compiled as synchronous code.
    let effects = statements.contains { $0.line.contains("await") } ? "async throws" : "throws"
    programs[last].source += "func snippet\(count)(\(parameters)) \(effects) {\n"
    for parameter in directives.parameters where parameter.isVariable {
      programs[last].source += "var \(parameter.name) = \(parameter.name)\n"
    }
    programs[last].source += "do {\n" + located(statements, after: directives.before) + directives.after + "}\n}\n"
  }

  /// Separates declarations, which are allowed only in a file, from statements, which are allowed only in a function.
  private static func split(
    _ lines: [String]
  ) -> (imports: [String], declarations: [(offset: Int, line: String)], statements: [(offset: Int, line: String)]) {
    var imports: [String] = []
    var declarations: [(offset: Int, line: String)] = []
    var statements: [(offset: Int, line: String)] = []
    let code = SwiftText.withoutStringsAndComments(lines.joined(separator: "\n")).components(separatedBy: "\n")
    var depth = 0
    var isDeclaration = false
    for (offset, line) in lines.enumerated() {
      if depth == 0 {
        // An attribute on a line of its own belongs to what follows it.
        isDeclaration =
          keyword(of: code[offset]) != nil || isDeclaration && line.isEmpty == false && !startsStatement(code[offset])
        if line.hasPrefix("@"), keyword(of: code[offset]) == nil {
          isDeclaration = SwiftText.afterAttribute(line[...]).isEmpty
        }
      }
      if line.hasPrefix("import ") {
        imports.append(line)
        isDeclaration = false
      } else if isDeclaration {
        declarations.append((offset, line))
      } else {
        statements.append((offset, line))
      }
      for character in code[offset] { depth += "({[".contains(character) ? 1 : ")}]".contains(character) ? -1 : 0 }
      if depth == 0, isDeclaration, code[offset].contains("}") || keyword(of: code[offset]) == "typealias" {
        isDeclaration = false
      }
    }
    // Comments and empty lines alone are nothing to run.
    if statements.allSatisfy({ code[$0.offset].allSatisfy(\.isWhitespace) }) { statements = [] }
    return (imports, declarations, statements)
  }

  private static func startsStatement(_ line: String) -> Bool {
    ["let ", "var ", "try ", "for ", "if ", "do ", "guard ", "switch "].contains { line.hasPrefix($0) }
  }

  /// The keyword of a declaration that begins on this line.
  private static func keyword(of line: String) -> String? {
    guard let first = line.first, first != " " else { return nil }
    var rest = line[...]
    while !rest.isEmpty {
      if rest.first == "@" {
        rest = SwiftText.afterAttribute(rest)
        continue
      }
      let word = String(rest.prefix { $0.isLetter })
      if declarationKeywords.contains(word) { return word }
      guard modifiers.contains(word) else { return nil }
      rest = rest.dropFirst(word.count).drop { $0 == " " }
    }
    return nil
  }
}
