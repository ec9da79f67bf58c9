import Foundation
import KeepsakeInterchange
import Testing

/// A class of an old game for Foundation's archiver, which can't find private classes.
final class OldHero: NSObject, NSSecureCoding {
  static var supportsSecureCoding: Bool { true }
  var name = "", level = 0, health = 0.0, isHard = false
  var items: [String] = []
  var scores: [String: Int] = [:]
  var started = Date(timeIntervalSinceReferenceDate: 0)
  var photo = Data()
  var id = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
  var friend: OldHero?
  var nothing: String?

  override init() {}

  init?(coder: NSCoder) {
    name = coder.decodeObject(of: NSString.self, forKey: "name") as String? ?? "?"
    level = coder.decodeInteger(forKey: "level")
    health = coder.decodeDouble(forKey: "health")
    isHard = coder.decodeBool(forKey: "isHard")
    items = coder.decodeObject(of: [NSArray.self, NSString.self], forKey: "items") as? [String] ?? ["?"]
    let scores =
      coder.decodeObject(of: [NSDictionary.self, NSString.self, NSNumber.self], forKey: "scores") as? [String: Any]
    self.scores = scores?.mapValues { ($0 as? NSNumber)?.intValue ?? $0 as? Int ?? -1 } ?? ["?": 0]
    started = coder.decodeObject(of: NSDate.self, forKey: "started") as Date? ?? .distantPast
    photo = coder.decodeObject(of: NSData.self, forKey: "photo") as Data? ?? Data([0xBA, 0xD0])
    id =
      coder.decodeObject(of: NSUUID.self, forKey: "id") as UUID?
      ?? UUID(uuid: uuid_t(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    friend = coder.decodeObject(of: OldHero.self, forKey: "friend")
    nothing = coder.decodeObject(of: NSString.self, forKey: "nothing") as String?
  }

  func encode(with coder: NSCoder) {
    coder.encode(name as NSString, forKey: "name")
    coder.encode(level, forKey: "level")
    coder.encode(health, forKey: "health")
    coder.encode(isHard, forKey: "isHard")
    coder.encode(NSArray(array: items.map { $0 as NSString }), forKey: "items")
    coder.encode(NSDictionary(dictionary: scores.mapValues { NSNumber(value: $0) }), forKey: "scores")
    coder.encode(started as NSDate, forKey: "started")
    coder.encode(photo as NSData, forKey: "photo")
    coder.encode(id as NSUUID, forKey: "id")
    coder.encode(friend, forKey: "friend")
    coder.encode(nothing as NSString?, forKey: "nothing")
  }
}

/// The same class in the new game.
private final class NewHero: Codable, Equatable {
  var name = "Ünal", level = 12, health = 0.75, isHard = true
  var items = ["sword", "key", "sword"]
  var scores = ["one": 1, "two": 2_000_000_000_000]
  var started = Date(timeIntervalSinceReferenceDate: 700_000_000.25)
  var photo = Data(0...255)
  var id = UUID(uuid: (9, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
  var friend: NewHero?
  var nothing: String?

  init() {}

  static func == (a: NewHero, b: NewHero) -> Bool {
    a.name == b.name && a.level == b.level && a.health == b.health && a.isHard == b.isHard && a.items == b.items
      && a.scores == b.scores
      && a.started == b.started && a.photo == b.photo && a.id == b.id && a.friend == b.friend && a.nothing == b.nothing
  }
}

struct KeyedWritingTests {
  private static var classes: [String: any Codable.Type] { ["Hero": NewHero.self] }

  private static func hero() -> NewHero {
    let hero = NewHero()
    hero.friend = NewHero()
    hero.friend?.name = "Ann"
    return hero
  }

  @Test(
    "an object that we write is read by Foundation's unarchiver with secure coding",
    arguments: PropertyList.Format.allCases)
  func foundationReads(format: PropertyList.Format) throws {
    let hero = Self.hero()
    let bytes = try KeyedArchive.encode(hero, classes: Self.classes, as: format)
    let unarchiver = try NSKeyedUnarchiver(forReadingFrom: bytes)
    unarchiver.requiresSecureCoding = true
    // Without this, a failure ends the process.
    unarchiver.decodingFailurePolicy = .setErrorAndReturn
    unarchiver.setClass(OldHero.self, forClassName: "Hero")
    let decoded = unarchiver.decodeObject(of: OldHero.self, forKey: NSKeyedArchiveRootObjectKey)
    let old = try #require(decoded, "\(String(describing: unarchiver.error))")
    for (old, new) in [(old, hero), (try #require(old.friend), try #require(hero.friend))] {
      #expect(old.name == new.name && old.level == new.level && old.health == new.health && old.isHard == new.isHard)
      #expect(old.items == new.items && old.scores == new.scores && old.started == new.started && old.id == new.id)
      #expect(old.photo.count == 256 && old.photo.last == 255)
      #expect(old.nothing == nil)
    }
    #expect(old.friend?.friend == nil)
    #expect(unarchiver.error == nil)
  }

  @Test("an object that Foundation's archiver wrote is decoded as the new game's type")
  func weReadFoundation() throws {
    let old = OldHero()
    (old.name, old.level, old.health, old.isHard, old.items) = ("Bjørn", -3, 0.1, true, ["a", "b"])
    (old.scores, old.photo, old.friend) = (["x": 5], Data([1, 2, 3]), OldHero())
    old.friend?.name = "friend"
    let archiver = NSKeyedArchiver(requiringSecureCoding: true)
    archiver.setClassName("Hero", for: OldHero.self)
    archiver.encode(old, forKey: NSKeyedArchiveRootObjectKey)
    archiver.finishEncoding()
    // On Linux, the archiver writes the class's own name all the same.
    let classes: [String: any Decodable.Type] = [
      "Hero": NewHero.self, "KeepsakeInterchangeTests.OldHero": NewHero.self,
    ]
    let new = try KeyedArchive.decode(NewHero.self, from: archiver.encodedData, classes: classes)
    #expect(new.name == "Bjørn" && new.level == -3 && new.health == 0.1 && new.isHard && new.items == ["a", "b"])
    #expect(new.scores == ["x": 5] && new.photo == Data([1, 2, 3]) && new.started == old.started && new.id == old.id)
    #expect(new.friend?.name == "friend" && new.friend?.friend == nil && new.nothing == nil)
  }

  @Test("Foundation's unarchiver reads its own collections and values as we write them")
  func foundationValues() throws {
    let array = try NSKeyedUnarchiver.unarchivedObject(
      ofClasses: [NSArray.self, NSString.self, NSNumber.self], from: KeyedArchive.encode(["a", "b", "a"]))
    #expect(array as? [String] == ["a", "b", "a"])
    let numbers = try NSKeyedUnarchiver.unarchivedObject(
      ofClasses: [NSArray.self, NSNumber.self], from: KeyedArchive.encode([1, 2, 3]))
    #expect((numbers as? [Any])?.compactMap { ($0 as? NSNumber)?.intValue ?? $0 as? Int } == [1, 2, 3])
    let set = try NSKeyedUnarchiver.unarchivedObject(
      ofClasses: [NSSet.self, NSString.self], from: KeyedArchive.encode(Set(["x", "y"])))
    #expect(set as? Set<String> == ["x", "y"])
    let date = try NSKeyedUnarchiver.unarchivedObject(
      ofClass: NSDate.self, from: KeyedArchive.encode(Date(timeIntervalSinceReferenceDate: 5)))
    #expect(date as Date? == Date(timeIntervalSinceReferenceDate: 5))
    let url = try NSKeyedUnarchiver.unarchivedObject(
      ofClass: NSURL.self, from: KeyedArchive.encode(URL(string: "https://example.com/a")))
    #expect(url?.absoluteString == "https://example.com/a")
    let text = try NSKeyedUnarchiver.unarchivedObject(ofClass: NSString.self, from: KeyedArchive.encode("日本"))
    #expect(text as String? == "日本")
    let dictionary = try NSKeyedUnarchiver.unarchivedObject(
      ofClasses: [NSDictionary.self, NSString.self, NSNumber.self, NSArray.self],
      from: KeyedArchive.encode(["k": ["v"]]))
    #expect(dictionary as? [String: [String]] == ["k": ["v"]])
  }

  @Test("every value survives a round trip, and shared objects stay shared")
  func roundTrip() throws {
    struct World: Codable, Equatable {
      var heroes: [NewHero]
      var numbers: [Int: Double], flags: [UUID: Bool], tags: Set<Int>
      var amounts: [Decimal]
      var small: Int8, large: UInt64, float: Float, none: Int?, home: URL?
      var null: String, dollar: String
      var point: CGPoint

      enum CodingKeys: String, CodingKey {
        case heroes, numbers, flags, tags, amounts, small, large, float, none, home, null, point
        case dollar = "$key"
      }
    }
    let hero = Self.hero()
    let world = World(
      heroes: [hero, hero, try #require(hero.friend)], numbers: [1: 0.5, -2: 1e300], flags: [hero.id: true],
      tags: [1, 2, 3],
      amounts: [
        0, 1, Decimal(string: "-1234.5678")!, Decimal(string: "123456789012345678901234567890e-20")!,
        .greatestFiniteMagnitude,
      ],
      small: -128, large: .max, float: 0.1, none: nil, home: URL(string: "file:///a/b"), null: "$null", dollar: "$",
      point: CGPoint(x: 1, y: 2))
    let classes: [String: any Codable.Type] = ["World": World.self, "Hero": NewHero.self]
    for format in PropertyList.Format.allCases {
      let bytes = try KeyedArchive.encode(world, classes: classes, as: format)
      let again = try KeyedArchive.decode(World.self, from: bytes, classes: classes)
      #expect(again == world)
      #expect(
        again.heroes[0] === again.heroes[1] && again.heroes[2] === again.heroes[0].friend, "one object became two")
    }
  }

  @Test("an object in a cycle, and an object that isn't encoded by keys, are refused with their path")
  func refused() throws {
    final class Node: Codable { var next: [Node] = [] }
    let node = Node()
    node.next = [node]
    let cycle = #expect(throws: PropertyListError.self) { try KeyedArchive.encode(node, classes: ["Node": Node.self]) }
    #expect(cycle?.code == .cycle && cycle?.path == "next[0]")
    node.next = []
    struct Kind: Codable {
      func encode(to encoder: any Encoder) throws {
        var list = encoder.unkeyedContainer()
        try list.encode(1)
      }
    }
    let unkeyed = #expect(throws: PropertyListError.self) {
      try KeyedArchive.encode(["a": Kind()], classes: ["Kind": Kind.self])
    }
    #expect(unkeyed?.code == .unwritable && unkeyed?.path == "a")
  }
}
