import Foundation
import GRDB
import Keepsake
import KeepsakeReplication
import KeepsakeStore
import Testing

@Suite struct SaveSlotsTests {
  let device: Device

  init() throws { device = try Device() }

  @Test("a first run has nothing to load, and the next run continues with the saved game")
  func resumes() throws {
    var game = try device.open()
    #expect(try game.saves.load(.main) == nil)
    var world = World()
    world.ship = [3, 4]
    world.heading = 1.5
    world.sparks = 99
    world.level = 7
    let version = try game.saves.capture(world, to: .main, SaveMetadata(title: "Cave", playtime: 60)).wait()
    #expect(version.metadata.title == "Cave" && version.state == .queued && version.length > 0)
    try game.close()

    game = try device.open()
    defer { end(game) }
    let resumed = try #require(try game.saves.load(.main))
    #expect(resumed.ship == [3, 4] && resumed.heading == 1.5 && resumed.level == 7)
    #expect(resumed.sparks == 0)
    let list = try game.saves.list()
    #expect(list.map(\.name) == ["main"] && list.first?.current.id == version.id && list.first?.isConflicted == false)
  }

  @Test(
    "an invalid slot name is refused by loading and saving alike, and the error says what is wrong with it",
    arguments: [
      ("", "must have 1 to 256 bytes and no control characters: \"\" is empty"),
      ("a\nb", "must have 1 to 256 bytes and no control characters: \"a\\u{a}b\" has U+000A"),
      (
        String(repeating: "é", count: 129),
        "must have 1 to 256 bytes and no control characters: \"\(String(repeating: "é", count: 40))...\" has 258"
      ),
      ("\u{E000}file/a", "can't begin like the keys of tracked files: \"\\u{e000}file/a\" does"),
    ])
  func invalidNames(name: String, reason: String) async throws {
    let game = try device.open()
    defer { end(game) }
    let slot = Slot<World>(name)
    let calls: [() async throws -> Void] = [
      { try game.saves.capture(World(), to: slot) },
      { _ = try await game.saves.save(World(), to: slot) },
      { _ = try game.saves.load(slot) },
      { _ = try await game.saves.fetch(slot, waitingUpTo: .zero) },
      { _ = try await game.saves.fetch(slot, requiringResponseWithin: .zero) },
      { _ = try game.saves.conflict(slot) },
      { _ = try game.saves.history(of: slot) },
      { _ = try game.saves.status(of: slot) },
      { for try await _ in game.saves.statusUpdates(of: slot) { break } },
      { _ = try await game.saves.seenBy(slot) },
      { _ = try game.saves.isLocal(slot) },
      { try game.saves.keepLocal(slot, cloudCopy: .kept) },
      { try await game.saves.download(slot) },
      { try game.saves.evict(slot, keepingHistory: true) },
      { _ = try game.saves.export(slot) },
      { try game.saves.copy(slot, to: .main) },
      { try game.saves.delete(slot) },
    ]
    for (index, call) in calls.enumerated() {
      let error = await #expect(throws: GameDataError.self, "call \(index)") { try await call() }
      #expect(
        error?.code == .misuse && error?.message == "a slot's name \(reason)",
        "call \(index)")
    }
    #expect(try game.saves.list().isEmpty)
  }

  @Test("a load returns the capture made just before it, durable or not")
  func readsItsOwnWrites() throws {
    let game = try device.open()
    defer { end(game) }
    for level in 2...60 {
      try game.saves.capture(World(level: level), to: .main)
      #expect(try game.saves.load(.main)?.level == level)
    }
    #expect(try game.saves.list().first?.isConflicted == false)
  }

  @Test("an object graph that an actor saves is loaded as the same graph")
  func savesGraphs() async throws {
    actor Gardener {
      let game: GameData
      let garden = Garden()

      init(_ game: GameData) { self.game = game }

      func plantAndSave() async throws -> Version {
        let rose = Flower(kind: "rose")
        let tulip = Flower(kind: "tulip")
        rose.neighbour = tulip
        tulip.neighbour = rose
        garden.flowers = [rose, tulip, rose]
        garden.chosen = tulip
        return try await game.saves.save(garden, to: .garden)
      }

      func check() throws {
        let again = try #require(try game.saves.load(.garden))
        #expect(again.flowers.count == 3 && again.flowers[0] === again.flowers[2])
        #expect(again.chosen === again.flowers[1])
        #expect(again.flowers[0].neighbour === again.flowers[1] && again.flowers[1].neighbour === again.flowers[0])
      }
    }
    let game = try device.open()
    defer { end(game) }
    let gardener = Gardener(game)
    _ = try await gardener.plantAndSave()
    try await gardener.check()
  }

  @MainActor
  @Test("an object graph can be saved and loaded on the main actor")
  func savesFromMainActor() async throws {
    let game = try device.open()
    defer { end(game) }
    let garden = Garden()
    garden.name = "main"
    let version = try await game.saves.save(garden, to: .garden)
    #expect(try game.saves.load(.garden)?.name == "main")
    #expect(try game.saves.history(of: .garden).map(\.id) == [version.id])
  }

  @Test("a capture of an unchanged world adds no version, a capture with a changed title does")
  func unchanged() throws {
    let game = try device.open()
    defer { end(game) }
    let first = try game.saves.capture(World(level: 3), to: .main).wait()
    let again = try game.saves.capture(World(level: 3), to: .main).wait()
    #expect(again.id == first.id)
    let titled = try game.saves.capture(World(level: 3), to: .main, SaveMetadata(title: "x")).wait()
    #expect(titled.id != first.id)
    #expect(try game.saves.history(of: .main).count == 2)
    _ = try game.saves.load(.main)
    #expect(try game.saves.capture(World(level: 3), to: .main, SaveMetadata(title: "x")).wait().id == titled.id)
    // A world that is changed back is a change, although its bytes are in the store already.
    try game.saves.capture(World(level: 4), to: .main).wait()
    #expect(try game.saves.capture(World(level: 3), to: .main, SaveMetadata(title: "x")).wait().id != titled.id)
    #expect(try game.saves.load(.main)?.level == 3)
  }

  @Test("a deleted slot is empty, its versions can be restored, and the restored version is loaded")
  func deletesAndRestores() throws {
    let game = try device.open()
    defer { end(game) }
    let first = try game.saves.capture(World(level: 1), to: .main, SaveMetadata(title: "one")).wait()
    try game.saves.capture(World(level: 2), to: .main)
    let deleted = try game.saves.delete(.main)
    #expect(deleted.isDeleted)
    #expect(try game.saves.load(.main) == nil)
    #expect(try game.saves.list().isEmpty)
    #expect(try game.saves.history(of: .main).count == 3)
    #expect(try game.saves.value(of: first.id, in: .main).level == 1)
    #expect(gameErrorCode { _ = try game.saves.restore(deleted.id, in: .main) } == .missing)
    let restored = try game.saves.restore(first.id, in: .main)
    #expect(restored.metadata.title == "one" && restored.id != first.id)
    #expect(try game.saves.load(.main)?.level == 1)
    try game.saves.capture(World(level: 5), to: .main).wait()
    #expect(try game.saves.load(.main)?.level == 5)
    #expect(try game.saves.list().first?.isConflicted == false)
  }

  @Test("a new game saved to a slot that was never loaded replaces the save in it")
  func newGame() throws {
    var game = try device.open()
    try game.saves.capture(World(level: 9), to: .main)
    try game.close()
    game = try device.open()
    defer { end(game) }
    try game.saves.capture(World(level: 1), to: .main).wait()
    #expect(try game.saves.load(.main)?.level == 1)
    #expect(try game.saves.list().first?.isConflicted == false)
  }

  @Test("invalid names and metadata are refused at the call, and nothing is written")
  func refusals() throws {
    let game = try device.open()
    defer { end(game) }
    let tooLong = Slot<World>(String(repeating: "x", count: Slot<World>.maximumNameBytes + 1))
    #expect(gameErrorCode { try game.saves.capture(World(), to: tooLong) } == .misuse)
    #expect(gameErrorCode { try game.saves.capture(World(), to: Slot("")) } == .misuse)
    #expect(gameErrorCode { try game.saves.capture(World(), to: Slot("a\u{0}b")) } == .misuse)
    let picture = SaveMetadata(thumbnail: Data(count: SaveMetadata.maximumBytes + 1))
    #expect(gameErrorCode { try game.saves.capture(World(), to: .main, picture) } == .tooLarge)
    #expect(gameErrorCode { try game.saves.capture(World(), to: .main, SaveMetadata(playtime: .nan)) } == .misuse)
    #expect(try game.saves.list().isEmpty && game.saves.load(.main) == nil)
  }

  @Test("if the newest save is damaged, the newest good one is loaded, and an incident reports the damage")
  func damaged() throws {
    var game = try device.open()
    var newest: VersionID?
    for level in 1...3 { newest = try game.saves.capture(World(level: level), to: .main).wait().id }
    try game.close()
    try damage(device.url, newest: 1)

    game = try device.open()
    #expect(try game.saves.load(.main)?.level == 2)
    #expect(try game.saves.load(.main)?.level == 2)
    let incidents = game.incidents
    #expect(incidents.count == 1)
    #expect(incidents.first?.kind == .damagedVersion && incidents.first?.version == newest)
    let history = try game.saves.history(of: .main)
    #expect(incidents.first?.usedInstead == history[1].id)
    // The game continues from there, and the damaged save is no side of a conflict.
    try game.saves.capture(World(level: 8), to: .main).wait()
    #expect(try game.saves.load(.main)?.level == 8)
    #expect(try game.saves.list().first?.isConflicted == false)
    try game.close()

    try damage(device.url, newest: 10)
    game = try device.open()
    defer { end(game) }
    #expect(throws: StoreError.self) { try game.saves.load(.main) }
    // Saves that could not be read are not replaced by a new game.
    try game.saves.capture(World(level: 1), to: .main).wait()
    #expect(try game.saves.list().first?.isConflicted == true)
  }

  /// Destroys the newest contents.
  private func damage(_ folder: URL, newest count: Int) throws {
    let database = try DatabaseQueue(path: folder.appendingPathComponent(Store.databaseName).path)
    try database.write { database in
      try database.execute(
        sql:
          """
          UPDATE content SET bytes = x'00' WHERE position IN (SELECT position FROM content ORDER BY position DESC \
          LIMIT ?)
          """,
        arguments: [count])
    }
    try database.close()
  }

  @Test("a newer game's save is refused, not taken for an empty slot, and not replaced by the next save")
  func newerSave() throws {
    var game = try device.open()
    try game.saves.capture(Newer(), to: Slot<Newer>("main")).wait()
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect {
      try game.saves.load(Slot<Older>("main"))
    } throws: { ($0 as? ArchiveError)?.code == .tooNew }
    try game.saves.capture(Older(), to: Slot<Older>("main")).wait()
    #expect(try game.saves.list().first?.isConflicted == true)
  }

  /// Checks what a newer game finds in a store that an older one has used.
  private func newerFinds(
    _ value: Newer, savedAs version: VersionID, _ location: Testing.SourceLocation = #_sourceLocation
  ) throws {
    let game = try device.open()
    defer { end(game) }
    let slot = Slot<Newer>("main")
    #expect(try game.saves.history(of: slot).contains { $0.id == version }, sourceLocation: location)
    #expect(try game.saves.value(of: version, in: slot) == value, sourceLocation: location)
    let sides = try #require(try game.saves.conflict(slot)?.sides, sourceLocation: location)
    #expect(sides.contains { $0.version.id == version && $0.value == value }, sourceLocation: location)
  }

  @Test("a newer game's save is kept for the newer game, however often an older game saves and restarts")
  func newerSaveStays() throws {
    var game = try device.open()
    let newer = try game.saves.capture(Newer(a: 7), to: Slot<Newer>("main"), SaveMetadata(progress: 5)).wait()
    try game.close()
    for round in 0..<3 {
      game = try device.open()
      if round == 0 {
        #expect {
          try game.saves.load(Slot<Older>("main"))
        } throws: { ($0 as? ArchiveError)?.code == .tooNew }
      } else {
        #expect(try game.saves.load(Slot<Older>("main"))?.a == 10 * round - 8, "its own last save")
      }
      for step in 0..<3 { try game.saves.capture(Older(a: 10 * round + step), to: Slot<Older>("main")).wait() }
      let conflict = try #require(try game.saves.conflict(Slot<Older>("main")))
      #expect(conflict.sides.count == 1 && conflict.unreadable.count == 1)
      try game.close()
    }
    try newerFinds(Newer(a: 7), savedAs: newer.id)
    // The newer save has the most progress, so a game that can read it continues from it.
    game = try device.open()
    defer { end(game) }
    #expect(try game.saves.load(Slot<Newer>("main")) == Newer(a: 7))
    try game.saves.restore(newer.id, in: Slot<Newer>("main"))
    #expect(try game.saves.load(Slot<Newer>("main")) == Newer(a: 7))
  }

  @Test(
    "an older game's own save that wins a conflict doesn't replace the newer game's save", arguments: [true, false])
  func newerSaveThatLosesStays(isVersioned: Bool) throws {
    var game = try device.open()
    let slot = Slot<Older>("main")
    // A newer game may also have saved a case that the older one doesn't know, without a new version.
    let version: VersionID
    if isVersioned {
      version = try game.saves.capture(Newer(a: 7), to: Slot<Newer>("main")).wait().id
    } else {
      version = try game.saves.capture(NewerCases(), to: Slot<NewerCases>("main")).wait().id
    }
    try game.close()
    game = try device.open()
    #expect(throws: ArchiveError.self) { try game.saves.load(slot) }
    // More progress: from now on the older game loads its own save.
    try game.saves.capture(Older(a: 2), to: slot, SaveMetadata(progress: 9)).wait()
    try game.close()
    game = try device.open()
    for step in 3..<6 {
      #expect(try game.saves.load(slot)?.a == step - 1)
      try game.saves.capture(Older(a: step), to: slot, SaveMetadata(progress: 9)).wait()
      #expect(try game.saves.list().first?.isConflicted == true)
    }
    let conflict = try #require(try game.saves.conflict(slot))
    #expect(conflict.sides.map(\.value.a) == [5] && conflict.unreadable.map(\.version.id) == [version])
    #expect(conflict.unreadable.first?.error is ArchiveError)
    try game.close()
    if isVersioned {
      try newerFinds(Newer(a: 7), savedAs: version)
    } else {
      game = try device.open()
      defer { end(game) }
      #expect(try game.saves.value(of: version, in: Slot<NewerCases>("main")) == NewerCases())
      #expect(try game.saves.conflict(Slot<NewerCases>("main"))?.sides.contains { $0.version.id == version } == true)
    }
  }

  @Test("a save that a game makes from several heads that it can read replaces all of them")
  func readableSidesAreReplaced() throws {
    var game = try device.open()
    let slot = Slot<Older>("main")
    try game.saves.capture(Newer(), to: Slot<Newer>("main"), SaveMetadata(progress: 5)).wait()
    try game.close()
    game = try device.open()
    #expect(throws: ArchiveError.self) { try game.saves.load(slot) }
    try game.saves.capture(Older(a: 1), to: slot).wait()
    try game.close()
    game = try device.open()
    defer { end(game) }
    // The newer game loads what it makes of both, and its next save replaces them.
    #expect(try game.saves.conflict(Slot<Newer>("main"))?.sides.count == 2)
    _ = try game.saves.load(Slot<Newer>("main"))
    try game.saves.capture(Newer(a: 5), to: Slot<Newer>("main")).wait()
    #expect(try game.saves.conflict(Slot<Newer>("main")) == nil)
    #expect(try game.saves.list().first?.isConflicted == false)
  }
}

@Archivable(name: "State", version: 2) struct Newer: Equatable { var a = 1, kind = OlderKind.plain }
@Archivable(name: "State", version: 1) struct Older: Equatable { var a = 1, kind = OlderKind.plain }
@Archivable(name: "State", version: 1) struct NewerCases: Equatable { var a = 1, kind = NewerKind.fancy(3) }
@Archivable(name: "Kind") enum OlderKind: Equatable { case plain }
@Archivable(name: "Kind") enum NewerKind: Equatable {
  case plain
  case fancy(Int)
}
