import SwiftSyntax

/// What `@Merge` specifies for a property.
enum MergeMark {
  /// The cases of `MergeRule`, as they are written in source; `MergeFields` has a function with each name.
  static let rules = ["max", "min", "union", "counter"]

  /// For people: ".max, .min, .union or .counter".
  static var listed: String {
    let names = rules.map { "." + $0 }
    return names.dropLast().joined(separator: ", ") + " or " + names.suffix(1).joined()
  }

  /// A case of `MergeRule`.
  case rule(String)
  /// Only that it is merged: value by value, or by the rules of its type.
  case fields
  /// A function, as it is written.
  case combining(String)

  /// Returns nil for any other argument.
  init?(_ attribute: AttributeSyntax) {
    guard let argument = attribute.labeledArguments.first else {
      self = .fields
      return
    }
    switch argument.label?.text {
    case "combining": self = .combining(argument.expression.trimmedDescription)
    case nil:
      let name = argument.expression.as(MemberAccessExprSyntax.self)?.declName.baseName.text
      guard let name, Self.rules.contains(name) else { return nil }
      self = .rule(name)
    default: return nil
    }
  }
}

extension StoredField {
  /// Types without properties that could have rules, as far as a name shows; all other types are queried when the game
  /// runs.
  private static let plainTypes: Set<String> = [
    "Int", "Int8", "Int16", "Int32", "Int64", "UInt", "UInt8", "UInt16", "UInt32", "UInt64", "Float", "Double", "Bool",
    "String",
    "Character",
    "Substring", "Data", "Date", "UUID", "URL", "Decimal", "Duration", "Array", "Set", "Dictionary", "SIMD2", "SIMD3",
    "SIMD4", "CGFloat",
    "CGPoint", "CGSize", "CGRect",
  ]

  /// Whether the type of the property could have merge rules of its own. Collections have none, whatever they hold.
  var mayHaveMergeRules: Bool {
    if isLet || isCoded || strength != .strong { return false }
    if let type { return Self.mayHaveRules(type) }
    return initialValue.map(Self.mayHaveRules) ?? false
  }

  private static func mayHaveRules(_ type: TypeSyntax) -> Bool {
    if let optional = type.as(OptionalTypeSyntax.self) { return mayHaveRules(optional.wrappedType) }
    if let optional = type.as(ImplicitlyUnwrappedOptionalTypeSyntax.self) { return mayHaveRules(optional.wrappedType) }
    if type.is(ArrayTypeSyntax.self) || type.is(DictionaryTypeSyntax.self) { return false }
    return type.as(IdentifierTypeSyntax.self).map { !plainTypes.contains($0.name.text) } ?? true
  }

  /// A literal's type is plain, and so is that of `SIMD2<Float>(1, 2)` or `[Int]()`.
  private static func mayHaveRules(_ value: ExprSyntax) -> Bool {
    let literals: [any ExprSyntaxProtocol.Type] = [
      IntegerLiteralExprSyntax.self, FloatLiteralExprSyntax.self, StringLiteralExprSyntax.self,
      BooleanLiteralExprSyntax.self,
      ArrayExprSyntax.self, DictionaryExprSyntax.self, PrefixOperatorExprSyntax.self, SequenceExprSyntax.self,
    ]
    if literals.contains(where: { value.is($0) }) { return false }
    var called = value.as(FunctionCallExprSyntax.self)?.calledExpression ?? value
    if let access = called.as(MemberAccessExprSyntax.self), let base = access.base { called = base }
    if let generic = called.as(GenericSpecializationExprSyntax.self) { called = generic.expression }
    if called.is(ArrayExprSyntax.self) || called.is(DictionaryExprSyntax.self) { return false }
    return called.as(DeclReferenceExprSyntax.self).map { !plainTypes.contains($0.baseName.text) } ?? true
  }
}
