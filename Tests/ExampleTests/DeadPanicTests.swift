import Foundation
import Keepsake
import TestSupport
import Testing

@testable import DeadPanic

/// A night that is saved halfway and continued later has the same steps, the same flames and the same end.
@Suite struct DeadPanicTests {
  private let folder = TemporaryFolder.url()

  private func level(_ name: String) throws -> Level { try #require(Level.named(name)) }

  private func play(_ game: Game, to tick: Int = Game.maximumTicks) {
    while game.outcome == nil, game.tick < tick { game.step() }
  }

  /// Everything that is saved, and everything that follows from it.
  private func state(_ game: Game) throws -> Data {
    try Archive.encode(game)
      + Data(game.characters.map { "\($0.type) \($0.place) \($0.health) \($0.nextStep)" }.joined(separator: "\n").utf8)
  }

  @Test(
    "a night that was saved and loaded ends as one that was not interrupted", arguments: Level.names,
    [UInt64(1), 2, 3, 4, 5])
  func resumes(name: String, seed: UInt64) throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let whole = Game(level: try level(name), seed: seed)
    play(whole)
    #expect(whole.outcome != nil && whole.kills > 0, "\(name), seed \(seed)")

    var game = Game(level: try level(name), seed: seed)
    var burning = 0
    // Through a store that is closed each time, as by a process that ends.
    for stop in [1, whole.tick / 4, whole.tick / 3, whole.tick / 2, whole.tick - 3] {
      play(game, to: stop)
      burning += game.flames.count
      let data = try GameData.open("com.example.deadpanic", at: folder)
      try data.saves.capture(game, to: .night).wait()
      try data.close()
      let again = try GameData.open("com.example.deadpanic", at: folder)
      let loaded = try #require(try again.saves.load(.night))
      try again.close()
      #expect(try state(loaded) == state(game), "\(name), seed \(seed), tick \(stop)")
      #expect(loaded.particles.isEmpty && loaded.eventsLeft == game.eventsLeft)
      game = loaded
    }
    play(game)
    #expect(burning > 0, "no flame was ever saved")
    #expect(try state(game) == state(whole), "\(name), seed \(seed)")
    #expect(game.outcome == whole.outcome && game.tick == whole.tick)
  }

  @Test("a save contains nothing that follows from the level or is only drawn")
  func savesOnlyWhatIsNeeded() throws {
    let game = Game(level: try level("graveyard"), seed: 1)
    play(game, to: 60)
    #expect(!game.particles.isEmpty && game.characters.count > 5)
    let saved = String(decoding: try Archive.encode(game), as: UTF8.self)
    for name in ["particles", "walls", "maximumHealth", "occupants", "arrivals"] {
      #expect(!saved.contains(name), "\(name)")
    }
    #expect(saved.contains("eventsLeft"))
  }

  struct Forgery: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var level = "graveyard"
    var tick = 3
    var eventsLeft = 6
    var types = [1]
    var health = 5
    var place = Place(x: 12, y: 4)
    var kills = 0
    var code = ArchiveError.Code.mismatch
  }

  static let forgeries = [
    Forgery(testDescription: "a level of another game", level: "moon"),
    Forgery(testDescription: "a time beyond any night", tick: .max),
    Forgery(testDescription: "more events than the level has", eventsLeft: 7),
    Forgery(testDescription: "fewer events than none", eventsLeft: .min),
    Forgery(testDescription: "a character of a newer game", types: [9], code: .unknownCase),
    Forgery(testDescription: "two on one square", types: [1, 2]),
    Forgery(testDescription: "one in a wall", place: Place(x: 0, y: 0)),
    Forgery(testDescription: "one off the map", place: Place(x: .max, y: .min)),
    Forgery(testDescription: "one that is dead", health: .min),
    Forgery(testDescription: "more kills than ticks", kills: .max),
  ]

  @Test("a save with an impossible night is a typed error when it is loaded", arguments: forgeries)
  func forged(_ forgery: Forgery) throws {
    let bytes = try Archive.encode(ForgedGame(forgery))
    let error = #expect(throws: ArchiveError.self) { try Archive.decode(Game.self, from: bytes) }
    #expect(error?.code == forgery.code, "\(String(describing: error))")
  }

  @Test("a forged game with valid values is decoded, and can be played to the end")
  func honest() throws {
    let game = try Archive.decode(Game.self, from: Archive.encode(ForgedGame(Forgery(testDescription: "none"))))
    play(game)
    #expect(game.outcome != nil)
  }
}

/// Writes a game's keys with forged values.
private final class ForgedGame: Archivable {
  final class Person: Archivable {
    static var archiveName: String { Character.archiveName }
    let (type, place, health): (Int, Place, Int)

    init(_ type: Int, _ forgery: DeadPanicTests.Forgery) {
      (self.type, place, health) = (type, forgery.place, forgery.health)
    }
    required init(from reader: inout ArchiveReader) throws { throw ArchiveError(.unsupported, "only written") }
    func encode(to writer: inout ArchiveWriter) throws {
      try writer.encode(type, forKey: "type")
      try writer.encode(place, forKey: "place")
      try writer.encode(health, forKey: "health")
      try writer.encode(4, forKey: "nextStep")
    }
  }

  static var archiveName: String { Game.archiveName }
  static var archiveSubclasses: [any Archivable.Type] { [Person.self] }
  let forgery: DeadPanicTests.Forgery

  init(_ forgery: DeadPanicTests.Forgery) { self.forgery = forgery }
  required init(from reader: inout ArchiveReader) throws { throw ArchiveError(.unsupported, "only written") }
  func encode(to writer: inout ArchiveWriter) throws {
    try writer.encode(forgery.level, forKey: "level")
    try writer.encode(forgery.tick, forKey: "tick")
    try writer.encode(forgery.eventsLeft, forKey: "eventsLeft")
    try writer.encode(forgery.types.map { Person($0, forgery) }, forKey: "characters")
    try writer.encode([Flame](), forKey: "flames")
    try writer.encode(forgery.kills, forKey: "kills")
    try writer.encode(Dice(state: 1), forKey: "dice")
  }
}
