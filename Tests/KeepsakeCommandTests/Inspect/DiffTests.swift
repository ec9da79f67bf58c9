#if Cloud
import ArgumentParser
import FlowerGarden
import Foundation
import KeepsakeInspection
import Keepsake
import TestSupport
import Testing

@testable import KeepsakeCommand

@Archivable private struct Hero {
  var level = 1
  var items = ["sword"]
}

/// Support compares two versions of a save; a script checks whether anything changed at all.
@Suite struct DiffTests {
  private let folder = TemporaryFolder.url("diff")

  /// Removes the folder after a test; a leftover folder does no harm.
  private func cleaning(_ body: () async throws -> Void) async throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body()
  }

  private func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

  private func status(_ arguments: [String]) async -> Int32 {
    await KeepsakeCommandTests.status(of: DiffCommand.self, arguments)
  }

  @Test("the exit status shows whether two saves have equal contents, however they are compressed")
  func exitStatus() async throws {
    try await cleaning {
      try Archive.write(Hero(), to: folder.appendingPathComponent("a"), compression: .none)
      try Archive.write(Hero(), to: folder.appendingPathComponent("b"), compression: .zstd(level: 9))
      try Archive.write(Hero(level: 2, items: ["sword", "bow"]), to: folder.appendingPathComponent("c"))
      try Data("once upon a time".utf8).write(to: folder.appendingPathComponent("text"))
      #expect(await status([path("a"), path("b")]) == 0)
      #expect(await status([path("a"), path("c")]) == 1)
      #expect(await status([path("a"), path("c"), "--json"]) == 1)
      #expect(await status([path("a"), path("nothing")]) == 66)
      #expect(await status([path("text"), path("a")]) == 65)
      #expect(await status([path("a"), path("b"), "--slot", "main", "--from", "1"]) == 64)
      #expect(await status([path("a")]) == 64)
      #expect(await status([path("a"), path("b"), "--from", "1"]) == 64)
    }
  }

  @Test("every change is shown with its path")
  func changes() async throws {
    try await cleaning {
      try Archive.write(Hero(), to: folder.appendingPathComponent("a"))
      try Archive.write(Hero(level: 2, items: ["sword", "bow"]), to: folder.appendingPathComponent("c"))
      let command = try DiffCommand.parse([path("a"), path("c")])
      #expect(try command.difference().text() == "values\n    level: 1 -> 2\n  + items[1]: \"bow\"\n")
    }
  }

  @Test("two versions of one slot are compared within the store")
  func versions() async throws {
    try await cleaning {
      let store = folder.appendingPathComponent("store")
      let garden = try FlowerGarden(store: store)
      try await garden.change(pot: "sill") { $0.plant("tulip", id: "1") }
      try await garden.change(pot: "sill") { $0.plant("rose", id: "2") }
      let first = try #require(try garden.game.saves.history(of: "pot/sill").last)
      let command = try DiffCommand.parse([store.path, "--slot", "pot/sill", "--from", first.id.description])
      let text = try command.difference().text()
      #expect(text.contains("+ flowers[") && text.contains("\"rose\"") && !text.contains("tulip"))
      // As the other commands, it takes the beginning of an id, too.
      let short = try DiffCommand.parse([
        store.path, "--slot", "pot/sill", "--from", String(first.id.description.prefix(8)),
      ])
      #expect(try short.difference().text() == text)
      #expect(await status([store.path, store.path, "--slot", "pot/sill"]) == 0)
      #expect(await status([store.path, store.path]) == 64)
      #expect(await status([store.path, "--slot", "pot/none", "--from", first.id.description]) == 66)
      try garden.game.close()
    }
  }
}
#endif
