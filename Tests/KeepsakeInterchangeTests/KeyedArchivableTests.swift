import Foundation
import KeepsakeArchive
import KeepsakeInterchange
import TestSupport
import Testing

@Archivable private final class Dial {
  var level: Int8 = 0
  var steps: [UInt16] = []
}

@Suite(.hangLimit) struct KeyedArchivableTests {
  private static func archive(_ objects: [PropertyList], top: PropertyList = ["root": .uid(1)]) -> PropertyList {
    KeyedArchiveTests.archive(objects, top: top)
  }

  private static func name(_ names: String...) -> PropertyList {
    ["$classname": .string(names[0]), "$classes": .array(names.map { .string($0) } + ["NSObject"])]
  }

  private static let keys = [
    "Character": ["name": "_name", "health": "_hp", "items": "_items"], "Boss": ["rage": "_rage"],
  ]

  private static let world: PropertyList = archive([
    [  // 1
      "characters": .uid(2), "favourite": .uid(4), "byName": .uid(7), "scores": .uid(10), "tags": .uid(11),
      "position": .uid(12),
      "frame": .uid(13), "span": .uid(15), "levels": .uid(38), "bytes": .uid(25), "home": .uid(17), "id": .uid(19),
      "gold": .uid(21),
      "started": .uid(23), "photo": .uid(25), "isHard": 1, "weather": .uid(42), "weapons": .uid(46),
      "ignored": .uid(35),
      "$class": .uid(27),
    ],
    ["NS.objects": [.uid(3), .uid(4), .uid(3)], "$class": .uid(28)],  // 2
    ["_name": .uid(5), "_hp": 1, "_items": .uid(39), "target": .uid(4), "$class": .uid(29)],  // 3
    [  // 4
      "_name": .uid(6), "_hp": 0.5, "_rage": 7.0, "minions": .uid(33), "target": .uid(4), "friend": .uid(3),
      "$class": .uid(30),
    ],
    "Ann", ["NS.string": "Grim", "$class": .uid(31)],  // 5, 6
    ["NS.keys": [.uid(5)], "NS.objects": [.uid(3)], "$class": .uid(32)],  // 7
    1, 2.5,  // 8, 9
    ["NS.keys": [.uid(8)], "NS.objects": [.uid(9)], "$class": .uid(32)],  // 10
    ["NS.objects": [.uid(5), .uid(6)], "$class": .uid(26)],  // 11
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
    .data(Data([9, 8])), name("NSSet"), name("World"), name("NSArray"),  // 25 to 28
    name("Character"), name("Boss", "Character"),  // 29, 30
    name("NSMutableString", "NSString"), name("NSDictionary"),  // 31, 32
    ["NS.objects": [.uid(3)], "$class": .uid(28)], name("NSValue"),  // 33, 34
    ["secret": 1, "$class": .uid(37)], name("NSURL"), name("Unknown"),  // 35 to 37
    ["NS.objects": [.uid(8), .uid(16)], "$class": .uid(28)],  // 38
    ["NS.objects": [.uid(40), .uid(40)], "$class": .uid(28)],  // 39
    ["kind": 7, "_count": 3, "note": .uid(0), "$class": .uid(41)], name("Item"),  // 40, 41
    ["NS.objects": [.uid(43), .uid(44), .uid(51)], "$class": .uid(28)], "sun",  // 42, 43
    ["NS.keys": [.uid(45)], "NS.objects": [.uid(47)], "$class": .uid(32)], "rain",  // 44, 45
    ["NS.objects": [.uid(40), .uid(4)], "$class": .uid(28)],  // 46
    ["NS.keys": [.uid(48)], "NS.objects": [.uid(9)], "$class": .uid(32)], "amount",  // 47, 48
    "unused", "unused", "hail",  // 49, 50, 51
  ])

  @Test(
    "an old game's objects decode as @Archivable types: subclasses, shared objects, cycles, structs, enums, defaults")
  func decode() throws {
    let bytes = try Self.world.encoded(as: .binary)
    let world = try KeyedArchive.decode(OldGame.World.self, from: bytes, classes: OldGame.classes, keys: Self.keys)
    #expect(world.characters.map(\.name) == ["Ann", "Grim", "Ann"])
    let boss = try #require(world.characters[1] as? OldGame.Boss, "a subclass was decoded as its superclass")
    #expect(boss.rage == 7 && boss.health == 0.5 && boss.items.isEmpty)
    #expect(world.characters[0] === world.characters[2], "one object became two")
    #expect(
      world.favourite === boss && boss.minions.first === world.characters[0]
        && world.byName["Ann"] === world.characters[0])
    // Cycles: one between two objects, one of an object with itself.
    #expect(boss.friend?.target === boss && boss.target === boss)
    #expect(boss.friend?.items == [.init(kind: .key, count: 3), .init(kind: .key, count: 3)])
    #expect(world.scores == [1: 2.5])
    #expect(world.tags == ["Ann", "Grim"])
    #expect(world.position == SIMD2(3, -4.5))
    #expect(world.frame == CGRect(x: 1, y: 2, width: 3, height: 4))
    #expect(world.span == 1..<41)
    #expect(world.levels == [1, 40] && world.bytes == [9, 8])
    #expect(world.home?.absoluteString == "https://example.com/game/level/1")
    #expect(world.id?.uuidString == "01020304-0506-0708-090A-0B0C0D0E0F10")
    #expect(world.gold == Decimal(string: "-1234.56"))
    #expect(world.started == Date(timeIntervalSinceReferenceDate: 12.5))
    #expect(world.photo == Data([9, 8]))
    #expect(world.isHard && world.lost == "a default")
    #expect(world.weather == [.sun, .rain(amount: 2.5, until: nil), .other("hail")])
    guard case .blade(let blade) = world.weapons[0], case .beast(let beast) = world.weapons[1] else {
      Issue.record("\(world.weapons)")
      return
    }
    #expect(blade.count == 3 && beast === boss)
  }

  @Test("decoded objects can be archived, and XML gives the same archive as binary")
  func archived() throws {
    func archive(_ format: PropertyList.Format) throws -> Data {
      let bytes = try Self.world.encoded(as: format)
      return try Archive.encode(
        try KeyedArchive.decode(OldGame.World.self, from: bytes, classes: OldGame.classes, keys: Self.keys))
    }
    let bytes = try archive(.binary)
    let isSame = try bytes == archive(.xml)
    #expect(isSame)
    let again = try Archive.decode(OldGame.World.self, from: bytes)
    #expect(again.characters[1].friend?.target === again.characters[1] && again.weather.count == 3)
  }

  @Test("an object of an unlisted class is decoded as its listed superclass; without one, the error has its path")
  func unnamed() throws {
    var classes = OldGame.classes
    classes["Boss"] = nil
    // Its superclass is listed, so a Boss is decoded as a Character.
    let archive = try KeyedArchive(Self.world)
    let world = try archive.decode(OldGame.World.self, classes: classes, keys: Self.keys)
    #expect(world.characters[1].name == "Grim" && !(world.characters[1] is OldGame.Boss))
    classes["Character"] = nil
    let error = #expect(throws: PropertyListError.self) {
      try archive.decode(OldGame.World.self, classes: classes, keys: Self.keys)
    }
    #expect(error?.code == .unknownClass && error?.path == "characters[0]")
    classes = ["World": OldGame.World.self, "Character": OldGame.World.self, "Boss": OldGame.Link.self]
    let wrong = #expect(throws: PropertyListError.self) { try archive.decode(OldGame.World.self, classes: classes) }
    #expect(wrong?.code == .mismatch && wrong?.path == "characters[0]")
  }

  @Test("a mismatching or missing value is an error with its path, also across objects")
  func mismatch() throws {
    func decode(_ name: PropertyList, _ item: PropertyList) throws {
      let list = Self.archive([
        ["name": name, "friend": .uid(2), "$class": .uid(5)], ["name": "x", "items": .uid(3), "$class": .uid(5)],
        ["NS.objects": [.uid(4)], "$class": .uid(6)], item, Self.name("Character"), Self.name("NSArray"),
        Self.name("Item"),
      ])
      _ = try KeyedArchive(list).decode(OldGame.Character.self, classes: OldGame.classes)
    }
    try decode("Ann", ["kind": 1, "$class": .uid(7)])
    let item = "friend.items[0]"
    for (value, code, path) in [
      (["kind": 2, "$class": .uid(7)], .mismatch, item + ".kind"),
      (["kind": 1.5, "$class": .uid(7)], .mismatch, item + ".kind"),
      (["kind": 1, "_count": "ten", "$class": .uid(7)], .mismatch, item + "._count"),
      (["$class": .uid(7)], .missingValue, item + ".kind"),
      (["kind": .uid(0), "$class": .uid(7)], .missingValue, item + ".kind"), (.string("text"), .mismatch, item),
      (["x": 1, "$class": .uid(5)], .mismatch, item), (.uid(0), .damaged, ""),
    ] as [(PropertyList, PropertyListError.Code, String)] {
      let error = #expect(throws: PropertyListError.self) { try decode("Ann", value) }
      #expect(error?.code == code, "\(value): \(String(describing: error))")
      if code != .damaged { #expect(error?.path == path, "\(value)") }
    }
    // A missing value that the root object itself requires.
    let error = #expect(throws: PropertyListError.self) { try decode(.uid(0), ["kind": 1, "$class": .uid(7)]) }
    #expect(error?.code == .missingValue && error?.path == "name", "\(String(describing: error))")
  }

  @Test("a number that doesn't fit the type of its property is an error with its path, also in a list")
  func narrowNumbers() throws {
    func decode(level: Int, step: Int) throws -> Dial {
      let list = Self.archive([
        ["level": .uid(2), "steps": .uid(3), "$class": .uid(5)], .integer(Int128(level)),
        ["NS.objects": [.uid(4)], "$class": .uid(6)], .integer(Int128(step)), Self.name("Dial"), Self.name("NSArray"),
      ])
      return try KeyedArchive(list).decode(Dial.self, classes: ["Dial": Dial.self])
    }
    for (level, step) in [(127, 65_535), (-128, 0)] {
      let dial = try decode(level: level, step: step)
      #expect(Int(dial.level) == level && dial.steps.map { Int($0) } == [step])
    }
    for (level, step, path) in [
      (128, 0, "level"), (-129, 0, "level"), (300, 0, "level"), (0, 65_536, "steps[0]"), (0, -1, "steps[0]"),
    ] {
      let error = #expect(throws: PropertyListError.self) { try decode(level: level, step: step) }
      #expect(error?.code == .mismatch && error?.path == path, "\(level), \(step): \(String(describing: error))")
    }
  }

  @Test("a text is the raw value of a case, or else its key, also if the case was renamed or has another's raw value")
  func rawValues() throws {
    for (text, metal) in [
      ("tin", .iron), ("lead", .tin), ("iron", .iron), ("au", .aurum), ("gold", .aurum), ("aurum", .unknown),
    ] as [(String, OldGame.Metal)] {
      let list = Self.archive([["metal": .string(text), "$class": .uid(2)], Self.name("Ingot")])
      let ingot = try KeyedArchive(list).decode(OldGame.Ingot.self, classes: ["Ingot": OldGame.Ingot.self])
      #expect(ingot.metal == metal, "\(text)")
    }
  }

  @Test("objects that require each other, and structs that contain themselves or expand too far, are typed errors")
  func circles() throws {
    let twins = Self.archive([
      ["other": .uid(2), "$class": .uid(3)], ["other": .uid(1), "$class": .uid(3)], Self.name("Twin"),
    ])
    let twin = #expect(throws: PropertyListError.self) {
      try KeyedArchive(twins).decode(OldGame.Twin.self, classes: OldGame.classes)
    }
    #expect(twin?.code == .cycle, "\(String(describing: twin))")
    let nest = Self.archive([
      ["inner": .uid(2), "$class": .uid(3)], ["NS.objects": [.uid(1)], "$class": .uid(4)], Self.name("Nest"),
      Self.name("NSArray"),
    ])
    let inner = #expect(throws: PropertyListError.self) {
      try KeyedArchive(nest).decode(OldGame.Nest.self, classes: OldGame.classes)
    }
    #expect(inner?.code == .cycle && inner?.path == "inner[0]", "\(String(describing: inner))")
    // Structs that each contain the next one twice.
    var objects: [PropertyList] = [Self.name("Nest"), Self.name("NSArray")]
    for level in 0..<40 {
      let next = UInt64(2 * level + 5)
      objects.append(["inner": .uid(next - 1), "$class": .uid(1)])
      objects.append(["NS.objects": level == 39 ? [] : [.uid(next), .uid(next)], "$class": .uid(2)])
    }
    let doubled = try KeyedArchive(Self.archive(objects, top: ["root": .uid(3)]))
    let many = #expect(throws: PropertyListError.self) {
      try doubled.decode(OldGame.Nest.self, classes: OldGame.classes)
    }
    #expect(many?.code == .limit, "\(String(describing: many))")
  }

  @Test("a chain of 50,000 objects is decoded")
  func chain() throws {
    let count = 50_000
    var objects: [PropertyList] = [Self.name("Link")]
    for number in 0..<count {
      let next: PropertyList = .uid(number + 1 < count ? UInt64(number + 3) : 0)
      objects.append(["next": next, "number": .integer(Int128(number)), "$class": .uid(1)])
    }
    let archive = try KeyedArchive(Self.archive(objects, top: ["root": .uid(2)]))
    var link: OldGame.Link? = try archive.decode(OldGame.Link.self, classes: OldGame.classes)
    var met = 0
    while let current = link {
      #expect(current.number == met)
      met += 1
      link = current.next
      current.next = nil
    }
    #expect(met == count)
  }

  @Test("a hand-written Archivable type is refused with its path; a type that is also Codable decodes as @Archivable")
  func kinds() throws {
    let hands = Self.archive([["hand": .uid(2), "$class": .uid(3)], ["number": 1], Self.name("Hands")])
    let error = #expect(throws: PropertyListError.self) {
      try KeyedArchive(hands).decode(OldGame.Hands.self, classes: ["Hands": OldGame.Hands.self])
    }
    #expect(error?.code == .unsupported && error?.path == "hand")
    let both = try KeyedArchive(Self.archive([["$class": .uid(2)], Self.name("Both")]))
    // As Codable, it would require its number.
    #expect(try both.decode(OldGame.Both.self, classes: ["Both": OldGame.Both.self]) == .init(number: 5))
    let codable: [String: any Decodable.Type] = ["Both": OldGame.Both.self]
    #expect(throws: PropertyListError.self) { try both.decode(OldGame.Both.self, classes: codable) }
  }

  @Test("an archive nested in data is decoded if the expected type isn't data")
  func nested() throws {
    let inner = Self.archive([["name": .uid(2), "target": .uid(1), "$class": .uid(3)], "deep", Self.name("Character")])
    let outer = try Self.archive([
      ["name": "outer", "friend": .uid(2), "$class": .uid(3)], .data(inner.encoded(as: .binary)),
      Self.name("Character"),
    ])
    let character = try KeyedArchive(outer).decode(OldGame.Character.self, classes: OldGame.classes)
    #expect(character.friend?.name == "deep" && character.friend?.target === character.friend)
  }

  @Test("an archive in data with many references to it gives one shared object")
  func sharedNested() throws {
    let filler = PropertyList.array((0..<2_000).map { .string("text \($0)") })
    let inner = Self.archive([["name": "deep", "filler": filler, "$class": .uid(2)], Self.name("Character")])
    let outer = try Self.archive([
      ["NS.objects": .array(Array(repeating: .uid(2), count: 20_000)), "$class": .uid(3)],
      .data(inner.encoded(as: .binary)),
      Self.name("NSArray"),
    ])
    let archive = try KeyedArchive(outer)
    let characters = try archive.decode([OldGame.Character].self, classes: OldGame.classes)
    #expect(characters.count == 20_000 && characters.allSatisfy { $0 === characters[0] })
    final class Named: Decodable { var name: String }
    let named = try archive.decode([Named].self, classes: ["Character": Named.self])
    #expect(named.count == 20_000 && named.allSatisfy { $0 === named[0] })
  }

  @Test("every altered byte gives a value or a typed error")
  func damage() throws {
    let list = Self.archive([
      ["name": .uid(2), "items": .uid(3), "target": .uid(1), "$class": .uid(5)], "Ann",
      ["NS.objects": [.uid(4)], "$class": .uid(6)],
      ["kind": 1, "_count": 2, "$class": .uid(7)], Self.name("Character"), Self.name("NSArray"), Self.name("Item"),
    ])
    let bytes = try list.encoded(as: .binary)
    var (values, errors) = (0, 0)
    for index in bytes.indices {
      for value in [0, 1, 0x0F, 0x51, 0x80, 0xA1, 0xD1, 0xFF, bytes[index] ^ 1, bytes[index] &+ 1] {
        var altered = bytes
        altered[index] = value
        do {
          _ = try KeyedArchive.decode(OldGame.Character.self, from: altered, classes: OldGame.classes)
          values += 1
        } catch is PropertyListError {
          errors += 1
        }
      }
    }
    #expect(values > 100 && errors > 1_000)
  }
}
