import Foundation
import KeepsakeStore
import TestSupport
import Testing

@testable import Keepsake

/// The saves of an older game, imported into slots.
@Suite("Importing an older game's saves", .hangLimit) struct OlderSavesTests {
  /// The older game's saves are numbers, as text.
  struct Damaged: Error, Equatable {}

  let clock = TestClock()

  private func older(
    _ text: String, name: String = "main", at seconds: Double = 100, device: String? = nil
  ) -> OlderSave {
    OlderSave(
      name: name, bytes: Data(text.utf8), modified: Date(timeIntervalSince1970: seconds), device: device)
  }

  private static func world(_ save: OlderSave) throws -> World {
    guard let level = Int(String(decoding: save.bytes, as: UTF8.self)) else { throw Damaged() }
    return World(level: level)
  }

  @discardableResult
  private func take(_ saves: [OlderSave], into game: GameData) throws -> OlderSavesReport {
    try game.saves.importOlderSaves(saves, to: { Slot<World>($0.name) }, decode: Self.world)
  }

  /// Journals have no merge rules, so that a policy chooses between two saves.
  @discardableResult
  private func takeJournals(_ saves: [OlderSave], into game: GameData) throws -> OlderSavesReport {
    try game.saves.importOlderSaves(
      saves, to: { _ in .byProgress }, decode: { Journal(text: String(decoding: $0.bytes, as: UTF8.self)) })
  }

  private func isConflicted(_ game: GameData) throws -> [Bool] { try game.saves.list().map(\.isConflicted) }

  // MARK: On one device

  @Test("a save is imported with its time and device, and again at each start without any change")
  func repeats() throws {
    let device = try Device(clock: clock)
    let saves = [older("7", device: "Ann's phone"), older("3", name: "second")]
    for start in 0..<3 {
      let game = try device.open()
      defer { end(game) }
      let report = try take(saves, into: game)
      #expect(report.imported.map(\.name) == (start == 0 ? ["main", "second"] : []))
      #expect(report.known.sorted() == (start == 0 ? [] : ["main", "second"]))
      #expect(report.conflicted.isEmpty && report.unfit.isEmpty && report.skipped.isEmpty && report.others.isEmpty)
      #expect(try game.saves.load(.main) == World(level: 7))
      let history = try game.saves.history(of: .main)
      #expect(history.map(\.savedAt) == [Date(timeIntervalSince1970: 100)])
      #expect(history.map(\.metadata.custom) == [["device": "Ann's phone"]])
    }
  }

  @Test("a save that was imported doesn't come back once it was continued or deleted")
  func staysReplaced() throws {
    let game = try Device(clock: clock).open()
    defer { end(game) }
    try take([older("7"), older("3", name: "second")], into: game)
    var world = try #require(try game.saves.load(.main))
    world.level = 8
    try game.saves.capture(world, to: .main).wait()
    // A delete replaces what the game has seen of the slot.
    #expect(try game.saves.list().count == 2)
    try game.saves.delete("second")
    let report = try take([older("7"), older("3", name: "second")], into: game)
    #expect(report.known.sorted() == ["main", "second"] && report.imported.isEmpty)
    #expect(try game.saves.load(.main)?.level == 8)
    #expect(try game.saves.load(Slot<World>("second")) == nil)
    // What the older game saved since then isn't imported there either.
    let later = try take([older("9", at: 900), older("4", name: "second", at: 900)], into: game)
    #expect(Set(later.skipped.map(\.reason)) == [.slotInUse, .deleted] && later.imported.isEmpty)
    #expect(try isConflicted(game) == [false])
  }

  @Test("a slot with a save of the new game keeps it, without decoding the older one")
  func inUse() throws {
    let game = try Device(clock: clock).open()
    defer { end(game) }
    try game.saves.capture(World(level: 2), to: .main)
    let report = try game.saves.importOlderSaves(
      [older("7", device: "phone")], to: { _ in .main }, decode: { (_: OlderSave) throws -> World in throw Damaged() })
    let expected = OlderSavesReport.Skipped(name: "main", device: "phone", slot: "main", reason: .slotInUse)
    #expect(report.skipped == [expected])
    #expect(report.unfit.isEmpty)
    #expect(try game.saves.load(.main)?.level == 2)
  }

  @Test("a local slot stays as it is")
  func localSlot() throws {
    let game = try Device(clock: clock).open()
    defer { end(game) }
    try game.saves.keepLocal(.main, cloudCopy: .kept)
    #expect(try take([older("7")], into: game).skipped.map(\.reason) == [.localSlot])
    #expect(try game.saves.load(.main) == nil)
  }

  @Test("several saves of one name are a conflict, in which the newest wins where no policy ranks them otherwise")
  func conflicts() throws {
    let game = try Device(clock: clock).open()
    defer { end(game) }
    let saves = [
      older("a long story", at: 100, device: "phone"), older("short", at: 300, device: "tablet"),
      older("other", at: 200, device: "laptop"),
    ]
    let report = try takeJournals(saves, into: game)
    #expect(report.imported.map(\.device) == ["tablet", "laptop", "phone"])
    #expect(report.conflicted == ["journal"])
    #expect(try game.saves.load(.byProgress)?.text == "short")
    let conflict = try #require(try game.saves.conflict(.asking))
    #expect(conflict.sides.map(\.value.text) == ["short", "other", "a long story"])
    #expect(conflict.ancestor == nil)
    try game.saves.resolve(conflict, with: conflict.sides[2].value).wait()
    #expect(try takeJournals(saves, into: game).known.count == 3)
    #expect(try isConflicted(game) == [false])
    #expect(try game.saves.load(.byProgress)?.text == "a long story")
  }

  @Test("saves of one name are merged if the type has merge rules, and equal ones are one")
  func merges() throws {
    let game = try Device(clock: clock).open()
    defer { end(game) }
    let report = try take([older("3", at: 300), older("7", at: 100), older("3", at: 200)], into: game)
    #expect(report.imported.count == 2 && report.known == ["main"])
    #expect(try game.saves.load(.main)?.level == 7)
    // What the older game saves later is added as long as nothing was saved here.
    #expect(try take([older("9", at: 400)], into: game).conflicted == ["main"])
    #expect(try game.saves.load(.main)?.level == 9)
  }

  @Test("no more saves of one slot are kept in conflict than the limit, and damaged ones don't count")
  func limit() throws {
    let game = try Device(clock: clock).open()
    defer { end(game) }
    let count = SaveSlots.maximumOlderSaves + 3
    let saves = (0..<count).map { older($0 == count - 1 ? "damaged" : "\($0)", at: Double(1000 + $0)) }
    let report = try take(saves, into: game)
    #expect(report.unfit.count == 1 && report.imported.count == SaveSlots.maximumOlderSaves)
    #expect(report.skipped.map(\.reason) == [.tooMany, .tooMany])
  }

  // MARK: What doesn't fit

  @Test("damaged saves and hostile names are reported, and the others come")
  func unfit() throws {
    let game = try Device(clock: clock).open()
    defer { end(game) }
    let long = String(repeating: "n", count: 300)
    let names = ["", "bad\u{0}name", "\u{1B}[2J", long]
    let saves =
      names.map { older("5", name: $0) } + [
        older("no number", name: "damaged", device: "phone"), older("6", name: "../../etc/passwd"),
        older("1", name: "ignored"),
        OlderSave(name: "odd time", bytes: Data("4".utf8), modified: Date(timeIntervalSince1970: .nan)),
      ]
    let report = try game.saves.importOlderSaves(
      saves, to: { $0.name == "ignored" ? nil : Slot<World>($0.name) }, decode: Self.world)
    #expect(Set(report.unfit.map(\.name)) == Set(names + ["damaged"]))
    for unfit in report.unfit where unfit.name != "damaged" {
      #expect((unfit.error as? GameDataError)?.code == .misuse)
    }
    #expect(report.unfit.first { $0.name == "damaged" }?.error as? Damaged == Damaged())
    // To a slot, a path is a name like any other.
    #expect(report.imported.map(\.name).sorted() == ["../../etc/passwd", "odd time"])
    #expect(report.others == ["ignored"])
    // Mapped by the game, they are imported.
    let mapped = try game.saves.importOlderSaves(
      saves, to: { names.firstIndex(of: $0.name).map { Slot<World>("old \($0)") } }, decode: Self.world)
    #expect(mapped.imported.count == names.count)
  }

  @Test("metadata that can't be saved is reported, and a closed game throws")
  func metadata() throws {
    let game = try Device(clock: clock).open()
    let report = try game.saves.importOlderSaves(
      [older("1", name: "a"), older("2", name: "b"), older("3", name: "c")], to: { Slot<World>($0.name) },
      decode: Self.world,
      metadata: { save, world in
        switch save.name {
        case "a": SaveMetadata(progress: .nan)
        case "b": SaveMetadata(title: String(repeating: "t", count: 100_000))
        default: SaveMetadata(title: "Level \(world.level)", custom: ["device": "mine"])
        }
      })
    #expect(report.unfit.compactMap { ($0.error as? GameDataError)?.code } == [.misuse, .tooLarge])
    #expect(report.imported.map(\.version.metadata) == [SaveMetadata(title: "Level 3", custom: ["device": "mine"])])
    end(game)
    #expect(gameErrorCode { try take([older("1")], into: game) } == .closed)
  }

  // MARK: On two devices

  /// Two devices that share a folder.
  private func pair(_ body: (GameData, GameData, URL) async throws -> Void) async throws {
    let folder = try TemporaryFolder()
    let (here, there) = (try Device(clock: clock).open(), try Device(clock: clock).open())
    defer {
      end(here)
      end(there)
    }
    try await body(here, there, folder.url)
  }

  private func connect(_ games: GameData..., to folder: URL) async throws {
    for game in games {
      game.cloud.connect(.folder(folder))
      try await game.cloud.sync()
    }
    for game in games + games { try await game.cloud.sync() }
  }

  @Test("two devices that import the same saves before they sync have them once, without a conflict")
  func bothImport() async throws {
    try await pair { here, there, folder in
      let saves = [older("7", device: "phone"), older("3", name: "second", device: "tablet")]
      try take(saves, into: here)
      try take(saves.reversed(), into: there)
      try await connect(here, there, to: folder)
      for game in [here, there] {
        #expect(try isConflicted(game) == [false, false])
        #expect(try game.saves.history(of: .main).count == 1)
        #expect(try game.saves.load(.main)?.level == 7)
        try await until { game.cloud.status.waitingCommits == 0 }
      }
      #expect(try here.saves.history(of: .main).map(\.id) == there.saves.history(of: .main).map(\.id))
    }
  }

  @Test("what one device played since replaces the save that the other one imports later", arguments: [false, true])
  func oneContinues(isConnectedBefore: Bool) async throws {
    try await pair { here, there, folder in
      try takeJournals([older("old")], into: here)
      if isConnectedBefore { try await connect(here, to: folder) }
      for text in ["played", "played on"] {
        var journal = try #require(try here.saves.load(.byProgress))
        journal.text = text
        try await here.saves.save(journal, to: .byProgress)
      }
      try takeJournals([older("old")], into: there)
      try await connect(here, there, to: folder)
      for game in [here, there] {
        #expect(try isConflicted(game) == [false])
        #expect(try game.saves.load(.byProgress)?.text == "played on")
        #expect(try takeJournals([older("old")], into: game).imported.isEmpty)
      }
    }
  }

  @Test("saves that both devices continued are in conflict, without an ancestor that other devices couldn't know")
  func bothContinue() async throws {
    try await pair { here, there, folder in
      for (game, text) in [(here, "one"), (there, "two")] {
        try takeJournals([older("old")], into: game)
        _ = try game.saves.load(.byProgress)
        try await game.saves.save(Journal(text: text), to: .byProgress)
      }
      try await connect(here, there, to: folder)
      for game in [here, there] {
        let conflict = try #require(try game.saves.conflict(.byProgress))
        #expect(Set(conflict.sides.map(\.value.text)) == ["one", "two"])
        #expect(conflict.ancestor == nil)
        #expect(try game.saves.load(.byProgress) != nil)
      }
    }
  }

  @Test("a device that has fetched what another imported, or deleted, imports nothing again")
  func fetchesFirst() async throws {
    try await pair { here, there, folder in
      let saves = [older("7"), older("3", name: "second")]
      try take(saves, into: here)
      #expect(try here.saves.list().count == 2)
      try here.saves.delete("second")
      try await connect(here, there, to: folder)
      #expect(try take(saves, into: there).imported.isEmpty)
      #expect(try there.saves.load(.main)?.level == 7)
      #expect(try there.saves.load(Slot<World>("second")) == nil)
    }
  }

  @Test("if two releases encode a save differently, what was played since still ranks before it")
  func twoReleases() async throws {
    try await pair { here, there, folder in
      func take(into game: GameData, _ text: String) throws {
        try game.saves.importOlderSaves(
          [older("same bytes")], to: { _ in .byProgress }, decode: { _ in Journal(text: text) })
      }
      try take(into: here, "as the first release reads it")
      _ = try here.saves.load(.byProgress)
      try await here.saves.save(Journal(text: "played"), to: .byProgress)
      try take(into: there, "as the second release reads it, which is longer")
      try await connect(here, there, to: folder)
      for game in [here, there] {
        #expect(try isConflicted(game) == [true])
        #expect(try game.saves.load(.byProgress)?.text == "played")
      }
    }
  }

  @Test("a large save is cut in the same way, whatever the slot had before")
  func large() throws {
    var random = SystemRandomNumberGenerator()
    let noise = Data((0..<5_000_000).map { _ in UInt8.random(in: 0...255, using: &random) })
    let hashes = SegmentedSave(noise).hashes
    #expect(hashes.count > 1 && hashes == SegmentedSave(noise).hashes)
    let game = try Device(clock: clock).open()
    defer { end(game) }
    let slot = Slot<Blob>("large")
    let old = OlderSave(name: "large", bytes: noise, modified: Date(timeIntervalSince1970: 5))
    let report = try game.saves.importOlderSaves([old], to: { _ in slot }, decode: { Blob(bytes: Array($0.bytes)) })
    #expect(report.imported.count == 1)
    let isSame = try game.saves.load(slot)?.bytes == Array(noise)
    #expect(isSame)
  }
}
