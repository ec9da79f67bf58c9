import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// Finds generic parameters of a class that are saved but not declared archivable.
///
/// A struct or enum gets a conditional conformance; a class needs the same initialiser for all its arguments, so it
/// must declare the constraint itself. Only the compiler knows what a constraint implies, so only a parameter without
/// any is reported.
struct GenericCheck {
  private let declaration: ClassDeclSyntax
  private var saved: Set<String> = []

  init(_ declaration: ClassDeclSyntax) {
    self.declaration = declaration
    for member in declaration.memberBlock.members {
      guard let variable = member.decl.as(VariableDeclSyntax.self), variable.isStored,
        variable.attributes.named("Unsaved") == nil, variable.attributes.named("Coded") == nil
      else { continue }
      for binding in variable.bindings where binding.isStored {
        if let type = binding.typeAnnotation?.type { collect(type) }
      }
    }
  }

  func report(to collector: inout StoredFieldCollector<some MacroExpansionContext>) {
    let conditions = declaration.genericWhereClause?.requirements.trimmedDescription ?? ""
    for parameter in declaration.genericParameterClause?.parameters ?? [] {
      let name = parameter.name.text
      guard parameter.specifier == nil, parameter.inheritedType == nil, saved.contains(name), !conditions.contains(name)
      else { continue }
      var constrained = parameter.with(\.colon, .colonToken(trailingTrivia: .space))
      constrained.name = parameter.name.with(\.trailingTrivia, [])
      constrained.inheritedType = TypeSyntax(
        IdentifierTypeSyntax(name: .identifier("Archivable"), trailingTrivia: parameter.name.trailingTrivia))
      collector.report(
        .unconstrainedParameter(name, declaration.name.text), on: Syntax(parameter),
        fixes: [
          FixIt(
            message: ArchivableFixIt(message: "write '\(name): Archivable'"),
            changes: [.replace(oldNode: Syntax(parameter), newNode: Syntax(constrained))])
        ])
    }
  }

  /// Looks only into optionals and collections: other generic types may take arguments that are not saved.
  private mutating func collect(_ type: TypeSyntax) {
    if let optional = type.as(OptionalTypeSyntax.self) {
      collect(optional.wrappedType)
    } else if let unwrapped = type.as(ImplicitlyUnwrappedOptionalTypeSyntax.self) {
      collect(unwrapped.wrappedType)
    } else if let array = type.as(ArrayTypeSyntax.self) {
      collect(array.element)
    } else if let dictionary = type.as(DictionaryTypeSyntax.self) {
      collect(dictionary.key)
      collect(dictionary.value)
    } else if let identifier = type.as(IdentifierTypeSyntax.self) {
      guard let arguments = identifier.genericArgumentClause?.arguments else {
        saved.insert(identifier.name.text)
        return
      }
      guard ["Array", "Set", "Dictionary", "Optional"].contains(identifier.name.text) else { return }
      for argument in arguments {
        if case .type(let inner) = argument.argument { collect(inner) }
      }
    }
  }
}
