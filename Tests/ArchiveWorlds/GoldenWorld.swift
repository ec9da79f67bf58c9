import KeepsakeArchive

enum GoldenWorld {
  /// The world of the golden file.
  static func make() -> Pair<World, Everything> {
    let boss = Boss(type: 5, name: "boss")
    boss.rage = 300
    let hero = Creature(type: -1, name: "Held 🗡️")
    hero.inventory = [Item(kind: 3), Item(kind: 4, count: 900, durability: 0.25)]
    hero.target = boss
    boss.friends = [hero, boss]
    let world = World(
      creatures: [hero, boss, Minion(master: boss)],
      events: [.idle, .moved(to: [1, -2]), .said("x", nil), .both(.idle, .said("y", 7))], name: "golden")
    return Pair(first: world, second: Everything())
  }
}
