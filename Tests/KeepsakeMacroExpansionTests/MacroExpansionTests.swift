import Testing

@Suite struct MacroExpansionTests {
  /// Checks that a declaration is expanded without errors, and to what.
  func expect(
    _ text: String, expandsTo expected: String, conformances: [String] = ["Archivable"],
    location: SourceLocation = #_sourceLocation
  ) throws {
    let source = MarkedSource(text)
    let answers = try MacroPlugin.expand(source, conformances: conformances)
    #expect(answers.flatMap(\.diagnostics).isEmpty, "\(answers.flatMap(\.diagnostics))", sourceLocation: location)
    #expect(Self.lines(source.expanded(by: answers)) == Self.lines(expected), sourceLocation: location)
  }

  /// The lines without their indentation, whose width is the compiler's choice and not the macros', and without the
  /// positions of errors, which `ErrorPositionTests` checks.
  private static func lines(_ text: String) -> [Substring] {
    text.split(separator: "\n", omittingEmptySubsequences: false).map { $0.drop { $0 == " " } }.filter {
      !$0.hasPrefix("#sourceLocation")
    }
  }

  @Test func aStructKeepsItsMemberwiseInitialiserBecauseTheRestStandsInAnExtension() throws {
    try expect(
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
            if fields.isOlder {
              try reader.migrate(&self, fields)
            }
          }
        }
        """)
  }

  @Test func codedPropertiesAreWrapped() throws {
    try expect(
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
            fields.codedField("weather", (Weather).self)
            fields.codedField("extra", (T?).self)
            fields.codedField("sky") { (value: Self) in
              value.sky
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
            try writer.writeCodedField(self.weather)
            try writer.writeCodedField(self.extra)
            try writer.writeCodedField(self.sky)
          }
          init(from reader: inout KeepsakeArchive.ArchiveReader) throws {
            var fields = try reader.enter(Self.self)
            if fields.isExact {
              self.weather = try reader.readCodedField()
              self.extra = try reader.readCodedField()
              self.sky = try reader.readCodedField()
            } else {
              self.weather = try reader.codedField(0, &fields)
              if try reader.hasOptionalField(1, &fields) {
                self.extra = try reader.codedField(1, &fields)
              }
              if try reader.hasField(2, &fields) {
                self.sky = try reader.codedField(2, &fields)
              }
            }
            try reader.leave(&fields)
            if fields.isOlder {
              try reader.migrate(&self, fields)
            }
          }
        }
        """)
  }

  private func expanded(_ text: String) throws -> String {
    let source = MarkedSource(text)
    return source.expanded(by: try MacroPlugin.expand(source, conformances: ["Archivable"]))
  }

  @Test func aTypeIsAskedForTheRulesOfItsPropertiesOnlyIfTheyCouldHaveSome() throws {
    let plain = """
      @Archivable struct A {
        var a = 1, b = 2.5, c = "", d = true, e: [B] = [], f: [Int: B] = [:], g = [B](), h = SIMD2<Float>(1, 2), i: \
        Set<B> = [], j = -1, k: String?
        let l: B
        @Coded var m: B
        @Unsaved var n = B()
        var o: Array<B>
        var p = Int.max
      }
      """
    #expect(try !expanded(plain).contains("mergeFields"))
    let asked = try expanded(
      "@Archivable struct A {\n  var a: B\n  var b: B?\n  var c = B()\n  var d: C<Int>!\n  var e = 1\n}")
    #expect(asked.split(separator: "hasRules(").count == 5, "\(asked)")
    #expect(asked.contains("unmarked(&self.e, other.e, ancestor.map"), "\(asked)")
    #expect(try !expanded("@Archivable class A {\n  var a: B\n}").contains("mergeFields"), "others may inherit from it")
    #expect(try expanded("@Archivable final class A {\n  var a: B\n}").contains("mergeFields"))
    let byHand =
      "@Archivable struct A {\n  var a: B\n  mutating func mergeFields(from other: A, ancestor: A?) {\n  }\n}"
    #expect(try !expanded(byHand).contains("MergeFields"), "its merge is hand-written")
  }

  @Test func eachPropertyIsMergedByItsMark() throws {
    let result = try expanded(
      """
      @Archivable struct A {
        @Merge var a: [B] = []
        @Merge() var b = 1
        @Merge(.max) var c = 1
        @Merge(combining: A.join) var d = ""
        @Coded var e: C
        let f: Int
        unowned var g: D
      }
      """)
    for line in [
      "fields(&self.a, other.a, ancestor.map {", "fields(&self.b, other.b, ancestor.map {",
      "max(&self.c, other.c, ancestor.map {",
      "combine(&self.d, other.d, ancestor.map {", "coded(&self.e, other.e, ancestor.map {",
    ] {
      #expect(result.contains("KeepsakeArchive.MergeFields." + line), "\(line)")
    }
    #expect(result.contains(", A.join)") && !result.contains("other.f") && !result.contains("other.g"))
  }

  @Test func aSubclassOverridesAndKeepsTheInitialisersItInherits() throws {
    try expect(
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
            if reader.isDeferred(0), try fields.isExact || reader.hasField(0, &fields) {
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

          override func migrate(_ saved: inout KeepsakeArchive.ArchiveMigration) throws {
          }

          override func migrateSuperclasses(_ saved: inout KeepsakeArchive.ArchiveMigration) throws {
            try super.migrateSuperclasses(&saved)
            if saved.enterNextClass() {
              try super.migrate(&saved)
            }
          }
        }
        """, conformances: [])
  }
}
