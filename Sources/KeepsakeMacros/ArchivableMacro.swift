import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// Generates the conformance to `Archivable`: for structs and enums in an extension, so that the memberwise initialiser
/// stays; for classes in the class itself, because a required initialiser must be declared there.
struct ArchivableMacro {}

extension ArchivableMacro: MemberMacro {
  static func expansion(
    of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
    conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    // This role runs for every declaration and is the one that reports errors.
    guard var model = DeclarationModel(node, declaration, in: context, isSilent: false) else { return [] }
    switch model.kind {
    case .structure:
      return ([StructExpansion(model: model).listing()] + MergeExpansion(model: model).method()).map {
        DeclSyntax(stringLiteral: $0)
      }
    case .enumeration: return [DeclSyntax(stringLiteral: EnumExpansion(model: model).listing())]
    case .object: break
    }
    let isSubclass =
      protocols.isEmpty && declaration.inheritanceClause != nil
      && !declaration.inheritedNames.contains { $0 == "Archivable" }
    if isSubclass, model.isValid, model.fields.contains(where: { $0.merge != nil }) {
      context.diagnose(Diagnostic(node: Syntax(node), message: ArchivableDiagnostic.mergeInSubclass(model.name)))
      model.isValid = false
    }
    return ClassExpansion(model: model, isSubclass: isSubclass, declaration: declaration).members()
  }
}

extension ArchivableMacro: ExtensionMacro {
  static func expansion(
    of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
    providingExtensionsOf type: some TypeSyntaxProtocol,
    conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
  ) throws -> [ExtensionDeclSyntax] {
    guard let model = DeclarationModel(node, declaration, in: context, isSilent: true) else { return [] }
    let wanted = Set(protocols.map { $0.trimmedDescription.split(separator: ".").last.map(String.init) ?? "" })
    var extensions: [ExtensionDeclSyntax] = []
    let clause = model.whereClause
    let members: [String]
    switch model.kind {
    case .object: members = []
    case .structure: members = StructExpansion(model: model).members() + MergeExpansion(model: model).statement()
    case .enumeration: members = EnumExpansion(model: model).members()
    }
    if wanted.contains("Archivable") {
      extensions.append(
        try make(
          "\(model.availability)\(model.extensionKeyword) \(type.trimmed): \(model.conformance)\(clause)", members))
    } else if !members.isEmpty {
      extensions.append(try make("\(model.availability)\(model.extensionKeyword) \(type.trimmed)\(clause)", members))
    }
    return extensions
  }

  private static func make(_ header: String, _ members: [String]) throws -> ExtensionDeclSyntax {
    try ExtensionDeclSyntax("\(raw: header)") {
      for member in members { DeclSyntax(stringLiteral: member) }
    }
  }
}

extension DeclGroupSyntax {
  var inheritedNames: [String] {
    inheritanceClause?.inheritedTypes.map {
      $0.type.trimmedDescription.split(separator: ".").last.map(String.init) ?? ""
    } ?? []
  }
}
