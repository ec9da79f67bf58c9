import Foundation
import KeepsakeArchive

/// A new game's types for an old game's classes.
enum OldGame {
  @Archivable(subclasses: [Boss.self]) class Character {
    var name: String
    var health = 1.0
    var items: [Item] = []
    weak var target: Character?
    var friend: Character?

    init(name: String) { self.name = name }
  }

  @Archivable final class Boss: Character {
    var rage = 3
    var minions: [Character] = []
  }

  @Archivable struct Item: Equatable {
    var kind: Kind
    @Key("_count") var count = 1
    var note: String?
  }

  @Archivable enum Kind: Int, Equatable {
    case sword = 1
    case key = 7
  }

  /// The old game stored raw values. One of them is the name of another case, and one case was renamed since.
  @Archivable enum Metal: String, Equatable {
    case iron = "tin"
    case tin = "lead"
    @Key("gold") case aurum = "au"
    @Fallback case unknown = "?"
  }

  @Archivable struct Ingot {
    var metal: Metal
  }

  @Archivable enum Weather: Equatable {
    case sun
    case rain(amount: Double, until: Date?)
    @Fallback case other(String)
  }

  @Archivable enum Weapon {
    case blade(Item)
    case beast(Character)
  }

  @Archivable struct World {
    var characters: [Character] = []
    var favourite: Character?
    var byName: [String: Character] = [:]
    var scores: [Int: Double] = [:]
    var tags: Set<String> = []
    var position = SIMD2<Double>()
    var frame = CGRect.zero
    var span = 0..<0
    var levels: [UInt16] = []
    var bytes: [UInt8] = []
    var home: URL?
    var id: UUID?
    var gold: Decimal = 0
    var started: Date?
    var photo = Data()
    var isHard = false
    var weather: [Weather] = []
    var weapons: [Weapon] = []
    var lost: String? = "a default"
  }

  /// Can't be created without another one.
  @Archivable final class Twin {
    let other: Twin
    init(other: Twin) { self.other = other }
  }

  @Archivable struct Nest {
    var inner: [Nest] = []
  }

  @Archivable final class Link {
    var next: Link?
    var number = 0
    init() {}
  }

  /// Archived by hand-written code.
  struct Hand: Archivable {
    var number = 0
    func encode(to writer: inout ArchiveWriter) throws { try writer.encode(number, forKey: "number") }
    init(from reader: inout ArchiveReader) throws { number = try reader.decode(Int.self, forKey: "number") }
  }

  @Archivable struct Hands {
    var hand: Hand
  }

  /// Can be decoded as Archivable and as Codable.
  @Archivable struct Both: Codable, Equatable {
    var number = 5
  }

  static var classes: [String: any Archivable.Type] {
    [
      "Character": Character.self, "Boss": Boss.self, "Item": Item.self, "World": World.self, "Twin": Twin.self,
      "Nest": Nest.self,
      "Link": Link.self,
    ]
  }
}
