import Foundation
import TestSupport
import Testing

/// CONTRIBUTING describes every folder in one line.
struct RoomMapTests {
  /// The folders that the map names, such as `Keepsake/Saves`.
  static func folders(in document: String) -> [String] {
    var found: [String] = []
    var targets: [String] = []
    let section =
      document.components(separatedBy: "## Where is what").dropFirst().first?.components(separatedBy: "\n## ").first
      ?? ""
    for line in section.components(separatedBy: "\n") {
      let names = line.matches(of: /`(\w+)`/).map { String($0.1) }
      if line.hasPrefix("- ") {
        targets = names
        found += names
      } else if line.hasPrefix("  - "), let target = targets.first {
        found += names.map { "\(target)/\($0)" }
      }
    }
    return found
  }

  /// The folders of the sources, except `Internal`, whose name is description enough.
  static func foldersOfSources() throws -> [String] {
    let sources = Repository.root.appending(path: "Sources")
    let all = try #require(FileManager.default.enumerator(at: sources, includingPropertiesForKeys: [.isDirectoryKey]))
    return try all.compactMap { $0 as? URL }.compactMap { url in
      guard try url.resourceValues(forKeys: [.isDirectoryKey]).isDirectory == true else { return nil }
      let path = url.path.components(separatedBy: "/Sources/").last ?? ""
      return path.contains("Internal") || path.contains(".docc") ? nil : path
    }.sorted()
  }

  @Test("Every folder of the sources has its line in CONTRIBUTING")
  func everyFolderIsListed() throws {
    let document = try String(contentsOf: Repository.root.appending(path: "CONTRIBUTING.md"), encoding: .utf8)
    let listed = Set(Self.folders(in: document))
    let folders = try Self.foldersOfSources()
    #expect(folders.count > 50)
    for folder in folders {
      // A folder in a room may be listed on the room's line.
      let parts = folder.split(separator: "/")
      let short = parts.count > 2 ? "\(parts[0])/\(parts[parts.count - 1])" : folder
      #expect(listed.contains(short), "Sources/\(folder) has no line in CONTRIBUTING")
    }
  }

  @Test("Every target of the tests has its line in CONTRIBUTING")
  func everyTestTargetIsListed() throws {
    let document = try String(contentsOf: Repository.root.appending(path: "CONTRIBUTING.md"), encoding: .utf8)
    let listed = Set(Self.folders(in: document))
    for target in try FileManager.default.contentsOfDirectory(atPath: Repository.root.appending(path: "Tests").path)
    where !target.hasPrefix(".") {
      #expect(listed.contains(target), "Tests/\(target) has no line in CONTRIBUTING")
    }
  }

  @Test("Every source file that ARCHITECTURE links to exists")
  func linkedFilesExist() throws {
    let document = try String(contentsOf: Repository.root.appending(path: "docs/ARCHITECTURE.md"), encoding: .utf8)
    let paths = Set(document.matches(of: /\.\.\/([\w\/+.\-]+\.swift)/).map { String($0.1) })
    #expect(paths.count > 20)
    for path in paths.sorted() {
      #expect(FileManager.default.fileExists(atPath: Repository.root.appending(path: path).path), "\(path) is gone")
    }
  }
}
