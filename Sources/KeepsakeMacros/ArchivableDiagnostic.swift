import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// What is wrong with a declaration, in words that state what to do.
enum ArchivableDiagnostic: DiagnosticMessage {
  case unsupportedDeclaration
  case valueParameters
  case initializedLet(String)
  case tuplePattern
  case conditionalProperty
  case unsavedWithoutDefault(String)
  case lazyProperty(String)
  case propertyWithoutType(String)
  case badKey
  case emptyKey
  case invisibleKey(String)
  case duplicateKey(String, String, String)
  case mergeOnLet(String)
  case mergeOnOpenClass(String)
  case mergeInSubclass(String)
  case mergeOnEnum
  case mergeOnUnsaved(String)
  case mergeOnReference(String)
  case mergeWithoutRuleOnCoded(String)
  case severalMergeRules(String)
  case badMergeRule
  case codedReference(String)
  case codedOnCase
  case severalNames
  case subclassesOfValue
  case ownSubclass(String)
  case badVersion
  case secondFallback
  case badFallback
  case superMigrate
  case unconstrainedParameter(String, String)
  case misplaced(String, String)

  var message: String {
    switch self {
    case .unsupportedDeclaration: "@Archivable works on structs, enums and classes"
    case .valueParameters:
      "@Archivable doesn't support value or pack parameters; write encode(to:) and init(from:) by hand"
    case .initializedLet(let name):
      """
      'let \(name)' has an initial value, which loading could never replace: make it a 'var', leave it out with \
      @Unsaved, or make it static
      """
    case .tuplePattern:
      "@Archivable can't save properties that are declared together as a tuple: declare them one by one"
    case .conditionalProperty:
      "A saved property can't be declared inside #if: move it out, or mark it @Unsaved"
    case .unsavedWithoutDefault(let name): "@Unsaved '\(name)' needs an initial value, or must be an optional 'var'"
    case .lazyProperty(let name):
      "'lazy var \(name)' is computed when it is first used, and can't be saved: mark it @Unsaved"
    case .propertyWithoutType(let name): "'\(name)' needs a type or an initial value"
    case .badKey: "@Key needs a string literal without interpolation, such as @Key(\"name\")"
    case .emptyKey: "@Key needs at least one character, such as @Key(\"name\")"
    case .invisibleKey(let key):
      """
      The key "\(key)" begins or ends with white space, or has a character that can't be seen, so nobody could tell it \
      from another: remove that
      """
    case .duplicateKey(let name, let key, let other):
      "'\(name)' has the same key as '\(other)', \"\(key)\": give one of them another with @Key"
    case .mergeOnLet(let name): "@Merge changes the property: make '\(name)' a 'var'"
    case .mergeOnOpenClass(let name): "@Merge needs a struct or a final class: make '\(name)' final"
    case .mergeOnEnum: "@Merge works on properties of structs and final classes"
    case .mergeInSubclass(let name):
      """
      @Merge can't see the properties of the superclass of '\(name)', so changes to them would be lost: move the \
      merged properties to a class without a superclass, or to a struct
      """
    case .mergeOnUnsaved(let name):
      "@Unsaved '\(name)' isn't saved, so there is nothing to merge: remove @Merge or @Unsaved"
    case .mergeOnReference(let name):
      """
      @Merge needs a property that owns its value, and '\(name)' is weak or unowned: mark the property that owns the \
      object
      """
    case .mergeWithoutRuleOnCoded(let name):
      """
      @Merge without a rule uses the rules of an archivable type, and '\(name)' is @Coded: give it a rule, or use \
      @Merge(combining:)
      """
    case .severalMergeRules(let name): "'\(name)' can have only one merge rule: remove one @Merge"
    case .badMergeRule: "@Merge takes one of \(MergeMark.listed), written out, or combining:, or no argument"
    case .codedReference(let name):
      "@Coded doesn't save weak or unowned references: make '\(name)' strong, or mark its class @Archivable"
    case .codedOnCase: "@Coded works on properties: give the payload the type Coded<...>"
    case .severalNames: "An attribute on several cases at a time is ambiguous: declare them one by one"
    case .subclassesOfValue: "Only a class can have subclasses: remove 'subclasses:'"
    case .ownSubclass(let name): "'\(name)' isn't its own subclass: remove it from 'subclasses:'"
    case .badVersion: "version: needs an integer literal of 1 or more"
    case .secondFallback: "Only one case can represent unknown ones: remove one @Fallback"
    case .badFallback:
      """
      A @Fallback case must have no payload, or one String that receives the unknown case's key: no other payload \
      could be filled in
      """
    case .superMigrate:
      "Each class's migrate(_:) is called automatically, the superclass's first: remove the call of super"
    case .unconstrainedParameter(let parameter, let name):
      "'\(name)' saves values of '\(parameter)', so they must be archivable: write '\(parameter): Archivable'"
    case .misplaced(let attribute, let place): "@\(attribute) works on \(place)"
    }
  }

  var diagnosticID: MessageID {
    MessageID(domain: "Keepsake", id: "\(self)".prefix { $0 != "(" }.description)
  }

  var severity: DiagnosticSeverity { .error }
}

struct ArchivableFixIt: FixItMessage {
  let message: String
  var fixItID: MessageID { MessageID(domain: "Keepsake", id: message) }
}
