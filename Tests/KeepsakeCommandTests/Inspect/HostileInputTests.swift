#if Cloud
import Foundation
import Keepsake
import KeepsakeReplication
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeCommand

/// What people hand over that isn't a save, and paths that lead nowhere.
@Suite struct HostileInputTests {
  private let folder = TemporaryFolder.url("hostile-input")

  /// Removes the folder after a test; a leftover folder does no harm.
  private func cleaning(_ body: () async throws -> Void) async throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body()
  }

  private func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

  private func failure(of body: () throws -> Void) throws -> CommandFailure {
    CommandFailure(try #require(throws: (any Error).self, performing: body))
  }

  @Test("a file that is too large is refused by its size, before anything of it is read", arguments: ["\0", "{"])
  func sparse(start: String) async throws {
    try await cleaning {
      try Data(start.utf8).write(to: URL(fileURLWithPath: path("sparse")))
      let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path("sparse")))
      try file.truncate(atOffset: 1 << 40)
      try file.close()
      let failure = try failure { _ = try InspectCommand.look(at: path("sparse")) }
      #expect(failure.kind == .data && failure.message.contains("has 1.0 TiB"), "\(failure.message)")
    }
  }

  @Test("of a large file with holes no more is read than shows that it is none, but text of any size is read whole")
  func holes() async throws {
    try await cleaning {
      for (name, start, words) in [
        ("a.json", "{\"a\": [", "expected JSON"), ("b.plist", "bplist00", "impossible"), ("c.xml", "<plist>", "c.xml"),
      ] {
        try Data(start.utf8).write(to: URL(fileURLWithPath: path(name)))
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path(name)))
        try file.truncate(atOffset: 200 << 20)
        // Its end is a sound one, so that it would be read if its holes were.
        if name == "a.json" {
          try file.seekToEnd()
          try file.write(contentsOf: Data("]}".utf8))
        }
        try file.close()
        let failure = try failure { _ = try InspectCommand.look(at: path(name)) }
        #expect(failure.kind == .data && failure.message.contains(words), "\(failure.message)")
        if case .archive(let read)? = try? InputKind(of: path(name)) { #expect(read.count == 16 << 20, "\(name)") }
      }
      // Longer than what is read at a time.
      let text = Data("[\"\(String(repeating: "x", count: 40 << 20))\"]".utf8)
      try text.write(to: URL(fileURLWithPath: path("long.json")))
      if case .archive(let read) = try InputKind(of: path("long.json")) {
        #expect(read == text)
      } else {
        Issue.record("it was taken for a store")
      }
    }
  }

  @Test("a link that leads back to itself is told from a path at which there is nothing")
  func loop() async throws {
    try await cleaning {
      let files = FileManager.default
      try files.createSymbolicLink(atPath: path("one"), withDestinationPath: path("two"))
      try files.createSymbolicLink(atPath: path("two"), withDestinationPath: path("one"))
      let looped = try failure { _ = try InspectCommand.look(at: path("one")) }
      #expect(looped.kind == .noInput && looped.message.contains("leads back to itself"), "\(looped.message)")
      let missing = try failure { _ = try InspectCommand.look(at: path("three")) }
      #expect(missing.kind == .noInput && missing.message.contains("there is nothing at"), "\(missing.message)")
    }
  }

  #if os(Linux)
  @Test("a name that isn't UTF-8 is reported, and what is beside it is checked")
  func undecodable() async throws {
    try await cleaning {
      try Archive.write([1, 2, 3], to: folder.appendingPathComponent("sound.keepsake"))
      let bytes: [CChar] = Array(folder.path.utf8CString.dropLast()) + [0x2F, 0x62, -1, -2, 0]
      let file = open(bytes, O_CREAT | O_WRONLY, 0o600)
      try #require(file >= 0)
      close(file)
      let report = Verification.run(on: [folder.path], progress: { _ in }, each: { _ in })
      #expect(report.files.map(\.state).sorted { $0.rawValue < $1.rawValue } == [.sound, .unreadable])
      #expect(report.files.contains { $0.message == "its name isn't valid UTF-8" })
    }
  }
  #endif

  @Test(
    "a file of another program is named, with what to do",
    arguments: [
      ([0x1F, 0x8B, 0x08, 0], "compressed by gzip, and damaged: it is cut off"), ([0x50, 0x4B, 3, 4], "zip"),
      (Array("BZh91".utf8), "bzip2"),
      ([0xFD, 0x37, 0x7A, 0x58, 0x5A, 0], "xz"), (Array("GVAS\u{2}".utf8), "Unreal"), (Array("RSRC".utf8), "Godot"),
      ([0, 1, 0, 0, 0, 255, 255, 255, 255, 1, 0, 0, 0, 0], "BinaryFormatter"), ([4, 8, 0x7B], "Marshal"),
      ([0x0A, 0, 0], "NBT"), (Array("YnBsaXN0MDDUAQIDBAUGBwpYJHZl".utf8), "is base64, in it: "),
      (Array("H4sIAAAAAAAAA0vOzy0oSi0u".utf8), "is base64, in it: compressed by gzip, and damaged"),
      (Array("R1ZBUwIAAAAGAgAACAQAAAUA".utf8), "is base64, in it: a save of a game made with Unreal Engine"),
      (Array("<?xml version=\"1.0\"?><!-- a --><note/>".utf8), "<note>"),
      (Array("<unity_prefs version_major=\"1\"></unity_prefs>".utf8), "PlayerPrefs"),
      (Array("<?xml version='1.0' encoding='utf-8' ?>\n<map><int name=\"a\" /></map>".utf8), "PlayerPrefs"),
      (Array("[player]\n\nname=\"Ada\"\nplace=Vector2( 1, 2 )\n".utf8), "ConfigFile of a game made with Godot"),
      (Array("; saved\n[player]\r\nlives = 3\r\n".utf8), "ConfigFile"),
      ([0xFF, 0xFE] + Array("<save/>".utf8).flatMap { [$0, 0] }, "XML of another kind than a property list"),
      ([0xFE, 0xFF] + Array("<?xml version=\"1.0\"?><save/>".utf8).flatMap { [0, $0] }, "<save>"),
      (Array("SQLite format 3\0".utf8) + [UInt8](repeating: 0, count: 84), "SQLite database of another program"),
      ([0xFF, 0xFE, 0, 0, 0x3C, 0, 0, 0], "is UTF-32, in it: "),
      ([0xFE, 0xFF, 0, 0x7B, 0, 0x2C], "is UTF-16, in it: "),
    ] as [([UInt8], String)])
  func named(bytes: [UInt8], word: String) async throws {
    try await cleaning {
      try Data(bytes).write(to: URL(fileURLWithPath: path("file")))
      let failure = try failure { _ = try InspectCommand.look(at: path("file")) }
      #expect(failure.kind == .data && failure.message.contains(word), "\(failure.message)")
      if !word.hasPrefix("is ") { #expect(failure.next?.isEmpty == false) }
    }
  }

  @Test("text of plain words is none of these, and neither is a property list")
  func ordinary() {
    #expect(KnownFile(Data("onceuponatimetherewasasave".utf8)) == nil)
    #expect(KnownFile(Data()) == nil)
    #expect(KnownFile(Data("<plist version=\"1.0\"><dict/></plist>".utf8)) == nil)
    #expect(KnownFile(Data("<dict/>".utf8)) == nil)
    #expect(KnownFile(Data("[player]\nonce upon a time\n".utf8)) == nil)
    #expect(KnownFile(Data("[1, 2]\n[3]".utf8)) == nil)
  }

  @Test("output that exists ends with 73, and nothing is written into a store's own folder")
  func output() async throws {
    try await cleaning {
      try Data("{}".utf8).write(to: URL(fileURLWithPath: path("a.json")))
      #expect(await status(of: ConvertCommand.self, [path("a.json"), path("a.json"), "--to", "json"]) == 73)
      let store = folder.appendingPathComponent("store", isDirectory: true)
      try TestStore.fill(store, versions: 1)
      #expect(await status(of: ExportCommand.self, [store.path, "hero", path("a.json")]) == 73)
      let within = store.appendingPathComponent("hero.save").path
      #expect(await status(of: ExportCommand.self, [store.path, "hero", within]) == 65)
      try FileManager.default.createSymbolicLink(atPath: path("link"), withDestinationPath: store.path)
      #expect(await status(of: ExportCommand.self, [store.path, "hero", path("link") + "/hero.save", "--force"]) == 65)
      #expect(!FileManager.default.fileExists(atPath: within))
      #expect(await status(of: ExportCommand.self, [store.path, "hero", path("hero.save")]) == 0)
    }
  }

  @Test("a version needs at least four digits of its id, and those that several begin with are listed")
  func digits() throws {
    func record(_ low: UInt64) -> VersionRecord {
      VersionRecord(
        id: VersionID(high: 0xABCD_0000_0000_0000, low: low), slot: "hero", covers: [], contents: [], length: 0,
        metadata: SaveMetadata(), savedAtMilliseconds: 0, writer: WriterID(1), provisional: false)
    }
    let one = [record(1)]
    #expect(try VersionChoice.choose("ABCD", among: one).id == one[0].id)
    #expect(try failure { _ = try VersionChoice.choose("abc", among: one) }.message.contains("at least 4 digits"))
    #expect(try failure { _ = try VersionChoice.choose("abce", among: one) }.message.contains("has no version"))
    let several = try failure { _ = try VersionChoice.choose("abcd", among: (1...6).map { record(UInt64($0)) }) }
    #expect(several.message.hasPrefix("6 versions"))
    #expect(several.next?.contains(record(5).id.description) == true && several.next?.hasSuffix(", ...") == true)
  }

  @Test("a format number that no release writes counts as damage in every command, and a recovery is announced")
  func format() async throws {
    try await cleaning {
      let store = folder.appendingPathComponent("store", isDirectory: true)
      let version = try TestStore.fill(store, versions: 2)
      let database = store.appendingPathComponent(Store.databaseName)
      var bytes = try Data(contentsOf: database)
      bytes.replaceSubrange(60..<64, with: [0, 0, 3, 0x86])
      try bytes.write(to: database)
      for path in [store.path, database.path] {
        let failure = try failure { _ = try InspectCommand.look(at: path) }
        #expect(failure.kind == .data && failure.message.contains("invalid format 902"), "\(failure.message)")
      }
      #expect(await status(of: HistoryCommand.self, [store.path]) == 65)
      #expect(await status(of: DoctorCommand.self, [store.path]) == 1)
      let report = Verification.run(on: [store.path], progress: { _ in }, each: { _ in })
      #expect(report.files.map(\.state) == [.damaged])
      let opened = try StoreInput.open(store.path, seal: nil)
      let answer = try RestoreCommand.restore(version.description, of: "hero", in: opened)
      #expect(answer.incidents.contains { $0.contains("902") }, "\(answer.incidents)")
      try opened.close()

      // A number of a later release is told as such, and nothing is changed.
      let later = folder.appendingPathComponent("later", isDirectory: true)
      try TestStore.fill(later, versions: 1)
      let newer = later.appendingPathComponent(Store.databaseName)
      bytes = try Data(contentsOf: newer)
      bytes[63] = 99
      try bytes.write(to: newer)
      #expect(await status(of: InspectCommand.self, [later.path]) == 78)
      #expect(await status(of: RestoreCommand.self, [later.path, "hero", version.description]) == 78)
      #expect(try Data(contentsOf: newer) == bytes)
    }
  }
}

/// Stores with saves of one slot, closed.
private enum TestStore {
  /// - Returns: The first version.
  @discardableResult
  static func fill(_ folder: URL, versions: Int) throws -> VersionID {
    let game = try GameData.open("com.example.hero", at: folder)
    for level in 1...versions {
      try game.saves.capture([level], to: Slot<[Int]>("hero")).wait()
    }
    try game.close()
    let store = try Store.open(at: folder)
    defer { try? store.close() }  // Nothing was written.
    return try #require(try store.read { try $0.history(of: "hero") }.last?.record.id)
  }
}
#endif
