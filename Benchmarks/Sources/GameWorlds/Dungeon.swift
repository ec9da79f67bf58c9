public import Keepsake

/// A dungeon with many characters, each with a few items: the same types go through the archive and through Codable.
@Archivable
public struct Dungeon: Codable {
  public var level = 7
  public var name = "The Deep"
  public var characters: [Character] = []

  @Archivable
  public struct Character: Codable {
    public var type = 0
    public var name = ""
    public var position = SIMD2<Float>(0, 0)
    public var health = 100
    public var inventory: [Item] = []
  }

  @Archivable
  public struct Item: Codable {
    public var kind = 0
    public var count = 1
    public var durability = 1.0
  }

  /// A dungeon with this many characters and four items each, the same every time.
  public static func sample(characters count: Int) -> Dungeon {
    var dungeon = Dungeon()
    for index in 0..<count {
      var character = Character()
      character.type = index % 7
      character.name = "goblin \(index)"
      character.position = SIMD2(Float(index % 640), Float(index / 640))
      character.health = 100 - index % 60
      for slot in 0..<4 {
        var item = Item()
        item.kind = (index + slot) % 40
        item.count = slot + 1
        item.durability = Double(index % 10) / 10
        character.inventory.append(item)
      }
      dungeon.characters.append(character)
    }
    return dungeon
  }
}
