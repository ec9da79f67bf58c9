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
    try game.saves.capture(World(level: 3), to: Slot("a"), SaveMetadata(title: "first")).wait()
    let old = try game.saves.capture(World(level: 9), to: Slot("b")).wait()
    let copy = try game.saves.copy("a", to: "b")
    #expect(copy.slot == "b" && copy.metadata.title == "first")
    #expect(try level(game, "a") == 3 && level(game, "b") == 3)
    try game.saves.capture(World(level: 4), to: Slot("b")).wait()
    #expect(try level(game, "a") == 3 && level(game, "b") == 4)
    #expect(try game.saves.list().map(\.isConflicted) == [false, false])
    try game.saves.restore(old.id, in: "b")
    #expect(try level(game, "b") == 9)
    #expect(try game.saves.copy("a", to: "c", SaveMetadata(title: "copy")).metadata.title == "copy")
    #expect(gameErrorCode { try game.saves.copy("none", to: "d") } == .missing)
    #expect(gameErrorCode { try game.saves.copy("a", to: "a") } == .misuse)
    #expect(gameErrorCode { try game.saves.copy("a", to: "") } == .misuse)
    #expect(try game.saves.list().map(\.name) == ["a", "b", "c"])
  }

  @Test("a renamed slot has only its new name and continues there; its versions can be restored under the old name")
  func renames() throws {
    var game = try device.open()
    let first = try game.saves.capture(World(level: 1), to: Slot("a")).wait()
    try game.saves.capture(World(level: 2), to: Slot("a"), SaveMetadata(title: "two"))
    try game.saves.rename("a", to: "b")
    #expect(try level(game, "a") == nil && level(game, "b") == 2)
    #expect(try game.saves.list().map(\.name) == ["b"])
    #expect(try game.saves.list().first?.current.metadata.title == "two")
    try game.saves.capture(World(level: 3), to: Slot("b")).wait()
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(try level(game, "a") == nil && level(game, "b") == 3)
    #expect(try game.saves.list().map(\.isConflicted) == [false])
    try game.saves.restore(first.id, in: "a")
    #expect(try level(game, "a") == 1 && level(game, "b") == 3)
    #expect(gameErrorCode { try game.saves.rename("none", to: "d") } == .missing)
    #expect(gameErrorCode { try game.saves.rename("a", to: "a\u{0}") } == .misuse)
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
    #expect(gameErrorCode { try game.saves.setMetadata(metadata, of: "none") } == .missing)
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
    try game.saves.capture(World(level: 7), to: Slot("other")).wait()
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
    #expect(gameErrorCode { try game.saves.rename(slot, to: Slot("other")) } == .misuse)
    #expect(gameErrorCode { try game.saves.setMetadata(SaveMetadata(title: "x"), of: slot) } == .misuse)
    // A copy hides nothing, and the older game can copy a save that it can't read.
    try game.saves.copy(slot, to: Slot("copy"))
    #expect(try game.saves.load(Slot<Newer>("copy")) == Newer(a: 7))
    #expect(try game.saves.list().map(\.name) == ["copy", "main"])
  }

  @Test("every call that decodes no save takes the plain name of a list, and does what it does with a slot")
  func plainNames() throws {
    let game = try device.open()
    defer { end(game) }
    let slot = Slot<World>("caf\u{e9}")
    // Another spelling of the same name, as a menu may have it from a file.
    let name = "cafe\u{301}"
    let first = try game.saves.capture(World(level: 1), to: slot).wait()
    let second = try game.saves.capture(World(level: 2), to: slot).wait()
    #expect(try game.saves.history(of: name).map(\.id) == [second.id, first.id])
    #expect(try game.saves.history(of: slot).map(\.id) == [second.id, first.id])
    try game.saves.restore(first.id, in: name)
    #expect(try game.saves.load(slot)?.level == 1)
    #expect(try game.saves.export(name) == game.saves.export(slot))
    let url = device.url.appendingPathComponent("one.save")
    try game.saves.export(name, version: second.id, to: url)
    try game.saves.import(from: url, to: Slot<World>("imported"))
    #expect(try level(game, "imported") == 2)
    try game.saves.setMetadata(SaveMetadata(title: "renamed"), of: name)
    let listed = try game.saves.list()
    #expect(listed.count == 2)
    #expect(listed.first { $0.name == slot.name }?.current.metadata.title == "renamed")
    try game.saves.copy(name, to: "copy")
    #expect(gameErrorCode { try game.saves.copy(name, to: slot.name) } == .misuse)
    #expect(try game.saves.status(of: name) == game.saves.status(of: slot))
    try game.saves.rename(name, to: "other")
    try game.saves.delete("copy")
    try game.saves.delete("imported")
    #expect(try game.saves.list().map(\.name) == ["other"])
    try game.saves.keepLocal(name, cloudCopy: .kept)
    #expect(try game.saves.isLocal(name) && game.saves.isLocal(slot))
    try game.saves.syncAgain(name)
    #expect(try !game.saves.isLocal(name) && !game.saves.isLocal(slot))
    let calls: [(String) throws -> Void] = [
      { try game.saves.delete($0) }, { _ = try game.saves.history(of: $0) },
      { try game.saves.restore(first.id, in: $0) }, { try game.saves.copy($0, to: "copy") },
      { try game.saves.rename("other", to: $0) }, { try game.saves.setMetadata(SaveMetadata(), of: $0) },
      { _ = try game.saves.export($0) }, { _ = try game.saves.isLocal($0) },
      { try game.saves.evict($0, keepingHistory: true) },
    ]
    for (number, call) in calls.enumerated() {
      #expect(gameErrorCode { try call("a\u{0}") } == .misuse, "call \(number)")
    }
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
    try game.progress.record(7, for: ProgressKey("\u{e9}toile", default: 0, rule: .max)).wait()
    try game.progress.record(3, for: ProgressKey("e\u{301}toile", default: 0, rule: .max)).wait()
    #expect(game.progress[ProgressKey("e\u{301}toile", default: 0, rule: .max)] == 7)
  }
}
