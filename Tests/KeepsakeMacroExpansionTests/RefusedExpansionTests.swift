import Testing

/// Swift 6.3 stops with a failed assertion, and shows no error, if a class doesn't get the conformance that a subclass
/// inherits. `Scripts/macro-refusals.py` asks the compiler; these are the expansions.
@Suite struct RefusedExpansionTests {
  private func answers(_ text: String, conformances: [String] = ["Archivable"]) throws -> [String: String] {
    let answers = try MacroPlugin.expand(MarkedSource(text), conformances: conformances)
    #expect(answers.flatMap(\.diagnostics).count == 1, "\(answers.flatMap(\.diagnostics))")
    let expanded = answers.filter { $0.attribute.name == "Archivable" }.map { ($0.role, $0.source) }
    return Dictionary(uniqueKeysWithValues: expanded)
  }

  /// The names of what an expansion declares, in their order.
  private func declared(_ source: String?) -> [String] {
    (source ?? "").matches(of: /(?:(override |required )*)(?:(class|static) )?(?:func|var|init)\b ?(\w*)(?=[(:])/).map {
      "\($0.1.map(String.init) ?? "")\($0.3.isEmpty ? "init" : $0.3)"
    }
  }

  @Test func aStructWithAnErrorConformsInAnExtension() throws {
    let expanded = try answers("@Archivable struct A {\n  lazy var x = 3\n}")
    #expect(declared(expanded["member"]) == ["archiveFields"])
    #expect(declared(expanded["extension"]) == ["archiveName", "archiveIsKeyed", "encode", "init"])
    #expect(expanded["extension"]?.contains("extension A: KeepsakeArchive.Archivable {") == true)
  }

  @Test func anEnumWithAnErrorConformsInAnExtension() throws {
    let expanded = try answers("@Archivable(version: 0) enum A<T> {\n  case a(T)\n}")
    #expect(declared(expanded["member"]) == ["archiveFields"])
    #expect(declared(expanded["extension"]) == ["archiveName", "archiveVersion", "archiveIsKeyed", "encode", "init"])
    #expect(
      expanded["extension"]?.contains("extension A: KeepsakeArchive.Archivable where T: KeepsakeArchive.Archivable")
        == true)
  }

  @Test func aClassWithAnErrorHasWhatItsSubclassesOverride() throws {
    let valid = try MacroPlugin.expand(
      MarkedSource("@Archivable(subclasses: [B.self]) class A {\n  var x = 3\n}"), conformances: ["Archivable"])
    let expanded = try answers("@Archivable(subclasses: [B.self]) class A {\n  lazy var x = 3\n}")
    #expect(declared(expanded["member"]) == declared(valid[0].source).filter { $0 != "classes" })
    #expect(expanded["extension"] == valid[1].source)
    #expect(expanded["member"]?.contains("B.self") == false)
  }

  @Test func aSubclassWithAnErrorOverridesWithoutCallingItsSuperclass() throws {
    let expanded = try answers(
      "@Archivable class A: B {\n  let x: Int\n  @Unsaved var y: Int\n  init() {\n  }\n}", conformances: [])
    #expect(expanded["member"]?.contains("override func encode(to writer: inout KeepsakeArchive") == true)
    #expect(expanded["member"]?.contains("required init(from reader: inout KeepsakeArchive.ArchiveReader)") == true)
    #expect(expanded["extension"] == "")
  }

  @Test func aSubclassWithAnErrorKeepsTheInitialisersItInherits() throws {
    let inherits = try answers("@Archivable class A: B {\n  lazy var x = 3\n}", conformances: [])
    #expect(inherits["member"]?.contains("init(") == false)
    let own = try answers("@Archivable class A: B {\n  @Unsaved var x: Int\n}", conformances: [])
    #expect(own["member"]?.contains("required init(from") == true, "the property needs an initialiser")
  }

  @Test func valueAndPackParametersArentConstrained() throws {
    let value = try answers("@Archivable struct A<let n: Int> {\n  var x: InlineArray<n, Int>\n}")
    #expect(value["extension"]?.contains("where") == false)
    let pack = try answers("@Archivable struct A<each T> {\n  var x: (repeat each T)\n}")
    #expect(pack["extension"]?.contains("where") == false)
  }
}
