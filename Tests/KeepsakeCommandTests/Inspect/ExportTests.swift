#if Cloud
import ArgumentParser
import Foundation
import Keepsake
import KeepsakeArchive
import KeepsakeInspection
import KeepsakeReplication
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeCommand

@Archivable private struct Lamp: Equatable { var brightness = 1 }

extension Slot<Lamp> {
  fileprivate static let lamp = Slot("lamp")
}

/// Support asks a player for one save, inspects it, repairs it and returns it.
@Suite struct ExportTests {
  private static let secret = Data(repeating: 42, count: 32)
  private let folder = TemporaryFolder.url("export")

  /// Removes the folder after a test; a leftover folder does no harm.
  private func cleaning(_ body: () async throws -> Void) async throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try Self.secret.write(to: folder.appendingPathComponent("secret"))
    try await body()
  }

  private func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

  private func playing<Value>(
    _ name: String, _ seal: Seal = .none, _ body: (GameData) async throws -> Value
  ) async throws -> Value {
    let game = try GameData.open(
      "com.example.lamp", at: folder.appendingPathComponent(name), seal: seal, history: .everything)
    do {
      let value = try await body(game)
      try game.close()
      return value
    } catch {
      try game.close()
      throw error
    }
  }

  private func shine(_ levels: ClosedRange<Int>, _ game: GameData) throws {
    for level in levels {
      try game.saves.capture(
        Lamp(brightness: level), to: .lamp, SaveMetadata(title: "Level \(level)", thumbnail: Data([1, 2]))
      ).wait()
    }
  }

  private func status<Command: AsyncParsableCommand>(_ type: Command.Type, _ arguments: [String]) async -> Int32 {
    do {
      guard var command = try type.parseAsRoot(arguments) as? Command else { return 64 }
      try await command.run()
      return 0
    } catch let code as ExitCode {
      return code.rawValue
    } catch {
      return 64
    }
  }

  @Test("a save is exported from an open store and imported into another, where the previous version can be restored")
  func roundTrip() async throws {
    try await cleaning {
      let oldest = try await playing("a") { game -> VersionID in
        try shine(1...30, game)
        let oldest = try #require(try game.saves.history(of: .lamp).last)
        #expect(await status(ExportCommand.self, [path("a"), "lamp", path("new")]) == 0)
        return oldest.id
      }
      #expect(
        await status(ExportCommand.self, [path("a"), "lamp", path("old"), "--version", oldest.description, "--json"])
          == 0)
      let before = try await playing("b") { game -> VersionID in
        try shine(99...120, game)
        return try #require(try game.saves.history(of: .lamp).first).id
      }
      #expect(await status(ImportCommand.self, [path("b"), path("old")]) == 0)
      #expect(await status(ImportCommand.self, [path("b"), path("new"), "--slot", "other", "--json"]) == 0)
      try await playing("b") { game async throws in
        #expect(try game.saves.load(.lamp) == Lamp(brightness: 1))
        #expect(try game.saves.load(Slot<Lamp>("other")) == Lamp(brightness: 30))
        #expect(try game.saves.list().map(\.current.metadata.title) == ["Level 1", "Level 30"])
        #expect(try game.saves.list().map(\.current.metadata.thumbnail) == [Data([1, 2]), Data([1, 2])])
        // The tool doesn't know the game's history rules, and prunes nothing.
        #expect(try game.saves.history(of: .lamp).count == 23)
      }
      let store = try StoreInput.open(path("b"), seal: nil)
      let again = try ImportCommand.add(
        Data(contentsOf: folder.appendingPathComponent("old")), to: nil, in: store, adoptsUnsealed: false)
      try store.close()
      #expect(!again.changed)
      #expect(await status(RestoreCommand.self, [path("b"), "lamp", before.description]) == 0)
      try await playing("b") { game async throws in
        #expect(try game.saves.load(.lamp) == Lamp(brightness: 120))
        #expect(try game.saves.history(of: .lamp).count == 24)
      }
    }
  }

  @Test(
    "missing, damaged and foreign files, existing outputs and open stores have their exit status and change nothing")
  func refusals() async throws {
    try await cleaning {
      let stands = try await playing("a") { game -> VersionID in
        try shine(1...2, game)
        return try #require(try game.saves.history(of: .lamp).first).id
      }
      #expect(await status(ExportCommand.self, [path("a"), "none", path("x")]) == 66)
      #expect(await status(ExportCommand.self, [path("a"), "lamp", path("x"), "--version", "zz"]) == 66)
      #expect(await status(ExportCommand.self, [path("none"), "lamp", path("x")]) == 66)
      #expect(!FileManager.default.fileExists(atPath: path("x")))
      #expect(await status(ExportCommand.self, [path("a"), "lamp", path("x")]) == 0)
      #expect(await status(ExportCommand.self, [path("a"), "lamp", path("x")]) == 73)
      #expect(await status(ExportCommand.self, [path("a"), "lamp", path("x"), "--force"]) == 0)
      var bytes = try Data(contentsOf: folder.appendingPathComponent("x"))
      bytes[bytes.count / 2] ^= 1
      try bytes.write(to: folder.appendingPathComponent("damaged"))
      try Data("once upon a time".utf8).write(to: folder.appendingPathComponent("text"))
      #expect(await status(ImportCommand.self, [path("a"), path("damaged")]) == 65)
      #expect(await status(ImportCommand.self, [path("a"), path("text")]) == 65)
      #expect(await status(ImportCommand.self, [path("a"), path("nothing")]) == 66)
      #expect(await status(ImportCommand.self, [path("a"), path("a")]) == 65)
      #expect(await status(ImportCommand.self, [path("a"), path("x"), "--slot", ""]) == 65)
      #expect(await status(ImportCommand.self, [path("none"), path("x")]) == 66)
      try await playing("a") { game async throws in
        #expect(try game.saves.history(of: .lamp).first?.id == stands)
        #expect(try game.saves.list().count == 1)
        #expect(await status(ImportCommand.self, [path("a"), path("x")]) == 75)
      }
    }
  }

  @Test("exported saves are inspected, compared and verified like other files, also in a folder")
  func readers() async throws {
    try await cleaning {
      try await playing("a") { game async throws in
        try shine(1...2, game)
        try game.saves.export(.lamp, to: folder.appendingPathComponent("two"))
        try game.saves.export(
          .lamp, version: try #require(try game.saves.history(of: .lamp).last).id,
          to: folder.appendingPathComponent("one"))
      }
      guard case .save(let report, let inspection) = try InspectCommand.look(at: path("two")) else {
        Issue.record("not recognized as an exported save")
        return
      }
      #expect(report.slot == "lamp" && report.title == "Level 2" && report.thumbnailBytes == 2 && report.seal == nil)
      #expect(report.lines.joined().contains("Level 2") && inspection?.text().contains("brightness") == true)
      #expect(await status(InspectCommand.self, [path("two"), "--json"]) == 0)
      for shown in [inspection, nil] {
        let document =
          try JSONSerialization.jsonObject(with: report.json(with: shown, at: path("two"))) as? [String: Any]
        #expect((document?["save"] as? [String: Any])?["slot"] as? String == "lamp")
        #expect((document?["archive"] is [String: Any]) == (shown != nil))
      }
      #expect(await status(DiffCommand.self, [path("one"), path("two")]) == 1)
      #expect(await status(DiffCommand.self, [path("one"), path("one")]) == 0)
      try FileManager.default.removeItem(at: folder.appendingPathComponent("a"))
      #expect(await status(VerifyCommand.self, [folder.path]) == 0)
      let sound = Verification.run(on: [folder.path], progress: { _ in }, each: { _ in })
      #expect(sound.files.map(\.kind) == [.save, .save] && sound.skipped == 1)
      var bytes = try Data(contentsOf: folder.appendingPathComponent("two"))
      bytes[bytes.count - 1] ^= 1
      try bytes.write(to: folder.appendingPathComponent("two"))
      #expect(await status(VerifyCommand.self, [folder.path]) == 1)
      #expect(await status(InspectCommand.self, [path("two")]) == 65)
    }
  }

  @Test(
    "an export of a sealed store keeps the seal; an unsealed export is imported only with --unsealed",
    arguments: [Seal.signed(secret), .sealed(secret)])
  func sealed(seal: Seal) async throws {
    try await cleaning {
      try await playing("a", seal) { try shine(1...2, $0) }
      try await playing("b", seal) { try shine(8...9, $0) }
      let secret = ["--secret-file", path("secret")]
      #expect(await status(ExportCommand.self, [path("a"), "lamp", path("x")]) == 77)
      #expect(await status(ExportCommand.self, [path("a"), "lamp", path("x")] + secret) == 0)
      #expect(await status(ExportCommand.self, [path("a"), "lamp", path("open"), "--unsealed"] + secret) == 0)
      guard case .save(let report, _) = try InspectCommand.look(at: path("x"), seal: SealRequest(secret: Self.secret))
      else {
        Issue.record("not recognized as an exported save")
        return
      }
      #expect(
        report.seal?.kind == seal.kind.rawValue && report.seal?.game == "com.example.lamp"
          && report.seal?.checked == true)
      #expect(await status(InspectCommand.self, [path("x")]) == (seal.kind == .signed ? 0 : 77))
      #expect(await status(VerifyCommand.self, [path("x")] + secret) == 0)
      #expect(await status(ImportCommand.self, [path("b"), path("open")] + secret) == 77)
      #expect(await status(ImportCommand.self, [path("b"), path("x")] + secret) == 0)
      #expect(
        await status(ImportCommand.self, [path("b"), path("open"), "--slot", "open", "--unsealed"] + secret) == 0)
      try await playing("b", seal) { game async throws in
        #expect(try game.saves.load(.lamp) == Lamp(brightness: 2))
        #expect(try game.saves.load(Slot<Lamp>("open")) == Lamp(brightness: 2))
        #expect(game.incidents.isEmpty)
      }
    }
  }

  @Test("the history report shows pinned versions, and a restore keeps the pins and the earlier versions")
  func pins() async throws {
    try await cleaning {
      let first = try await playing("a") { game -> VersionID in
        try shine(1...60, game)
        let first = try #require(try game.saves.history(of: .lamp).last)
        try game.saves.pin(first.id)
        return first.id
      }
      #expect(await status(RestoreCommand.self, [path("a"), "lamp", String(first.description.prefix(12))]) == 0)
      let report = try StoreReader.open(at: folder.appendingPathComponent("a")).read { try SlotReport("lamp", in: $0) }
      #expect(report.versions.count == 61)
      #expect(report.versions.filter(\.pinned).map(\.id) == [first.description])
      #expect(report.lines.filter { $0.contains("pinned") }.count == 1)
      #expect(report.heads.count == 1 && !report.conflict)
    }
  }

  @Test("an id that is shortened so much that several versions begin with it is refused, and restores nothing")
  func ambiguousID() async throws {
    try await cleaning {
      let ids = try await playing("a") { game -> [String] in
        try shine(1...60, game)
        return try game.saves.history(of: .lamp).map(\.id.description)
      }
      // Of so many ids, several have the same first digit.
      let digit = try #require(Dictionary(grouping: ids) { $0.prefix(1) }.first { $0.value.count > 1 }?.key)
      #expect(await status(RestoreCommand.self, [path("a"), "lamp", String(digit)]) == 66)
      let report = try StoreReader.open(at: folder.appendingPathComponent("a")).read { try SlotReport("lamp", in: $0) }
      #expect(report.versions.count == ids.count && report.heads == [ids[0]])
    }
  }

  @Test("a save that is only in the cloud is listed, and commands that need its bytes say where it is")
  func onlyInCloud() async throws {
    try await cleaning {
      let id = try await playing("phone") { game in
        try shine(1...1, game)
        return try #require(try game.saves.history(of: "lamp").first).id
      }
      let store = try Store.open(at: folder.appendingPathComponent("phone"), history: .everything)
      try store.write { try $0.setNotDownloaded(true, id) }
      try store.close()
      let report = try StoreReader.open(at: folder.appendingPathComponent("phone"), seal: nil).read {
        try SlotReport("lamp", in: $0)
      }
      #expect(report.heads == [id.description] && report.versions.map(\.id) == report.heads)
      #expect(report.versions.map(\.downloaded) == [false] && report.lines[1].contains("not downloaded"))
      #expect(await status(HistoryCommand.self, [path("phone"), "lamp"]) == 0)
      do {
        let phone = folder.appendingPathComponent("phone")
        _ = try ExportCommand.export("lamp", nil, of: phone.path, to: path("file"), seal: nil)
        Issue.record("exported")
      } catch let failure as CommandFailure {
        #expect(failure.kind == .noInput && failure.message == "the save in \"lamp\" is only in the cloud")
      }
    }
  }
}
#endif
