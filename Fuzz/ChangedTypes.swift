import Foundation
import KeepsakeArchive

/// The same saves, read by another version of the program: fields gone, new, elsewhere, wider, narrower, optional or
/// required, hand-written types generated and the other way round.
enum Changed {
  @Archivable struct Item {
    var quality = 5
    var count: Int?
    var kind: Int8
  }

  @Archivable(name: "Creature", version: 2, subclasses: [Boss.self, Minion.self]) class Creature: Linked {
    var friends: [Creature] = [] { didSet { Registry.note(self) } }
    var added = "a"
    weak var target: Creature?
    var position: SIMD2<Double>
    var type: Int16
    var inventory: [Item] = []
    var unsaved: [Creature]? { didSet { Registry.note(self) } }
    func migrate(_ saved: inout ArchiveMigration) throws {
      added = try saved.decode(String.self, forKey: "name", default: "") + saved.keys.joined()
      unsaved = try saved.decodeIfPresent([Creature].self, forKey: "friends")
    }
    func unlink() {
      friends = []
      unsaved = nil
    }
  }

  @Archivable(name: "Boss", version: 3) final class Boss: Creature {
    var rage: Double = 0, calm = 1
    override func migrate(_ saved: inout ArchiveMigration) throws {
      calm = try saved.decode(Int.self, forKey: "rage") &+ saved.version
    }
  }

  @Archivable(name: "Minion") final class Minion: Creature {
    let master: Creature?
    init(master: Creature) { fatalError("only decoded: \(master)") }
  }

  @Archivable(version: 2) enum Event {
    case said(String?, Int = 4)
    indirect case both(Event, Event, extra: [Event] = [])
    case moved(to: SIMD2<Double>, height: Int? = 7)
    @Fallback case other(String)
    mutating func migrate(_ saved: inout ArchiveMigration) throws {
      if saved.caseKey == "said" { self = .said(try saved.decode(String.self, forKey: "0"), saved.version) }
    }
  }

  @Archivable struct World {
    var name: String?
    var events: [Event] = []
    var creatures: [Creature?]
  }

  @Archivable(version: 2) struct Everything {
    var levels: [Level: Int32] = [:]
    var rank: Rank?
    var event: Event
    var flags: [Bool?]?
    var doubles: [Float] = []
    var floats: [Double] = []
    var halves: [Int32] = []
    var bytes: [Int] = []
    var small: [Int32] = []
    var wide: [Int64] = []
    var set: Set<Int16> = []
    var map: [String: [Int32]?] = [:]
    var nested: [[Int?]] = []
    var some = "default"
    var none: Int = 4
    var v4 = SIMD4<Int32>()
    var v3 = SIMD3<Float>()
    var v2: SIMD2<Double>
    var url: URL?
    var c: String?
    var s = ""
    var f = 0.0
    var d: Float
    var u64: UInt64 = 0
    var i64: Int64 = 0
    var i8: Int64
    var u8: UInt
    var point: CGSize
    var size = CGSize()
    var date: Date?
    var id: UUID?
    var data = Data()
    var whole: Double = 3
    /// Retyped: only the hook can read what was saved.
    var i32 = "text"
    var b: [Int] = []
    mutating func migrate(_ saved: inout ArchiveMigration) throws {
      i32 = "\(try saved.decode(Int32.self, forKey: "i32"))"
      b = try saved.decode(Bool.self, forKey: "b", default: false) ? [1] : []
      size = try saved.decodeIfPresent(CGSize.self, forKey: "point") ?? size
    }
  }

  @Archivable(name: "Pair") struct Saved {
    var second: Everything?
    var first: World
  }

  @Archivable(name: "Chain") final class Chain: Linked {
    var next: Chain? { didSet { Registry.note(self) } }
    var value: UInt16 = 9
    func unlink() { next = nil }
  }

  @Archivable(name: "Need") final class Need {
    let both: [Need?]
    let next: Need?
    let value: Int
    init() { (both, next, value) = ([], nil, 0) }
  }

  @Archivable(name: "Owner") final class Owner: Linked {
    var byName: [String: Owned?] = [:] { didSet { Registry.note(self) } }
    var owned: [Owned?] = [] { didSet { Registry.note(self) } }
    func unlink() {
      byName = [:]
      owned = []
    }
  }

  @Archivable(name: "Owned") final class Owned: Linked {
    var name: String
    var owner: Owner? { didSet { Registry.note(self) } }
    init() { name = "" }
    func unlink() { owner = nil }
  }

  @Archivable(name: "Badge") final class Badge: Hashable {
    let name: String?
    let id: Int64
    init() { (id, name) = (0, nil) }
    static func == (a: Badge, b: Badge) -> Bool { a.id == b.id }
    func hash(into hasher: inout Hasher) { hasher.combine(id) }
  }

  @Archivable(name: "Box<Int>") final class IntBox: Linked {
    var more: [IntBox] = [] { didSet { Registry.note(self) } }
    var content: Int8?
    func unlink() { more = [] }
  }

  @Archivable(name: "Box<String>") final class TextBox {
    var content = ""
    var title: String?
  }

  @Archivable struct Bond {
    var weight: Float = 2
    var since = 7
    var to: Chain?
  }

  @Archivable enum Link {
    case bonds([Bond]?, Need?, more: [Bond] = [])
    case chain(Chain?)
    case none
  }

  @Archivable(name: "Vehicle", subclasses: [Truck.self, FireTruck.self]) class Vehicle: Linked {
    weak var leader: Vehicle?
    var links: [Link]? { didSet { Registry.note(self) } }
    var color = "red"
    func unlink() { links = nil }
  }

  @Archivable(name: "Truck") class Truck: Vehicle {
    var badge: Badge?
    var load: [String]
    init(load: [String]) {
      self.load = load
      super.init()
    }
  }

  @Archivable(name: "FireTruck") final class FireTruck: Vehicle {
    var crew: Set<Badge> = []
    var ladder: Double = 3
    var wheels: Int8?
  }

  @Archivable struct Graph {
    var link: Link
    var boxes: [TextBox?] = []
    var size = 3
    var box: IntBox?
    var byBadge: [Badge: [Chain?]?] = [:]
    var badges: Set<Badge?> = []
    var owned: [Owned] = []
    var owner: Owner?
    var need: Need?
    var chain: Chain?
    var vehicles: [Vehicle] = []
  }

  @Archivable struct Nothing: Hashable { var something: Int? }

  @Archivable struct Place: Hashable {
    var y: Int = 0
    var x: Int16
  }

  @Archivable indirect enum Tree: Hashable {
    case place(Place, at: [Place?], more: Int? = nil)
    case branch(Tree, Tree)
    case leaf
    case named(String?)
    @Fallback case unknown
  }

  @Archivable struct Values {
    var pairs: [Pair<Int, Pair<String, Double>?>] = []
    var letters: [String] = []
    var urls: [URL?] = []
    var ids: [UUID: Data] = [:]
    var dates: [Date?] = []
    var sizes: [SIMD2<Double>] = []
    var bits = SIMD4<UInt64>()
    var vectors: [SIMD3<Int8>] = []
    var flags: [Bool] = []
    var numbers: Set<Float> = []
    var longs: [UInt64] = []
    var words: [UInt64] = []
    var shorts: [Int32] = []
    var counters: [String: Counter?] = [:]
    var counter: Counter?
    var optionals: [Float?] = []
    var matrix: [[[Int]]] = []
    var suits: [Suit: [Suit?]] = [:]
    var trees: [Tree: Tree?] = [:]
    var places: Set<Place> = []
    var nothing: Nothing?
    var nothings: [Nothing?] = []
    var maybe: [String??] = []
    var nested: Int???
    var tree: Tree?
  }

  /// Generated where the other program wrote by hand.
  @Archivable struct Note {
    var number: Int32 = 1
    var text: String?
    var inner: [Note] = []
    var bond: Bond?
    var chain: Chain?
    var tree: Tree?
    var pair: Pair<[Place?], Need?>?
  }

  /// Written by hand, as it must stay, with other fields.
  class Scene: Archivable, Linked {
    var title: String
    var notes: [Note]
    var linked: Scene?
    var hero: Creature?
    class var archiveName: String { "Scene" }
    class var archiveVersion: Int { 2 }
    class var archiveSubclasses: [any Archivable.Type] { [Creature.self, Chain.self, Need.self, Finale.self] }
    class func archiveFields(_ fields: ArchiveFieldList) {
      fields.describe(Scene.self)
      fields.markKeyed()
    }

    func encode(to writer: inout ArchiveWriter) throws {
      try writer.encode(title, forKey: "title")
      try writer.encode(notes, forKey: "notes")
    }

    required init(from reader: inout ArchiveReader) throws {
      title =
        reader.savedVersion < 2
        ? try reader.decode(String.self, forKey: "name") : try reader.decode(String.self, forKey: "title")
      notes = (try? reader.decode([Note].self, forKey: "notes")) ?? []
    }

    func encodeReferences(to writer: inout ArchiveWriter) throws {
      try writer.encode(linked, forKey: "linked")
      try writer.encode(hero, forKey: "hero")
    }

    func decodeReferences(from reader: inout ArchiveReader) throws {
      Registry.note(self)
      linked = try reader.decode(Scene?.self, forKey: "linked")
      hero = try reader.decodeIfPresent(Creature?.self, forKey: "hero") ?? nil
    }

    func unlink() {
      linked = nil
      hero = nil
      notes = []
    }
  }

  final class Finale: Scene {
    override class var archiveName: String { "Finale" }
    override class var archiveSubclasses: [any Archivable.Type] { [] }
    override class func archiveFields(_ fields: ArchiveFieldList) {
      fields.describe(Finale.self)
      fields.markKeyed()
    }
  }

  /// What the hand-written root below leads to.
  static var classes: [any Archivable.Type] {
    [Scene.self, Finale.self, Chain.self, Need.self, Creature.self, Boss.self, Minion.self]
  }

  /// By hand where the other program's was generated.
  struct Kept: Archivable {
    var scene: Scene?
    var notes: [Note]
    var byName: [String: Note]
    var heroes: [Creature]

    func encode(to writer: inout ArchiveWriter) throws {
      try writer.encode(scene, forKey: "scene")
      try writer.encode(notes, forKey: "notes")
      try writer.encode(byName, forKey: "byName")
      try writer.encode(heroes, forKey: "heroes")
    }

    init(from reader: inout ArchiveReader) throws {
      scene = try reader.decode(Scene?.self, forKey: "scene")
      byName = try reader.decode([String: Note].self, forKey: "byName", default: [:])
      notes = try reader.decodeIfPresent([Note].self, forKey: "notes") ?? []
      heroes = try reader.decode([Creature].self, forKey: "heroes", default: [])
    }
  }
}
