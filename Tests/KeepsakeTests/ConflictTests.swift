import Foundation
import KeepsakeReplication
import KeepsakeStore
import Testing

@testable import Keepsake

/// Two devices' saves in one slot, brought together as a sync would.
@Suite struct ConflictTests {
  let device: Device

  init() throws { device = try Device() }

  /// Lets a save of another device arrive beside what is here.
  func arrive<Value: Archivable>(
    _ value: Value, in slot: Slot<Value>, covers: [VersionID], id: UInt64 = 1, _ metadata: SaveMetadata = SaveMetadata(),
    to game: GameData
  ) throws {
    let bytes = try Archive.encode(value, writer: id)
    try game.core.store.write { transaction in
      let hash = try transaction.keepContent(bytes)
      let record = VersionRecord(
        id: VersionID(high: 1, low: id), slot: slot.name, covers: covers, contents: [hash], length: bytes.count,
        metadata: metadata, savedAtMilliseconds: device.clock.now, writer: WriterID(id), provisional: false)
      try transaction.putVersion(StoredVersion(record: record, acknowledged: true, offered: true))
      for covered in covers { try transaction.markCovered(covered) }
    }
  }

  @Test("a new game doesn't replace the long save that arrived while nobody looked")
  func newGameBesideArrival() throws {
    let game = try device.open()
    defer { end(game) }
    #expect(try game.saves.list().isEmpty)
    try arrive(World(level: 60), in: .main, covers: [], to: game)
    try game.saves.capture(World(level: 1), to: .main).wait()
    #expect(try game.saves.conflict(.main)?.sides.count == 2)
    // Once it was shown, a delete means it too.
    #expect(try game.saves.list().count == 1)
    try game.saves.delete(.main)
    #expect(try game.saves.list().isEmpty)
  }

  @Test("what is saved while the player chooses a side doesn't ask again")
  func autosaveWhileChoosing() throws {
    let game = try device.open()
    defer { end(game) }
    let slot = Slot<World>("main", resolving: .ask)
    try game.saves.capture(World(level: 2), to: slot).wait()
    try arrive(World(level: 60), in: slot, covers: [], to: game)
    _ = try game.saves.load(slot)
    let conflict = try #require(try game.saves.conflict(slot))
    try game.saves.capture(World(level: 3), to: slot).wait()
    try game.saves.resolve(conflict, with: World(level: 60)).wait()
    #expect(try game.saves.conflict(slot) == nil)
    #expect(try game.saves.load(slot)?.level == 60)
  }

  @Test("level 6 here and badges there become one world, and neither side goes back (R21, R24)")
  func merges() throws {
    let game = try device.open()
    defer { end(game) }
    var base = World(level: 2)
    base.heading = 1
    let ancestor = try game.saves.capture(base, to: .main).wait()
    var mine = base
    mine.level = 6
    mine.cleared = ["a"]
    mine.ship = [9, 9]
    try game.saves.capture(mine, to: .main).wait()
    var theirs = base
    theirs.cleared = ["b"]
    theirs.heading = 2
    try arrive(theirs, in: .main, covers: [ancestor.id], to: game)

    #expect(try game.saves.list().first?.isConflicted == true)
    let merged = try #require(try game.saves.load(.main))
    #expect(merged.level == 6 && merged.cleared == ["a", "b"])
    #expect(merged.heading == 2 && merged.ship == [9, 9], "one turned, the other moved")
    #expect(try game.saves.conflict(.main)?.sides.count == 2)
    #expect(try game.saves.list().first?.isConflicted == true, "a load writes nothing")
    try game.saves.capture(merged, to: .main).wait()
    #expect(try game.saves.list().first?.isConflicted == false)
    #expect(try game.saves.conflict(.main) == nil)
    #expect(try game.saves.load(.main) == merged)
    #expect(try game.saves.history(of: .main).count == 4, "every side is kept")
  }

  @Test("a save made while another device's arrived does not swallow it unseen")
  func coversOnlyWhatWasLoaded() throws {
    let game = try device.open()
    defer { end(game) }
    let ancestor = try game.saves.capture(World(level: 1), to: .main).wait()
    _ = try game.saves.load(.main)
    try arrive(World(level: 40), in: .main, covers: [ancestor.id], to: game)
    try game.saves.capture(World(level: 2), to: .main).wait()
    try game.saves.capture(World(level: 3), to: .main).wait()
    let sides = try #require(try game.saves.conflict(.main)).sides
    #expect(sides.map(\.value.level).sorted() == [3, 40])
    #expect(try game.saves.load(.main)?.level == 40)
  }

  @Test("an empty slot that was looked at before another device's save arrived does not swallow it either")
  func coversNothingAfterEmptyLoad() throws {
    let game = try device.open()
    defer { end(game) }
    #expect(try game.saves.load(.main) == nil)
    try arrive(World(level: 40), in: .main, covers: [], to: game)
    try game.saves.capture(World(level: 2), to: .main).wait()
    #expect(try game.saves.conflict(.main)?.sides.count == 2)
  }

  @Test("a policy chooses the save with more progress, and the other stays in the history")
  func mostProgress() throws {
    let game = try device.open()
    defer { end(game) }
    let ancestor = try game.saves.capture(Journal(text: "start"), to: .byProgress).wait()
    try game.saves.capture(Journal(text: "little"), to: .byProgress, SaveMetadata(progress: 1)).wait()
    try arrive(Journal(text: "much"), in: .byProgress, covers: [ancestor.id], SaveMetadata(progress: 9), to: game)
    #expect(try game.saves.load(.byProgress)?.text == "much")
    try game.saves.capture(Journal(text: "more"), to: .byProgress, SaveMetadata(progress: 10)).wait()
    #expect(try game.saves.conflict(.byProgress) == nil)
    let texts = try game.saves.history(of: .byProgress).map { try game.saves.value(of: $0.id, in: .byProgress).text }
    #expect(Set(texts) == ["start", "little", "much", "more"])
  }

  @Test("asked, the player's choice ends the conflict; before it, play goes on and ends nothing")
  func asks() throws {
    let game = try device.open()
    defer { end(game) }
    let ancestor = try game.saves.capture(Journal(text: "start"), to: .asking).wait()
    try game.saves.capture(Journal(text: "mine"), to: .asking, SaveMetadata(progress: 5)).wait()
    try arrive(Journal(text: "theirs"), in: .asking, covers: [ancestor.id], SaveMetadata(progress: 1), to: game)
    #expect(try game.saves.load(.asking)?.text == "mine")
    try game.saves.capture(Journal(text: "mine, on"), to: .asking, SaveMetadata(progress: 6)).wait()
    let conflict = try #require(try game.saves.conflict(.asking))
    #expect(conflict.sides.map(\.value.text) == ["mine, on", "theirs"])
    #expect(conflict.ancestor?.text == "start")
    // What arrives while the player thinks was not offered, so the choice doesn't end it.
    try arrive(Journal(text: "late"), in: .asking, covers: [ancestor.id], id: 2, SaveMetadata(progress: 0), to: game)
    try game.saves.resolve(conflict, with: conflict.sides[1].value, conflict.sides[1].version.metadata).wait()
    #expect(try #require(try game.saves.conflict(.asking)).sides.map(\.value.text) == ["theirs", "late"])
  }

  @Test("the game's own way to combine is used, and what it makes replaces all sides")
  func combines() throws {
    let slot = Slot<Journal>(
      "journal",
      resolving: .combining { saves in
        Journal(text: saves.values.map(\.text).sorted().joined(separator: "+") + " from \(saves.ancestor?.text ?? "nothing")")
      })
    let game = try device.open()
    defer { end(game) }
    let ancestor = try game.saves.capture(Journal(text: "start"), to: slot).wait()
    try game.saves.capture(Journal(text: "a"), to: slot).wait()
    try arrive(Journal(text: "b"), in: slot, covers: [ancestor.id], to: game)
    let value = try #require(try game.saves.load(slot))
    #expect(value.text == "a+b from start")
    try game.saves.capture(value, to: slot).wait()
    #expect(try game.saves.conflict(slot) == nil)
  }

  @Test("equal saves on two devices are no conflict, and a delete beside a save does not take it away")
  func noConflict() throws {
    let game = try device.open()
    defer { end(game) }
    let ancestor = try game.saves.capture(Journal(text: "start"), to: .asking).wait()
    _ = try game.saves.load(.asking)
    try arrive(Journal(text: "theirs"), in: .asking, covers: [ancestor.id], to: game)
    try game.core.store.write { transaction in
      let record = VersionRecord(
        id: VersionID(high: 2, low: 2), slot: "journal", covers: [ancestor.id], contents: [], length: 0,
        savedAtMilliseconds: 0, writer: WriterID(9), provisional: false, tombstone: true)
      try transaction.putVersion(StoredVersion(record: record, acknowledged: true, offered: true))
    }
    #expect(try game.saves.conflict(.asking) == nil)
    #expect(try game.saves.load(.asking)?.text == "theirs")
    try game.saves.capture(Journal(text: "next"), to: .asking).wait()
    #expect(try game.core.store.read { try $0.heads(of: "journal").count } == 1)
  }
}
