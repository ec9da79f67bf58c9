import Foundation
import KeepsakeArchive
import KeepsakeInterchange
import Testing

/// A new game's types for the objects that an old game saved.
private enum Game {
  class Character: Codable {
    var name: String
    var health: Double

    enum CodingKeys: String, CodingKey {
      case name = "_name"
      case health = "_health"
    }
  }

  final class Boss: Character {
    let rage: Int
    let minions: [Character]

    private enum BossKeys: String, CodingKey {
      case rage = "_rage"
      case minions = "_minions"
    }

    required init(from decoder: any Decoder) throws {
      let values = try decoder.container(keyedBy: BossKeys.self)
      rage = try values.decode(Int.self, forKey: .rage)
      minions = try values.decode([Character].self, forKey: .minions)
      try super.init(from: values.superDecoder())
    }
  }

  struct World: Codable {
    var characters: [Character]
    var favourite: Character?
    var byName: [String: Character]
    var scores: [Int: Double]
    var tags: Set<String>
    var position: CGPoint
    var frame: CGRect
    var span: [Int]
    var home: URL?
    var id: UUID
    var gold: Decimal
    var started: Date
    var photo: Data
    var isHard: Bool
    var nothing: String?
  }

  static var classes: [String: any Decodable.Type] {
    ["Character": Character.self, "Boss": Boss.self, "World": World.self]
  }
}

struct KeyedArchiveTests {
  /// A hand-made archive of these objects, in this order; the first one is the top-level object.
  static func archive(_ objects: [PropertyList], top: PropertyList = ["root": .uid(1)]) -> PropertyList {
    ["$version": 100_000, "$archiver": "NSKeyedArchiver", "$top": top, "$objects": .array(["$null"] + objects)]
  }

  static func name(_ names: String...) -> PropertyList {
    ["$classname": .string(names[0]), "$classes": .array(names.map { .string($0) } + ["NSObject"])]
  }

  private static let world: PropertyList = archive([
    [  // 1
      "characters": .uid(2), "favourite": .uid(4), "byName": .uid(7), "scores": .uid(10), "tags": .uid(11),
      "position": .uid(12),
      "frame": .uid(13), "span": .uid(15), "home": .uid(17), "id": .uid(19), "gold": .uid(21), "started": .uid(23),
      "photo": .uid(25),
      "isHard": true, "nothing": .uid(0), "ignored": .uid(35), "$class": .uid(27),
    ],
    ["NS.objects": [.uid(3), .uid(4), .uid(3)], "$class": .uid(28)],  // 2
    ["_name": .uid(5), "_health": 1, "$class": .uid(29)],  // 3
    ["_name": .uid(6), "_health": 0.5, "_rage": 7.0, "_minions": .uid(2 + 31), "$class": .uid(30)],  // 4
    "Ann", ["NS.string": "Grim", "$class": .uid(31)],  // 5, 6
    ["NS.keys": [.uid(5)], "NS.objects": [.uid(3)], "$class": .uid(32)],  // 7
    1, 2.5,  // 8, 9
    ["NS.keys": [.uid(8)], "NS.objects": [.uid(9)], "$class": .uid(32)],  // 10
    ["NS.objects": [.uid(5), .uid(6)], "$class": ["$classname": "x"]],  // 11: its class is replaced below
    "{3, -4.5}", ["NS.rectval": .uid(14), "NS.special": 3, "$class": .uid(34)], "{{1, 2}, {3, 4}}",  // 12, 13, 14
    ["NS.rangeval.location": .uid(8), "NS.rangeval.length": .uid(16), "$class": .uid(34)], 40,  // 15, 16
    ["NS.base": .uid(18), "NS.relative": "level/1", "$class": .uid(36)],  // 17
    ["NS.base": .uid(0), "NS.relative": "https://example.com/game/", "$class": .uid(36)],  // 18
    ["NS.uuidbytes": .data(Data(1...16)), "$class": .uid(20)], name("NSUUID"),  // 19, 20
    [  // 21
      "NS.exponent": -2, "NS.length": 2, "NS.negative": true, "NS.compact": true, "NS.mantissa.bo": 1,
      "NS.mantissa": .data(Data([0x40, 0xE2, 0x01, 0x00] + [UInt8](repeating: 0, count: 12))), "$class": .uid(22),
    ],
    name("NSDecimalNumber", "NSNumber", "NSValue"),  // 22
    ["NS.time": 12.5, "$class": .uid(24)], name("NSDate"),  // 23, 24
    ["NS.data": .data(Data([9, 8])), "$class": .uid(26)], name("NSMutableData", "NSData"), name("World"),
    name("NSArray"),  // 25 to 28
    name("Character"), name("Boss", "Character"),  // 29, 30
    name("NSMutableString", "NSString"), name("NSDictionary"),  // 31, 32
    ["NS.objects": [.uid(3)], "$class": .uid(28)], name("NSValue"),  // 33, 34
    ["secret": 1, "$class": .uid(37)], name("NSURL"), name("Unknown"),  // 35 to 37
    name("NSSet"),  // 38
  ])

  /// The archive `world` with the right class for object 11, which is easier to insert here.
  private static var data: Data {
    get throws {
      var entries = try #require(world.dictionary)
      let place = try #require(entries.firstIndex { $0.key == "$objects" })
      guard case .array(var objects) = entries[place].value else { return Data() }
      objects[11] = ["NS.objects": [.uid(5), .uid(6)], "$class": .uid(38)]
      entries[place].value = .array(objects)
      return try PropertyList.dictionary(entries).encoded(as: .binary)
    }
  }

  @Test("an old game's objects decode as a new game's types, with the values of Foundation's classes")
  func decode() throws {
    let world = try KeyedArchive.decode(Game.World.self, from: Self.data, classes: Game.classes)
    #expect(world.characters.map(\.name) == ["Ann", "Grim", "Ann"])
    let boss = try #require(world.characters[1] as? Game.Boss, "a subclass was decoded as its superclass")
    #expect(boss.rage == 7 && boss.health == 0.5)
    #expect(world.characters[0] === world.characters[2], "one object became two")
    #expect(
      world.favourite === boss && boss.minions.first === world.characters[0]
        && world.byName["Ann"] === world.characters[0])
    #expect(world.scores == [1: 2.5])
    #expect(world.tags == ["Ann", "Grim"])
    #expect(world.position == CGPoint(x: 3, y: -4.5))
    #expect(world.frame == CGRect(x: 1, y: 2, width: 3, height: 4))
    #expect(world.span == [1, 40])
    #expect(world.home?.absoluteString == "https://example.com/game/level/1")
    #expect(world.id.uuidString == "01020304-0506-0708-090A-0B0C0D0E0F10")
    #expect(world.gold == Decimal(string: "-1234.56"))
    #expect(world.started == Date(timeIntervalSinceReferenceDate: 12.5))
    #expect(world.photo == Data([9, 8]))
    #expect(world.isHard && world.nothing == nil)
  }

  @Test("an object of an unlisted class is decoded as its listed superclass; without one, the error has its path")
  func unnamed() throws {
    var classes = Game.classes
    classes["Boss"] = nil
    // Its superclass is listed, so a Boss is decoded as a Character.
    let world = try KeyedArchive.decode(Game.World.self, from: Self.data, classes: classes)
    #expect(world.characters[1].name == "Grim" && !(world.characters[1] is Game.Boss))
    classes["Character"] = nil
    let error = #expect(throws: PropertyListError.self) {
      try KeyedArchive.decode(Game.World.self, from: Self.data, classes: classes)
    }
    #expect(error?.code == .unknownClass)
    #expect(error?.path == "characters[0]")
    let none = #expect(throws: PropertyListError.self) { try KeyedArchive.decode(Game.World.self, from: Self.data) }
    #expect(none?.code == .unknownClass)
    classes = ["World": Game.World.self, "Character": Game.World.self, "Boss": Game.World.self]
    #expect(throws: PropertyListError.self) {
      try KeyedArchive.decode(Game.World.self, from: Self.data, classes: classes)
    }
  }

  @Test("a tree has every object once, and keeps shared collections and cycles")
  func tree() throws {
    let tree = try KeyedArchive(Self.data).tree()
    guard case .reference(let root) = tree.top["root"] else {
      Issue.record("the root isn't an object: \(tree.top)")
      return
    }
    #expect(tree.classes[tree.objects[root].type].name == "World")
    // World, Ann, Grim and the unknown one.
    #expect(tree.objects.count == 4)
    let fields = Dictionary(uniqueKeysWithValues: tree.objects[root].fields.map { ($0.key, $0.value) })
    guard case .array(let characters) = fields["characters"] else {
      Issue.record("\(tree)")
      return
    }
    #expect(characters.count == 3 && characters[0] == characters[2] && characters[1] == fields["favourite"])
    #expect(
      fields["position"] == .string("{3, -4.5}") && fields["gold"] == .decimal("-1234.56")
        && fields["nothing"] == ArchiveValue.none)
    let circle = Self.archive([
      ["NS.objects": [.uid(1), .uid(3), .uid(3)], "$class": .uid(2)], Self.name("NSMutableArray", "NSArray"),
      ["NS.objects": [], "$class": .uid(2)],
    ])
    let cyclic = try KeyedArchive(circle).tree()
    guard case .reference(let first) = cyclic.top["root"],
      case .array(let elements) = cyclic.objects[first].fields.first?.value
    else {
      Issue.record("\(cyclic)")
      return
    }
    #expect(elements[0] == .reference(first))
    #expect(elements[1] == elements[2] && elements[1] != elements[0])
    #expect(cyclic.objects.count == 2)
    // Dictionaries that aren't objects can form a cycle, too.
    let plain = try KeyedArchive(Self.archive([["self": .uid(1), "other": .uid(2)], ["back": .uid(1)]])).tree()
    #expect(plain.top["root"] == .reference(0) && plain.objects[0].fields.first?.value == .reference(0))
  }

  @Test("references that form a cycle are a typed error for Codable types, also in values of Foundation's classes")
  func cycle() throws {
    struct Node: Decodable { var next: [Node]? }
    let list = Self.archive([
      ["next": .uid(2), "$class": .uid(3)], ["NS.objects": [.uid(1)], "$class": .uid(4)], Self.name("Node"),
      Self.name("NSArray"),
    ])
    let error = #expect(throws: PropertyListError.self) {
      try KeyedArchive(list).decode(Node.self, classes: ["Node": Node.self])
    }
    #expect(error?.code == .cycle)
    // Values of Foundation's classes that refer to themselves.
    for key in ["NS.data", "NS.string", "NS.relative", "NS.rectval", "NSString"] {
      for name in ["NSData", "NSString", "NSURL", "NSValue", "NSAttributedString"] {
        let forged = Self.archive([
          .dictionary([.init(key, .uid(1)), .init("NS.base", .uid(1)), .init("$class", .uid(2))]), Self.name(name),
        ])
        _ = try KeyedArchive(forged).tree()
        #expect(throws: PropertyListError.self) { try KeyedArchive(forged).decode(String.self) }
      }
    }
  }

  @Test("top-level values under other keys, keys with a $ and archives nested in data are decoded")
  func places() throws {
    struct Level: Decodable, Equatable {
      enum CodingKeys: String, CodingKey {
        case one = "$0"
        case name
      }
      var one: Int
      var name: String
    }
    let inner = Self.archive([["$$0": 5, "name": .uid(2), "$class": .uid(3)], "deep", Self.name("Game.Level")])
    let outer = try Self.archive(
      [.data(inner.encoded(as: .xml)), "text"], top: ["$0": .uid(1), "$1": .uid(2), "flag": true])
    let archive = try KeyedArchive(outer)
    #expect(
      try archive.decode(Level.self, key: "$0", classes: ["Game.Level": Level.self]) == Level(one: 5, name: "deep"))
    #expect(try archive.decode(String.self, key: "$1") == "text")
    #expect(try archive.decode(Bool.self, key: "flag"))
    let error = #expect(throws: PropertyListError.self) { try archive.decode(Bool.self) }
    #expect(error?.code == .missingValue)
  }

  @Test("a mismatching or missing value is an error with its path")
  func mismatch() throws {
    struct Item: Decodable { var count: UInt8 }
    struct Bag: Decodable { var items: [Item] }
    func bag(_ count: PropertyList?) -> PropertyList {
      let item: [PropertyList.Entry] = (count.map { [.init("count", $0)] } ?? []) + [.init("$class", .uid(5))]
      return Self.archive([
        ["items": .uid(2), "$class": .uid(4)], ["NS.objects": [.uid(3)], "$class": .uid(6)], .dictionary(item),
        Self.name("Bag"),
        Self.name("Item"),
        Self.name("NSArray"),
      ])
    }
    let classes: [String: any Decodable.Type] = ["Bag": Bag.self, "Item": Item.self]
    #expect(try KeyedArchive(bag(255)).decode(Bag.self, classes: classes).items[0].count == 255)
    for (value, code) in [
      (256, .mismatch), (-1, .mismatch), (1.5, .mismatch), ("ten", .mismatch), (.uid(0), .missingValue),
      (nil, .missingValue),
    ]
      as [(PropertyList?, PropertyListError.Code)]
    {
      let error = #expect(throws: PropertyListError.self) {
        try KeyedArchive(bag(value)).decode(Bag.self, classes: classes)
      }
      #expect(error?.code == code)
      #expect(error?.path == "items[0].count")
    }
  }

  @Test("a type that reads a list element by element gets each of them, and nil where the archive has nil")
  func elements() throws {
    struct Bag: Decodable {
      var items: [String?] = []

      init(from decoder: any Decoder) throws {
        var list = try decoder.unkeyedContainer()
        while !list.isAtEnd { items.append(try list.decodeIfPresent(String.self)) }
      }
    }
    let list = Self.archive([
      ["NS.objects": [.uid(3), .uid(0), .uid(4)], "$class": .uid(2)], Self.name("NSArray"), "sword", "key",
    ])
    #expect(try KeyedArchive(list).decode(Bag.self).items == ["sword", nil, "key"])
  }

  @Test("property lists that aren't keyed archives, and invalid references, are typed errors")
  func refused() throws {
    for list in [[:], ["$objects": [], "$top": [:]], "text"] as [PropertyList] {
      let error = #expect(throws: PropertyListError.self) { try KeyedArchive(list) }
      #expect(error?.code == .notAKeyedArchive)
    }
    for object in [["$class": .uid(9)], ["$class": "x"], ["$class": .uid(0)], ["$class": .uid(1)], .uid(7), .uid(1)]
      as [PropertyList]
    {
      let archive = try KeyedArchive(Self.archive([object]))
      let error = #expect(throws: PropertyListError.self) { try archive.tree() }
      #expect(error?.code == .damaged)
      #expect(throws: PropertyListError.self) { try archive.decode([Int].self) }
    }
  }

  @Test("every altered byte gives a value or a typed error, both as a tree and as a type")
  func damage() throws {
    let list = Self.archive([
      ["a": .uid(2), "b": 1, "$class": .uid(4)], ["NS.keys": [.uid(3)], "NS.objects": [.uid(1)], "$class": .uid(5)],
      "key",
      Self.name("Node"),
      Self.name("NSDictionary"),
    ])
    struct Node: Decodable { var a: [String: Node]?, b: Int }
    let bytes = try list.encoded(as: .binary)
    for index in bytes.indices {
      for value in [0, 1, 0x0F, 0x51, 0x80, 0xA1, 0xD1, 0xFF, bytes[index] ^ 1, bytes[index] &+ 1] {
        var altered = bytes
        altered[index] = value
        do { _ = try KeyedArchive(altered).tree() } catch is PropertyListError {}
        do {
          _ = try KeyedArchive.decode(Node.self, from: altered, classes: ["Node": Node.self])
        } catch is PropertyListError {}
      }
    }
  }
}
