import Foundation

/// The dungeon for NSKeyedArchiver, which keeps references itself: objects of Foundation's kind, one for each hero and
/// item.
final class KeyedDungeon: NSObject, NSSecureCoding {
  static var supportsSecureCoding: Bool { true }
  private let level: Int
  private let name: String
  private let heroes: [KeyedHero]

  init(_ dungeon: Dungeon) {
    level = dungeon.level
    name = dungeon.name
    let all = dungeon.heroes.map(KeyedHero.init(_:))
    for (hero, target) in zip(all, dungeon.targets) where target >= 0 { hero.target = all[target] }
    heroes = all
  }

  required init?(coder: NSCoder) {
    guard let name = coder.decodeObject(of: NSString.self, forKey: "name"),
      let heroes = coder.decodeObject(of: [NSArray.self, KeyedHero.self], forKey: "heroes") as? [KeyedHero]
    else { return nil }
    level = coder.decodeInteger(forKey: "level")
    self.name = name as String
    self.heroes = heroes
  }

  func encode(with coder: NSCoder) {
    coder.encode(level, forKey: "level")
    coder.encode(name as NSString, forKey: "name")
    coder.encode(heroes as NSArray, forKey: "heroes")
  }

  func archived() throws -> Data { try NSKeyedArchiver.archivedData(withRootObject: self, requiringSecureCoding: true) }

  static func unarchived(_ data: Data) throws -> KeyedDungeon? {
    try NSKeyedUnarchiver.unarchivedObject(ofClass: KeyedDungeon.self, from: data)
  }

  var dungeon: Dungeon {
    let places = Dictionary(uniqueKeysWithValues: heroes.enumerated().map { (ObjectIdentifier($1), $0) })
    let all = heroes.map(\.hero)
    for (hero, keyed) in zip(all, heroes) {
      hero.target = keyed.target.flatMap { places[ObjectIdentifier($0)] }.map { all[$0] }
    }
    return Dungeon(level: level, name: name, heroes: all)
  }
}

final class KeyedHero: NSObject, NSSecureCoding {
  static var supportsSecureCoding: Bool { true }
  let type: Int
  let name: String
  let position: SIMD2<Float>
  let health: Int
  let inventory: [KeyedItem]
  var target: KeyedHero?

  init(_ hero: Hero) {
    type = hero.type
    name = hero.name
    position = hero.position
    health = hero.health
    inventory = hero.inventory.map(KeyedItem.init(_:))
  }

  required init?(coder: NSCoder) {
    guard let name = coder.decodeObject(of: NSString.self, forKey: "name"),
      let inventory = coder.decodeObject(of: [NSArray.self, KeyedItem.self], forKey: "inventory") as? [KeyedItem]
    else { return nil }
    type = coder.decodeInteger(forKey: "type")
    self.name = name as String
    position = SIMD2(coder.decodeFloat(forKey: "x"), coder.decodeFloat(forKey: "y"))
    health = coder.decodeInteger(forKey: "health")
    self.inventory = inventory
    target = coder.decodeObject(of: KeyedHero.self, forKey: "target")
  }

  func encode(with coder: NSCoder) {
    coder.encode(type, forKey: "type")
    coder.encode(name as NSString, forKey: "name")
    coder.encode(position.x, forKey: "x")
    coder.encode(position.y, forKey: "y")
    coder.encode(health, forKey: "health")
    coder.encode(inventory as NSArray, forKey: "inventory")
    coder.encode(target, forKey: "target")
  }

  /// The hero without whom it chases.
  var hero: Hero { Hero(type: type, name: name, position: position, health: health, inventory: inventory.map(\.item)) }
}

final class KeyedItem: NSObject, NSSecureCoding {
  static var supportsSecureCoding: Bool { true }
  let item: Item

  init(_ item: Item) { self.item = item }

  required init?(coder: NSCoder) {
    item = Item(
      kind: coder.decodeInt32(forKey: "kind"), count: coder.decodeInteger(forKey: "count"),
      durability: coder.decodeDouble(forKey: "durability"))
  }

  func encode(with coder: NSCoder) {
    coder.encode(item.kind, forKey: "kind")
    coder.encode(item.count, forKey: "count")
    coder.encode(item.durability, forKey: "durability")
  }
}
