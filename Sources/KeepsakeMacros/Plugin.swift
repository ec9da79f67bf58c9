import SwiftCompilerPlugin
import SwiftSyntaxMacros

/// The plugin that the compiler starts to expand `@Archivable` and its companions.
@main
struct KeepsakePlugin: CompilerPlugin {
  let providingMacros: [any Macro.Type] = [ArchivableMacro.self, MarkerMacro.self]
}
