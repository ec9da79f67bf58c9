import Foundation
import KeepsakeReplication
import KeepsakeStore
import Testing

@testable import Keepsake

@Archivable struct Shore: Equatable {
  @Merge(.max) var level = 1
  @Merge var signs: [String: Int] = [:]
  var place = 0
}

/// Two devices that each merged the same saves and continued, before one received the other's merge.
@Suite struct CrissCrossTests {
  let device: Device
  let slot = Slot<Shore>("shore")

  init() throws { device = try Device() }

  static func id(_ number: Int) -> VersionID { VersionID(high: 1, low: UInt64(number)) }

  /// Stores a save of any device, as a sync would.
  func put(_ value: Shore, _ number: Int, over covers: [Int], progress: Double, in transaction: inout StoreTransaction)
    throws
  {
    let bytes = try Archive.encode(value, writer: 1)
    let record = VersionRecord(
      id: Self.id(number), slot: slot.name, covers: covers.map(Self.id), contents: [try transaction.keepContent(bytes)],
      length: bytes.count, metadata: SaveMetadata(progress: progress), savedAtMilliseconds: device.clock.now,
      writer: WriterID(1),
      provisional: false)
    try transaction.putVersion(StoredVersion(record: record, acknowledged: true, offered: true))
    for covered in record.covers { try transaction.markCovered(covered) }
  }

  /// Stores save 1, and for each rung two saves that replace all saves before them: one device changes the place and a
  /// sign, the other one the level. Both start from the merge of the two saves before.
  ///
  /// - Returns: The merge of the last two saves.
  func ladder(_ rungs: Int, changing: Int, in game: GameData) throws -> Shore {
    var both = Shore()
    try game.core.store.write { transaction in
      try put(both, 1, over: [], progress: 0, in: &transaction)
      for rung in 1...rungs {
        let before = rung == 1 ? [1] : [2 * rung - 2, 2 * rung - 1]
        var (mine, theirs) = (both, both)
        theirs.place = rung
        theirs.signs["bed"] = rung
        mine.level += 1
        for (number, value) in [(2 * rung + changing, theirs), (2 * rung + 1 - changing, mine)] {
          // The one with the lower number always has more progress.
          try put(value, number, over: before, progress: Double(3 * rung - number), in: &transaction)
        }
        both.place = theirs.place
        both.signs = theirs.signs
        both.level = mine.level
      }
    }
    return both
  }

  @Test(
    "After two devices merged the same saves, merging again keeps a value that only one of them changed",
    arguments: [1, 2, 3, MergeAncestors.maximumDepth], [0, 1])
  func oneSidedChange(rungs: Int, changing: Int) throws {
    let game = try device.open()
    defer { end(game) }
    let expected = try ladder(rungs, changing: changing, in: game)
    #expect(try game.saves.conflict(slot)?.sides.count == 2)
    let merged = try #require(try game.saves.load(slot))
    #expect(merged == expected)
    #expect(
      try game.saves.conflict(slot)?.ancestor?.level == rungs, "the ancestor is the merge of all common ancestors")
    try game.saves.capture(merged, to: slot).wait()
    #expect(try game.saves.load(slot) == expected)
  }

  @Test("An element that one of two merges removed stays removed if the other merge didn't change it")
  func removal() throws {
    let game = try device.open()
    defer { end(game) }
    try game.core.store.write { transaction in
      try put(Shore(signs: ["bed": 1, "gate": 1]), 1, over: [], progress: 0, in: &transaction)
      try put(Shore(signs: ["bed": 1, "gate": 1]), 2, over: [1], progress: 9, in: &transaction)
      try put(Shore(signs: ["bed": 2, "gate": 1]), 3, over: [1], progress: 1, in: &transaction)
      try put(Shore(signs: ["bed": 2, "gate": 1]), 4, over: [2, 3], progress: 9, in: &transaction)
      try put(Shore(signs: ["gate": 1]), 5, over: [2, 3], progress: 1, in: &transaction)
    }
    #expect(try game.saves.load(slot)?.signs == ["gate": 1])
  }

  @Test("A conflict whose saves were merged very many times can still be loaded, with both of its sides")
  func beyondTheBound() throws {
    let game = try device.open()
    defer { end(game) }
    let expected = try ladder(MergeAncestors.maximumDepth + 4, changing: 0, in: game)
    let merged = try #require(try game.saves.load(slot))
    #expect(merged.level == expected.level, "a field with a rule of its own needs no ancestor")
    #expect([expected.place, expected.place - 1].contains(merged.place))
    #expect(try game.saves.conflict(slot)?.sides.count == 2)
  }

  @Test("A conflict can be loaded even if one of the ancestors for its merge is damaged")
  func damagedAncestor() throws {
    let game = try device.open()
    defer { end(game) }
    _ = try ladder(2, changing: 0, in: game)
    // A version as old as that may have only its record left.
    try game.core.store.write { transaction in
      var version = try #require(try transaction.version(Self.id(2)))
      version.record.contents = [ContentHash(of: Data("gone".utf8))]
      try transaction.putVersion(version)
    }
    #expect(try game.saves.load(slot)?.level == 3)
  }
}
