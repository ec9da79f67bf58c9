import Foundation
import Testing

/// Several documents contain the same figures, which must not differ.
struct BenchmarkTableTests {
  static let source = "docs/BENCHMARKS.md"
  static let copies = ["README.md", "Sources/Keepsake/Documentation.docc/Speed.md"]

  /// The lines between the markers, by the markers' name.
  static func sections(of file: String) throws -> [String: [Substring]] {
    var sections: [String: [Substring]] = [:]
    var open: String?
    for line in try String(contentsOf: FloorTests.root.appending(path: file), encoding: .utf8)
      .split(separator: "\n", omittingEmptySubsequences: false)
    {
      if let name = line.wholeMatch(of: /<!-- bench:(\w+) -->/)?.1 {
        try #require(open == nil, "\(file): \(name) begins inside of another section")
        open = String(name)
        sections[String(name)] = []
      } else if let name = line.wholeMatch(of: /<!-- \/bench:(\w+) -->/)?.1 {
        try #require(open == String(name), "\(file): \(name) ends without having begun")
        open = nil
      } else if let open, !line.isEmpty {
        sections[open, default: []].append(line)
      }
    }
    try #require(open == nil, "\(file): a section has no end")
    return sections
  }

  @Test("every document has the same figures as docs/BENCHMARKS.md", arguments: copies)
  func tablesAgree(copy: String) throws {
    let source = try Self.sections(of: Self.source)
    let copied = try Self.sections(of: copy)
    #expect(!copied.isEmpty, "\(copy) has no figures; run make bench WRITE=1")
    for name in copied.keys.sorted() {
      #expect(copied[name] == source[name], "\(copy) and \(Self.source) differ in \(name); run make bench WRITE=1")
    }
  }

  @Test("the README states how many goals and how many aims are reached")
  func goalsAreCounted() throws {
    let sections = try Self.sections(of: Self.source).filter { $0.key.hasSuffix("goals") }
    // The last cell of a goal's row, which follows the head and the line under it.
    let verdicts = sections.values.flatMap { $0.filter { $0.hasPrefix("|") }.dropFirst(2) }.compactMap { row in
      row.split(separator: "|").last?.trimmingCharacters(in: .whitespaces)
    }
    let musts = verdicts.count { $0.hasPrefix("yes") }
    let aims = verdicts.count { $0 == "yes, the aim too" }
    #expect(verdicts.count > 20)
    let sentence = """
      Of the \(verdicts.count) goals in [\(Self.source)](\(Self.source)), \(musts) reach what they must, and \(aims) \
      reach their aim.
      """
    let readme = try String(contentsOf: FloorTests.root.appending(path: "README.md"), encoding: .utf8)
    #expect(readme.contains(sentence), "the README should say: \(sentence)")
  }

  @Test(
    "no document has a table of figures outside of the markers, where it isn't kept up to date",
    arguments: [source] + copies)
  func noOtherTables(file: String) throws {
    let marked = try Self.sections(of: file).values.flatMap { $0 }
    let ratios = try String(contentsOf: FloorTests.root.appending(path: file), encoding: .utf8).split(separator: "\n")
      .filter {
        $0.hasPrefix("|") && $0.contains(/[0-9]x\s/)
      }
    for line in ratios { #expect(marked.contains(line), "\(file): \(line)") }
  }

  @Test("the plot in the documentation is the same as the one in docs")
  func picturesAgree() throws {
    let name = "archive-speed.svg"
    let plot = try Data(contentsOf: FloorTests.root.appending(path: "docs/\(name)"))
    let copy = try Data(contentsOf: FloorTests.root.appending(path: "Sources/Keepsake/Documentation.docc/\(name)"))
    let isSame = plot == copy
    #expect(isSame)
    #expect(!plot.isEmpty)
  }

  @Test("each table of the article about files and databases has figures")
  func adviceHasFigures() throws {
    let sections = try Self.sections(of: "Sources/Keepsake/Documentation.docc/FilesOrDatabase.md")
    #expect(sections.count == 8)
    for (name, lines) in sections { #expect(!lines.isEmpty, "\(name) has no figures; run make bench WRITE=1") }
  }
}
