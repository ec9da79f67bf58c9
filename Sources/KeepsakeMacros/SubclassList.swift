import SwiftSyntax

/// The argument `subclasses:` of `@Archivable`.
struct SubclassList {
  private let expression: ExprSyntax
  private let positions: SourcePositions?

  init(_ expression: ExprSyntax, positions: SourcePositions?) {
    self.expression = expression
    self.positions = positions
  }

  /// The elements, if they are written out.
  private var elements: [ExprSyntax]? { expression.as(ArrayExprSyntax.self)?.elements.map(\.expression) }

  /// Returns the element that is written like this.
  func element(_ text: String) -> ExprSyntax? { elements?.first { $0.trimmedDescription == text } }

  /// Generates the statements that return the list. Each class is passed to a function that takes only those that
  /// inherit from this one, so that an error is reported where the class is written.
  ///
  /// - Parameter name: The class that has the list; nil if it is generic, because a subclass of `Game<Int>` isn't one
  ///   of `Game<Value>`.
  func statements(of name: String?) -> [String] {
    guard let elements, !elements.isEmpty else { return [expression.trimmedDescription] }
    let list = name.map { "KeepsakeArchive.ArchiveSubclasses<\($0)>.listed" } ?? "KeepsakeArchive.ArchiveClasses.listed"
    return ["var classes: [any KeepsakeArchive.Archivable.Type] = []"]
      + elements.map { element in
        (positions?[element]).placed("classes.append(\(list)(\(element.trimmedDescription)))")
      } + ["return classes"]
  }
}
