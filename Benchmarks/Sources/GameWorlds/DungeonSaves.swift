import BenchmarkKit
import Foundation
public import Keepsake

/// A dungeon of 10,000 heroes of whom a hundred moved since the last save, made durable in different ways, each in a
/// folder of its own.
public final class DungeonSaves {
  public enum Way: String, CaseIterable {
    /// `capture`, then a wait until it is durable.
    case keepsake
    /// JSONEncoder, and Foundation's atomic write.
    case json
    /// The whole archive into a file beside, synced, renamed, and the folder synced: what is durable without a
    /// database.
    case wholeFile = "whole-file"

    public var title: String {
      switch self {
      case .keepsake: "Keepsake"
      case .json: "JSON, atomic write"
      case .wholeFile: "whole archive, fsync and rename"
      }
    }
  }

  public static let heroes = DungeonGroup.heroes
  public static let changed = heroes / 100

  private let way: Way
  private let folder: URL
  private let slot = Slot<Dungeon>("main")
  private let game: GameData?
  private var dungeon = Dungeon.sample(heroes: DungeonSaves.heroes)
  /// Made before any clock starts, and changed like the dungeon, in JSON's favor.
  private var mirror: CodableDungeon?
  private var random = SeededRandom(seed: 7)

  public init(_ way: Way) throws {
    self.way = way
    folder = FileManager.default.temporaryDirectory.appending(
      path: "keepsake-benchmark-\(way.rawValue)-\(ProcessInfo.processInfo.processIdentifier)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    game = way == .keepsake ? try GameData.open("benchmark", at: folder.appending(path: "game")) : nil
    if way == .json { mirror = CodableDungeon(dungeon) }
  }

  /// A hundred heroes take a step and lose some health.
  public func play() {
    for _ in 0..<Self.changed {
      let index = random.below(Self.heroes)
      let hero = dungeon.heroes[index]
      hero.position += SIMD2(Float(random.below(32)) / 16 - 1, Float(random.below(32)) / 16 - 1)
      hero.health = 1 + random.below(120)
      mirror?.heroes[index].position = hero.position
      mirror?.heroes[index].health = hero.health
    }
  }

  /// Returns when the save is as durable as this way makes it.
  public func save() throws {
    switch way {
    case .keepsake: try capture()?.wait()
    case .json: try JSONEncoder().encode(mirror).write(to: file, options: .atomic)
    case .wholeFile: try DurableFile.write(try Archive.encode(dungeon), to: file)
    }
  }

  /// The part of `save` that the game's own thread pays.
  @discardableResult
  public func capture() throws -> Pending<Version>? { try game?.saves.capture(dungeon, to: slot) }

  /// Closes, checks that what was saved last comes back, removes the folder.
  public func finish() throws {
    switch way {
    case .keepsake:
      try BenchmarkError.require(try game?.saves.load(slot)?.equals(dungeon) == true, "Keepsake lost the last save")
    case .json:
      let read = try JSONDecoder().decode(CodableDungeon.self, from: Data(contentsOf: file))
      try BenchmarkError.require(read.dungeon.equals(dungeon), "JSON lost the last save")
    case .wholeFile:
      let read = try Archive.decode(Dungeon.self, from: Data(contentsOf: file))
      try BenchmarkError.require(read.equals(dungeon), "The file lost the last save")
    }
    try game?.close()
    try FileManager.default.removeItem(at: folder)
  }

  private var file: URL { folder.appending(path: "save") }
}
