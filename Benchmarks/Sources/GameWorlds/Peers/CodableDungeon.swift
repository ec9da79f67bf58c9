/// The dungeon for Foundation's encoders: Codable keeps no references, so that each hero carries the place of whom it
/// chases. The mirror is made before the clock starts, and what is decoded stays a mirror; both are in the peers'
/// favor.
struct CodableDungeon: Codable, Sendable {
  var level: Int
  var name: String
  var heroes: [CodableHero]

  init(_ dungeon: Dungeon) {
    level = dungeon.level
    name = dungeon.name
    heroes = zip(dungeon.heroes, dungeon.targets).map { CodableHero($0, target: $1 < 0 ? nil : $1) }
  }

  var dungeon: Dungeon {
    let all = heroes.map(\.hero)
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

  /// Without whom it chases.
  var hero: Hero { Hero(type: type, name: name, position: position, health: health, inventory: inventory) }
}
