import SwiftCompilerPlugin
import SwiftSyntaxMacros

@main
struct KeepsakePlugin: CompilerPlugin {
  let providingMacros: [any Macro.Type] = [ArchivableMacro.self, MarkerMacro.self]
}
