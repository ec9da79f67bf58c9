import Foundation
import TestSupport
import Testing

/// Reads the manifest as the package manager does on each system that builds games.
struct ManifestTests {
  typealias Object = [String: Any]

  /// When a target needs a product of another package, or a target of this one.
  struct Need: Equatable {
    var target: String
    var name: String
    var platforms: [String] = []
    var traits: [String] = []
  }

  struct Manifest {
    var root: Object

    /// - Parameter host: The system on which the manifest is to be read; nil for this one.
    init(host: String?) throws {
      let compiler = try #require(SnippetTests.compiler)
      let folder = try TemporaryFolder("manifest")
      // A build folder of its own: the usual one is locked while tests run.
      let dump = try ChildProcess.run(
        compiler.deletingLastPathComponent().appending(path: "swift"),
        ["package", "--package-path", Repository.root.path, "--scratch-path", folder.url.path, "dump-package"],
        environment: host.map { ["KEEPSAKE_MANIFEST_HOST": $0] } ?? [:])
      try #require(dump.status == 0, "\(dump.errors)")
      root = try #require(try JSONSerialization.jsonObject(with: dump.output) as? Object)
    }

    var targets: [Object] { root["targets"] as? [Object] ?? [] }

    /// Needs of what is called `name`, as the package of a product or as a target.
    func needs(of name: String) -> [Need] {
      targets.flatMap { target in
        (target["dependencies"] as? [Object] ?? []).compactMap { dependency -> Need? in
          guard let words = dependency.values.first as? [Any], words.contains(where: { $0 as? String == name }) else {
            return nil
          }
          let condition = words.lazy.compactMap { $0 as? Object }.first { $0["platformNames"] != nil }
          return Need(
            target: target["name"] as? String ?? "", name: words.first as? String ?? "",
            platforms: condition?["platformNames"] as? [String] ?? [], traits: condition?["traits"] as? [String] ?? [])
        }
      }
    }

    /// The settings of a target that define a condition of this name, as JSON.
    func definitions(of name: String, in target: String) throws -> String {
      let settings = targets.first { $0["name"] as? String == target }?["settings"] as? [Object] ?? []
      let chosen = settings.filter { "\($0["kind"] ?? "")".contains(name) }
      return String(
        decoding: try JSONSerialization.data(withJSONObject: chosen, options: [.sortedKeys]), as: UTF8.self)
    }

    /// Everything but what is said of zstd, in an order that doesn't change.
    func withoutZstd() throws -> String {
      var root = root
      root["targets"] = targets.filter { $0["name"] as? String != "CZstd" }.map { target in
        var target = target
        target["dependencies"] = (target["dependencies"] as? [Object] ?? []).filter { dependency in
          let words = (dependency.values.first as? [Any] ?? []).compactMap { $0 as? String }
          return !words.contains("CZstd") && !words.contains("zstd")
        }
        target["settings"] = (target["settings"] as? [Object] ?? []).filter {
          !"\($0["kind"] ?? "")".contains("SYSTEM_ZSTD")
        }
        return target
      }
      root["traits"] = (root["traits"] as? [Object] ?? []).sorted { "\($0["name"] ?? "")" < "\($1["name"] ?? "")" }
      return String(decoding: try JSONSerialization.data(withJSONObject: root, options: [.sortedKeys]), as: UTF8.self)
    }
  }

  @Test("on Linux, zstd is the system's library, and its package is fetched for Android alone, with a trait")
  func linux() throws {
    let manifest = try Manifest(host: "linux")
    #expect(manifest.needs(of: "CZstd") == [Need(target: "KeepsakeStore", name: "CZstd", platforms: ["linux"])])
    #expect(
      manifest.needs(of: "zstd") == [
        Need(target: "KeepsakeStore", name: "libzstd", platforms: ["android"], traits: ["Android"])
      ])
    #expect(manifest.targets.contains { $0["name"] as? String == "CZstd" && $0["type"] as? String == "system" })
    let definitions = try manifest.definitions(of: "SYSTEM_ZSTD", in: "KeepsakeStore")
    #expect(definitions.contains(#""platformNames":["linux"]"#), "\(definitions)")
    #if os(Linux)
    #expect(try manifest.withoutZstd() == Manifest(host: nil).withoutZstd())
    #endif
  }

  @Test(
    "on a Mac and on Windows, zstd is built from its own package; all else is the same", arguments: ["mac", "windows"])
  func others(host: String) throws {
    let manifest = try Manifest(host: host)
    #expect(manifest.needs(of: "CZstd").isEmpty)
    #expect(manifest.needs(of: "zstd") == [Need(target: "KeepsakeStore", name: "libzstd")])
    #expect(!manifest.targets.contains { $0["name"] as? String == "CZstd" })
    #expect(try manifest.definitions(of: "SYSTEM_ZSTD", in: "KeepsakeStore") == "[]")
    #expect(try manifest.withoutZstd() == Manifest(host: "linux").withoutZstd())
  }

  @Test("one file imports zstd, and the manifest alone decides which")
  func imports() throws {
    let files = try FloorTests.floors.keys.filter { !FloorTests.systemLibraries.contains($0) }.flatMap { target in
      try FloorTests.sources(of: target).filter { file in
        try FloorTests.imports(in: file).contains { ["CZstd", "libzstd"].contains($0) }
      }
    }
    #expect(files.map(\.lastPathComponent) == ["Zstd.swift"])
  }
}
