import KeepsakeMacroExpansion
import SwiftCompilerPlugin
import SwiftSyntax
import SwiftSyntaxMacros

/// What the compiler starts to expand `@Archivable` and its companions.
///
/// The expansions are in a library of their own, which tests can link: a test that depended on this program would make the
/// package manager build everything a second time.
@main
struct KeepsakePlugin: CompilerPlugin {
  let providingMacros: [any Macro.Type] = [ArchivableMacro.self, MarkerMacro.self]
}

/// The compiler looks macros up by this module's name, hence these two forwards.
struct ArchivableMacro: MemberMacro, ExtensionMacro {
  static func expansion(
    of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax, conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    try KeepsakeMacroExpansion.ArchivableMacro.expansion(
      of: node, providingMembersOf: declaration, conformingTo: protocols, in: context)
  }

  static func expansion(
    of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax, providingExtensionsOf type: some TypeSyntaxProtocol,
    conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
  ) throws -> [ExtensionDeclSyntax] {
    try KeepsakeMacroExpansion.ArchivableMacro.expansion(
      of: node, attachedTo: declaration, providingExtensionsOf: type, conformingTo: protocols, in: context)
  }
}

struct MarkerMacro: PeerMacro {
  static func expansion(
    of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol, in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    try KeepsakeMacroExpansion.MarkerMacro.expansion(of: node, providingPeersOf: declaration, in: context)
  }
}
