import Foundation
import TestSupport
import Testing

/// The snippets in the README and the articles must compile: each is type-checked with the modules that were built.
/// Those in documentation comments must be valid syntax.
struct SnippetTests {
  static let articles = "Sources/Keepsake/Documentation.docc"

  /// The documents, relative to the repository.
  static let documents: [String] = {
    let folder = Repository.root.appending(path: articles)
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    return ["README.md"] + names.filter { $0.hasSuffix(".md") }.sorted().map { "\(articles)/\($0)" }
  }()

  /// Where the package manager puts what it builds: beside the tests' program.
  static let build: URL = {
    let beside = Bundle.main.executableURL?.deletingLastPathComponent()
    return beside.flatMap { FileManager.default.fileExists(atPath: $0.appending(path: "Modules").path) ? $0 : nil }
      ?? Repository.root.appending(path: ".build/debug")
  }()

  /// The compiler, as the shell would find it.
  static let compiler: URL? = ProcessInfo.processInfo.environment["PATH"].flatMap { path in
    path.split(separator: ":").map { URL(filePath: String($0)).appending(path: "swiftc") }
      .first { FileManager.default.isExecutableFile(atPath: $0.path) }
  }

  private static func manifestOptions(of compiler: URL) -> [String] {
    let toolchain = compiler.resolvingSymlinksInPath().deletingLastPathComponent().deletingLastPathComponent()
    return ["-package-description-version", "6.2.0", "-I", toolchain.appending(path: "lib/swift/pm/ManifestAPI").path]
  }

  private static func moduleOptions() -> [String] {
    let plugin = build.appending(path: "KeepsakeMacros-tool").path
    var options = ["-I", build.appending(path: "Modules").path, "-load-plugin-executable", "\(plugin)#KeepsakeMacros"]
    for folder in ["Sources/CCurl", "Sources/CZstd", ".build/checkouts/GRDB.swift/Sources/GRDBSQLite"] {
      options += ["-Xcc", "-fmodule-map-file=\(Repository.root.path)/\(folder)/module.modulemap"]
    }
    return options
  }

  /// Type-checks a program. Returns the compiler's messages, or an empty text if the program compiles.
  static func check(_ program: SnippetDocument.Program) throws -> String {
    let compiler = try #require(compiler)
    let usual: Set = ["import Foundation", "import Keepsake"]
    let imports = program.isManifest ? ["import PackageDescription"] : program.imports.union(usual).sorted()
    return try compile(
      imports.joined(separator: "\n") + "\n" + program.source,
      ["-typecheck", "-parse-as-library", "-swift-version", "6", "-module-name", "Snippets", "-suppress-warnings"]
        + (program.isManifest ? manifestOptions(of: compiler) : moduleOptions()))
  }

  /// Runs the compiler on a source text. Returns its messages, or an empty text if it accepts the text.
  static func compile(_ source: String, _ options: [String]) throws -> String {
    let folder = FileManager.default.temporaryDirectory.appending(path: "keepsake-snippets-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appending(path: "Snippets.swift")
    try Data(source.utf8).write(to: file)

    let process = Process()
    process.executableURL = try #require(compiler)
    process.arguments = options + [file.path]
    let output = folder.appending(path: "output")
    try Data().write(to: output)
    process.standardOutput = try FileHandle(forWritingTo: output)
    process.standardError = process.standardOutput
    try process.run()
    process.waitUntilExit()
    let said = try String(contentsOf: output, encoding: .utf8)
    return process.terminationStatus == 0
      ? "" : said.isEmpty ? "the compiler ended with \(process.terminationStatus)" : said
  }

  @Test("Every Swift snippet of the README and the articles compiles", arguments: documents)
  func compiles(document: String) throws {
    let text = try String(contentsOf: Repository.root.appending(path: document), encoding: .utf8)
    let snippets = SnippetDocument(text, name: document)
    for program in snippets.programs {
      let said = try Self.check(program)
      #expect(said.isEmpty, "\(document):\n\(said)")
    }
  }

  @Test("All but at most two snippets are compiled, and those state a reason")
  func skipped() throws {
    var count = 0
    var skipped: [String] = []
    for document in Self.documents {
      let text = try String(contentsOf: Repository.root.appending(path: document), encoding: .utf8)
      let snippets = SnippetDocument(text, name: document)
      count += snippets.count
      skipped += snippets.skipped
    }
    #expect(count > 40)
    #expect(skipped.count <= 2 && skipped.allSatisfy { $0.count > 10 }, "\(skipped)")
  }

  @Test("Every Swift snippet of a documentation comment is valid syntax")
  func commentsParse() throws {
    let sources = Repository.root.appending(path: "Sources")
    let files = try #require(FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
    var program: [String] = []
    for case let file as URL in files where file.pathExtension == "swift" {
      let text = try String(contentsOf: file, encoding: .utf8)
      var isSnippet = false
      for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
        let line = line.drop { $0 == " " }
        let comment = line.dropFirst(3)
        if !line.hasPrefix("///") {
          isSnippet = false
        } else if comment.contains("```") {
          isSnippet = comment.hasSuffix("```swift")
          if isSnippet { program.append("#sourceLocation(file: \"\(file.lastPathComponent)\", line: \(index + 2))") }
        } else if isSnippet {
          // What a snippet leaves out.
          program.append(String(comment.replacing(/^ *\.\.\.$/, with: "").replacing("{ ... }", with: "{ }")))
        }
      }
    }
    #expect(program.count { $0.hasPrefix("#sourceLocation") } > 80)
    let said = try Self.compile(program.joined(separator: "\n") + "\n", ["-frontend", "-parse"])
    #expect(said.isEmpty, "\(said)")
  }

  @Test("A slot of a type that can't be saved is refused with both ways to make it one")
  func slotOfNoType() throws {
    let text = """
      ```swift
      struct Plain { var level = 1 }
      let slot = Slot<Plain>("plain")
      ```
      """
    let program = try #require(SnippetDocument(text, name: "Slot.md").programs.first)
    let said = try Self.check(program)
    #expect(said.contains("Slot.md:3") && said.contains("a slot's type must be @Archivable, or Codable"), "\(said)")
  }

  @Test(
    "A setting or a progress value that can't be kept, or a rule for another type, is refused with what can be",
    arguments: [
      ("PreferenceKey<Plain>(\"a\", default: Plain())", "a preference's type must be a Boolean, a number, text"),
      (
        "ProgressKey<Plain>(\"a\", default: Plain(), rule: .max)", "a progress key with a default holds one Int, Double"
      ),
      ("ProgressKey<Plain>(\"a\", default: Plain(), rule: .max)", "max is for one Int, Double, String, Bool, Data"),
      ("ProgressKey<Plain>(\"a\", rule: .latest)", "a progress key without a default holds an Int, or a Set"),
      ("ProgressKey<Int>(\"a\", rule: .union)", "union is for a Set of Int"),
      ("ProgressKey<String>(\"a\", default: \"\", rule: .counter)", "counter is for Int"),
    ])
  func keyOfNoType(declaration: String, message: String) throws {
    let text = """
      ```swift
      struct Plain: Hashable { var level = 1 }
      let key = \(declaration)
      ```
      """
    let program = try #require(SnippetDocument(text, name: "Key.md").programs.first)
    let said = try Self.check(program)
    #expect(said.contains("Key.md:3") && said.contains(message), "\(said)")
  }

  @Test("A snippet that uses an unknown name is reported with the line of the document")
  func findsErrors() throws {
    let text = """
      # Title

      <!-- snippet
      let level: Int
      struct Given { var x = 1 }
      -->

      ```swift
      let given = Given()
      print(given.x + level, given.missing)
      ```
      """
    let document = SnippetDocument(text, name: "Title.md")
    let program = try #require(document.programs.first)
    let said = try Self.check(program)
    #expect(said.contains("Title.md:10") && said.contains("missing"), "\(said)")
  }
}
