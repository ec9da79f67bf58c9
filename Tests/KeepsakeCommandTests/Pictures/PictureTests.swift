#if Cloud
import Foundation
import Keepsake
import KeepsakeReplication
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeCommand

@Archivable private struct Item {
  var id = 1
  var name = "sword"
  var worn = 0.0
}

@Archivable private struct Hero {
  var name = "Ada"
  var level = 7
  var gold = 120
  var items = [Item(), Item(id: 2, name: "lantern", worn: 0.25)]
}

/// The pictures in docs/COMMAND.md are what the command prints on a terminal. With KEEPSAKE_DRAW_PICTURES=1, they are
/// written.
@Suite struct PictureTests {
  private static let writes = ProcessInfo.processInfo.environment["KEEPSAKE_DRAW_PICTURES"] == "1"

  private func check(_ name: String, of arguments: [String], in folder: URL) throws {
    let ended = try Tool.run(arguments, in: folder, environment: ["CLICOLOR_FORCE": "1"])
    #expect(ended.errors.isEmpty && ended.text.contains("\u{1B}["), "\(ended.errors)")
    let picture = TerminalPicture(of: "keepsake " + arguments.joined(separator: " "), ended.text).svg
    let file = Repository.root.appending(path: "docs/\(name).svg")
    if Self.writes { try Data(picture.utf8).write(to: file) }
    #expect(
      try String(contentsOf: file, encoding: .utf8) == picture,
      "docs/\(name).svg isn't what the command prints: run this test with KEEPSAKE_DRAW_PICTURES=1, and look at it")
    let document = try String(contentsOf: Repository.root.appending(path: "docs/COMMAND.md"), encoding: .utf8)
    #expect(document.contains("](\(name).svg)"))
  }

  @Test("the pictures of inspect and diff in the documentation are up to date")
  func archives() async throws {
    try await TemporaryFolder.with { folder in
      try Archive.write(Hero(), to: folder.appendingPathComponent("yesterday.save"))
      try Archive.write(
        Hero(level: 8, gold: 95, items: [Item(worn: 0.5), Item(id: 3, name: "rope")]),
        to: folder.appendingPathComponent("today.save"))
      try check("terminal-inspect", of: ["inspect", "today.save"], in: folder)
      try check("terminal-diff", of: ["diff", "yesterday.save", "today.save"], in: folder)
    }
  }

  @Test("the picture of history --graph in the documentation is up to date")
  func graph() async throws {
    try await TemporaryFolder.with { folder in
      let store = try Store.open(at: folder.appendingPathComponent("space"), history: .everything, writer: WriterID(1))
      for save in Self.saves { try save.commit(to: store) }
      try store.close()
      try check("terminal-history", of: ["history", "space", "main", "--graph"], in: folder)
    }
  }

  /// Two devices: a conflict, a merge, and a restore.
  private static let saves = [
    Save(0x5F2C_11A0, [], "laptop", "Docked at Mars", hours: 0),
    Save(0x8D03_77E1, [0x5F2C_11A0], "laptop", "Bought a drill", hours: 1),
    Save(0x21B9_0C5D, [0x8D03_77E1], "phone", "Asteroid 12", hours: 26),
    Save(0xC4E6_93F8, [0x8D03_77E1], "laptop", "Fled from pirates", hours: 27),
    Save(0x0A77_D2B4, [0x21B9_0C5D, 0xC4E6_93F8], "laptop", "Both cargoes", hours: 30),
    Save(0xE91D_4F06, [0x0A77_D2B4], "phone", "Lost the ship", hours: 49),
    Save(0x73A8_5C12, [0xE91D_4F06], "laptop", "Both cargoes", hours: 50, restores: 0x0A77_D2B4),
  ]

  private struct Save {
    var id: VersionID
    var parents: [VersionID]
    var device: String
    var title: String
    var hours: Int64
    /// What is in it.
    var content: String

    init(
      _ id: UInt64, _ parents: [UInt64], _ device: String, _ title: String, hours: Int64,
      restores restored: UInt64? = nil
    ) {
      self.id = Self.version(id)
      self.parents = parents.map(Self.version)
      (self.device, self.title, self.hours) = (device, title, hours)
      content = String(repeating: "save \(restored ?? id) ", count: 400)
    }

    private static func version(_ digits: UInt64) -> VersionID { VersionID(high: digits << 32, low: 0) }

    func commit(to store: Store) throws {
      // 2026-11-20 18:00 UTC.
      let time = 1_795_197_600_000 + hours * 3_600_000
      var random = SystemRandomNumberGenerator()
      try store.write { transaction in
        var metadata = SaveMetadata(title: title)
        metadata.device = device
        let draft = SaveDraft(
          id: id, slot: "main", parents: .versions(parents),
          contents: [try transaction.keepContent(Data(content.utf8))], length: content.utf8.count, metadata: metadata,
          savedAtMilliseconds: time)
        try DeviceCommit.apply(
          CommitDraft(saves: [draft]), now: time, writer: store.writer, in: &transaction, using: &random)
      }
    }
  }
}
#endif
