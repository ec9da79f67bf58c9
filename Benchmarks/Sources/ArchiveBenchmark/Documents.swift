import Foundation

/// Puts figures into the repository's documents, between markers, so that they never disagree:
///
///     <!-- bench:ratios -->
///     ...
///     <!-- /bench:ratios -->
struct Documents {
  static let files = ["docs/BENCHMARKS.md", "README.md", "Sources/Keepsake/Documentation.docc/Speed.md"]
  static let pictures = ["docs/archive-speed.svg", "Sources/Keepsake/Documentation.docc/archive-speed.svg"]

  let root: URL

  func write(_ figures: Figures) throws {
    let sections = Report(figures: figures).sections
    for file in Self.files {
      let url = root.appending(path: file)
      let text = try replace(in: try String(contentsOf: url, encoding: .utf8), file, sections)
      try text.write(to: url, atomically: true, encoding: .utf8)
    }
    let picture = Plot(figures).svg
    for file in Self.pictures { try picture.write(to: root.appending(path: file), atomically: true, encoding: .utf8) }
  }

  private func replace(in text: String, _ file: String, _ sections: [String: String]) throws -> String {
    var text = text
    var found = 0
    for name in sections.keys.sorted() {
      guard let start = text.range(of: "<!-- bench:\(name) -->") else { continue }
      guard let end = text.range(of: "<!-- /bench:\(name) -->", range: start.upperBound..<text.endIndex) else {
        throw BenchmarkError(message: "\(file) has no end of \(name)")
      }
      text.replaceSubrange(start.upperBound..<end.lowerBound, with: "\n\n\(sections[name] ?? "")\n\n")
      found += 1
    }
    guard found > 0 else { throw BenchmarkError(message: "\(file) has no place for figures") }
    return text
  }
}
