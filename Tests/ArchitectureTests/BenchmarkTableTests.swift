import Foundation
import Testing

/// The same figures stand in several documents; a person who reads two of them must not find two answers.
struct BenchmarkTableTests {
  static let source = "docs/BENCHMARKS.md"
  static let copies = ["README.md", "Sources/Keepsake/Documentation.docc/Speed.md"]

  /// What stands between the markers, by the markers' name.
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

  @Test("a reader finds the same figures in every document", arguments: copies)
  func tablesAgree(copy: String) throws {
    let source = try Self.sections(of: Self.source)
    let copied = try Self.sections(of: copy)
    #expect(copied["ratios"]?.isEmpty == false, "\(copy) has no table; run make bench WRITE=1")
    for name in copied.keys.sorted() {
      #expect(copied[name] == source[name], "\(copy) and \(Self.source) differ in \(name); run make bench WRITE=1")
    }
  }

  @Test(
    "the documents have no table of figures outside of the markers, where nothing would keep it up to date", arguments: [source] + copies)
  func noOtherTables(file: String) throws {
    let marked = try Self.sections(of: file).values.flatMap { $0 }
    let ratios = try String(contentsOf: FloorTests.root.appending(path: file), encoding: .utf8).split(separator: "\n").filter {
      $0.hasPrefix("|") && $0.contains(/[0-9]x\s/)
    }
    for line in ratios { #expect(marked.contains(line), "\(file): \(line)") }
  }

  @Test("the plots in the documentation are those in docs", arguments: ["archive-speed.svg", "files-or-database.svg"])
  func picturesAgree(name: String) throws {
    let plot = try Data(contentsOf: FloorTests.root.appending(path: "docs/\(name)"))
    let copy = try Data(contentsOf: FloorTests.root.appending(path: "Sources/Keepsake/Documentation.docc/\(name)"))
    let isSame = plot == copy
    #expect(isSame)
    #expect(!plot.isEmpty)
  }

  @Test("the advice on files and a database is one text in docs and in the documentation, with figures in each of its tables")
  func adviceAgrees() throws {
    let file = "docs/FILES_OR_DATABASE.md"
    let text = try String(contentsOf: FloorTests.root.appending(path: file), encoding: .utf8)
    let copy = try String(
      contentsOf: FloorTests.root.appending(path: "Sources/Keepsake/Documentation.docc/FilesOrDatabase.md"), encoding: .utf8)
    let isSame = text == copy
    #expect(isSame, "change both, or run make bench WRITE=1")
    let sections = try Self.sections(of: file)
    #expect(sections.count == 8)
    for (name, lines) in sections { #expect(!lines.isEmpty, "\(name) has no figures; run make bench WRITE=1") }
  }
}
