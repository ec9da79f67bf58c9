import Keepsake

/// The dungeon of a later version of the game: fields added, removed, moved and widened.
@Archivable(name: "Dungeon")
struct ChangedDungeon {
  var name: String
  var difficulty = 2
  var level: Int
  var heroes: [ChangedHero]
}

@Archivable(name: "Hero")
final class ChangedHero {
  var name: String
  var type: Int
  var health: Int
  var mana = 5
  var position: SIMD2<Float>
  var inventory: [ChangedItem]
  var target: ChangedHero?
}

@Archivable(name: "Item")
struct ChangedItem {
  var durability: Double
  var kind: Int
  var quality = 3
}

extension ChangedDungeon {
  /// Whether this is what the dungeon's fields become, with defaults for what it didn't have.
  func stems(from dungeon: Dungeon) -> Bool {
    guard level == dungeon.level, name == dungeon.name, difficulty == 2, heroes.count == dungeon.heroes.count else {
      return false
    }
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
