import Foundation
import GRDB
import KeepsakeReplication
import KeepsakeStore
import Testing

@testable import Keepsake

/// What a screen with a list of saved games does.
@Suite struct SlotManagingTests {
  let device: Device

  init() throws { device = try Device() }

  private func level(_ game: GameData, _ name: String) throws -> Int? { try game.saves.load(Slot<World>(name))?.level }

  /// Stores a save of another device that descends from what the game has loaded.
  private func arrive(_ world: World, after loaded: VersionID, in game: GameData) throws {
    let bytes = try Archive.encode(world, writer: 9)
    try game.core.store.write { transaction in
      let hash = try transaction.keepContent(bytes)
      let record = VersionRecord(
        id: VersionID(high: 1, low: 1), slot: "main", covers: [loaded], contents: [hash], length: bytes.count,
        savedAtMilliseconds: device.clock.now, writer: WriterID(9), provisional: false)
      try transaction.putVersion(StoredVersion(record: record, acknowledged: true, offered: true))
      try transaction.markCovered(loaded)
    }
  }

  @Test("the list shows all metadata of every slot, including captures made just before and unreadable saves")
  func lists() throws {
    var game = try device.open()
    for number in 1...40 {
      let metadata = SaveMetadata(
        title: "Save \(number)", playtime: Double(number), progress: Double(number) / 2,
        thumbnail: Data(repeating: 7, count: number),
        custom: ["number": "\(number)"])
      try game.saves.capture(World(level: number), to: Slot<World>("slot \(100 + number)"), metadata)
    }
    let list = try game.saves.list()
    #expect(list.map(\.name) == (101...140).map { "slot \($0)" })
    #expect(list.map(\.current.metadata.title) == (1...40).map { "Save \($0)" })
    #expect(list.last?.current.metadata.playtime == 40 && list.last?.current.metadata.progress == 20)
    #expect(
      list.last?.current.metadata.thumbnail?.count == 40 && list.last?.current.metadata.custom == ["number": "40"])
    try game.close()
    let database = try DatabaseQueue(path: device.url.appendingPathComponent(Store.databaseName).path)
    try database.write { try $0.execute(sql: "UPDATE content SET bytes = x'00'") }
    try database.close()
    game = try device.open()
    defer { end(game) }
    #expect(try game.saves.list() == list)
    #expect(throws: StoreError.self) { try game.saves.load(Slot<World>("slot 101")) }
  }

  @Test("a copy is independent of its original, and the save that it replaced can be restored")
  func copies() throws {
    let game = try device.open()
    defer { end(game) }
    try game.saves.capture(World(level: 3), to: "a", SaveMetadata(title: "first")).wait()
    let old = try game.saves.capture(World(level: 9), to: "b").wait()
    let copy = try game.saves.copy(Slot<World>("a"), to: "b")
    #expect(copy.slot == "b" && copy.metadata.title == "first")
    #expect(try level(game, "a") == 3 && level(game, "b") == 3)
    try game.saves.capture(World(level: 4), to: "b").wait()
    #expect(try level(game, "a") == 3 && level(game, "b") == 4)
    #expect(try game.saves.list().map(\.isConflicted) == [false, false])
    try game.saves.restore(old.id, in: Slot<World>("b"))
    #expect(try level(game, "b") == 9)
    #expect(try game.saves.copy(Slot<World>("a"), to: "c", SaveMetadata(title: "copy")).metadata.title == "copy")
    #expect(gameErrorCode { try game.saves.copy(Slot<World>("none"), to: "d") } == .missing)
    #expect(gameErrorCode { try game.saves.copy(Slot<World>("a"), to: "a") } == .misuse)
    #expect(gameErrorCode { try game.saves.copy(Slot<World>("a"), to: "") } == .misuse)
    #expect(try game.saves.list().map(\.name) == ["a", "b", "c"])
  }

  @Test("a renamed slot has only its new name and continues there; its versions can be restored under the old name")
  func renames() throws {
    var game = try device.open()
    let first = try game.saves.capture(World(level: 1), to: "a").wait()
    try game.saves.capture(World(level: 2), to: "a", SaveMetadata(title: "two"))
    try game.saves.rename(Slot<World>("a"), to: "b")
    #expect(try level(game, "a") == nil && level(game, "b") == 2)
    #expect(try game.saves.list().map(\.name) == ["b"])
    #expect(try game.saves.list().first?.current.metadata.title == "two")
    try game.saves.capture(World(level: 3), to: "b").wait()
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(try level(game, "a") == nil && level(game, "b") == 3)
    #expect(try game.saves.list().map(\.isConflicted) == [false])
    try game.saves.restore(first.id, in: Slot<World>("a"))
    #expect(try level(game, "a") == 1 && level(game, "b") == 3)
    #expect(gameErrorCode { try game.saves.rename(Slot<World>("none"), to: "d") } == .missing)
    #expect(gameErrorCode { try game.saves.rename(Slot<World>("a"), to: "a\u{0}") } == .misuse)
    // Both or nothing: the refused call left the save in its slot.
    #expect(try level(game, "a") == 1)
  }

  @Test("changing a save's metadata leaves its content as it is, and the running game saves without a conflict")
  func describes() throws {
    let game = try device.open()
    defer { end(game) }
    var metadata = SaveMetadata(title: "one", playtime: 5, thumbnail: Data([1]))
    let first = try game.saves.capture(World(level: 1), to: .main, metadata).wait()
    _ = try game.saves.load(.main)
    metadata.title = "two"
    let renamed = try game.saves.setMetadata(metadata, of: .main)
    #expect(renamed.id != first.id && renamed.metadata == metadata)
    #expect(try game.saves.setMetadata(metadata, of: .main).id == renamed.id)
    #expect(try game.saves.load(.main)?.level == 1)
    try game.saves.capture(World(level: 2), to: .main, metadata).wait()
    #expect(try game.saves.list().map(\.isConflicted) == [false])
    #expect(try game.saves.history(of: .main).count == 3)
    #expect(gameErrorCode { try game.saves.setMetadata(metadata, of: Slot<World>("none")) } == .missing)
    #expect(gameErrorCode { try game.saves.setMetadata(SaveMetadata(playtime: .nan), of: .main) } == .misuse)
  }

  @Test("setting the title of another device's save doesn't let the running game's next save replace that save")
  func describesUnseen() throws {
    let game = try device.open()
    defer { end(game) }
    let loaded = try game.saves.capture(World(level: 1), to: .main).wait()
    _ = try game.saves.load(.main)
    try arrive(World(level: 1, cleared: ["cave"]), after: loaded.id, in: game)
    try game.saves.setMetadata(SaveMetadata(title: "seen in the list"), of: .main)
    try game.saves.capture(World(level: 2), to: .main).wait()
    #expect(try game.saves.load(.main) == World(level: 2, cleared: ["cave"]))
  }

  @Test(
    "an import or a copy replaces a save that the list has shown, but not one that arrived unseen",
    arguments: [true, false], ["copy", "import"])
  func replacesShown(isShown: Bool, name: String) throws {
    let game = try device.open()
    defer { end(game) }
    let loaded = try game.saves.capture(World(level: 1), to: .main).wait()
    _ = try game.saves.load(.main)
    try game.saves.capture(World(level: 7), to: "other").wait()
    let file = try game.saves.export(Slot<World>("other"))
    try arrive(World(level: 3), after: loaded.id, in: game)
    if isShown { _ = try game.saves.list() }
    if name == "copy" {
      try game.saves.copy(Slot<World>("other"), to: .main)
    } else {
      try game.saves.import(file, to: .main)
    }
    #expect(try (game.saves.conflict(.main) == nil) == isShown)
  }

  @Test("a slot in conflict can be neither renamed nor retitled, which would hide a side, but it can be copied")
  func conflicts() throws {
    var game = try device.open()
    try game.saves.capture(Newer(a: 7), to: Slot<Newer>("main"), SaveMetadata(progress: 5)).wait()
    try game.close()
    game = try device.open()
    defer { end(game) }
    let slot = Slot<Older>("main")
    #expect(throws: ArchiveError.self) { try game.saves.load(slot) }
    try game.saves.capture(Older(a: 1), to: slot).wait()
    #expect(try game.saves.list().first?.isConflicted == true)
    #expect(gameErrorCode { try game.saves.rename(slot, to: "other") } == .misuse)
    #expect(gameErrorCode { try game.saves.setMetadata(SaveMetadata(title: "x"), of: slot) } == .misuse)
    // A copy hides nothing, and the older game can copy a save that it can't read.
    try game.saves.copy(slot, to: "copy")
    #expect(try game.saves.load(Slot<Newer>("copy")) == Newer(a: 7))
    #expect(try game.saves.list().map(\.name) == ["copy", "main"])
  }

  @Test("a slot name or progress key is the same in each Unicode normalization")
  func spellings() throws {
    let game = try device.open()
    defer { end(game) }
    let (composed, decomposed) = (Slot<World>("caf\u{e9}"), Slot<World>("cafe\u{301}"))
    try game.saves.capture(World(level: 60), to: composed).wait()
    try game.saves.capture(World(level: 1), to: decomposed).wait()
    #expect(try game.saves.load(composed)?.level == 1)
    #expect(try game.saves.list().map(\.name) == ["caf\u{e9}"])
    #expect(try game.saves.history(of: decomposed).count == 2)
    try game.progress.record(7, for: .max("\u{e9}toile", default: 0)).wait()
    try game.progress.record(3, for: .max("e\u{301}toile", default: 0)).wait()
    #expect(game.progress[.max("e\u{301}toile", default: 0)] == 7)
  }
}
