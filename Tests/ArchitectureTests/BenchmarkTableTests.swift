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

  @Test("the plot in the documentation is the one in docs")
  func picturesAgree() throws {
    let plot = try Data(contentsOf: FloorTests.root.appending(path: "docs/archive-speed.svg"))
    let copy = try Data(contentsOf: FloorTests.root.appending(path: "Sources/Keepsake/Documentation.docc/archive-speed.svg"))
    #expect(plot == copy)
    #expect(!plot.isEmpty)
  }
}
