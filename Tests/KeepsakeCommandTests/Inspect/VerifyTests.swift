#if Cloud
import FlowerGarden
import Foundation
import Keepsake
import TestSupport
import Testing

@testable import KeepsakeArchive
@testable import KeepsakeCommand

@Archivable private struct Lamp { var isOn = true }

@Archivable private struct Hero {
  var level = 1
  var names = (0..<2_000).map { "name \($0)" }
}

/// `keepsake verify` checks whether backups are intact.
@Suite struct VerifyTests {
  private let folder = TemporaryFolder.url("verify")

  /// Removes the folder after a test; a leftover folder does no harm.
  private func cleaning(_ body: () async throws -> Void) async throws {
    try FileManager.default.createDirectory(
      at: folder.appendingPathComponent("below/more"), withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body()
  }

  private func verify(_ paths: [String]) -> Verification {
    Verification.run(on: paths, progress: { _ in }, each: { _ in })
  }

  private func status(_ arguments: [String]) async -> Int32 {
    await KeepsakeCommandTests.status(of: VerifyCommand.self, arguments)
  }

  @Test("the shared data in the folder of a store is checked as well, as a store of its own")
  func sharedData() async throws {
    try await cleaning {
      let game = try GameData.open("com.example.verify", at: folder.appendingPathComponent("game"))
      _ = try game.shared("studio.coins")
      try game.close()
      let names = verify([folder.path]).files.map { ($0.path as NSString).lastPathComponent }
      #expect(names.sorted() == ["game", "studio.coins"])
    }
  }

  @Test("a folder of backups is searched recursively, and each damaged file is reported")
  func folders() async throws {
    try await cleaning {
      let good = folder.appendingPathComponent("good")
      try Archive.write(Hero(), to: good, compression: .none)
      try Archive.write(Hero(), to: folder.appendingPathComponent("below/more/small"), compression: .zstd(level: 3))
      try Data("a picture".utf8).write(to: folder.appendingPathComponent("picture"))
      try Zstd.compress(Data("somebody else's".utf8)).write(to: folder.appendingPathComponent("other.zst"))
      #expect(await status([folder.path]) == 0)
      let sound = verify([folder.path])
      #expect(sound.files.map(\.state) == [.sound, .sound] && sound.skipped == 2 && sound.unsound == 0)

      var bytes = try Data(contentsOf: good)
      bytes[bytes.count / 2] ^= 1
      try bytes.write(to: folder.appendingPathComponent("below/altered"))
      try Data(contentsOf: folder.appendingPathComponent("below/more/small")).dropLast(9)
        .write(to: folder.appendingPathComponent("below/cut"))
      try Data("no longer one".utf8).write(to: folder.appendingPathComponent("below/world.keepsake"))
      #expect(await status([folder.path]) == 1)
      let report = verify([folder.path])
      let states = Dictionary(
        uniqueKeysWithValues: report.files.map { (($0.path as NSString).lastPathComponent, $0.state) })
      #expect(
        states == ["good": .sound, "small": .sound, "altered": .damaged, "cut": .damaged, "world.keepsake": .damaged])
      #expect(report.unsound == 3 && report.summary.hasPrefix("5 checked, 3 not sound"))
      #expect(await status([folder.path, "--json"]) == 1)
    }
  }

  @Test("a given file that isn't a save is reported, and a folder without saves doesn't count as sound")
  func named() async throws {
    try await cleaning {
      let text = folder.appendingPathComponent("text")
      try Data("once upon a time".utf8).write(to: text)
      #expect(verify([text.path]).files.map(\.state) == [.foreign])
      #expect(verify([folder.path + "/nothing"]).files.map(\.state) == [.unreadable])
      #expect(await status([text.path]) == CommandFailure.Kind.data.rawValue)
      #expect(await status([folder.path]) == CommandFailure.Kind.noInput.rawValue)
    }
  }

  @Test("a given file of another format is foreign and named, also if it is broken; a broken archive is damaged")
  func foreign() async throws {
    try await cleaning {
      let list = ["level": 3]
      for (name, text) in [
        ("a.json", "{\"level\": 3}"), ("broken.json", "{\"level\": "), ("a.xml", "<note>hello</note>"), ("empty", ""),
      ] {
        try Data(text.utf8).write(to: folder.appendingPathComponent(name))
      }
      for (name, format) in [
        ("a.plist", PropertyListSerialization.PropertyListFormat.xml), ("a.bplist", .binary),
      ] {
        try PropertyListSerialization.data(fromPropertyList: list, format: format, options: 0)
          .write(to: folder.appendingPathComponent(name))
      }
      for name in ["a.json", "broken.json", "a.xml", "empty", "a.plist", "a.bplist"] {
        let path = folder.appendingPathComponent(name).path
        #expect(verify([path]).files.map(\.state) == [.foreign], "\(name)")
        #expect(await status([path]) == 65, "\(name)")
      }
      let json = try #require(verify([folder.appendingPathComponent("a.json").path]).files.first)
      #expect(json.message == "not a save of Keepsake: JSON" && json.next == "keepsake inspect reads it")
      #expect(verify([folder.path]).files.isEmpty && verify([folder.path]).skipped == 6)
      let cut = folder.appendingPathComponent("cut")
      try Archive.encode(Hero()).dropLast(9).write(to: cut)
      #expect(verify([cut.path]).files.map(\.state) == [.damaged])
      #expect(await status([cut.path]) == VerifyCommand.unsound)
    }
  }

  @Test("an invalid value is found even if the checksum is valid")
  func everyValue() async throws {
    try await cleaning {
      let url = folder.appendingPathComponent("a")
      try Archive.write(Lamp(), to: url)
      #expect(verify([url.path]).unsound == 0)
      func alter(_ index: Int, _ value: UInt8, resealed: Bool) throws -> [Verdict.State] {
        var bytes = [UInt8](try Archive.encode(Lamp()).dropLast(8))
        bytes[index] = value
        let sum = resealed ? bytes.withUnsafeBytes { Checksum.xxh64($0) } : 0
        for shift in stride(from: UInt64(0), to: 64, by: 8) { bytes.append(UInt8(truncatingIfNeeded: sum >> shift)) }
        try Data(bytes).write(to: url)
        return verify([url.path]).files.map(\.state)
      }
      // The lamp's only field is the first byte after the header; the version is at byte 8.
      #expect(try alter(16, 2, resealed: true) == [.damaged])
      #expect(try alter(16, 0, resealed: true) == [.sound])
      #expect(try alter(8, 2, resealed: true) == [.newer])
      #expect(try alter(8, 2, resealed: false) == [.damaged])
    }
  }

  @Test("a store is checked while the game has it open, and a damaged one is reported")
  func stores() async throws {
    try await cleaning {
      let store = folder.appendingPathComponent("store")
      let garden = try FlowerGarden(store: store)
      try await garden.change(pot: "sill") { $0.plant("tulip", id: "1") }
      try await garden.change(pot: "sill") { $0.plant("rose", id: "2") }
      let report = verify([folder.path])
      #expect(report.files.map(\.kind) == [.store] && report.unsound == 0)
      #expect(report.files.first?.message.contains("2 saved games") == true, "\(report.files)")
      try garden.game.close()

      let database = store.appendingPathComponent("store.sqlite")
      var bytes = try Data(contentsOf: database)
      #expect(bytes.count > 16_384)
      for index in stride(from: 4_096, to: bytes.count, by: 64) { bytes[index] ^= 0x40 }
      try bytes.write(to: database)
      #expect(verify([store.path]).files.map(\.state) == [.damaged])
    }
  }

  @Test("a folder that can't be read is reported as unreadable, and the rest is checked all the same")
  func unreadableFolder() async throws {
    try await cleaning {
      try Archive.write(Hero(), to: folder.appendingPathComponent("good"))
      // Deeper than a path can say. Permissions wouldn't stop a test that runs as root.
      try makeDeepFolder(in: folder)
      let found = verify([folder.path])
      #expect(found.files.count == 2 && found.unsound == 1)
      #expect(found.files.contains { $0.state == .sound })
      let unreadable = try #require(found.files.first { $0.state == .unreadable })
      #expect(unreadable.path.count > 4_000)
      let removal = Process()
      removal.executableURL = URL(fileURLWithPath: "/bin/rm")
      removal.arguments = ["-rf", folder.appendingPathComponent("deep").path]
      try removal.run()
      removal.waitUntilExit()
      #expect(removal.terminationStatus == 0)
    }
  }

  private func makeDeepFolder(in folder: URL) throws {
    let name = "deep" + String(repeating: "-", count: 200)
    try FileManager.default.createDirectory(
      at: folder.appendingPathComponent("deep"), withIntermediateDirectories: true)
    var parent = open(folder.appendingPathComponent("deep").path, O_RDONLY | O_DIRECTORY)
    defer { close(parent) }
    for _ in 0..<22 {
      try #require(parent >= 0 && mkdirat(parent, name, 0o700) == 0)
      let child = openat(parent, name, O_RDONLY | O_DIRECTORY)
      close(parent)
      parent = child
    }
  }
}
#endif
