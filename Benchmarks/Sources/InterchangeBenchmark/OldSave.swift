import Foundation
import Keepsake

/// A saved game of an older program: as Foundation's classes, as a tree, and as the types that it becomes.
final class OldHero: NSObject, NSSecureCoding {
  static var supportsSecureCoding: Bool { true }

  var name: NSString = ""
  var level = 0
  var health = 0.0
  var items = NSArray()
  var friend: OldHero?

  override init() {}

  init?(coder: NSCoder) {
    name = coder.decodeObject(of: NSString.self, forKey: "name") ?? ""
    level = coder.decodeInteger(forKey: "level")
    health = coder.decodeDouble(forKey: "health")
    items = coder.decodeObject(of: [NSArray.self, NSString.self], forKey: "items") as? NSArray ?? NSArray()
    friend = coder.decodeObject(of: OldHero.self, forKey: "friend")
  }

  func encode(with coder: NSCoder) {
    coder.encode(name, forKey: "name")
    coder.encode(level, forKey: "level")
    coder.encode(health, forKey: "health")
    coder.encode(items, forKey: "items")
    coder.encode(friend, forKey: "friend")
  }
}

/// The same for `Codable`.
final class CodedHero: Codable {
  var name = ""
  var level = 0
  var health = 0.0
  var items: [String] = []
  var friend: CodedHero?
}

@Archivable final class Hero {
  var name = ""
  var level = 0
  var health = 0.0
  var items: [String] = []
  var friend: Hero?
  init() {}
}

enum OldSave {
  static let heroes = 1_000
  static let className = "Hero"

  /// Heroes with a friend each who is in the list, too.
  static func archive() throws -> Data {
    let list = (0..<heroes).map { number in
      let hero = CodedHero()
      (hero.name, hero.level, hero.health) = ("Hero of the north \(number)", number % 90, Double(number) / 7)
      hero.items = (0..<6).map { "item \((number + $0 * 7) % 300)" }
      return hero
    }
    // Without circles, which Codable can't encode.
    for number in 1..<heroes { list[number].friend = list[number / 2].friend == nil ? list[number / 2] : nil }
    return try KeyedArchive.encode(list, classes: [className: CodedHero.self])
  }

  /// Levels, items and settings, as a game keeps them in a property list.
  static var list: PropertyList { .array((0..<4_000).map(room)) }

  private static func room(_ number: Int) -> PropertyList {
    let fields: [PropertyList.Entry] = [
      .init("name", .string("Room \(number)")),
      .init("text", .string("A corridor of stone, wet and cold, number \(number).")),
      .init("x", .number(Double(number) / 3)), .init("y", .integer(Int128(number * 31))),
      .init("isOpen", .bool(number % 3 == 0)),
      .init("doors", .array((number..<number + 4).map { .integer(Int128($0)) })),
      .init("found", .date(Date(timeIntervalSinceReferenceDate: Double(number)))),
      .init("kind", .string("kind \(number % 12)")),
      .init("data", .data(Data(repeating: UInt8(truncatingIfNeeded: number), count: 24))),
    ]
    return .dictionary(fields)
  }
}
