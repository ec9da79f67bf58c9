public import SwiftSyntax
public import SwiftSyntaxMacros

/// `@Unsaved`, `@Key`, `@Coded` and `@Merge` expand to nothing: `@Archivable` reads them.
public struct MarkerMacro: PeerMacro {
  public static func expansion(
    of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol, in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] { [] }
}
