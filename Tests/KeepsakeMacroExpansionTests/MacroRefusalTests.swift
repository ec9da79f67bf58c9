import Testing

@Suite struct MacroRefusalTests {
  /// Checks that only this error is reported, and that what is expanded conforms without using the declaration.
  private func refuses(
    _ text: String, _ message: String, line: Int = 1, column: Int = 1, fixIts: [String] = [], applying: String? = nil,
    fixed: String? = nil, conformances: [String] = ["Archivable"], location: SourceLocation = #_sourceLocation
  ) throws {
    let source = MarkedSource(text)
    let answers = try MacroPlugin.expand(source, conformances: conformances)
    try conformsUnused(source, answers, conformances: conformances, location)
    let diagnostics = answers.flatMap(\.diagnostics)
    #expect(diagnostics.map(\.message) == [message], sourceLocation: location)
    let diagnostic = try #require(diagnostics.first, sourceLocation: location)
    #expect(diagnostic.severity == "error", sourceLocation: location)
    #expect(source.position(ofByte: diagnostic.position.offset) == (line, column), sourceLocation: location)
    #expect(diagnostic.fixIts.map(\.message) == fixIts, sourceLocation: location)
    if let applying {
      let fixIt = try #require(diagnostic.fixIts.first { $0.message == applying }, sourceLocation: location)
      #expect(source.applying(fixIt) == fixed, sourceLocation: location)
    }
  }

  /// Checks that the expansion of a declaration with an error has no body that could add errors of the compiler.
  private func conformsUnused(
    _ source: MarkedSource, _ answers: [MacroPlugin.Answer], conformances: [String], _ location: SourceLocation
  ) throws {
    let roles = answers.filter { $0.attribute.name == "Archivable" && !source.text.contains(" actor ") }
    for answer in roles {
      for used in ["writer.", "reader.", "fields.", "self"] {
        #expect(!answer.source.contains(used), "\(answer.source)", sourceLocation: location)
      }
    }
    guard let role = roles.first(where: { $0.role == "extension" }), !conformances.isEmpty else { return }
    #expect(role.source.contains(": KeepsakeArchive.Archivable"), "\(role.source)", sourceLocation: location)
  }

  private func expanded(_ text: String) throws -> String {
    let source = MarkedSource(text)
    return source.expanded(by: try MacroPlugin.expand(source, conformances: ["Archivable"]))
  }

  @Test func codedStandsOnStrongProperties() throws {
    try refuses(
      "@Archivable class A {\n  @Coded weak var x: B?\n}",
      "@Coded doesn't save weak or unowned references: make 'x' strong, or mark its class @Archivable", line: 2,
      column: 3)
    try refuses(
      "@Archivable enum A {\n  @Coded case a(B)\n}", "@Coded works on properties: give the payload the type Coded<...>",
      line: 2,
      column: 3)
  }

  @Test func aConstantWithAValueIsRefusedWithTwoWaysOut() throws {
    try refuses(
      "@Archivable struct A {\n  let x = 3\n}",
      """
      'let x' has an initial value, which loading could never replace: make it a 'var', leave it out with @Unsaved, \
      or make it static
      """,
      line: 2, column: 3, fixIts: ["change 'let' to 'var'", "leave it out with '@Unsaved'"],
      applying: "change 'let' to 'var'", fixed: "@Archivable struct A {\n  var x = 3\n}")
    try refuses(
      "@Archivable struct A {\n  let x = 3\n}",
      """
      'let x' has an initial value, which loading could never replace: make it a 'var', leave it out with @Unsaved, \
      or make it static
      """,
      line: 2, column: 3, fixIts: ["change 'let' to 'var'", "leave it out with '@Unsaved'"],
      applying: "leave it out with '@Unsaved'", fixed: "@Archivable struct A {\n  @Unsaved let x = 3\n}")
  }

  @Test func whatCannotBeSavedIsSaidInWords() throws {
    try refuses("@Archivable actor A {\n}", "@Archivable works on structs, enums and classes")
    try refuses(
      "@Archivable struct A {\n  @Unsaved var x: Int\n}",
      "@Unsaved 'x' needs an initial value, or must be an optional 'var'", line: 2,
      column: 16)
    try refuses(
      "@Archivable struct A {\n  lazy var x = 3\n}",
      "'lazy var x' is computed when it is first used, and can't be saved: mark it @Unsaved",
      line: 2, column: 3,
      fixIts: ["leave it out with '@Unsaved'"])
    try refuses(
      "@Archivable struct A {\n  var (x, y) = (1, 2)\n}",
      "@Archivable can't save properties that are declared together as a tuple: declare them one by one", line: 2,
      column: 7)
    try refuses(
      "@Archivable struct A {\n  #if DEBUG\n  var x = 1\n  #endif\n}",
      "A saved property can't be declared inside #if: move it out, or mark it @Unsaved",
      line: 2, column: 3)
    try refuses("@Archivable(version: 0) struct A {\n}", "version: needs an integer literal of 1 or more", column: 22)
    try refuses(
      "@Archivable(subclasses: [Other.self]) struct A {\n}", "Only a class can have subclasses: remove 'subclasses:'",
      column: 25)
    try refuses(
      "@Archivable struct A<let n: Int> {\n}",
      "@Archivable doesn't support value or pack parameters; write encode(to:) and init(from:) by hand", column: 22)
  }

  @Test func mergeRulesStandWhereTheyCanWork() throws {
    try refuses(
      "@Archivable struct A {\n  @Merge(.max) let x: Int\n}", "@Merge changes the property: make 'x' a 'var'", line: 2,
      column: 3,
      fixIts: ["change 'let' to 'var'"])
    try refuses(
      "@Archivable class A {\n  @Merge(.max) var x = 1\n}", "@Merge needs a struct or a final class: make 'A' final")
    try refuses(
      "@Archivable struct A {\n  @Merge(rule) var x = 1\n}",
      "@Merge takes one of .max, .min, .union or .counter, written out, or combining:, or no argument", line: 2,
      column: 3)
    try refuses(
      "@Archivable struct A {\n  @Unsaved @Merge(.max) var x = 1\n}",
      "@Unsaved 'x' isn't saved, so there is nothing to merge: remove @Merge or @Unsaved", line: 2, column: 12)
    try refuses(
      "@Archivable final class A {\n  @Merge weak var x: A?\n}",
      "@Merge needs a property that owns its value, and 'x' is weak or unowned: mark the property that owns the object",
      line: 2, column: 3)
    try refuses(
      "@Archivable struct A {\n  @Merge @Coded var x: B\n}",
      """
      @Merge without a rule uses the rules of an archivable type, and 'x' is @Coded: give it a rule, or use \
      @Merge(combining:)
      """,
      line: 2,
      column: 3)
    try refuses(
      "@Archivable struct A {\n  @Merge @Merge(.max) var x = 1\n}",
      "'x' can have only one merge rule: remove one @Merge", line: 2,
      column: 3
    )
    try refuses(
      "@Archivable open class A {\n  @Merge var x = 1\n}", "@Merge needs a struct or a final class: make 'A' final")
    try refuses(
      "@Archivable struct A {\n  @Key(name) var x = 1\n}",
      "@Key needs a string literal without interpolation, such as @Key(\"name\")",
      line: 2,
      column: 3)
    try refuses(
      "@Archivable enum A {\n  @Key(\"k\") case a, b\n}",
      "An attribute on several cases at a time is ambiguous: declare them one by one",
      line: 2,
      column: 3)
  }

  @Test func aSubclassCannotMergeWhatItsSuperclassHas() throws {
    try refuses(
      "@Archivable final class A: B {\n  @Merge var x = 1\n}",
      """
      @Merge can't see the properties of the superclass of 'A', so changes to them would be lost: move the merged \
      properties to a class without a superclass, or to a struct
      """,
      conformances: [])
  }

  @Test func aFallbackStandsOnOneCaseThatCanBeMadeUp() throws {
    try refuses(
      "@Archivable enum A {\n  @Fallback case a\n  @Fallback case b\n}",
      "Only one case can represent unknown ones: remove one @Fallback", line: 3, column: 3)
    let payload =
      """
      A @Fallback case must have no payload, or one String that receives the unknown case's key: no other payload \
      could be filled in
      """
    try refuses("@Archivable enum A {\n  @Fallback case a(Int)\n}", payload, line: 2, column: 3)
    try refuses("@Archivable enum A {\n  @Fallback case a(String, Int)\n}", payload, line: 2, column: 3)
    try refuses(
      "@Archivable enum A {\n  @Fallback case a, b\n}",
      "An attribute on several cases at a time is ambiguous: declare them one by one",
      line: 2,
      column: 3)
    try refuses(
      "struct A {\n  @Fallback var x = 1\n}", "@Fallback works on a case of an @Archivable enum", line: 2, column: 3)
  }

  @Test func markersStandWhereTheyAreLookedFor() throws {
    try refuses("enum A {\n  @Unsaved case a\n}", "@Unsaved works on stored properties", line: 2, column: 3)
    try refuses(
      "struct A {\n  @Key(\"k\") func a() {\n  }\n}", "@Key works on stored properties and enum cases", line: 2,
      column: 3)
    try refuses(
      "struct A {\n  @Merge(.max) func a() {\n  }\n}", "@Merge works on properties of structs and final classes",
      line: 2, column: 3)
    try refuses(
      "@Archivable enum A {\n  @Merge(.max) case a\n}", "@Merge works on properties of structs and final classes",
      line: 2, column: 3)
    try refuses(
      "@Archivable struct A {\n  @Key(\"a\\u{62}\") var x = 1\n}",
      "@Key needs a string literal without interpolation, such as @Key(\"name\")",
      line: 2, column: 3)
    try refuses("@Archivable(version: two) struct A {\n}", "version: needs an integer literal of 1 or more", column: 22)
    try refuses("@Archivable struct A {\n  var x\n}", "'x' needs a type or an initial value", line: 2, column: 7)
  }

  @Test func keysCanBeReadAndToldApart() throws {
    let empty = "@Key needs at least one character, such as @Key(\"name\")"
    try refuses("@Archivable struct A {\n  @Key(\"\") var x = 1\n}", empty, line: 2, column: 3)
    func unreadable(_ key: String) -> String {
      """
      The key "\(key)" begins or ends with white space, or has a character that can't be seen, so nobody could tell it \
      from another: remove that
      """
    }
    for key in [" ", " x", "x ", "\u{A0}x", "x\u{200B}y", "x\u{7}y", "x\u{2028}y", "x\u{FEFF}"] {
      try refuses("@Archivable struct A {\n  @Key(\"\(key)\") var x = 1\n}", unreadable(key), line: 2, column: 3)
    }
    for key in ["x y", "名前", "é", "x.y-z_1", "👩‍👧"] {
      let accepted = try expanded("@Archivable struct A {\n  @Key(\"\(key)\") var x = 1\n}")
      #expect(accepted.contains("fields.field(\"\(key)\")"))
    }
  }

  @Test func eachKeyIsUsedOnce() throws {
    func same(_ name: String, _ other: String, _ key: String) -> String {
      "'\(name)' has the same key as '\(other)', \"\(key)\": give one of them another with @Key"
    }
    try refuses(
      "@Archivable struct A {\n  @Key(\"k\") var x = 1\n  @Key(\"k\") var y = 1\n}", same("y", "x", "k"), line: 3,
      column: 3)
    try refuses(
      "@Archivable class A {\n  @Key(\"y\") var x = 1\n  var y = 1\n}", same("y", "x", "y"), line: 3, column: 7)
    try refuses("@Archivable struct A {\n  @Key(\"k\") var x, y: Int\n}", same("y", "x", "k"), line: 2, column: 3)
    try refuses("@Archivable enum A {\n  case a\n  @Key(\"a\") case b(Int)\n}", same("b", "a", "a"), line: 3, column: 3)
    let exchanged = "@Archivable struct A {\n  @Key(\"y\") var x = 1\n  @Key(\"x\") var y = 1\n}"
    #expect(try expanded(exchanged).contains("fields.field(\"y\")"))
    let unsaved = "@Archivable struct A {\n  @Key(\"y\") var x = 1\n  @Unsaved var y = 1\n}"
    #expect(try expanded(unsaved).contains("fields.field(\"y\")"))
    // Raw values aren't in archives.
    try refuses(
      "@Archivable enum A: String {\n  case a = \"b\"\n  @Key(\"a\") case c\n}", same("c", "a", "a"), line: 3,
      column: 3)
    let raw = "@Archivable enum A: String {\n  case a = \"b\"\n  case b = \"a\"\n}"
    #expect(try expanded(raw).contains("fields.enumCase(\"b\", Self.b)"))
  }

  @Test func aClassIsntItsOwnSubclass() throws {
    try refuses(
      "@Archivable(subclasses: [B.self, A.self]) class A {\n}",
      "'A' isn't its own subclass: remove it from 'subclasses:'", column: 34)
  }

  @Test func aClassSaysThatWhatItSavesIsArchivable() throws {
    try refuses(
      "@Archivable final class A<T> {\n  var x: [String: T?] = [:]\n}",
      "'A' saves values of 'T', so they must be archivable: write 'T: Archivable'", column: 27,
      fixIts: ["write 'T: Archivable'"],
      applying: "write 'T: Archivable'",
      fixed: "@Archivable final class A<T: Archivable> {\n  var x: [String: T?] = [:]\n}")
    try refuses(
      "@Archivable final class A<T, U: Hashable> {\n  var x: Set<U>\n  let y: T\n}",
      "'A' saves values of 'T', so they must be archivable: write 'T: Archivable'", column: 27,
      fixIts: ["write 'T: Archivable'"],
      applying: "write 'T: Archivable'",
      fixed: "@Archivable final class A<T: Archivable, U: Hashable> {\n  var x: Set<U>\n  let y: T\n}")
  }

  @Test func aHookLeavesItsSuperclassAlone() throws {
    try refuses(
      """
      @Archivable class A: B {\n  override func migrate(_ saved: inout ArchiveMigration) throws {\n    try \
      super.migrate(&saved)\n  }\n}
      """,
      "Each class's migrate(_:) is called automatically, the superclass's first: remove the call of super", line: 3,
      column: 9)
  }
}
