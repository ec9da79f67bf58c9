import Foundation
import KeepsakeMacroExpansion
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacroExpansion
import SwiftSyntaxMacros
import SwiftSyntaxMacrosGenericTestSupport
import Testing

@Suite struct MacroExpansionTests {
  private func expect(
    _ source: String, expandsTo expected: String, diagnostics: [DiagnosticSpec] = [], conformances: Bool = true,
    applying fixIts: [String]? = nil, fixed: String? = nil, location: Testing.SourceLocation = #_sourceLocation
  ) {
    let specs = [
      "Archivable": MacroSpec(type: ArchivableMacro.self, conformances: conformances ? ["Archivable"] : []),
      "Unsaved": MacroSpec(type: MarkerMacro.self), "Key": MacroSpec(type: MarkerMacro.self), "Merge": MacroSpec(type: MarkerMacro.self),
      "Coded": MacroSpec(type: MarkerMacro.self),
    ]
    assertMacroExpansion(
      source, expandedSource: expected, diagnostics: diagnostics, macroSpecs: specs, applyFixIts: fixIts, fixedSource: fixed,
      indentationWidth: .spaces(2), failureHandler: { Issue.record("\($0.message)", sourceLocation: location) })
  }

  /// Only what is reported; nothing is expanded then.
  private func refuses(
    _ declaration: String, _ message: String, line: Int = 1, column: Int = 1, fixIts: [String] = [],
    applying: String? = nil, fixed: String? = nil, location: Testing.SourceLocation = #_sourceLocation
  ) {
    var stripped = declaration
    for attribute in [
      "@Archivable(version: 0) ", "@Archivable(subclasses: [Other.self]) ", "@Archivable ", "@Unsaved ", "@Merge(.max) ", "@Merge(rule) ",
      "@Key(name) ", "@Key(\"k\") ", "@Coded ",
    ] {
      stripped = stripped.replacingOccurrences(of: attribute, with: "")
    }
    expect(
      declaration, expandsTo: stripped,
      diagnostics: [DiagnosticSpec(message: message, line: line, column: column, fixIts: fixIts.map { FixItSpec(message: $0) })],
      applying: applying.map { [$0] }, fixed: fixed, location: location)
  }

  @Test func aStructKeepsItsMemberwiseInitialiserBecauseTheRestStandsInAnExtension() {
    expect(
      """
      @Archivable struct Item {
        var kind: Int
        @Key("n") var count = 1
        @Unsaved var shown = false
      }
      """,
      expandsTo: """
        struct Item {
          var kind: Int
          var count = 1
          var shown = false

          static func archiveFields(_ fields: KeepsakeArchive.ArchiveFieldList) {
            fields.describe(Self.self)
            fields.field("kind", (Int).self)
            fields.field("n") { (value: Self) in
              value.count
            }
          }
        }

        extension Item: KeepsakeArchive.Archivable {
          static var archiveName: String {
            "Item"
          }
          static var archiveIsKeyed: Bool {
            false
          }
          func encode(to writer: inout KeepsakeArchive.ArchiveWriter) throws {
            try writer.writeField(self.kind)
            try writer.writeField(self.count)
          }
          init(from reader: inout KeepsakeArchive.ArchiveReader) throws {
            var fields = try reader.enter(Self.self)
            if fields.isExact {
              self.kind = try reader.readField()
              self.count = try reader.readField()
            } else {
              self.kind = try reader.field(0, &fields)
              if try reader.hasField(1, &fields) {
                self.count = try reader.field(1, &fields)
              }
            }
            try reader.leave(&fields)
          }
        }
        """)
  }

  @Test func codedPropertiesAreWrapped() {
    expect(
      """
      @Archivable struct Day<T> {
        @Coded var weather: Weather
        @Coded var extra: T?
        @Coded var sky = Sky()
      }
      """,
      expandsTo: """
        struct Day<T> {
          var weather: Weather
          var extra: T?
          var sky = Sky()

          static func archiveFields(_ fields: KeepsakeArchive.ArchiveFieldList) where T: Swift.Codable {
            fields.describe(Self.self)
            fields.field("weather", KeepsakeArchive.Coded<Weather>.self)
            fields.field("extra", KeepsakeArchive.Coded<T?>.self)
            fields.field("sky") { (value: Self) in
              KeepsakeArchive.Coded(value.sky)
            }
          }
        }

        extension Day: KeepsakeArchive.Archivable where T: Swift.Codable {
          static var archiveName: String {
            "Day<\\(T.self)>"
          }
          static var archiveIsKeyed: Bool {
            false
          }
          func encode(to writer: inout KeepsakeArchive.ArchiveWriter) throws {
            try writer.writeField(KeepsakeArchive.Coded(self.weather))
            try writer.writeField(KeepsakeArchive.Coded(self.extra))
            try writer.writeField(KeepsakeArchive.Coded(self.sky))
          }
          init(from reader: inout KeepsakeArchive.ArchiveReader) throws {
            var fields = try reader.enter(Self.self)
            if fields.isExact {
              self.weather = try KeepsakeArchive.Coded.unwrap(reader.readField())
              self.extra = try KeepsakeArchive.Coded.unwrap(reader.readField())
              self.sky = try KeepsakeArchive.Coded.unwrap(reader.readField())
            } else {
              self.weather = try KeepsakeArchive.Coded.unwrap(reader.field(0, &fields))
              if try reader.hasOptionalField(1, &fields) {
                self.extra = try KeepsakeArchive.Coded.unwrap(reader.field(1, &fields))
              }
              if try reader.hasField(2, &fields) {
                self.sky = try KeepsakeArchive.Coded.unwrap(reader.field(2, &fields))
              }
            }
            try reader.leave(&fields)
          }
        }
        """)
  }

  @Test func codedStandsOnStrongProperties() {
    refuses(
      "@Archivable class A {\n  @Coded weak var x: B?\n}",
      "@Coded keeps no references: make 'x' strong, or mark its class @Archivable", line: 2, column: 3)
    refuses(
      "@Archivable enum A {\n  @Coded case a(B)\n}", "@Coded works on properties: give the payload the type Coded<...>", line: 2,
      column: 3)
  }

  @Test func aConstantWithAValueIsRefusedWithTwoWaysOut() {
    refuses(
      "@Archivable struct A {\n  let x = 3\n}",
      "'let x' has its value already and could never be loaded: make it a 'var', leave it out with @Unsaved, or make it static",
      line: 2, column: 3, fixIts: ["change 'let' to 'var'", "leave it out with '@Unsaved'"],
      applying: "change 'let' to 'var'", fixed: "@Archivable struct A {\n  var x = 3\n}")
    refuses(
      "@Archivable struct A {\n  let x = 3\n}",
      "'let x' has its value already and could never be loaded: make it a 'var', leave it out with @Unsaved, or make it static",
      line: 2, column: 3, fixIts: ["change 'let' to 'var'", "leave it out with '@Unsaved'"],
      applying: "leave it out with '@Unsaved'", fixed: "@Archivable struct A {\n  @Unsaved let x = 3\n}")
  }

  @Test func whatCannotBeSavedIsSaidInWords() {
    refuses("@Archivable actor A {\n}", "@Archivable works on structs, enums and classes")
    refuses(
      "@Archivable struct A {\n  @Unsaved var x: Int\n}", "@Unsaved 'x' needs an initial value, or must be an optional 'var'", line: 2,
      column: 16)
    refuses(
      "@Archivable struct A {\n  lazy var x = 3\n}", "'lazy var x' is made when needed: mark it @Unsaved", line: 2, column: 3,
      fixIts: ["leave it out with '@Unsaved'"])
    refuses(
      "@Archivable struct A {\n  var (x, y) = (1, 2)\n}", "@Archivable needs one name for each saved property: split the tuple", line: 2,
      column: 7)
    refuses(
      "@Archivable struct A {\n  #if DEBUG\n  var x = 1\n  #endif\n}",
      "A saved property can't stand inside #if: move it out, or mark it @Unsaved",
      line: 2, column: 3)
    refuses("@Archivable(version: 0) struct A {\n}", "version: needs a whole number from 1 on, written out", column: 22)
    refuses("@Archivable(subclasses: [Other.self]) struct A {\n}", "Only a class has subclasses", column: 25)
    refuses(
      "@Archivable struct A<let n: Int> {\n}",
      "@Archivable doesn't support value or pack parameters; write encode(to:) and init(from:) by hand", column: 22)
  }

  @Test func mergeRulesStandWhereTheyCanWork() {
    refuses(
      "@Archivable struct A {\n  @Merge(.max) let x: Int\n}", "@Merge changes the property: make 'x' a 'var'", line: 2, column: 3,
      fixIts: ["change 'let' to 'var'"])
    refuses("@Archivable class A {\n  @Merge(.max) var x = 1\n}", "@Merge needs a struct or a final class: make 'A' final")
    refuses(
      "@Archivable struct A {\n  @Merge(rule) var x = 1\n}", "@Merge needs one of .max, .min, .union or .counter, written out", line: 2,
      column: 3)
    refuses(
      "@Archivable struct A {\n  @Key(name) var x = 1\n}", "@Key needs a string literal without interpolation, such as @Key(\"name\")",
      line: 2,
      column: 3)
    refuses(
      "@Archivable enum A {\n  @Key(\"k\") case a, b\n}", "An attribute on several names is unclear: declare them one by one", line: 2,
      column: 3)
  }

  @Test func aSubclassOverridesAndKeepsTheInitialisersItInherits() {
    expect(
      """
      @Archivable final class Boss: Character {
        var rage = 0
      }
      """,
      expandsTo: """
        final class Boss: Character {
          var rage = 0

          override class var archiveName: String {
            "Boss"
          }

          override class var archiveVersion: Int {
            1
          }

          override class var archiveSubclasses: [any KeepsakeArchive.Archivable.Type] {
            []
          }

          override class func archiveFields(_ fields: KeepsakeArchive.ArchiveFieldList) {
            fields.describe(Boss.self)
            super.archiveFields(fields)
            fields.field("rage", deferrable: true) { (value: Boss) in
              value.rage
            }
          }

          override func encode(to writer: inout KeepsakeArchive.ArchiveWriter) throws {
            try super.encode(to: &writer)
            if !writer.isDeferred(0) {
              try writer.writeField(self.rage)
            }
            writer.passFields(1)
          }

          override func encodeReferences(to writer: inout KeepsakeArchive.ArchiveWriter) throws {
            try super.encodeReferences(to: &writer)
            if writer.isDeferred(0) {
              try writer.writeField(self.rage)
            }
            writer.passFields(1)
          }

          override func decodeReferences(from reader: inout KeepsakeArchive.ArchiveReader) throws {
            try super.decodeReferences(from: &reader)
            var fields = try reader.enter(Boss.self)
            if reader.isDeferred(0) {
              self.rage = try reader.field(0, &fields)
            }
            reader.passFields(&fields, 1)
          }

          override func decodeInheritedFields(from reader: inout KeepsakeArchive.ArchiveReader) throws {
            try super.decodeInheritedFields(from: &reader)
            var fields = try reader.enter(Boss.self)
            if fields.isExact {
              if !reader.isDeferred(0) {
                self.rage = try reader.readField()
              }
            } else {
              if try reader.hasField(0, &fields) {
                self.rage = try reader.field(0, &fields)
              }
            }
            reader.passFields(&fields, 1)
          }
        }
        """, conformances: false)
  }
}
