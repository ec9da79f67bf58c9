public import Foundation

/// Puts figures into the repository's documents, between markers, so that they never disagree:
///
///     <!-- bench:ratios -->
///     ...
///     <!-- /bench:ratios -->
public struct Documents {
  let root: URL

  public init(root: URL) { self.root = root }

  /// Replaces what stands between the markers of these names, in each of the files that has them.
  ///
  /// - Parameters:
  ///   - sections: By the name in the marker.
  ///   - files: Their places in the repository. Each has to have one of the sections.
  public func write(_ sections: [String: String], to files: [String]) throws {
    for file in files {
      let url = root.appending(path: file)
      let text = try replace(in: try String(contentsOf: url, encoding: .utf8), file, sections)
      try text.write(to: url, atomically: true, encoding: .utf8)
    }
    Progress.report("wrote \(files.joined(separator: ", "))")
  }

  public func draw(_ picture: String, to files: [String]) throws {
    for file in files { try picture.write(to: root.appending(path: file), atomically: true, encoding: .utf8) }
    Progress.report("drew \(files.joined(separator: ", "))")
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
