import Foundation
import KeepsakeReplication
import KeepsakeStore
import Testing

@testable import Keepsake

/// Saves of two devices in one slot, combined as a sync would.
@Suite struct ConflictTests {
  let device: Device

  init() throws { device = try Device() }

  /// Stores a save of another device beside the local ones, as a sync would.
  func arrive<Value: Archivable>(
    _ value: Value, in slot: Slot<Value>, covers: [VersionID], id: UInt64 = 1,
    _ metadata: SaveMetadata = SaveMetadata(),
    to game: GameData
  ) throws {
    let bytes = try Archive.encode(value, writer: id)
    try game.core.store.write { transaction in
      let hash = try transaction.keepContent(bytes)
      let record = VersionRecord(
        id: VersionID(high: 1, low: id), slot: slot.name, covers: covers, contents: [hash], length: bytes.count,
        metadata: metadata, savedAtMilliseconds: device.clock.now, writer: WriterID(id), provisional: false)
      try transaction.putVersion(StoredVersion(record: record, acknowledged: true, offered: true))
      for covered in covers {
        try transaction.markCovered(covered)
        // The versions from which another device continued had been in the cloud.
        guard let base = try transaction.version(covered)?.record else { continue }
        try transaction.putVersion(StoredVersion(record: base, acknowledged: true, offered: true))
      }
    }
  }

  @Test("a new game doesn't replace a save that arrived unseen; once the list has shown it, a delete covers it")
  func newGameBesideArrival() throws {
    let game = try device.open()
    defer { end(game) }
    #expect(try game.saves.list().isEmpty)
    try arrive(World(level: 60), in: .main, covers: [], to: game)
    try game.saves.capture(World(level: 1), to: .main).wait()
    #expect(try game.saves.conflict(.main)?.sides.count == 2)
    // Once the list has shown it, a delete covers it, too.
    #expect(try game.saves.list().count == 1)
    try game.saves.delete(.main)
    #expect(try game.saves.list().isEmpty)
  }

  @Test("a save made while the player chooses a side doesn't start another conflict")
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

  @Test("merging two devices' changes loses neither side's progress, and the next save ends the conflict")
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

  @Test("a save doesn't replace another device's save that arrived after the game's last load")
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

  @Test("a save into a slot that was empty when loaded doesn't replace another device's save that arrived since")
  func coversNothingAfterEmptyLoad() throws {
    let game = try device.open()
    defer { end(game) }
    #expect(try game.saves.load(.main) == nil)
    try arrive(World(level: 40), in: .main, covers: [], to: game)
    try game.saves.capture(World(level: 2), to: .main).wait()
    #expect(try game.saves.conflict(.main)?.sides.count == 2)
  }

  @Test("the policy `mostProgress` chooses the save with more progress, and the other stays in the history")
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

  @Test("each policy that chooses a save chooses by its own figure: progress, playtime or date")
  func choices() throws {
    let game = try device.open()
    defer { end(game) }
    let start = try game.saves.capture(Journal(text: "start"), to: .byProgress).wait()
    try game.saves.capture(Journal(text: "far"), to: .byProgress, SaveMetadata(playtime: 1, progress: 9)).wait()
    device.clock.advance(by: .seconds(60))
    let long = SaveMetadata(playtime: 9, progress: 1)
    try arrive(Journal(text: "long"), in: .byProgress, covers: [start.id], long, to: game)
    device.clock.advance(by: .seconds(60))
    let late = SaveMetadata(playtime: 1, progress: 1)
    try arrive(Journal(text: "late"), in: .byProgress, covers: [start.id], id: 2, late, to: game)
    let policies: [(ConflictPolicy<Journal>, String)] = [
      (.mostProgress, "far"), (.longestPlayed, "long"), (.newest, "late"),
    ]
    for (policy, text) in policies {
      #expect(try game.saves.load(Slot<Journal>("journal", resolving: policy))?.text == text)
    }
  }

  @Test("with the policy `ask` play continues during a conflict, and the choice replaces only the offered sides")
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
    // A save that arrives while the player decides was not offered, so the choice doesn't replace it.
    try arrive(Journal(text: "late"), in: .asking, covers: [ancestor.id], id: 2, SaveMetadata(progress: 0), to: game)
    try game.saves.resolve(conflict, with: conflict.sides[1].value, conflict.sides[1].version.metadata).wait()
    #expect(try #require(try game.saves.conflict(.asking)).sides.map(\.value.text) == ["theirs", "late"])
  }

  @Test("awaiting `resolve` ends the conflict, and returns the slot's newest version")
  func awaitsTheChoice() async throws {
    let game = try device.open()
    defer { end(game) }
    try await game.saves.save(Journal(text: "mine"), to: .asking, SaveMetadata(progress: 5))
    try arrive(Journal(text: "theirs"), in: .asking, covers: [], SaveMetadata(progress: 1), to: game)
    let conflict = try #require(try game.saves.conflict(.asking))
    let version = try await game.saves.resolve(conflict, with: Journal(text: "both"), SaveMetadata(progress: 6))
    #expect(try game.saves.conflict(.asking) == nil)
    #expect(try game.saves.history(of: .asking).first?.id == version.id)
    #expect(try game.saves.load(.asking)?.text == "both")
  }

  @Test("a game's own combining closure gets the values and their ancestor, and its result replaces all sides")
  func combines() throws {
    let slot = Slot<Journal>(
      "journal",
      resolving: .combining { saves in
        Journal(
          text: saves.values.map(\.text).sorted().joined(separator: "+") + " from \(saves.ancestor?.text ?? "nothing")")
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

  @Test("a delete beside another device's save is no conflict, and doesn't remove that save")
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

  @Test(
    "an ancestor that can't be decoded is reported once, and the sides are merged without it", arguments: [true, false])
  func unreadableAncestor(asked: Bool) throws {
    let game = try device.open()
    defer { end(game) }
    let slot = Slot<Park>("park")
    // The ancestor is a newer game's save.
    try arrive(NewerPark(level: 2), in: Slot<NewerPark>("park"), covers: [], id: 1, to: game)
    let ancestor = try #require(try game.core.store.read { try $0.heads(of: "park") }.first)
    try arrive(Park(level: 3, visitors: 4), in: slot, covers: [ancestor], id: 2, SaveMetadata(progress: 2), to: game)
    try arrive(Park(level: 4, visitors: 5), in: slot, covers: [ancestor], id: 3, SaveMetadata(progress: 1), to: game)
    for _ in 0..<2 {
      if asked {
        let conflict = try #require(try game.saves.conflict(slot))
        #expect(conflict.sides.count == 2 && conflict.ancestor == nil)
      } else {
        #expect(try game.saves.load(slot) == Park(level: 4, visitors: 4))
      }
    }
    let incidents = game.incidents
    #expect(
      incidents.map(\.kind) == [.unreadable] && incidents.first?.version == ancestor && incidents.first?.slot == "park")
    #expect(incidents.first?.message.contains("merged without it") == true, "\(incidents)")
  }

  @Test(
    "the sides of a conflict that this game can read are merged, even if another is a newer game's save",
    arguments: [true, false])
  func newerGameBeside(newerIsFurther: Bool) throws {
    let game = try device.open()
    defer { end(game) }
    let slot = Slot<Park>("park")
    let ancestor = try game.saves.capture(Park(level: 1), to: slot).wait()
    try game.saves.capture(Park(level: 2, visitors: 5), to: slot, SaveMetadata(progress: 2)).wait()
    try arrive(Park(level: 3), in: slot, covers: [ancestor.id], id: 1, SaveMetadata(progress: 3), to: game)
    try arrive(
      NewerPark(level: 9), in: Slot<NewerPark>("park"), covers: [ancestor.id], id: 2,
      SaveMetadata(progress: newerIsFurther ? 9 : 0),
      to: game)
    let merged = try #require(try game.saves.load(slot))
    #expect(merged == Park(level: 3, visitors: 5))
    // Saving the merged value replaces the two saves that went into it, but not the newer game's save.
    try game.saves.capture(merged, to: slot, SaveMetadata(progress: 4)).wait()
    #expect(try game.saves.load(slot) == merged)
    #expect(try game.core.store.read { try $0.heads(of: "park") }.count == 2)
    try game.saves.capture(Park(level: 4, visitors: 5), to: slot, SaveMetadata(progress: 5)).wait()
    let bytes = try game.core.store.read { transaction in
      try transaction.heads(of: "park").map {
        try transaction.plainBytes(of: #require(try transaction.version($0)?.record))
      }
    }
    #expect(
      bytes.contains { (try? Archive.decode(NewerPark.self, from: $0))?.level == 9 }, "the newer save is still a head")
  }

  @Test("if no side of a conflict can be read, loading throws, and a save replaces nothing")
  func onlyNewerSaves() throws {
    let game = try device.open()
    defer { end(game) }
    let newer = Slot<NewerPark>("park")
    try arrive(NewerPark(level: 8), in: newer, covers: [], id: 1, to: game)
    try arrive(NewerPark(level: 9), in: newer, covers: [], id: 2, to: game)
    let error = #expect(throws: ArchiveError.self) { try game.saves.load(Slot<Park>("park")) }
    #expect(error?.code == .tooNew)
    #expect(throws: ArchiveError.self) { try game.saves.conflict(Slot<Park>("park")) }
    try game.saves.capture(Park(level: 1), to: Slot<Park>("park")).wait()
    #expect(try game.core.store.read { try $0.heads(of: "park") }.count == 3, "the save replaced nothing")
  }

  @Test(
    "a policy that chooses a save chooses among those that can be read, and the next save replaces no other",
    arguments: [true, false])
  func choosesAmongReadable(asks: Bool) throws {
    let game = try device.open()
    defer { end(game) }
    let slot = asks ? Slot<Journal>.asking : .byProgress
    try game.saves.capture(Journal(text: "mine"), to: slot, SaveMetadata(progress: 5)).wait()
    try arrive(Journal(text: "theirs"), in: slot, covers: [], id: 1, SaveMetadata(progress: 6), to: game)
    try arrive(World(), in: Slot<World>("journal"), covers: [], id: 2, SaveMetadata(progress: 9), to: game)
    let unreadable = VersionID(high: 1, low: 2)
    #expect(try game.saves.load(slot)?.text == "theirs")
    #expect(game.incidents.map(\.kind) == [.unreadable] && game.incidents.map(\.version) == [unreadable])
    try game.saves.capture(Journal(text: "next"), to: slot, SaveMetadata(progress: 7)).wait()
    let conflict = try #require(try game.saves.conflict(slot))
    #expect(conflict.sides.map(\.value.text) == (asks ? ["next", "mine"] : ["next"]))
    #expect(conflict.unreadable.map(\.version.id) == [unreadable])
    #expect(try game.core.store.read { try $0.heads(of: "journal").count } == (asks ? 3 : 2))
  }

  @Test("an unrelated third save doesn't keep two related ones from being merged with their ancestor")
  func strangerBesideRelatives() throws {
    let game = try device.open()
    defer { end(game) }
    var base = World(level: 2)
    base.heading = 1
    let ancestor = try game.saves.capture(base, to: .main).wait()
    var mine = base
    mine.ship = [9, 9]
    try game.saves.capture(mine, to: .main, SaveMetadata(progress: 9)).wait()
    var theirs = base
    theirs.heading = 2
    try arrive(theirs, in: .main, covers: [ancestor.id], id: 1, SaveMetadata(progress: 5), to: game)
    try arrive(World(level: 7, cleared: ["x"]), in: .main, covers: [], id: 2, SaveMetadata(progress: 1), to: game)
    let merged = try #require(try game.saves.load(.main))
    #expect(merged.ship == [9, 9] && merged.heading == 2, "only one of the two turned")
    #expect(merged.level == 7 && merged.cleared == ["x"])
    try game.saves.capture(merged, to: .main).wait()
    #expect(try game.saves.conflict(.main) == nil)
  }

  @Test("of three saves, the two most closely related are merged with the ancestor that these have in common")
  func nearestAncestorOfThree() throws {
    let game = try device.open()
    defer { end(game) }
    let root = try game.saves.capture(World(level: 1, heading: 0), to: .main).wait()
    let turned = try game.saves.capture(World(level: 1, heading: 1), to: .main).wait()
    try game.saves.capture(World(level: 1, ship: [9, 9], heading: 1), to: .main, SaveMetadata(progress: 9)).wait()
    try arrive(World(level: 1, heading: 2), in: .main, covers: [turned.id], id: 1, SaveMetadata(progress: 5), to: game)
    try arrive(
      World(level: 1, cleared: ["x"], heading: 0), in: .main, covers: [root.id], id: 2, SaveMetadata(progress: 1),
      to: game)
    #expect(try game.saves.load(.main) == World(level: 1, cleared: ["x"], ship: [9, 9], heading: 2))
  }

  @Test("a conflict offers the sides that can be read, and resolving it doesn't replace the one that can't")
  func choosingBesideANewerSave() throws {
    let game = try device.open()
    defer { end(game) }
    let slot = Slot<Park>("park", resolving: .ask)
    try game.saves.capture(Park(level: 1), to: slot, SaveMetadata(progress: 9)).wait()
    try arrive(Park(level: 2), in: slot, covers: [], id: 1, SaveMetadata(progress: 5), to: game)
    try arrive(NewerPark(level: 3), in: Slot<NewerPark>("park"), covers: [], id: 2, SaveMetadata(progress: 1), to: game)
    let conflict = try #require(try game.saves.conflict(slot))
    #expect(conflict.sides.map(\.value.level) == [1, 2])
    #expect(conflict.unreadable.map { ($0.error as? ArchiveError)?.code } == [.tooNew])
    #expect(conflict.unreadable.first?.version.metadata.progress == 1)
    #expect(try game.saves.load(slot)?.level == 1 && game.incidents.isEmpty, "what ranks after it isn't looked at")
    try game.saves.resolve(conflict, with: conflict.sides[1].value).wait()
    let rest = try #require(try game.saves.conflict(slot))
    #expect(
      rest.sides.map(\.value.level) == [2] && rest.unreadable.count == 1,
      "only the newer game's save is left beside the choice")
  }

  @Test("a combining closure gets only the saves that can be read, and isn't called for a single one")
  func combiningBesideANewerSave() throws {
    let game = try device.open()
    defer { end(game) }
    let slot = Slot<Park>(
      "park", resolving: .combining { saves in Park(level: saves.values.count, visitors: saves.versions.count) })
    try game.saves.capture(Park(level: 7), to: slot).wait()
    try arrive(NewerPark(level: 3), in: Slot<NewerPark>("park"), covers: [], id: 1, to: game)
    #expect(try game.saves.load(slot) == Park(level: 7))
    try arrive(Park(level: 9), in: slot, covers: [], id: 2, to: game)
    #expect(try game.saves.load(slot) == Park(level: 2, visitors: 2))
  }

  @Test("a save whose merge rules are in its nested values is merged by them")
  func rulesInParts() throws {
    let game = try device.open()
    defer { end(game) }
    let slot = Slot<Estate>("estate")
    let ancestor = try game.saves.capture(Estate(), to: slot).wait()
    try game.saves.capture(Estate(park: Park(level: 5)), to: slot).wait()
    try arrive(
      Estate(park: Park(level: 3, visitors: 8), trees: [Tree(id: 1)]), in: slot, covers: [ancestor.id], to: game)
    let merged = try #require(try game.saves.load(slot))
    #expect(merged.park == Park(level: 5, visitors: 8) && merged.trees.map(\.id) == [1])
  }
}
