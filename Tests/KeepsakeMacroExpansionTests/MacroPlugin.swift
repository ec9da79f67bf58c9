import Foundation
import TestSupport
import Testing

/// The compiler plugin that was built with this package, with requests to expand macros like those of the compiler:
/// messages in JSON, each after its length, over its standard input and output.
struct MacroPlugin {
  /// The result of expanding one attribute in one role.
  struct Answer {
    let attribute: MarkedSource.Attribute
    let role: String
    let source: String
    let diagnostics: [Diagnostic]
  }

  struct Diagnostic: Decodable, CustomStringConvertible {
    struct Position: Decodable { let offset: Int }
    struct Range: Decodable {
      let startOffset: Int
      let endOffset: Int
    }
    struct FixIt: Decodable {
      struct Change: Decodable {
        let range: Range
        let newText: String
      }
      let message: String
      let changes: [Change]
    }
    let message: String
    let severity: String
    let position: Position
    let fixIts: [FixIt]

    var description: String { "\(severity) at byte \(position.offset): \(message) \(fixIts.map(\.message))" }
  }

  private struct Reply: Decodable {
    struct Result: Decodable {
      let expandedSource: String?
      let diagnostics: [Diagnostic]
    }
    let expandMacroResult: Result?
  }

  struct BrokenReply: Error {}

  /// The package manager builds it beside the tests' program, like other programs that it runs itself.
  static let executable: URL = {
    let name = "KeepsakeMacros-tool"
    let built = Repository.root.appending(path: ".build/debug").appending(path: name)
    let beside = Bundle.main.executableURL?.deletingLastPathComponent().appending(path: name)
    return beside.flatMap { FileManager.default.isExecutableFile(atPath: $0.path) ? $0 : nil } ?? built
  }()

  /// Expands every attribute of this package in a source file with one type.
  ///
  /// - Parameter conformances: The protocols of `@Archivable` that the type doesn't have without it.
  static func expand(_ source: MarkedSource, conformances: [String]) throws -> [Answer] {
    var requests: [(attribute: MarkedSource.Attribute, role: String)] = []
    for attribute in source.attributes {
      for role in attribute.name == "Archivable" ? ["member", "extension"] : ["peer"] {
        requests.append((attribute, role))
      }
    }
    var input = framed(#"{"getCapability":{"capability":{"protocolVersion":7}}}"#.utf8)
    for request in requests {
      let message = Message(source, request.attribute, role: request.role, conformances: conformances)
      input += framed(try JSONEncoder().encode(["expandAttachedMacro": message]))
    }
    let ended = try ChildProcess.run(executable, input: input)
    #expect(ended.status == 0, "the plugin ended with \(ended.status): \(ended.errors)")
    let replies = try unframed(ended.output).dropFirst()
    guard replies.count == requests.count else { throw BrokenReply() }
    return try zip(requests, replies).map { request, reply in
      guard let result = try JSONDecoder().decode(Reply.self, from: reply).expandMacroResult else {
        throw BrokenReply()
      }
      return Answer(
        attribute: request.attribute, role: request.role, source: result.expandedSource ?? "",
        diagnostics: result.diagnostics)
    }
  }

  private static func framed(_ message: some Collection<UInt8>) -> Data {
    withUnsafeBytes(of: UInt64(message.count).littleEndian) { Data($0) } + message
  }

  private static func unframed(_ output: Data) throws -> [Data] {
    var messages: [Data] = []
    var rest = output[...]
    while !rest.isEmpty {
      let length = rest.prefix(8).enumerated().reduce(into: 0) { $0 |= Int($1.element) << (8 * $1.offset) }
      guard rest.count >= 8, length <= rest.count - 8 else { throw BrokenReply() }
      messages.append(Data(rest.dropFirst(8).prefix(length)))
      rest = rest.dropFirst(8 + length)
    }
    return messages
  }
}

extension MacroPlugin {
  /// The compiler's request to expand an attribute in one role.
  private struct Message: Encodable {
    struct Macro: Encodable {
      let moduleName = "KeepsakeMacros"
      let typeName: String
      let name: String
    }
    struct Location: Encodable {
      let fileID = "Game/Game.swift"
      let fileName = "Game.swift"
      let offset: Int
      let line = 1
      let column = 1
    }
    struct Syntax: Encodable {
      let kind: String
      let source: String
      let location: Location
    }
    let macro: Macro
    let macroRole: String
    let discriminator = "$s4Game"
    let attributeSyntax: Syntax
    let declSyntax: Syntax
    let extendedTypeSyntax: Syntax?
    let conformanceListSyntax: Syntax?
    let lexicalContext: [Syntax] = []

    init(_ source: MarkedSource, _ attribute: MarkedSource.Attribute, role: String, conformances: [String]) {
      func syntax(_ kind: String, _ range: Range<String.Index>) -> Syntax {
        Syntax(
          kind: kind, source: String(source.text[range]),
          location: Location(offset: source.text.utf8.distance(from: source.text.startIndex, to: range.lowerBound)))
      }
      let isArchivable = attribute.name == "Archivable"
      macro = Macro(typeName: isArchivable ? "ArchivableMacro" : "MarkerMacro", name: attribute.name)
      macroRole = role
      attributeSyntax = syntax("attribute", attribute.range)
      declSyntax = syntax("declaration", attribute.declaration)
      let nowhere = Location(offset: 0)
      extendedTypeSyntax = role == "extension" ? Syntax(kind: "type", source: source.typeName, location: nowhere) : nil
      let list = "struct Placeholder: \(conformances.joined(separator: ", ")) {}"
      conformanceListSyntax =
        isArchivable && !conformances.isEmpty ? Syntax(kind: "declaration", source: list, location: nowhere) : nil
    }
  }
}
