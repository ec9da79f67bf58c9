public import GameWorlds

/// The dungeon for Foundation's encoders: Codable keeps no references, so that each hero carries the place of whom it chases. The mirror
/// is made before the clock starts, and what is decoded stays a mirror; both are in the peers' favor.
public struct CodableDungeon: Codable, Sendable {
  var level: Int
  var name: String
  var heroes: [CodableHero]

  public init(_ dungeon: Dungeon) {
    level = dungeon.level
    name = dungeon.name
    heroes = zip(dungeon.heroes, dungeon.targets).map { CodableHero($0, target: $1 < 0 ? nil : $1) }
  }

  public var dungeon: Dungeon {
    let all = heroes.map {
      Hero(type: $0.type, name: $0.name, position: $0.position, health: $0.health, inventory: $0.inventory)
    }
    for (hero, mirror) in zip(all, heroes) { hero.target = mirror.target.map { all[$0] } }
    return Dungeon(level: level, name: name, heroes: all)
  }
}

struct CodableHero: Codable, Sendable {
  var type: Int
  var name: String
  var position: SIMD2<Float>
  var health: Int
  var inventory: [Item]
  var target: Int?

  init(_ hero: Hero, target: Int?) {
    type = hero.type
    name = hero.name
    position = hero.position
    health = hero.health
    inventory = hero.inventory
    self.target = target
  }
}
