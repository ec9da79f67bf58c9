import Foundation
import GameWorlds
import Keepsake
import Peers

/// NSKeyedArchiver, which keeps references as Keepsake does. On Linux its time grows with the square of the objects, hence fewer of them.
struct KeyedGroup {
  static let name = "keyed"
  static let heroes = 1_000
  /// One run takes about as long as all other encoders' together.
  private static let rounds = 2

  static func run(_ runner: inout Runner) throws {
    let dungeon = Dungeon.sample(heroes: heroes)
    let archive = try Archive.encode(dungeon)
    try BenchmarkError.require(try Archive.decode(Dungeon.self, from: archive).equals(dungeon), "The archive lost data")
    let keyed = KeyedDungeon(dungeon)
    let encoded = try keyed.archived()
    try BenchmarkError.require(
      try KeyedDungeon.unarchived(encoded)?.dungeon.equals(dungeon) == true, "NSKeyedArchiver lost data")
    try runner.measure(
      name, rounds: rounds,
      [
        Task("Keepsake", "encode", bytes: archive) { try Archive.encode(dungeon) },
        Task("NSKeyedArchiver", "encode", bytes: encoded) { try keyed.archived() },
        Task("Keepsake", "decode", bytes: archive) { try Archive.decode(Dungeon.self, from: archive) },
        Task("NSKeyedArchiver", "decode", bytes: encoded) { try KeyedDungeon.unarchived(encoded) },
      ])
  }
}
