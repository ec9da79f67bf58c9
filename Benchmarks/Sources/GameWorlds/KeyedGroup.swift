import BenchmarkKit
import Foundation
import Keepsake

/// NSKeyedArchiver, which keeps references as Keepsake does. On Linux its time grows with the square of the objects,
/// hence fewer of them.
public enum KeyedGroup {
  public static let name = "keyed"
  static let heroes = 1_000
  /// One run takes about as long as all other encoders' together.
  public static let rounds = 2

  public static func tasks() throws -> [TimedTask] {
    let dungeon = Dungeon.sample(heroes: heroes)
    let archive = try Archive.encode(dungeon)
    try BenchmarkError.require(try Archive.decode(Dungeon.self, from: archive).equals(dungeon), "The archive lost data")
    let keyed = KeyedDungeon(dungeon)
    let encoded = try keyed.archived()
    try BenchmarkError.require(
      try KeyedDungeon.unarchived(encoded)?.dungeon.equals(dungeon) == true, "NSKeyedArchiver lost data")
    return [
      TimedTask("Keepsake", "encode", bytes: archive) { try Archive.encode(dungeon) },
      TimedTask("NSKeyedArchiver", "encode", bytes: encoded) { try keyed.archived() },
      TimedTask("Keepsake", "decode", bytes: archive) { try Archive.decode(Dungeon.self, from: archive) },
      TimedTask("NSKeyedArchiver", "decode", bytes: encoded) { try KeyedDungeon.unarchived(encoded) },
    ]
  }
}
