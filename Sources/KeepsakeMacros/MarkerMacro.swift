import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// `@Unsaved`, `@Key`, `@Coded`, `@Merge` and `@Fallback` expand to nothing: `@Archivable` reads them. This macro only
/// checks whether they are attached where `@Archivable` looks for them.
struct MarkerMacro: PeerMacro {
  static func expansion(
    of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    let name = node.attributeName.trimmedDescription.split(separator: ".").last.map(String.init) ?? ""
    let isProperty = declaration.is(VariableDeclSyntax.self)
    let isCase = declaration.is(EnumCaseDeclSyntax.self)
    let place: String? =
      switch name {
      case "Fallback": isCase ? nil : "a case of an @Archivable enum"
      case "Key": isProperty || isCase ? nil : "stored properties and enum cases"
      // On an enum case, @Archivable reports it.
      case "Coded": isProperty || isCase ? nil : "stored properties"
      case "Unsaved": isProperty ? nil : "stored properties"
      // On an enum case, @Archivable reports it.
      case "Merge": isProperty || isCase ? nil : "properties of structs and final classes"
      default: nil
      }
    if let place {
      context.diagnose(Diagnostic(node: Syntax(node), message: ArchivableDiagnostic.misplaced(name, place)))
    }
    return []
  }
}
