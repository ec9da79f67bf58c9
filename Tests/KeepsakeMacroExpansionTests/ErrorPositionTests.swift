import Testing

/// Where the compiler reports that a type doesn't fit: generated code gives each use of a type the line on which it is
/// declared. What it reports is checked by `Scripts/macro-refusals.py`.
@Suite struct ErrorPositionTests {
  /// The lines of generated code that have a position, with the line of the source.
  private func placed(_ text: String, role: String = "member") throws -> [String] {
    let answers = try MacroPlugin.expand(MarkedSource(text), conformances: ["Archivable"])
    #expect(answers.flatMap(\.diagnostics).isEmpty, "\(answers.flatMap(\.diagnostics))")
    let lines = answers.filter { $0.role == role }.flatMap { $0.source.split(separator: "\n") }.map {
      String($0.drop { $0 == " " })
    }
    #expect(lines.count { $0.hasPrefix("#sourceLocation(f") } == lines.count { $0 == "#sourceLocation()" })
    return zip(lines, lines.dropFirst()).compactMap { line, next in
      line.firstMatch(of: /#sourceLocation\(file: "Game\.swift", line: (\d+)\)/).map { "\($0.1): \(next)" }
    }
  }

  @Test func aPropertyIsListedAtItsLine() throws {
    let lines = try placed(
      """
      // The first line.

      /// About it.
      @Archivable
      struct A {
        var a: B, b: B

        /* more
        */ @Coded var c: B
        var d: B,
          e: B
      }
      """)
    #expect(
      lines == [
        "6: fields.field(\"a\", (B).self)", "6: fields.field(\"b\", (B).self)", "9: fields.codedField(\"c\", (B).self)",
        "10: fields.field(\"d\", (B).self)", "11: fields.field(\"e\", (B).self)",
      ])
  }

  @Test func aRuleIsAppliedAtItsPropertysLine() throws {
    let lines = try placed("@Archivable final class A {\n  var a = 1\n\n  @Merge(.max) var b = 1\n}")
    #expect(lines.last?.hasPrefix("4: KeepsakeArchive.MergeFields.max(&value, other.b, ancestor.map {") == true)
    #expect(lines.count == 3, "only a rule may not fit the type")
  }

  @Test func aPayloadIsWrittenAtItsLine() throws {
    let lines = try placed("@Archivable enum A {\n  case a, b(B)\n  case c(\n    Int)\n}", role: "extension")
    #expect(lines == ["2: try writer.writePayload(value0)", "3: try writer.writePayload(value0)"])
  }

  @Test func eachSubclassIsCheckedAtItsLine() throws {
    let lines = try placed("@Archivable(subclasses: [\n  B.self,\n  C.D.self\n]) class A {\n}")
    #expect(
      lines == [
        "2: classes.append(KeepsakeArchive.ArchiveSubclasses<A>.listed(B.self))",
        "3: classes.append(KeepsakeArchive.ArchiveSubclasses<A>.listed(C.D.self))",
      ])
  }

  @Test func theSubclassesOfAGenericClassMayInheritFromAnyOfItsForms() throws {
    let lines = try placed("@Archivable(subclasses: [B.self]) class A<T: Archivable> {\n  var x: T?\n}")
    #expect(lines.first == "1: classes.append(KeepsakeArchive.ArchiveClasses.listed(B.self))")
  }
}
