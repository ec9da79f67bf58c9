public import Keepsake

/// The dungeon of a later version of the game: fields added, removed, moved and widened.
@Archivable(name: "Dungeon")
public struct ChangedDungeon {
  public var name: String
  public var difficulty = 2
  public var level: Int
  public var heroes: [ChangedHero]
}

@Archivable(name: "Hero")
public final class ChangedHero {
  public var name: String
  public var type: Int
  public var health: Int
  public var mana = 5
  public var position: SIMD2<Float>
  public var inventory: [ChangedItem]
  public var target: ChangedHero?
}

@Archivable(name: "Item")
public struct ChangedItem {
  public var durability: Double
  public var kind: Int
  public var quality = 3
}

extension ChangedDungeon {
  /// Whether this is what the dungeon's fields become, with defaults for what it didn't have.
  public func stems(from dungeon: Dungeon) -> Bool {
    guard level == dungeon.level, name == dungeon.name, difficulty == 2, heroes.count == dungeon.heroes.count else { return false }
    let places = Dictionary(heroes.enumerated().map { (ObjectIdentifier($1), $0) }) { first, _ in first }
    let targets = dungeon.targets
    return heroes.indices.allSatisfy { index in
      let (hero, old) = (heroes[index], dungeon.heroes[index])
      return hero.name == old.name && hero.type == old.type && hero.health == old.health && hero.mana == 5
        && hero.position == old.position
        && hero.inventory.elementsEqual(old.inventory) {
          $0.durability == $1.durability && $0.kind == Int($1.kind) && $0.quality == 3
        }
        && (hero.target.map { places[ObjectIdentifier($0)] ?? -2 } ?? -1) == targets[index]
    }
  }
}
