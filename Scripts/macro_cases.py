"""The declarations that the macros refuse, for macro-refusals.py: each with the first error that the compiler shows."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """A mistake. `id` is the diagnostic of ArchivableDiagnostic.swift, or a name of its own where the compiler reports
    what types show; `text` is the error in full, and `at` is part of the line where it is shown."""

    id: str
    text: str
    members: str
    at: str = ""
    kinds: str = "struct class"
    arguments: str = ""
    types: str = ""
    level: str = "error"
    # Whether nothing but errors of the macros may follow.
    alone: bool = True

    @property
    def line(self):
        return self.at or self.members.strip().splitlines()[0]


TYPES = """@Archivable struct Plain { var x = 1 }
@Archivable struct Named: Identifiable { let id: Int }
@Archivable final class Thing: Identifiable { var x = 1 }
struct Raw: Codable { var x = 1 }
class Object {}
"""

INVISIBLE = ("The key \"{}\" begins or ends with white space, or has a character that can't be seen, so nobody could"
             " tell it from another: remove that")

MACRO_CASES = [
    Case("initializedLet",
         "'let x' has an initial value, which loading could never replace: make it a 'var', leave it out with @Unsaved,"
         " or make it static",
         "let x = 1"),
    Case("tuplePattern",
         "@Archivable can't save properties that are declared together as a tuple: declare them one by one",
         "var (x, y) = (1, 2)"),
    Case("conditionalProperty",
         "A saved property can't be declared inside #if: move it out, or mark it @Unsaved",
         "#if DEBUG\nvar x = 1\n#endif"),
    Case("unsavedWithoutDefault", "@Unsaved 'x' needs an initial value, or must be an optional 'var'",
         "@Unsaved var x: Int"),
    Case("lazyProperty",
         "'lazy var x' is computed when it is first used, and can't be saved: mark it @Unsaved",
         "lazy var x = 1"),
    Case("propertyWithoutType", "'x' needs a type or an initial value", "var x", alone=False),
    Case("badKey", "@Key needs a string literal without interpolation, such as @Key(\"name\")",
         "@Key(\"a\\(1)\") var x = 1"),
    Case("badKey", "@Key needs a string literal without interpolation, such as @Key(\"name\")",
         "@Key(\"a\\(1)\") case one", kinds="enum"),
    Case("emptyKey", "@Key needs at least one character, such as @Key(\"name\")", "@Key(\"\") var x = 1"),
    Case("emptyKey", "@Key needs at least one character, such as @Key(\"name\")", "@Key(\"\") case one", kinds="enum"),
    Case("invisibleKey", INVISIBLE.format("x "), "@Key(\"x \") var x = 1"),
    Case("invisibleKey", INVISIBLE.format("x\u200by"), "@Key(\"x\u200by\") case one", kinds="enum"),
    Case("duplicateKey", "'y' has the same key as 'x', \"a\": give one of them another with @Key",
         "@Key(\"a\") var x = 1\n@Key(\"a\") var y = 1", at="var y"),
    Case("duplicateKey", "'y' has the same key as 'x', \"x\": give one of them another with @Key",
         "var x = 1\n@Key(\"x\") var y = 1", at="var y"),
    Case("duplicateKey", "'two' has the same key as 'one', \"one\": give one of them another with @Key",
         "case one\n@Key(\"one\") case two", kinds="enum", at="case two"),
    Case("mergeOnLet", "@Merge changes the property: make 'x' a 'var'", "@Merge(.max) let x: Int"),
    Case("mergeOnOpenClass", "@Merge needs a struct or a final class: make 'Game' final", "@Merge(.max) var x = 1",
         kinds="open", at="class Game"),
    Case("mergeInSubclass",
         "@Merge can't see the properties of the superclass of 'Game', so changes to them would be lost: move the"
         " merged properties to a class without a superclass, or to a struct",
         "@Merge(.max) var x = 1", kinds="finalchild", at="class Game"),
    Case("mergeOnEnum", "@Merge works on properties of structs and final classes", "@Merge(.max) case one",
         kinds="enum"),
    Case("mergeOnUnsaved", "@Unsaved 'x' isn't saved, so there is nothing to merge: remove @Merge or @Unsaved",
         "@Unsaved @Merge(.max) var x = 0"),
    Case("mergeOnReference",
         "@Merge needs a property that owns its value, and 'x' is weak or unowned: mark the property that owns the"
         " object",
         "@Merge weak var x: Thing?"),
    Case("mergeWithoutRuleOnCoded",
         "@Merge without a rule uses the rules of an archivable type, and 'x' is @Coded: give it a rule, or use"
         " @Merge(combining:)",
         "@Merge @Coded var x = Raw()"),
    Case("severalMergeRules", "'x' can have only one merge rule: remove one @Merge",
         "@Merge(.max) @Merge(.min) var x = 1"),
    Case("badMergeRule", "@Merge takes one of .max, .min, .union or .counter, written out, or combining:, or no"
         " argument",
         "@Merge(rule) var x = 1", types="let rule = MergeRule.max"),
    Case("codedReference",
         "@Coded doesn't save weak or unowned references: make 'x' strong, or mark its class @Archivable",
         "@Coded weak var x: Thing?"),
    Case("codedOnCase", "@Coded works on properties: give the payload the type Coded<...>", "@Coded case one(Raw)",
         kinds="enum"),
    Case("severalNames", "An attribute on several cases at a time is ambiguous: declare them one by one",
         "@Key(\"a\") case one, two", kinds="enum"),
    Case("subclassesOfValue", "Only a class can have subclasses: remove 'subclasses:'", "var x = 1", kinds="struct",
         arguments="subclasses: [Thing.self]", at="@Archivable(subclasses"),
    Case("subclassesOfValue", "Only a class can have subclasses: remove 'subclasses:'", "case one", kinds="enum",
         arguments="subclasses: [Thing.self]", at="@Archivable(subclasses"),
    Case("ownSubclass", "'Game' isn't its own subclass: remove it from 'subclasses:'", "var x = 1",
         kinds="plain", arguments="subclasses: [Game.self]", at="subclasses: [Game.self]"),
    Case("badVersion", "version: needs an integer literal of 1 or more", "var x = 1", arguments="version: 0",
         at="version: 0"),
    Case("badVersion", "version: needs an integer literal of 1 or more", "case one", arguments="version: 1 + 1",
         at="version: 1 + 1", kinds="enum"),
    Case("secondFallback", "Only one case can represent unknown ones: remove one @Fallback",
         "@Fallback case one\n@Fallback case two", kinds="enum", at="case two"),
    Case("badFallback",
         "A @Fallback case must have no payload, or one String that receives the unknown case's key: no other payload"
         " could be filled in",
         "@Fallback case one(Int)", kinds="enum"),
    Case("superMigrate",
         "Each class's migrate(_:) is called automatically, the superclass's first: remove the call of super",
         "override func migrate(_ saved: inout ArchiveMigration) throws { try super.migrate(&saved) }",
         kinds="child"),
    Case("unconstrainedParameter",
         "'Game' saves values of 'Value', so they must be archivable: write 'Value: Archivable'", "var x: Value?",
         kinds="unconstrained", at="Game<Value>"),
    Case("valueParameters",
         "@Archivable doesn't support value or pack parameters; write encode(to:) and init(from:) by hand",
         "var x = 1", kinds="packs", at="Game<"),
    Case("unsupportedDeclaration", "@Archivable works on structs, enums and classes", "var x = 1", kinds="actor",
         at="@Archivable"),
    Case("misplaced", "@Key works on stored properties and enum cases", "@Key(\"a\") func x() {}",
         kinds="struct class"),
    Case("misplaced", "@Unsaved works on stored properties", "@Unsaved func x() {}"),
    Case("misplaced", "@Coded works on stored properties", "@Coded func x() {}"),
    Case("misplaced", "@Merge works on properties of structs and final classes", "@Merge func x() {}"),
    Case("misplaced", "@Fallback works on a case of an @Archivable enum", "@Fallback var x = 1"),
]

UNION = ("@Merge(.union) needs a Set or a Dictionary of archivable values: for an array whose elements are Identifiable"
         " write @Merge alone")
COMBINE = ("@Merge(combining:) needs a function of this side's value, the other side's and the ancestor's, which is"
           " optional: (Value, Value, Value?) -> Value")
WHOLE = ("@Merge treats this array as a single value, because its elements aren't Identifiable: give them an id, or"
         " remove @Merge")
ADDRESSES = ("@Merge treats this array as a single value, because its objects are identified by their addresses: give"
             " their class a saved id")

# What only the compiler knows: whether a rule fits the property's type.
MERGE_CASES = [
    Case("mergeMaximum",
         "@Merge(.max) needs a Comparable type: make the property's type Comparable, or use @Merge(combining:)",
         "@Merge(.max) var x = Plain()", kinds="struct final"),
    Case("mergeMinimum",
         "@Merge(.min) needs a Comparable type: make the property's type Comparable, or use @Merge(combining:)",
         "@Merge(.min) var x: Plain?", kinds="struct final"),
    Case("mergeUnion", UNION, "@Merge(.union) var x: [Named] = []", kinds="struct final"),
    Case("mergeCounter",
         "@Merge(.counter) needs the type Counter: write 'var kills = Counter()', and 'kills += 1' as before",
         "@Merge(.counter) var x = 0", kinds="struct final"),
    Case("mergeCombining", COMBINE, "@Merge(combining: longer) var x = 0", kinds="struct final",
         types="func longer(_ a: String, _ b: String, _ c: String?) -> String { a }"),
]
MERGE_WARNINGS = [
    Case("mergeElements", WHOLE, members, kinds="struct final", level="warning")
    for members in ("@Merge var x: [Plain] = []", "@Merge var x: [Plain]?")
] + [
    Case("mergeElements", ADDRESSES, "@Merge var x: [Thing] = []", kinds="struct final", level="warning")
]
ACCEPTED = [
    Case("accepted", "", """@Merge(.max) var a = 1
@Merge(.min) var b: Double?
@Merge(.union) var c: Set<Int> = []
@Merge(.union) var d: [Int: Plain] = [:]
@Merge(.counter) var e = Counter()
@Merge var f: [Named] = []
@Merge var g: [String: Int] = [:]
@Merge var h: Set<Int>?
@Merge var i = Plain()
@Merge var j: Named?
@Merge() var k: [Named]?
@Merge(combining: joined) var l = ""
@Merge(combining: { (mine: Int, theirs: Int, ancestor: Int?) in mine + theirs - (ancestor ?? 0) }) var m = 0
@Merge(combining: Names.joined) var n: String?""", kinds="struct final", level="none", types="""
func joined(_ mine: String, _ theirs: String, _ ancestor: String?) -> String { mine + theirs }
enum Names {
  static func joined(_ mine: String?, _ theirs: String?, _ ancestor: String??) -> String? { mine ?? theirs }
}"""),
]

PROPERTY = ("The type of this property isn't archivable: mark the type (or that of its elements) @Archivable, or the"
            " property @Coded if its type is Codable, or @Unsaved")
PAYLOAD = ("The type of this payload isn't archivable: mark the type (or that of its elements) @Archivable, or write"
           " Coded<...> around it if it is Codable")
CODED = "@Coded needs a type that is Codable: make the type Codable, or mark the property @Unsaved"
LISTED = "'subclasses:' lists classes that inherit from this one, such as [Boss.self]: this isn't one of them"

# What only the compiler knows: whether a type is archivable, or a subclass.
TYPE_CASES = [
    Case("unarchivable", PROPERTY, members)
    for members in ("var x: Raw?", "var x: [Raw] = []", "var x = Raw()", "weak var x: Object?", "var x: (() -> Void)?")
] + [
    Case("unarchivable", PROPERTY, "@Merge var x = Raw()", kinds="struct final"),
    Case("unarchivable", PROPERTY, "unowned let x: Object", kinds="struct"),
    Case("unarchivable", PROPERTY, "var x: Value?", kinds="constrained"),
    Case("unarchivablePayload", PAYLOAD, "case one(Raw)", kinds="enum"),
    Case("unarchivablePayload", PAYLOAD, "case one(Int, second: [Raw]? = nil)", kinds="enum"),
    Case("uncodable", CODED, "@Coded var x: Object?"),
    Case("uncodable", CODED, "@Coded var x = Object()"),
    Case("unlistable", LISTED, "var x = 1", kinds="class", arguments="subclasses: [Object.self]", at="[Object.self]"),
    Case("unlistable", LISTED, "var x = 1", kinds="final open", arguments="subclasses: [1]", at="[1]"),
    Case("unlistable", LISTED, "var x = 1", kinds="plain", arguments="subclasses: [Thing.self]", at="[Thing.self]"),
]

CASES = MACRO_CASES + TYPE_CASES + MERGE_CASES + MERGE_WARNINGS + ACCEPTED
