import Foundation
import KeepsakeReplication
import KeepsakeStore
import TestSupport
import Testing

@testable import Keepsake

@Archivable struct Hunt: Equatable {
  @Merge(.counter) var kills = Counter()
  var text = ""
}

/// Counters in saves that are heads beside each other, because no conflict was resolved yet or a save couldn't be read.
@Suite struct BranchedCounterTests {
  let device: Device
  let asking = Slot<Hunt>("hunt", resolving: .ask)
  let merging = Slot<Hunt>("hunt")

  init() throws { device = try Device() }

  func arrive<Value: Archivable>(_ value: Value, covers: [VersionID], progress: Double, to game: GameData) throws {
    let bytes = try Archive.encode(value, writer: 1)
    try game.core.store.write { transaction in
      let record = VersionRecord(
        id: VersionID(high: 1, low: 1), slot: "hunt", covers: covers, contents: [try transaction.keepContent(bytes)],
        length: bytes.count,
        metadata: SaveMetadata(progress: progress), savedAtMilliseconds: device.clock.now, writer: WriterID(1),
        provisional: false)
      try transaction.putVersion(StoredVersion(record: record, acknowledged: true, offered: true))
      for covered in covers { try transaction.markCovered(covered) }
    }
  }

  @Test(
    "What was counted on a branch that the player didn't choose is kept when both branches are merged",
    arguments: [false, true])
  func counts(afterFailedSave hasFailed: Bool) throws {
    let game = try device.open()
    defer { end(game) }
    let root = try game.saves.capture(Hunt(), to: asking).wait()
    var mine = try #require(try game.saves.load(asking))
    mine.kills += 5
    try game.saves.capture(mine, to: asking, SaveMetadata(progress: 1)).wait()
    if hasFailed {
      let aside = device.folder.url.appendingPathComponent("aside")
      try FileManager.default.moveItem(at: device.url, to: aside)
      #expect(storeErrorCode { try game.saves.capture(mine, to: asking, SaveMetadata(progress: 2)).wait() } == .removed)
      try FileManager.default.moveItem(at: aside, to: device.url)
    }
    var theirs = Hunt()
    theirs.kills += 3
    try arrive(theirs, covers: [root.id], progress: 8, to: game)
    var shown = try #require(try game.saves.load(asking))
    #expect(shown.kills.value == 3)
    shown.kills += 2
    try game.saves.capture(shown, to: asking, SaveMetadata(progress: 9)).wait()
    let conflict = try #require(try game.saves.conflict(asking))
    #expect(conflict.sides.map(\.value.kills.value) == [5, 5])
    // As a later version of the game does it, or this one once it has both sides.
    #expect(try game.saves.load(merging)?.kills.value == 10)
    var joined = conflict.sides[0].value
    joined.kills.merge(conflict.sides[1].value.kills, ancestor: conflict.ancestor?.kills)
    try game.saves.resolve(conflict, with: joined).wait()
    #expect(try game.saves.load(asking)?.kills.value == 10)
  }

  @Test("A counter that one device saves again and again keeps a single entry")
  func oneEntry() throws {
    let game = try device.open()
    defer { end(game) }
    for _ in 0..<3 {
      var hunt = try game.saves.load(merging) ?? Hunt()
      hunt.kills += 1
      try game.saves.capture(hunt, to: merging).wait()
      hunt.kills += 1
      try game.saves.capture(hunt, to: merging).wait()
    }
    let hunt = try #require(try game.saves.load(merging))
    #expect(hunt.kills.value == 6)
    var counted = Hunt()
    counted.kills += 6
    let expected = try Archive.encode(counted, writer: game.core.store.writer.value)
    #expect(try Archive.encode(hunt) == expected, "one entry, the store's own")
  }
}
