import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// A saved property of the declaration.
struct StoredField {
  enum Strength { case strong, weak, unowned }

  let name: String
  let key: String
  /// As written; nil if it is inferred.
  let type: TypeSyntax?
  let initialValue: ExprSyntax?
  let isLet: Bool
  let strength: Strength
  let merge: MergeMark?
  /// Whether it is kept through `Codable`.
  let isCoded: Bool
  let position: SourcePosition?

  var hasDefault: Bool { initialValue != nil }

  var isOptional: Bool {
    guard let type else { return false }
    if type.is(OptionalTypeSyntax.self) || type.is(ImplicitlyUnwrappedOptionalTypeSyntax.self) { return true }
    return type.as(IdentifierTypeSyntax.self)?.name.text == "Optional"
  }

  /// The type in generated code: `T!` is `T?` there.
  var writtenType: String? {
    guard let type else { return nil }
    if let unwrapped = type.as(ImplicitlyUnwrappedOptionalTypeSyntax.self) {
      return unwrapped.wrappedType.trimmedDescription + "?"
    }
    return type.trimmedDescription
  }

  /// The value of a collection until its objects exist.
  var emptyCollection: String? {
    guard let type else { return nil }
    if type.is(ArrayTypeSyntax.self) { return "[]" }
    if type.is(DictionaryTypeSyntax.self) { return "[:]" }
    switch type.as(IdentifierTypeSyntax.self)?.name.text {
    case "Array", "Set": return "[]"
    case "Dictionary": return "[:]"
    default: return nil
    }
  }

  /// A variable of type `T?` starts as nil, as if it had a default; one of type `Optional<T>`, written out, doesn't.
  var startsInitialized: Bool { hasDefault || (isOptional && !isLet && type?.is(IdentifierTypeSyntax.self) == false) }

  /// In a class: whether it may be set once all objects exist.
  var isDeferrable: Bool { !isLet && !isCoded && (startsInitialized || emptyCollection != nil) }
}

/// Finds the saved properties of a declaration and reports those that can't be saved.
struct StoredFieldCollector<Context: MacroExpansionContext> {
  let context: Context
  private(set) var fields: [StoredField] = []
  private(set) var isValid = true
  /// Whether there is no property among those reported that only an initialiser can give its first value.
  private(set) var startsInitialized = true
  /// Whether nothing is reported: the same declaration is examined twice, for its members and for its extension.
  let isSilent: Bool
  let positions: SourcePositions?
  private var keys = KeyCheck()

  init(_ declaration: some DeclGroupSyntax, context: Context, isSilent: Bool) {
    self.context = context
    self.isSilent = isSilent
    positions = SourcePositions(of: declaration, in: context)
  }

  mutating func collect(from members: MemberBlockItemListSyntax) {
    for member in members {
      if let variable = member.decl.as(VariableDeclSyntax.self) {
        collect(variable)
      } else if let conditional = member.decl.as(IfConfigDeclSyntax.self) {
        // What a platform excludes must not change what is saved; the generated code could not follow the condition
        // anyway.
        for clause in conditional.clauses {
          if let inner = clause.elements?.as(MemberBlockItemListSyntax.self),
            inner.contains(where: { isSavedProperty($0.decl) })
          {
            startsInitialized = false
            report(.conditionalProperty, on: Syntax(conditional))
          }
        }
      }
    }
  }

  private func isSavedProperty(_ declaration: DeclSyntax) -> Bool {
    guard let variable = declaration.as(VariableDeclSyntax.self) else { return false }
    return variable.isStored && variable.attributes.named("Unsaved") == nil
  }

  private mutating func collect(_ variable: VariableDeclSyntax) {
    guard variable.isStored else { return }
    let isLet = variable.bindingSpecifier.tokenKind == .keyword(.let)
    let isLazy = variable.modifiers.contains { $0.name.text == "lazy" }
    let isUnsaved = variable.attributes.named("Unsaved") != nil
    let keyAttribute = variable.attributes.named("Key")
    let mergeAttribute = variable.attributes.named("Merge")
    let isCoded = variable.attributes.named("Coded") != nil
    var strength = StoredField.Strength.strong
    for modifier in variable.modifiers {
      if modifier.name.text == "weak" { strength = .weak }
      if modifier.name.text == "unowned" { strength = .unowned }
    }
    // A type after several names applies to those before it, too.
    var types: [TypeSyntax?] = []
    var following: TypeSyntax?
    for binding in variable.bindings.reversed() {
      following = binding.typeAnnotation?.type ?? (binding.initializer == nil ? following : nil)
      types.append(following)
    }
    for (binding, type) in zip(variable.bindings, types.reversed()) where binding.isStored {
      guard let name = binding.pattern.as(IdentifierPatternSyntax.self)?.identifier.text else {
        if binding.initializer == nil { startsInitialized = false }
        if !isUnsaved { report(.tuplePattern, on: Syntax(binding)) }
        continue
      }
      let field = StoredField(
        name: name, key: key(keyAttribute) ?? name.filter { $0 != "`" }, type: type,
        initialValue: binding.initializer?.value, isLet: isLet, strength: strength, merge: mark(mergeAttribute),
        isCoded: isCoded, position: positions?[binding])
      if isUnsaved {
        if !field.startsInitialized && !isLazy {
          startsInitialized = false
          report(.unsavedWithoutDefault(name), on: Syntax(binding))
        }
        if let mergeAttribute { report(.mergeOnUnsaved(name), on: Syntax(mergeAttribute)) }
        continue
      }
      if isLazy {
        report(.lazyProperty(name), on: Syntax(variable), fixes: [Self.unsavedFix(variable)])
      } else if isLet && field.hasDefault {
        report(.initializedLet(name), on: Syntax(variable), fixes: [Self.varFix(variable), Self.unsavedFix(variable)])
      } else if type == nil && !field.hasDefault {
        report(.propertyWithoutType(name), on: Syntax(binding))
      } else if isCoded && strength != .strong {
        report(.codedReference(name), on: Syntax(variable))
      } else if let mark = field.merge {
        check(mark, of: field, on: variable)
      }
      if let problem = keys.add(name, key: field.key) {
        report(problem, on: keyAttribute.map(Syntax.init) ?? Syntax(binding))
      }
      fields.append(field)
    }
  }

  mutating func key(_ attribute: AttributeSyntax?) -> String? {
    guard let attribute else { return nil }
    let literal = attribute.firstArgument?.plainText
    if let problem = KeyCheck.problem(literal) {
      report(problem, on: Syntax(attribute))
      return nil
    }
    return literal
  }

  private mutating func mark(_ attribute: AttributeSyntax?) -> MergeMark? {
    guard let attribute else { return nil }
    let mark = MergeMark(attribute)
    if mark == nil { report(.badMergeRule, on: Syntax(attribute)) }
    return mark
  }

  /// Reports what `@Merge` can't do on a property that can be saved.
  private mutating func check(_ mark: MergeMark, of field: StoredField, on variable: VariableDeclSyntax) {
    if field.isLet {
      report(.mergeOnLet(field.name), on: Syntax(variable), fixes: [Self.varFix(variable)])
    } else if field.strength != .strong {
      report(.mergeOnReference(field.name), on: Syntax(variable))
    } else if case .fields = mark, field.isCoded {
      report(.mergeWithoutRuleOnCoded(field.name), on: Syntax(variable))
    } else if variable.attributes.count(where: { $0.as(AttributeSyntax.self)?.isNamed("Merge") == true }) > 1 {
      report(.severalMergeRules(field.name), on: Syntax(variable))
    }
  }

  mutating func report(_ message: ArchivableDiagnostic, on node: Syntax, fixes: [FixIt] = []) {
    isValid = false
    if !isSilent { context.diagnose(Diagnostic(node: node, message: message, fixIts: fixes)) }
  }

  private static func varFix(_ variable: VariableDeclSyntax) -> FixIt {
    let keyword = variable.bindingSpecifier
    return FixIt(
      message: ArchivableFixIt(message: "change 'let' to 'var'"),
      changes: [.replace(oldNode: Syntax(keyword), newNode: Syntax(keyword.with(\.tokenKind, .keyword(.var))))])
  }

  private static func unsavedFix(_ variable: VariableDeclSyntax) -> FixIt {
    var marked = variable.with(\.leadingTrivia, [])
    marked.attributes.insert(
      .attribute(
        AttributeSyntax(attributeName: IdentifierTypeSyntax(name: .identifier("Unsaved")), trailingTrivia: .space)),
      at: marked.attributes.startIndex)
    return FixIt(
      message: ArchivableFixIt(message: "leave it out with '@Unsaved'"),
      changes: [
        .replace(oldNode: Syntax(variable), newNode: Syntax(marked.with(\.leadingTrivia, variable.leadingTrivia)))
      ])
  }
}

extension AttributeListSyntax {
  /// Returns the attribute with this name, even if it is written with a module before it.
  func named(_ name: String) -> AttributeSyntax? {
    for element in self {
      if case .attribute(let attribute) = element, attribute.isNamed(name) { return attribute }
    }
    return nil
  }
}

extension AttributeSyntax {
  func isNamed(_ name: String) -> Bool {
    attributeName.as(IdentifierTypeSyntax.self)?.name.text == name
      || attributeName.as(MemberTypeSyntax.self)?.name.text == name
  }

  var labeledArguments: LabeledExprListSyntax { arguments?.as(LabeledExprListSyntax.self) ?? [] }
  var firstArgument: ExprSyntax? { labeledArguments.first?.expression }
}

extension ExprSyntax {
  /// The text of a string literal without interpolation and escapes.
  var plainText: String? {
    guard let literal = self.as(StringLiteralExprSyntax.self), literal.segments.count <= 1 else { return nil }
    guard let segment = literal.segments.first else { return "" }
    guard case .stringSegment(let text) = segment, !text.content.text.contains("\\") else { return nil }
    return text.content.text
  }
}

extension VariableDeclSyntax {
  /// Whether a value of the type holds it: neither a property of the type itself nor one that is only computed.
  var isStored: Bool {
    !modifiers.contains { ["static", "class"].contains($0.name.text) } && bindings.contains { $0.isStored }
  }
}

extension PatternBindingSyntax {
  /// Whether it has no accessors, or only observers.
  var isStored: Bool {
    guard let accessors = accessorBlock?.accessors else { return true }
    guard case .accessors(let list) = accessors else { return false }
    return list.allSatisfy { ["willSet", "didSet"].contains($0.accessorSpecifier.text) }
  }
}
