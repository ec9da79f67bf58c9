import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// What `@Archivable` needs to know about the declaration that it is attached to.
struct DeclarationModel {
  enum Kind { case structure, enumeration, object }

  struct Payload {
    let label: String?
    let key: String
    let type: String
    let isOptional: Bool
    let defaultValue: String?
  }

  struct EnumCase {
    let name: String
    let key: String
    /// Whether it is used for cases that the program doesn't know.
    let isFallback: Bool
    let payloads: [Payload]
    let position: SourcePosition?
  }

  let kind: Kind
  let name: String
  let access: String
  /// The declaration's `@available`, which its extension must repeat.
  let availability: String
  /// The global actor in the declaration's attributes, to which the conformance belongs, too. Recognized by its name,
  /// which must end in "Actor".
  let actor: String?
  /// Whether it is declared `nonisolated`, which its extension must repeat.
  let isNonisolated: Bool
  let isFinal: Bool
  let savedName: String?
  let version: String?
  let subclasses: SubclassList?
  let genericNames: [String]
  let constrainedNames: [String]
  /// Generic parameters in the types of `@Coded` properties.
  let codedNames: [String]
  let hasInitializer: Bool
  let hasDidDecode: Bool
  let hasMigrate: Bool
  /// Whether it implements by hand how it is merged.
  let hasMergeFields: Bool
  /// Whether nothing was reported. Otherwise the generated members have the same signatures, but no bodies that depend
  /// on what is wrong.
  var isValid: Bool
  /// Whether no property that isn't among the fields needs an initialiser to give it its first value.
  let startsInitialized: Bool
  private(set) var fields: [StoredField] = []
  private(set) var cases: [EnumCase] = []

  /// Returns nil for a declaration that can't be archivable in any form.
  init?(
    _ node: AttributeSyntax, _ declaration: some DeclGroupSyntax, in context: some MacroExpansionContext, isSilent: Bool
  ) {
    var collector = StoredFieldCollector(declaration, context: context, isSilent: isSilent)
    var parameters: GenericParameterClauseSyntax?
    if let structure = declaration.as(StructDeclSyntax.self) {
      (kind, name, parameters) = (.structure, structure.name.text, structure.genericParameterClause)
    } else if let enumeration = declaration.as(EnumDeclSyntax.self) {
      (kind, name, parameters) = (.enumeration, enumeration.name.text, enumeration.genericParameterClause)
    } else if let object = declaration.as(ClassDeclSyntax.self) {
      (kind, name, parameters) = (.object, object.name.text, object.genericParameterClause)
    } else {
      collector.report(.unsupportedDeclaration, on: Syntax(node))
      return nil
    }
    let modifiers = declaration.modifiers.map(\.name.text)
    isNonisolated = modifiers.contains("nonisolated")
    isFinal = modifiers.contains("final")
    access = modifiers.first { ["public", "open", "package"].contains($0) } ?? ""
    availability = declaration.attributes.compactMap { element -> String? in
      guard case .attribute(let attribute) = element, attribute.attributeName.trimmedDescription == "available" else {
        return nil
      }
      return attribute.trimmedDescription + "\n"
    }.joined()
    actor =
      declaration.attributes.lazy.compactMap { element -> String? in
        guard case .attribute(let attribute) = element else { return nil }
        let name = attribute.attributeName.trimmedDescription
        return name.hasSuffix("Actor") ? name : nil
      }.first
    for parameter in parameters?.parameters ?? [] where parameter.specifier != nil {
      collector.report(.valueParameters, on: Syntax(parameter))
    }
    genericNames = parameters?.parameters.filter { $0.specifier == nil }.map(\.name.text) ?? []
    hasInitializer = declaration.memberBlock.members.contains {
      $0.decl.as(InitializerDeclSyntax.self)?.modifiers.contains { $0.name.text == "convenience" } == false
    }
    hasDidDecode = declaration.memberBlock.members.contains {
      $0.decl.as(FunctionDeclSyntax.self)?.name.text == "didDecode"
    }
    hasMergeFields = declaration.memberBlock.members.contains {
      $0.decl.as(FunctionDeclSyntax.self)?.name.text == "mergeFields"
    }
    let hook = declaration.memberBlock.members.lazy.compactMap { $0.decl.as(FunctionDeclSyntax.self) }.first {
      $0.name.text == "migrate" && $0.signature.parameterClause.parameters.count == 1
    }
    hasMigrate = hook != nil
    if let call = hook?.body.flatMap(Self.superMigrate) { collector.report(.superMigrate, on: call) }

    let arguments = node.labeledArguments
    func argument(_ label: String) -> ExprSyntax? { arguments.first { $0.label?.text == label }?.expression }
    savedName = argument("name").flatMap { $0.is(NilLiteralExprSyntax.self) ? nil : $0.trimmedDescription }
    version = argument("version")?.trimmedDescription
    if let expression = argument("version"), (Int(expression.trimmedDescription) ?? 0) < 1 {
      collector.report(.badVersion, on: Syntax(expression))
    }
    subclasses = argument("subclasses").map { SubclassList($0, positions: collector.positions) }
    if let expression = argument("subclasses"), kind != .object {
      collector.report(.subclassesOfValue, on: Syntax(expression))
    } else if let own = subclasses?.element("\(name).self") {
      collector.report(.ownSubclass(name), on: Syntax(own))
    }

    if kind == .enumeration {
      cases = Self.cases(declaration.memberBlock.members, &collector)
    } else {
      collector.collect(from: declaration.memberBlock.members)
      fields = collector.fields
    }
    if kind == .object, !isFinal, fields.contains(where: { $0.merge != nil }) {
      collector.report(.mergeOnOpenClass(name), on: Syntax(node))
    }
    let used = Self.typeNames(in: declaration.memberBlock.members, coded: false)
    constrainedNames = genericNames.filter { used.contains($0) }
    let coded = Self.typeNames(in: declaration.memberBlock.members, coded: true)
    codedNames = genericNames.filter { coded.contains($0) }
    if let object = declaration.as(ClassDeclSyntax.self) { GenericCheck(object).report(to: &collector) }
    startsInitialized = collector.startsInitialized
    isValid = collector.isValid
  }

  /// Returns a call of the superclass's hook inside a hook.
  private static func superMigrate(in body: CodeBlockSyntax) -> Syntax? {
    for token in body.tokens(viewMode: .sourceAccurate) where token.tokenKind == .keyword(.super) {
      let access = token.parent?.parent?.as(MemberAccessExprSyntax.self)
      if let access, access.declName.baseName.text == "migrate" { return Syntax(access) }
    }
    return nil
  }

  private static func cases(
    _ members: MemberBlockItemListSyntax, _ collector: inout StoredFieldCollector<some MacroExpansionContext>
  ) -> [EnumCase] {
    var cases: [EnumCase] = []
    var keys = KeyCheck()
    for member in members {
      guard let declaration = member.decl.as(EnumCaseDeclSyntax.self) else { continue }
      let attribute = declaration.attributes.named("Key")
      if declaration.attributes.named("Coded") != nil { collector.report(.codedOnCase, on: Syntax(declaration)) }
      let fallback = declaration.attributes.named("Fallback")
      if attribute != nil || fallback != nil, declaration.elements.count > 1 {
        collector.report(.severalNames, on: Syntax(declaration))
      } else if let fallback {
        if cases.contains(where: \.isFallback) { collector.report(.secondFallback, on: Syntax(fallback)) }
        let payload = declaration.elements.first?.parameterClause?.parameters
        let isText =
          payload.map { $0.count == 1 && ["String", "Swift.String"].contains($0.first?.type.trimmedDescription) }
          ?? true
        if !isText { collector.report(.badFallback, on: Syntax(declaration)) }
      }
      if declaration.attributes.named("Merge") != nil { collector.report(.mergeOnEnum, on: Syntax(declaration)) }
      let key = collector.key(attribute)
      for element in declaration.elements {
        let payloads = (element.parameterClause?.parameters ?? []).enumerated().map { index, parameter in
          let written = parameter.firstName?.text
          let name = written.map { $0.filter { $0 != "`" } }
          // As a label, a keyword needs no escape, and the compiler warns about one; these three need it.
          let label = ["inout", "var", "let"].contains(name) ? written : name
          return Payload(
            label: label == "_" ? nil : label, key: label == nil || label == "_" ? "\(index)" : name ?? "",
            type: parameter.type.trimmedDescription, isOptional: parameter.type.is(OptionalTypeSyntax.self),
            defaultValue: parameter.defaultValue?.value.trimmedDescription)
        }
        let name = element.name.text
        let saved = key ?? name.filter { $0 != "`" }
        if key == nil || declaration.elements.count == 1, let problem = keys.add(name, key: saved) {
          collector.report(problem, on: attribute.map(Syntax.init) ?? Syntax(element))
        }
        cases.append(
          EnumCase(
            name: name, key: saved, isFallback: fallback != nil, payloads: payloads,
            position: collector.positions?[element]))
      }
    }
    return cases
  }

  /// Returns the names in the types of stored properties and payloads, to find out which generic parameters are saved.
  private static func typeNames(in members: MemberBlockItemListSyntax, coded: Bool) -> Set<String> {
    var names: Set<String> = []
    func collect(_ type: some SyntaxProtocol) {
      for token in type.tokens(viewMode: .sourceAccurate) {
        if case .identifier(let name) = token.tokenKind { names.insert(name) }
      }
    }
    for member in members {
      if let variable = member.decl.as(VariableDeclSyntax.self), variable.isStored,
        variable.attributes.named("Unsaved") == nil, (variable.attributes.named("Coded") != nil) == coded
      {
        for binding in variable.bindings where binding.isStored {
          if let type = binding.typeAnnotation?.type { collect(type) }
          if let value = binding.initializer?.value { collect(value) }
        }
      } else if !coded, let enumCase = member.decl.as(EnumCaseDeclSyntax.self) {
        for element in enumCase.elements {
          for parameter in element.parameterClause?.parameters ?? [] { collect(parameter.type) }
        }
      }
    }
    return names
  }

  /// The access modifier with a space, for a member that subclasses don't override.
  var modifier: String { access.isEmpty ? "" : access == "open" ? "public " : access + " " }
  var openModifier: String { access.isEmpty ? "" : isFinal && access == "open" ? "public " : access + " " }

  /// The name of the type in its own generated code. An extension of a nested type can't use the type's plain name; in
  /// a class, `Self` is dynamic.
  var typeName: String { kind == .object ? name : "Self" }

  /// The type's name in archives, including generic arguments: `Box<Int>` and `Box<String>` are two types of the
  /// archive.
  var nameExpression: String {
    if let savedName, genericNames.isEmpty { return savedName }
    guard !genericNames.isEmpty else { return "\"\(name)\"" }
    let parts = genericNames.map { name in
      let type = "\(name).self"
      return constrainedNames.contains(name)
        ? "\\(KeepsakeArchive.ArchiveFieldList.name(of: \(type)))" : "\\(\(type))"
    }
    let base = savedName.map { $0.filter { $0 != "\"" } } ?? name
    return "\"\(base)<\(parts.joined(separator: ", "))>\""
  }

  var extensionKeyword: String { isNonisolated ? "nonisolated extension" : "extension" }
  var conformance: String { (actor.map { "@\($0) " } ?? "") + "KeepsakeArchive.Archivable" }

  /// Empty for a class, which declares its parameters' conformance itself.
  var whereClause: String {
    let clauses =
      constrainedNames.map { "\($0): KeepsakeArchive.Archivable" } + codedNames.map { "\($0): Swift.Codable" }
    guard kind != .object, !clauses.isEmpty else { return "" }
    return " where " + clauses.joined(separator: ", ")
  }

  func listing(_ field: StoredField, deferrable: Bool) -> String {
    let flag = deferrable ? ", deferrable: true" : ""
    let function = field.isCoded ? "codedField" : "field"
    guard let type = field.writtenType else {
      return field.position.placed(
        "fields.\(function)(\(quoted(field.key))\(flag)) { (value: \(typeName)) in value.\(field.name) }")
    }
    return field.position.placed("fields.\(function)(\(quoted(field.key)), (\(type)).self\(flag))")
  }

  /// Returns the body of a generated member, or, after an error in the declaration, one that is never run.
  ///
  /// The declaration must conform even then: Swift 6.3 stops with a failed assertion, before it shows any error, if a
  /// class doesn't get a conformance that its subclasses inherit.
  func body(_ lines: [String]) -> String {
    isValid ? lines.joined(separator: "\n") : "Swift.fatalError()"
  }

  func quoted(_ text: String) -> String {
    "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
  }
}
