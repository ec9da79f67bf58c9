import Keepsake

/// The first world: heroes as objects, each with a few items, many of them chasing one of a few others.
///
/// References lead to the first heroes only, so that they are shared and still form no cycle: Swift frees the world
/// again.
@Archivable
struct Dungeon {
  var level: Int
  var name: String
  var heroes: [Hero]
}

@Archivable
final class Hero {
  var type: Int
  var name: String
  var position: SIMD2<Float>
  var health: Int
  var inventory: [Item]
  var target: Hero?
  /// Where the hand-written encoders keep an object's number, which spares them a table.
  @Unsaved public var number: UInt32 = 0

  init(type: Int, name: String, position: SIMD2<Float>, health: Int, inventory: [Item]) {
    self.type = type
    self.name = name
    self.position = position
    self.health = health
    self.inventory = inventory
  }
}

@Archivable
struct Item: Codable, Equatable, Sendable {
  var kind: Int32
  var count: Int
  var durability: Double
}

extension Dungeon {
  /// As many heroes as others chase.
  static let chased = 64

  /// A dungeon with this many heroes and on average four items each, the same every time.
  static func sample(heroes count: Int) -> Dungeon {
    var random = SeededRandom(seed: 2_026)
    var heroes: [Hero] = []
    heroes.reserveCapacity(count)
    for index in 0..<count {
      let inventory = (0..<(2 + index % 5)).map { _ in
        Item(
          kind: Int32(random.below(60)), count: random.happens(70) ? 1 : 1 + random.below(250),
          durability: Double(random.below(101)) / 100)
      }
      let hero = Hero(
        type: random.below(12), name: name(index, &random),
        position: SIMD2(Float(random.below(640 * 16)) / 16, Float(random.below(480 * 16)) / 16),
        health: 1 + random.below(120), inventory: inventory)
      if index >= chased, random.happens(60) { hero.target = heroes[random.below(chased)] }
      heroes.append(hero)
    }
    return Dungeon(level: 7, name: "The Deep", heroes: heroes)
  }

  private static let names = [
    "Ari", "Brokk", "Celandine", "Dag", "Eskil", "Fenja", "Grimtooth", "Hild", "Ingrid", "Jorund", "Ketil", "Lif",
    "Mórag", "Njal",
    "Oswin", "Påske",
  ]
  private static let titles = [
    "the Grey", "the Unwashed", "of the Nine Cellars", "Ironshoe", "Halfpenny", "the Younger",
  ]

  private static func name(_ index: Int, _ random: inout SeededRandom) -> String {
    let first = random.pick(names)
    if random.happens(25) { return "\(first) \(random.pick(titles))" }
    return random.happens(50) ? "\(first) \(index)" : first
  }

  /// Whether two dungeons hold the same values, with the same heroes chasing the same.
  func equals(_ other: Dungeon) -> Bool {
    guard level == other.level, name == other.name, heroes.count == other.heroes.count else { return false }
    let mine = targets
    let others = other.targets
    return heroes.indices.allSatisfy { index in
      let (hero, twin) = (heroes[index], other.heroes[index])
      return hero.type == twin.type && hero.name == twin.name && hero.position == twin.position
        && hero.health == twin.health
        && hero.inventory == twin.inventory && mine[index] == others[index]
    }
  }

  /// For each hero, which one it chases, as a place in `heroes`; -1 for none.
  var targets: [Int] {
    let places = Dictionary(heroes.enumerated().map { (ObjectIdentifier($1), $0) }) { first, _ in first }
    return heroes.map { hero in hero.target.map { places[ObjectIdentifier($0)] ?? -2 } ?? -1 }
  }
}
