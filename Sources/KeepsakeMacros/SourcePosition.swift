import SwiftSyntax
import SwiftSyntaxMacros

/// Where something is declared, for generated code in which the compiler may find an error: it reports the error there.
struct SourcePosition {
  let file: String
  let line: Int

  /// Gives lines of code this position.
  func placed(_ lines: String) -> String {
    "#sourceLocation(file: \(file), line: \(line))\n\(lines)\n#sourceLocation()"
  }
}

extension SourcePosition? {
  /// Gives lines of code this position, if it is known.
  func placed(_ lines: String) -> String { map { $0.placed(lines) } ?? lines }
}

/// The positions of what is inside one declaration. Asks for the declaration's own only, because each question makes
/// the context count the lines of the whole declaration.
struct SourcePositions {
  private let file: String
  private let firstLine: Int
  private let start: Int
  /// The offsets of line feeds.
  private let lineEnds: [Int]

  /// Returns nil if the compiler doesn't know the position of the declaration.
  init?(of declaration: some SyntaxProtocol, in context: some MacroExpansionContext) {
    let begin = context.location(of: declaration, at: .beforeLeadingTrivia, filePathMode: .filePath)
    guard let begin, let line = Int(begin.line.trimmedDescription) else { return nil }
    file = begin.file.trimmedDescription
    firstLine = line
    start = declaration.position.utf8Offset
    lineEnds = declaration.syntaxTextBytes.enumerated().filter { $1 == UInt8(ascii: "\n") }.map(\.offset)
  }

  subscript(_ node: some SyntaxProtocol) -> SourcePosition {
    let offset = node.positionAfterSkippingLeadingTrivia.utf8Offset - start
    return SourcePosition(file: file, line: firstLine + (lineEnds.firstIndex { $0 >= offset } ?? lineEnds.count))
  }
}
