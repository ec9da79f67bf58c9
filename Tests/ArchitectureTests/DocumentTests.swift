import Foundation
import TestSupport
import Testing

/// Checks the documents as text: links must lead to something, and lines, also of code, must not be too wide.
@Suite struct DocumentTests {
  static let widest = 120

  /// Markdown files in a folder of the repository, not in those below it.
  private static func documents(in folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: Repository.root.appending(path: folder).path)
      .filter { $0.hasSuffix(".md") }.map { "\(folder)/\($0)" }
  }

  private static func found(_ list: () throws -> [String]) -> [String] {
    do {
      return try list().sorted()
    } catch {
      Issue.record("\(error)")
      return []
    }
  }

  /// Documents that are read on the web or in an editor, where links are relative.
  static let linked = found {
    let examples = try FileManager.default.contentsOfDirectory(atPath: Repository.root.appending(path: "Examples").path)
      .map { "Examples/\($0)/README.md" }.filter {
        FileManager.default.fileExists(atPath: Repository.root.appending(path: $0).path)
      }
    return try ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"] + documents(in: "docs") + examples
  }

  static let articles = found { try documents(in: "Sources/Keepsake/Documentation.docc") }

  private static func lines(of file: String) throws -> [Substring] {
    try String(contentsOf: Repository.root.appending(path: file), encoding: .utf8).split(
      separator: "\n", omittingEmptySubsequences: false)
  }

  /// The lines that aren't in a block of code.
  private static func prose(of file: String) throws -> [Substring] {
    var isCode = false
    return try lines(of: file).filter { line in
      if line.trimmingPrefix(while: \.isWhitespace).hasPrefix("```") {
        isCode.toggle()
        return false
      }
      return !isCode
    }
  }

  /// The names that headings can be linked by, as GitHub makes them.
  static func anchors(of file: String) throws -> Set<String> {
    var anchors: Set<String> = []
    for line in try prose(of: file) {
      guard let heading = line.wholeMatch(of: /#{1,6} +(.+)/)?.1 else { continue }
      let slug = String(
        heading.lowercased().filter { $0.isLetter || $0.isNumber || "-_ ".contains($0) }.map { $0 == " " ? "-" : $0 })
      var number = 0
      while !anchors.insert(number == 0 ? slug : "\(slug)-\(number)").inserted { number += 1 }
    }
    return anchors
  }

  /// The targets of links, pictures and link definitions, except those on the web.
  static func targets(in file: String) throws -> [String] {
    // A link may continue on the next line; text in a code span is no link.
    let text = try prose(of: file).joined(separator: "\n").replacing(/`[^`\n]*`/, with: "")
    let inline = text.matches(of: /\]\(([^)\s]+)(?:\s+"[^"]*")?\)/).map { String($0.1) }
    let defined = text.matches(of: /(?m)^ *\[[^\]]+\]: (\S+)(?: +"[^"]*")?$/).map { String($0.1) }
    return (inline + defined).filter { !$0.contains("://") }
  }

  @Test("every relative link leads to an existing file or folder, and to an existing heading", arguments: linked)
  func linksResolve(file: String) throws {
    let folder = Repository.root.appending(path: file).deletingLastPathComponent()
    for target in try Self.targets(in: file) {
      let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
      let url =
        parts[0].isEmpty
        ? Repository.root.appending(path: file) : folder.appending(path: String(parts[0])).standardizedFileURL
      let isThere = FileManager.default.fileExists(atPath: url.path)
      #expect(isThere, "\(file) links to \(target)")
      guard isThere, parts.count == 2 else { continue }
      let path = url.path.dropFirst(Repository.root.standardizedFileURL.path.count).drop { $0 == "/" }
      let anchors = try Self.anchors(of: String(path))
      #expect(anchors.contains(String(parts[1])), "\(file) links to \(target), and has no such heading")
    }
  }

  @Test(
    "every link of an article leads to an existing article, and every picture to an existing file", arguments: articles)
  func articleLinksResolve(file: String) throws {
    let folder = Repository.root.appending(path: file).deletingLastPathComponent()
    let files = Set(try FileManager.default.contentsOfDirectory(atPath: folder.path))
    // The extension of a picture may be left out.
    let names = files.union(files.map { URL(filePath: $0).deletingPathExtension().lastPathComponent })
    for link in try Self.prose(of: file).joined(separator: "\n").matches(of: /<doc:([^>]+)>/) {
      #expect(files.contains("\(link.1).md"), "\(file) links to \(link.1)")
    }
    for target in try Self.targets(in: file) { #expect(names.contains(target), "\(file) links to \(target)") }
  }

  @Test("known links and documents are found, so that the other checks read something")
  func linksAreFound() throws {
    let readme = try Self.targets(in: "README.md")
    #expect(readme.contains("docs/GUARANTEES.md") && readme.contains("docs/two-devices.svg"))
    #expect(try Self.targets(in: "docs/COMMAND.md").contains("#keepsake-assets-manifest"))
    #expect(Self.linked.count >= 15 && Self.articles.count >= 15)
  }

  @Test(
    "no line is wider than 120 characters, but for measured tables in docs/BENCHMARKS.md", arguments: linked + articles)
  func linesFit(file: String) throws {
    var isMeasured = false
    var wide: [Int] = []
    for (number, line) in try Self.lines(of: file).enumerated() {
      if file == BenchmarkTableTests.source {
        if line.hasPrefix("<!-- bench:") { isMeasured = true }
        if line.hasPrefix("<!-- /bench:") { isMeasured = false }
      }
      if !isMeasured, line.count > Self.widest { wide.append(number + 1) }
    }
    #expect(wide.isEmpty, "lines of \(file) that are too wide")
  }

  /// The folders that hold code and scripts.
  private static let code = ["Benchmarks/Sources", "Examples", "Fuzz", "Scripts", "Sources", "Tests"]

  @Test("no line of code is wider than 120 characters, except in generated files", arguments: code)
  func codeFits(folder: String) throws {
    let files = try FileManager.default.subpathsOfDirectory(atPath: Repository.root.appending(path: folder).path)
      .filter { path in
        [".swift", ".sh", ".py"].contains(where: path.hasSuffix) && !path.hasSuffix(".pb.swift")
      }
    #expect(!files.isEmpty)
    for file in files.map({ "\(folder)/\($0)" }) {
      let wide = try Self.lines(of: file).enumerated().filter { $0.element.count > Self.widest }.map { $0.offset + 1 }
      #expect(wide.isEmpty, "lines of \(file) that are too wide")
    }
  }
}
