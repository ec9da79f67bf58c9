import Foundation
import KeepsakeArchive
import KeepsakeInterchange
import TestSupport
import Testing

/// Classes of Foundation that saves contain, as Foundation writes them, and colours as real files have them.
struct KeyedFoundationTests {
  private func archive(_ object: Any) throws -> KeyedArchive {
    try KeyedArchive(NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: false))
  }

  private func tree(_ archive: KeyedArchive) throws -> ArchiveValue { try #require(try archive.tree().top["root"]) }

  private func fields(_ pairs: [(String, ArchiveValue)]) -> ArchiveValue {
    .dictionary(pairs.map { .init(key: .string($0), value: $1) })
  }

  @Test(
    "an index path of any length is a list of numbers in a tree, and decodes as IndexPath or [Int]",
    arguments: [[], [5], [1, 300, 70_000]])
  func indexPaths(indexes: [Int]) throws {
    let archive = try archive(indexes.isEmpty ? NSIndexPath() : IndexPath(indexes: indexes) as NSIndexPath)
    #expect(try tree(archive) == .array(indexes.map { .integer(Int64($0)) }))
    #expect(try archive.decode(IndexPath.self) == IndexPath(indexes: indexes))
    #expect(try archive.decode([Int].self) == indexes)
  }

  @Test(
    "an index set is the list of its ranges in a tree, and decodes as IndexSet or ranges",
    arguments: [[], [3..<7], [0..<2, 1_000..<1_002, 70_000..<70_001]])
  func indexSets(ranges: [Range<Int>]) throws {
    let set = NSMutableIndexSet()
    for range in ranges { set.add(in: NSRange(location: range.lowerBound, length: range.count)) }
    let archive = try archive(set)
    let shown = ranges.map {
      fields([("location", .integer(Int64($0.lowerBound))), ("length", .integer(Int64($0.count)))])
    }
    #expect(try tree(archive) == .array(shown))
    // In two ways: as @Archivable, and as Codable if it is in a struct of the program.
    struct Saved: Decodable { var rows: IndexSet }
    let expected = ranges.reduce(into: IndexSet()) { $0.insert(integersIn: $1) }
    #expect(try archive.decode(IndexSet.self) == expected)
    let around = try self.archive(["rows": set] as NSDictionary)
    #expect(try around.decode(Saved.self).rows == expected)
    #expect(try archive.decode([Range<Int>].self) == ranges)
  }

  @Test("an index set with invalid ranges is an error and not a trap")
  func forgedIndexSets() throws {
    for (location, length) in [(-1, 5), (Int.max, 1), (5, Int.max), (Int.min, Int.min), (0, 0), (3, -2)] {
      let list = KeyedArchiveTests.archive([
        [
          "NSRangeCount": 1, "NSLocation": .integer(Int128(location)), "NSLength": .integer(Int128(length)),
          "$class": .uid(2),
        ],
        KeyedArchiveTests.name("NSIndexSet"),
      ])
      struct Saved: Decodable { var rows: IndexSet }
      #expect(throws: PropertyListError.self) { try KeyedArchive(list).decode(IndexSet.self) }
      let around = KeyedArchiveTests.archive([
        ["NS.keys": [.uid(4)], "NS.objects": [.uid(2)], "$class": .uid(5)], list["$objects"]?[1] ?? .null,
        KeyedArchiveTests.name("NSIndexSet"), "rows", KeyedArchiveTests.name("NSDictionary"),
      ])
      #expect(throws: PropertyListError.self) { try KeyedArchive(around).decode(Saved.self) }
    }
    for data in [[0x80], [1, 0x80], [1, 2, 3], [UInt8](repeating: 0xFF, count: 20), [1, 2]] as [[UInt8]] {
      let list = KeyedArchiveTests.archive([
        ["NSRangeCount": 2, "NSRangeData": .data(Data(data)), "$class": .uid(2)], KeyedArchiveTests.name("NSIndexSet"),
      ])
      // The tree shows it as a plain object.
      #expect(try tree(KeyedArchive(list)) == .reference(0))
      #expect(throws: PropertyListError.self) { try KeyedArchive(list).decode(IndexSet.self) }
    }
  }

  @Test("a measurement keeps its unit in a tree, and decodes as Foundation's Measurement")
  func measurements() throws {
    let archive = try archive(NSMeasurement(doubleValue: 3, unit: UnitLength.miles))
    let converter = fields([("coefficient", .number(1609.34)), ("constant", .number(0))])
    let unit = fields([("symbol", .string("mi")), ("class", .string("NSUnitLength")), ("converter", converter)])
    #expect(try tree(archive) == fields([("value", .number(3)), ("unit", unit)]))
    let length = try archive.decode(Measurement<UnitLength>.self)
    #expect(length.value == 3 && abs(length.converted(to: .meters).value - 4828.02) < 0.001)
  }

  @Test("an attributed string decodes as its text, and has the attributes of each part in a tree and as a struct")
  func attributed() throws {
    let text = NSMutableAttributedString(string: "gold 👑 ring")
    text.addAttribute(
      NSAttributedString.Key("quality"), value: NSString("rare"), range: NSRange(location: 0, length: 4))
    text.addAttribute(
      NSAttributedString.Key("quality"), value: NSString("rare"), range: NSRange(location: 8, length: 4))
    let archive = try archive(text)
    #expect(try archive.decode(String.self) == "gold 👑 ring")
    let tree = try archive.tree()
    let root = try #require(tree.top["root"])
    guard root["text"] == .string("gold 👑 ring"), case .array(let runs)? = root["runs"] else {
      Issue.record("\(root)")
      return
    }
    #expect(runs.map { $0["location"] } == [.integer(0), .integer(4), .integer(8)])
    #expect(runs.map { $0["length"] } == [.integer(4), .integer(4), .integer(4)])
    let attributes = runs.map { run -> ArchiveValue? in
      guard case .reference(let number)? = run["attributes"] else { return run["attributes"] }
      return tree.objects[number].fields.first?.value
    }
    let rare = fields([("quality", .string("rare"))])
    #expect(attributes == [rare, fields([]), rare], "\(tree)")
    // Two parts with the same attributes share one object.
    #expect(runs[0]["attributes"] == runs[2]["attributes"])
    struct Label: Decodable { var text: String, runs: [Run] }
    struct Run: Decodable { var location: Int, length: Int, attributes: [String: String] }
    let label = try archive.decode(Label.self)
    #expect(label.runs.map(\.attributes) == [["quality": "rare"], [:], ["quality": "rare"]])
  }

  @Test("an attributed string whose attributes don't cover its text is shown as it was saved")
  func forgedAttributes() throws {
    for info in [[5, 0], [6, 1], [6, 0, 0, 0], [0x80], [3], [2, 0, 5, 0]] as [[UInt8]] {
      let list = KeyedArchiveTests.archive([
        ["NSString": .uid(3), "NSAttributes": .uid(4), "NSAttributeInfo": .data(Data(info)), "$class": .uid(2)],
        KeyedArchiveTests.name("NSAttributedString"), "sixsix", ["NS.objects": [.uid(5)], "$class": .uid(6)],
        ["NS.keys": [], "NS.objects": [], "$class": .uid(7)], KeyedArchiveTests.name("NSArray"),
        KeyedArchiveTests.name("NSDictionary"),
      ])
      #expect(try tree(KeyedArchive(list)) == .reference(0), "\(info)")
    }
  }

  @Test("a counted set decodes as the count of each element, and mutable classes are read like immutable ones")
  func kinds() throws {
    let counted = NSCountedSet()
    for word in ["key", "coin", "coin"] { counted.add(NSString(string: word)) }
    #expect(try archive(counted).decode([String: Int].self) == ["key": 1, "coin": 2])
    let list = NSMutableArray(array: [
      NSMutableString(string: "text"), NSMutableData(data: Data([1, 2])),
      NSMutableSet(array: [NSString("a"), NSString("b")]),
      NSMutableDictionary(dictionary: [NSString("k"): NSMutableArray(array: [NSNumber(value: 1)])]),
      NSMutableOrderedSet(array: [NSString("z"), NSString("y")]), NSValue(range: NSRange(location: 4, length: 6)),
    ])
    guard case .array(let values) = try tree(archive(list)) else {
      Issue.record("no list")
      return
    }
    #expect(
      values[0] == .string("text") && values[1] == .data(Data([1, 2]))
        && values[4] == .array([.string("z"), .string("y")]))
    #expect(values[3] == fields([("k", .array([.integer(1)]))]))
    #expect(values[5] == fields([("location", .integer(4)), ("length", .integer(6))]))
    guard case .set(let elements) = values[2] else {
      Issue.record("\(values)")
      return
    }
    #expect(elements.count == 2 && elements.contains(.string("a")))
    #expect(try archive(NSValue(range: NSRange(location: 4, length: 6))).decode(Range<Int>.self) == 4..<10)
    struct Saved: Decodable { var range: Range<Int> }
    #expect(
      try archive(["range": NSValue(range: NSRange(location: 4, length: 6))] as NSDictionary).decode(Saved.self).range
        == 4..<10)
  }

  @Test("collections and numbers of an archiver derived from Foundation's, with a key for each element, are read")
  func derivedArchiver() throws {
    // As Foundation's source does it for derived archivers; its own archiver writes them differently.
    func type(_ name: String) -> PropertyList {
      ["$classname": .string(name), "$classes": [.string(name), "NSObject"]]
    }
    let saved: PropertyList = [
      "$version": 100_000, "$archiver": "Own", "$top": ["root": .uid(1)],
      "$objects": [
        "$null",
        .dictionary([
          .init("NS.key.0", .uid(7)), .init("NS.key.1", .uid(8)), .init("NS.key.2", .uid(9)),
          .init("NS.object.0", .uid(3)),
          .init("NS.object.1", .uid(4)), .init("NS.object.2", .uid(5)), .init("$class", .uid(2)),
        ]),
        type("NSDictionary"), ["NS.object.0": .uid(10), "NS.object.1": .uid(11), "$class": .uid(6)],
        ["$class": .uid(6)],
        ["NS.object.0": .uid(10), "$class": .uid(12)], type("NSArray"), "list", "none", "set", "a", "b", type("NSSet"),
      ],
    ]
    struct Saved: Decodable { var list: [String], none: [String], set: Set<String> }
    let value = try KeyedArchive(saved).decode(Saved.self)
    #expect(value.list == ["a", "b"] && value.none.isEmpty && value.set == ["a"])

    for (entry, expected) in [("NS.intval", 7), ("NS.dblval", 2.5), ("NS.boolval", true)] as [(String, PropertyList)] {
      let list: PropertyList = [
        "$version": 100_000, "$archiver": "Own", "$top": ["root": .uid(1)],
        "$objects": [
          "$null", ["NS.objects": [.uid(3)], "$class": .uid(2)], type("NSArray"),
          .dictionary([.init(entry, expected), .init("$class", .uid(4))]), type("NSNumber"),
        ],
      ]
      let tree = try KeyedArchive(list).tree()
      switch expected {
      case .bool(let flag): #expect(tree.top["root"] == .array([.bool(flag)]))
      case .integer: #expect(tree.top["root"] == .array([.integer(7)]))
      default: #expect(tree.top["root"] == .array([.number(2.5)]))
      }
    }
    // An object that has more than its elements keeps the rest.
    let odd: PropertyList = [
      "$version": 100_000, "$archiver": "Own", "$top": ["root": .uid(1)],
      "$objects": ["$null", ["NS.object.0": .uid(0), "note": 3, "$class": .uid(2)], type("NSArray")],
    ]
    #expect(try KeyedArchive(odd).tree().objects.first?.fields.map(\.key) == ["NS.object.0", "note"])
  }

  @Test("edge insets, as in real files, are four numbers in a tree and decode as a vector")
  func insets() throws {
    let archive = try KeyedArchive(
      KeyedArchiveTests.archive([
        [
          "NS.edgeval.bottom": 3, "NS.edgeval.left": 2.0, "NS.edgeval.right": 4.0, "NS.edgeval.top": 1.0,
          "NS.special": 12,
          "$class": .uid(2),
        ],
        KeyedArchiveTests.name("NSValue"),
      ]))
    #expect(
      try tree(archive)
        == fields([("top", .number(1)), ("left", .number(2)), ("bottom", .number(3)), ("right", .number(4))]))
    #expect(try archive.decode(SIMD4<Float>.self) == SIMD4(1, 2, 3, 4))
  }

  @Test(
    "a decimal number keeps every digit in a keyed archive, in a Codable struct and in a list",
    arguments: [
      "0", "-1234.56", "0.1", "340282366920938463463374607431768211455", "-0.000000000000000000000000000001", "1e120",
    ])
  func decimals(digits: String) throws {
    struct Purse: Codable, Equatable { var gold: Decimal }
    let value = try #require(Decimal(string: digits))
    let bytes = try KeyedArchive.encode(Purse(gold: value), classes: ["Purse": Purse.self])
    #expect(try KeyedArchive.decode(Purse.self, from: bytes, classes: ["Purse": Purse.self]).gold == value)
    #expect(try KeyedArchive.decode([Decimal].self, from: KeyedArchive.encode([value])) == [value])
  }

  // MARK: Colours

  private static func color(_ fields: [PropertyList.Entry], name: String) -> PropertyList {
    KeyedArchiveTests.archive([.dictionary(fields + [.init("$class", .uid(2))]), KeyedArchiveTests.name(name)])
  }

  private static func text(_ text: String) -> PropertyList { .data(Data(text.utf8)) }

  /// AppKit's colours as in scenes of SpriteKit and SceneKit; UIKit's as described by programs that read notes and
  /// nibs.
  private static let colors: [(fields: [PropertyList.Entry], name: String, components: [Double])] = [
    ([.init("NSRGB", text("0.5 0.25 0.75\0")), .init("NSColorSpace", 2)], "NSColor", [0.5, 0.25, 0.75, 1]),
    ([.init("NSRGB", text("0 0 0 0\0")), .init("NSColorSpace", 1)], "NSColor", [0, 0, 0, 0]),
    ([.init("NSWhite", text("0.25\0")), .init("NSColorSpace", 3)], "NSColor", [0.25, 0.25, 0.25, 1]),
    ([.init("NSWhite", text("0.25 0.5")), .init("NSColorSpace", 4)], "NSColor", [0.25, 0.25, 0.25, 0.5]),
    (
      [
        .init("UIColorComponentCount", 4), .init("UIRed", .float(0.5)), .init("UIGreen", 0),
        .init("UIBlue", .number(1)),
        .init("UIAlpha", .number(0.5)), .init("NSRGB", text("0.5 0 1")), .init("NSColorSpace", 2),
      ], "UIColor", [0.5, 0, 1, 0.5]
    ),
    (
      [
        .init("UIColorComponentCount", 4), .init("UIRed", .float(0.1)), .init("UIGreen", .float(0)),
        .init("UIBlue", .float(1)),
        .init("UIAlpha", .float(1)), .init("UIRed-Double", .number(0.1)), .init("UIGreen-Double", .number(0)),
        .init("UIBlue-Double", .number(1)), .init("UIAlpha-Double", .number(1)), .init("NSColorSpace", 2),
      ], "UIColor", [0.1, 0, 1, 1]
    ),
    (
      [
        .init("UIColorComponentCount", 2), .init("UIWhite", .float(0.5)), .init("UIAlpha", .float(1)),
        .init("NSColorSpace", 4),
      ], "UIColor",
      [0.5, 0.5, 0.5, 1]
    ),
  ]

  @Test(
    "colours are read as their components: by name, as a vector, as a struct and as a list",
    arguments: KeyedFoundationTests.colors.indices)
  func components(index: Int) throws {
    let (given, name, expected) = Self.colors[index]
    let archive = try KeyedArchive(Self.color(given, name: name))
    let space = try #require(given.first { $0.key == "NSColorSpace" }?.value.integer)
    let parts = zip(["red", "green", "blue", "alpha"], expected).map { ($0, ArchiveValue.number($1)) }
    #expect(try tree(archive) == fields(parts + [("colorSpace", .integer(Int64(space)))]))
    #expect(try archive.decode(SIMD4<Double>.self) == SIMD4(expected[0], expected[1], expected[2], expected[3]))
    struct Tint: Decodable { var red: Double, green: Double, blue: Double, alpha: Float }
    let tint = try archive.decode(Tint.self)
    #expect([tint.red, tint.green, tint.blue, Double(tint.alpha)] == expected)
    #expect(try archive.decode([Double].self) == expected)
  }

  @Test("a colour with more than its components is shown as an object, and still decodes as its components")
  func moreThanComponents() throws {
    let list = KeyedArchiveTests.archive([
      [
        "NSComponents": Self.text("0.1 0.5 0.25 1"), "NSRGB": Self.text("0.125 0.5 0.25\0"), "NSColorSpace": 1,
        "NSCustomColorSpace": .uid(3), "$class": .uid(2),
      ],
      KeyedArchiveTests.name("NSColor"), ["NSID": 7, "$class": .uid(4)], KeyedArchiveTests.name("NSColorSpace"),
      [
        "NSColor": .uid(1), "NSColorName": "textColor", "NSCatalogName": "System", "NSColorSpace": 6, "$class": .uid(2),
      ],
    ])
    let archive = try KeyedArchive(list)
    #expect(try tree(archive) == .reference(0))
    #expect(try archive.tree().objects.count == 2)
    #expect(try archive.decode(SIMD4<Float>.self) == SIMD4(0.125, 0.5, 0.25, 1))
    guard case .dictionary(var entries) = list else {
      Issue.record("\(list)")
      return
    }
    entries.removeAll { $0.key == "$top" }
    let catalog = try KeyedArchive(.dictionary(entries + [.init("$top", ["root": .uid(5)])]))
    #expect(try catalog.decode(SIMD4<Float>.self) == SIMD4(0.125, 0.5, 0.25, 1))
    // A colour that refers to itself, and colours without such components.
    for fields in [
      [.init("NSColor", .uid(1))], [.init("NSCMYK", Self.text("0 0 0 1\0"))], [.init("NSRGB", Self.text("red"))],
      [.init("NSRGB", Self.text("1 2"))], [],
    ] as [[PropertyList.Entry]] {
      let archive = try KeyedArchive(Self.color(fields, name: "NSColor"))
      #expect(try tree(archive) == .reference(0))
      #expect(throws: PropertyListError.self) { try archive.decode(SIMD4<Float>.self) }
    }
  }

  // MARK: Types around objects

  private final class Sword: Decodable { var damage: Int }
  private struct Bow: Decodable { var arrows: Int }

  /// An enum over several types, as many programs write one.
  private enum Weapon: Decodable {
    case sword(Sword)
    case bow(Bow)

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      if let sword = try? value.decode(Sword.self) {
        self = .sword(sword)
      } else {
        self = .bow(try value.decode(Bow.self))
      }
    }
  }

  @Test("an enum that wraps objects of several classes decodes from any of them, and shared objects stay shared")
  func wrapping() throws {
    let list = KeyedArchiveTests.archive([
      ["NS.objects": [.uid(2), .uid(3), .uid(2)], "$class": .uid(4)], ["damage": 5, "$class": .uid(5)],
      ["arrows": 9, "$class": .uid(6)],
      KeyedArchiveTests.name("NSArray"), KeyedArchiveTests.name("Sword"), KeyedArchiveTests.name("Bow"),
    ])
    let archive = try KeyedArchive(list)
    let classes: [String: any Decodable.Type] = ["Sword": Sword.self, "Bow": Bow.self]
    let weapons = try archive.decode([Weapon].self, classes: classes)
    guard case .sword(let first) = weapons[0], case .bow(let bow) = weapons[1], case .sword(let last) = weapons[2]
    else {
      Issue.record("\(weapons)")
      return
    }
    #expect(first.damage == 5 && bow.arrows == 9 && first === last)
    // A type that isn't listed for an object's class can't read its fields.
    struct Blade: Decodable { var damage: Int }
    let error = #expect(throws: PropertyListError.self) { try archive.decode([Blade].self, classes: classes) }
    #expect(error?.code == .mismatch && error?.path == "[0]")
    #expect(throws: PropertyListError.self) { try archive.decode([[String: Int]].self, classes: classes) }
    #expect(try archive.decode([Weapon?].self, classes: classes).count == 3)
  }

  @Test("old keys are read under new names, also keys that are listed for the superclass")
  func renamed() throws {
    struct Hero: Decodable { var name: String, level: Int }
    let list = KeyedArchiveTests.archive([
      ["_name": "Ann", "_lvl": 3, "level": 9, "$class": .uid(2)], KeyedArchiveTests.name("Hero", "Actor"),
    ])
    let classes: [String: any Decodable.Type] = ["Hero": Hero.self]
    let archive = try KeyedArchive(list)
    #expect(throws: PropertyListError.self) { try archive.decode(Hero.self, classes: classes) }
    let hero = try archive.decode(
      Hero.self, classes: classes, keys: ["Actor": ["name": "_name", "level": "level"], "Hero": ["level": "_lvl"]])
    #expect(hero.name == "Ann" && hero.level == 3)
  }
}

extension CorpusTests {
  @Test(
    "colours, index sets, index paths, measurements and attributed strings of real files are recognized",
    .needsRealFiles)
  func seenThrough() throws {
    let known: Set<String> = [
      "NSIndexPath", "NSIndexSet", "NSMutableIndexSet", "NSMeasurement", "NSAttributedString",
      "NSMutableAttributedString", "NSCountedSet",
      "NSValue",
    ]
    var colors = 0
    for file in try Corpus.files("nskeyed") {
      let archive = try KeyedArchive(Data(contentsOf: file))
      let tree = try archive.tree()
      for object in tree.objects where known.contains(tree.classes[object.type].name) {
        Issue.record("\(file.lastPathComponent): \(tree.classes[object.type].name) \(object.fields)")
      }
      for (number, object) in archive.objects.enumerated() {
        guard let uid = object["$class"]?.uid, archive.objects[Int(uid)]["$classname"]?.string == "NSColor" else {
          continue
        }
        let one = try KeyedArchive(
          KeyedArchiveTests.archive(Array(archive.objects.dropFirst()), top: ["root": .uid(UInt64(number))]))
        let components = try one.decode(SIMD4<Double>.self)
        colors += 1
        #expect((0..<4).allSatisfy { components[$0].isFinite })
      }
    }
    print("nskeyed: \(colors) colours with their components")
    #expect(colors > 200)
  }
}
