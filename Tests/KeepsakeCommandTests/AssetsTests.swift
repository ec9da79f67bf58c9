#if Cloud
import Foundation
import Keepsake
import TestSupport
import Testing

@testable import KeepsakeCommand

/// One command writes the manifest of a game's assets. A script can check whether the manifest is up to date and
/// whether a copy of the assets is complete.
@Suite struct AssetsTests {
  private let folder = TemporaryFolder.url("assets")
  private var manifest: URL { folder.appendingPathComponent(AssetManifest.fileName) }

  private func cleaning(_ body: () async throws -> Void) async throws {
    try FileManager.default.createDirectory(
      at: folder.appendingPathComponent("Images"), withIntermediateDirectories: true)
    // A leftover folder does no harm.
    defer { try? FileManager.default.removeItem(at: folder) }
    try Data("a ship".utf8).write(to: folder.appendingPathComponent("Images/Ship.png"))
    try Data("boom".utf8).write(to: folder.appendingPathComponent("Boom.wav"))
    try await body()
  }

  private func make(_ options: String...) async -> Int32 {
    await status(of: AssetsManifestCommand.self, [folder.path] + options)
  }

  private func verify(_ options: String...) async -> Int32 {
    await status(of: AssetsVerifyCommand.self, [folder.path] + options)
  }

  @Test("a manifest is written, found up to date or outdated, and rewritten; --check writes nothing")
  func manifests() async throws {
    try await cleaning {
      #expect(await make("--check") == AssetsManifestCommand.outdated)
      #expect(!FileManager.default.fileExists(atPath: manifest.path))
      #expect(await make() == 0)
      let bytes = try Data(contentsOf: manifest)
      #expect(await make("--check") == 0)
      #expect(await make("--json") == 0)
      #expect(try Data(contentsOf: manifest) == bytes)
      #expect(try AssetLibrary(at: folder).paths == ["Boom.wav", "Images/Ship.png"])
      try Data("a larger boom".utf8).write(to: folder.appendingPathComponent("Boom.wav"))
      #expect(await make("--check") == AssetsManifestCommand.outdated)
      #expect(try Data(contentsOf: manifest) == bytes)
      #expect(await make() == 0)
      #expect(await make("--check", "--json") == 0)
      // A file that is no longer a manifest is still replaced.
      try Data("no manifest".utf8).write(to: manifest)
      #expect(await verify() == CommandFailure.Kind.data.rawValue)
      #expect(await make() == 0)
      #expect(await verify() == 0)
    }
  }

  @Test("a manifest at another location lists every file except itself")
  func output() async throws {
    try await cleaning {
      let other = folder.appendingPathComponent("Images/list.json")
      #expect(await make("--output", other.path) == 0)
      #expect(await make("--output", other.path, "--check") == 0)
      let assets = try AssetLibrary(at: folder, manifest: .file(other))
      #expect(assets.paths == ["Boom.wav", "Images/Ship.png"])
      #expect(await verify("--manifest", other.path) == 0)
      // Also if the folder is given as a link.
      let link = folder.path + ".link"
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: folder.path)
      defer { try? FileManager.default.removeItem(atPath: link) }
      #expect(await status(of: AssetsManifestCommand.self, [link, "--output", other.path, "--check"]) == 0)
      #expect(await verify() == CommandFailure.Kind.noInput.rawValue)
    }
  }

  @Test("verify reports a damaged or incomplete copy by its exit status; extra files alone don't count")
  func verifying() async throws {
    try await cleaning {
      #expect(await make() == 0)
      try Data("notes".utf8).write(to: folder.appendingPathComponent("notes.txt"))
      #expect(await verify("--json") == 0)
      try Data("a shup".utf8).write(to: folder.appendingPathComponent("Images/Ship.png"))
      #expect(await verify() == AssetsVerifyCommand.unsound)
      try FileManager.default.removeItem(at: folder.appendingPathComponent("Images/Ship.png"))
      #expect(await verify("--json") == AssetsVerifyCommand.unsound)
    }
  }

  @Test("names that Windows can't load and missing folders are refused, and no manifest is written")
  func refused() async throws {
    try await cleaning {
      try Data().write(to: folder.appendingPathComponent("aux.txt"))
      #expect(await make() == CommandFailure.Kind.data.rawValue)
      #expect(!FileManager.default.fileExists(atPath: manifest.path))
      #expect(
        await status(of: AssetsManifestCommand.self, [folder.path + "/nowhere"]) == CommandFailure.Kind.noInput.rawValue
      )
      #expect(await status(of: AssetsManifestCommand.self, []) == 64)
      try FileManager.default.removeItem(at: folder.appendingPathComponent("aux.txt"))
      // A folder has the manifest's name.
      try FileManager.default.createDirectory(
        at: manifest.appendingPathComponent("x"), withIntermediateDirectories: true)
      #expect(await make() == CommandFailure.Kind.io.rawValue)
    }
  }

  #if os(Linux)
  @Test("a full disk and a read-only one are reported, and the existing manifest is unchanged", .needsPrivateMounts)
  func noRoom() async throws {
    let script = """
      mount -t tmpfs -o size=64k keepsake "$1" || exit 90
      mkdir "$1/assets" && echo ship >"$1/assets/ship" || exit 91
      "$2" assets manifest "$1/assets" >/dev/null || exit 92
      cp "$1/assets/keepsake-assets.json" "$1/before" && echo more >"$1/assets/more" || exit 93
      cat /dev/zero >"$1/filler" 2>/dev/null
      "$2" assets manifest "$1/assets" 2>&3; [ $? = 74 ] || exit 94
      cmp "$1/before" "$1/assets/keepsake-assets.json" || exit 95
      [ "$(ls -A "$1/assets" | wc -l)" = 3 ] || exit 96
      rm "$1/filler" && mount -o remount,ro "$1" || exit 97
      "$2" assets manifest "$1/assets" 2>&3; [ $? = 77 ] || exit 98
      "$2" assets verify "$1/assets" >/dev/null || exit 99
      mount -o remount,rw "$1" && "$2" assets manifest "$1/assets" >/dev/null || exit 100
      """
    let command = try #require(Bundle.main.executableURL).deletingLastPathComponent().appendingPathComponent("keepsake")
    try #require(FileManager.default.isExecutableFile(atPath: command.path), "\(command.path)")
    try await cleaning {
      let folder = folder.path
      let ended = try await onThread {
        try PrivateMounts.run(["sh", "-c", "exec 3>&2; " + script, "sh", folder, command.path])
      }
      #expect(ended.status == 0, "\(ended.errors)")
      #expect(
        ended.errors.contains("No space left on device") && ended.errors.contains("Read-only file system"),
        "\(ended.errors)")
    }
  }
  #endif
}
#endif
