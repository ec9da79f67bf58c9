import Foundation
import KeepsakeArchive
import KeepsakeInspection
import Testing

// How games leave out of a save what they can recreate.

/// The game's static data, loaded from its own files and passed as the context of decoding.
private struct Levels {
  struct Plan { var name: String, width: Int, wave: [Int] }
  var plans: [String: Plan]
  static let shipped = Levels(plans: [
    "forest": Plan(name: "forest", width: 64, wave: [1, 1, 2, 3, 5]),
    "keep": Plan(name: "keep", width: 32, wave: [8, 9]),
  ])
}

/// A monster is created from its kind; only what changed during play is saved.
private final class Monster: Archivable {
  let kind: Int
  let maxHealth: Int
  let image: String
  var health: Int

  init(kind: Int) {
    self.kind = kind
    maxHealth = 10 * kind
    image = "monster-\(kind).png"
    health = maxHealth
  }

  func encode(to writer: inout ArchiveWriter) throws {
    try writer.encode(kind, forKey: "kind")
    try writer.encode(health, forKey: "health")
  }

  convenience init(from reader: inout ArchiveReader) throws {
    self.init(kind: try reader.decode(Int.self, forKey: "kind"))
    // A monster that a balance patch made weaker must not have more health than its new maximum.
    health = min(maxHealth, try reader.decode(Int.self, forKey: "health", default: maxHealth))
  }
}

@Archivable private final class Player {
  var name: String
  var health = 80
  @Unsaved var maxHealth = 100
  @Unsaved var particles: [SIMD2<Float>] = []
  @Unsaved weak var team: Team?
  init(name: String) { self.name = name }
}

/// Decoding adds the players with the same method as the game does, so that everything that this method updates is
/// consistent.
private final class Team: Archivable {
  private(set) var players: [Player] = []
  private(set) var totalHealth = 0
  private(set) var calls = 0

  init() {}

  func add(_ player: Player) {
    players.append(player)
    player.team = self
    totalHealth += player.health
    calls += 1
  }

  static var archiveSubclasses: [any Archivable.Type] { [Player.self] }
  func encode(to writer: inout ArchiveWriter) throws {}
  convenience init(from reader: inout ArchiveReader) throws { self.init() }
  func encodeReferences(to writer: inout ArchiveWriter) throws { try writer.encode(players, forKey: "players") }
  func decodeReferences(from reader: inout ArchiveReader) throws {
    for player in try reader.decode([Player].self, forKey: "players") { add(player) }
  }
}

/// A level is loaded by its name, and then the saved state is applied. The save has the number of events left, not the
/// list of them.
private final class LoadedLevel: Archivable {
  let plan: Levels.Plan
  private(set) var events: [Int]
  var monsters: [Monster] = []

  init(plan: Levels.Plan) {
    self.plan = plan
    events = plan.wave
  }

  func happen() { if !events.isEmpty { monsters.append(Monster(kind: events.removeFirst())) } }

  static var archiveSubclasses: [any Archivable.Type] { [Monster.self] }
  func encode(to writer: inout ArchiveWriter) throws {
    try writer.encode(plan.name, forKey: "level")
    try writer.encode(events.count, forKey: "eventsLeft")
  }

  convenience init(from reader: inout ArchiveReader) throws {
    let name = try reader.decode(String.self, forKey: "level")
    guard let plan = (reader.context as? Levels)?.plans[name] else {
      throw ArchiveError(.unsupported, "The game has no level \"\(name)\"", type: "LoadedLevel", field: "level")
    }
    self.init(plan: plan)
    events = Array(events.suffix(try reader.decode(Int.self, forKey: "eventsLeft")))
  }

  func encodeReferences(to writer: inout ArchiveWriter) throws { try writer.encode(monsters, forKey: "monsters") }
  func decodeReferences(from reader: inout ArchiveReader) throws {
    monsters = try reader.decode([Monster].self, forKey: "monsters")
  }
}

@Archivable private struct Game {
  var level: LoadedLevel
  var team: Team
  var score = 0
  @Unsaved var width = 0

  func didDecode(context: Any?) throws {
    guard context is Levels else { throw ArchiveError(.unsupported, "The levels are needed to load a game") }
  }
}

@Archivable private final class Map {
  var level: String
  @Unsaved var width = 0
  @Unsaved var hooks = 0
  init(level: String) { self.level = level }
  func didDecode(context: Any?) throws {
    width = (context as? Levels)?.plans[level]?.width ?? 0
    hooks += 1
  }
}

@Archivable private struct Life {
  struct Ended: Error {}
  var left: Int
  func didDecode(context: Any?) throws { if left < 0 { throw Ended() } }
}

@Suite struct RebuildingTests {
  @Test func aMonsterIsMadeByItsKindAndThenGetsWhatWasSaved() throws {
    let monster = Monster(kind: 4)
    monster.health = 17
    let bytes = try Archive.encode(monster)
    let copy = try Archive.decode(Monster.self, from: bytes)
    #expect(copy.kind == 4 && copy.health == 17 && copy.maxHealth == 40 && copy.image == "monster-4.png")
    let text = try ArchiveInspection(of: bytes).text()
    #expect(!text.contains("monster-4.png") && !text.contains("maxHealth"))
  }

  @Test func whatIsNotSavedStartsAsInANewGame() throws {
    let player = Player(name: "Ann")
    (player.health, player.maxHealth, player.particles) = (55, 1, [[1, 2]])
    let copy = try Archive.decode(Player.self, from: Archive.encode(player))
    #expect(copy.name == "Ann" && copy.health == 55 && copy.maxHealth == 100 && copy.particles.isEmpty)
  }

  @Test func playersJoinTheirTeamThroughTheGamesOwnMethod() throws {
    let team = Team()
    for name in ["a", "b", "c"] { team.add(Player(name: name)) }
    team.players[1].health = 20
    let copy = try Archive.decode(Team.self, from: Archive.encode(team))
    #expect(copy.players.map(\.name) == ["a", "b", "c"] && copy.calls == 3)
    #expect(copy.totalHealth == 180 && copy.players.allSatisfy { $0.team === copy })
  }

  @Test func aLevelIsLoadedByItsNameAndThenTheSaveIsApplied() throws {
    let plan = try #require(Levels.shipped.plans["forest"])
    let game = Game(level: LoadedLevel(plan: plan), team: Team(), score: 3)
    for _ in 0..<2 { game.level.happen() }
    game.level.monsters[1].health = 1
    let bytes = try Archive.encode(game)
    let copy = try Archive.decode(Game.self, from: bytes, context: Levels.shipped)
    #expect(copy.score == 3 && copy.level.plan.width == 64 && copy.level.events == [2, 3, 5])
    #expect(copy.level.monsters.map(\.health) == [10, 1] && copy.level.monsters.map(\.kind) == [1, 1])
    #expect(try !ArchiveInspection(of: bytes).text().contains("wave"))
    // A level that the game no longer ships is an error that names it.
    let error = #expect(throws: ArchiveError.self) {
      try Archive.decode(Game.self, from: bytes, context: Levels(plans: [:]))
    }
    #expect(error?.code == .unsupported && error?.message.contains("forest") == true && error?.field == "level")
    #expect(throws: ArchiveError.self) { try Archive.decode(Game.self, from: bytes) }
  }

  @Test("the hook after decoding of a struct at the root can refuse a save")
  func refusingHook() throws {
    #expect(try Archive.decode(Life.self, from: Archive.encode(Life(left: 3))).left == 3)
    #expect(throws: Life.Ended.self) { try Archive.decode(Life.self, from: Archive.encode(Life(left: -1))) }
  }

  @Test func theHookAfterDecodingFillsInWhatTheGameKnows() throws {
    let maps = ["forest", "keep", "gone"].map { Map(level: $0) }
    let copies = try Archive.decode([Map].self, from: Archive.encode(maps + [maps[0]]), context: Levels.shipped)
    #expect(copies.map(\.width) == [64, 32, 0, 64] && copies.allSatisfy { $0.hooks == 1 } && copies[3] === copies[0])
  }
}
