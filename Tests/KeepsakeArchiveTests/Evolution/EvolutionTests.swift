import Foundation
import KeepsakeArchive
import Testing

@testable import ArchiveWorlds

/// Types of an earlier version of a program; `New` has those of a later one, which reads the same saves.
enum Old {
  @Archivable struct Hero {
    var name = "Ann"
    var strength: Int32 = 7
    var gold: Float = 2.5
    var removed = ["x": [1, 2]]
    var title: String? = "Sir"
    var nothing: Int?
    var kind = Kind.warrior
    var position = SIMD2<Float>(1, 2)
    var numbers: [Int32] = [1, 500, -3]
    var items = [Item(kind: 1)]
  }
  @Archivable enum Kind {
    case mage(Int, mana: Int32)
    case warrior
    case gone
  }
  @Archivable(name: "Robot") class Robot {
    var id = 1
    var model = "old"
    var next: Robot?
    var parts: [Item] = [Item(kind: 2)]
    var removed: Robot?
  }
  @Archivable(name: "Tank", subclasses: []) class Tank: Robot {
    var armor = 3
    let gun: Int
    init(gun: Int) {
      self.gun = gun
      super.init()
    }
  }
  @Archivable struct Army { var robots: [Robot] = [] }
  @Archivable enum Reward { case gift(Int?) }
  @Archivable struct Empty {}
  @Archivable struct Holder { var empty = Empty(), after = 5 }
  @Archivable(name: "HandKeyed") struct Keyed { var text = "t", number = 4 }
  @Archivable struct Bond { var to: Person?, weight = 1 }
  @Archivable(name: "Person") final class Person { var bonds: [Bond] = [] }
}

enum New {
  @Archivable struct Hero {
    var added = 42
    var position = SIMD2<Double>()
    var gold = 0.0
    var name: String
    var wish: String?
    @Key("strength") var power: Int64
    var title = "none"
    var nothing = 9
    var kind: Kind
    var numbers: [Int] = []
    var items: [BetterItem]
  }
  @Archivable struct BetterItem { var count: Int, quality = 3, kind: Int }
  @Archivable enum Kind {
    case warrior
    case healer
    case mage(Int, speed: Double = 2, mana: Int64)
  }
  @Archivable(name: "Robot", subclasses: [Tank.self]) class Robot {
    var paint = "red"
    var next: Robot?
    var parts: [Item] = []
    var model: String
    var id: Int64
  }
  @Archivable(name: "Tank") final class Tank: Robot {
    let gun: Int
    var tracks = 2
    var armor = 0
  }
  @Archivable struct Army { var robots: [Robot] = [] }
  @Archivable enum Reward { case gift(Int? = 5, bonus: Int? = 7, String? = nil) }
  @Archivable struct Empty { var x = 1 }
  @Archivable struct Holder { var after = 0, empty = Empty() }
  @Archivable(name: "Hero") struct Strict { var name: String, missing: Int }
  @Archivable(name: "First", version: 2) struct Second { var x = 1 }
  @Archivable struct First { var x = 1 }
  @Archivable struct Bond { var since = 7, weight = 0, to: Person? }
  @Archivable(name: "Person") final class Person { var bonds: [Bond] = [] }
}

/// A hand-written type in two versions of a program: the later one saves the gold as a number.
private enum Purse {
  struct Old: Archivable {
    static var archiveName: String { "Purse" }
    var texts: [String: String?]
    init(_ texts: [String: String?]) { self.texts = texts }
    func encode(to writer: inout ArchiveWriter) throws {
      for (key, text) in texts { try writer.encode(text, forKey: key) }
    }
    init(from reader: inout ArchiveReader) throws { texts = [:] }
  }
  struct New: Archivable {
    static var archiveName: String { "Purse" }
    var gold: Int
    func encode(to writer: inout ArchiveWriter) throws { try writer.encode(gold, forKey: "gold") }
    init(from reader: inout ArchiveReader) throws { gold = try reader.decode(Int.self, forKey: "gold", default: 7) }
  }
}

@Suite struct EvolutionTests {
  @Test func fieldsComeAndGoAndChangeTheirOrder() throws {
    let new = try Archive.decode(New.Hero.self, from: Archive.encode(Old.Hero()))
    #expect(new.added == 42 && new.name == "Ann" && new.power == 7 && new.gold == 2.5)
    #expect(new.title == "Sir" && new.nothing == 9 && new.wish == nil)
    #expect(new.position == SIMD2(1, 2) && new.numbers == [1, 500, -3])
    #expect(new.items.count == 1 && new.items[0].kind == 1 && new.items[0].quality == 3 && new.items[0].count == 1)
    guard case .warrior = new.kind else {
      Issue.record("the kind is \(new.kind)")
      return
    }
  }

  @Test func enumCasesMoveAndGrow() throws {
    let new = try Archive.decode(New.Kind.self, from: Archive.encode(Old.Kind.mage(1, mana: 5)))
    guard case .mage(1, speed: 2, mana: 5) = new else {
      Issue.record("the kind is \(new)")
      return
    }
    let error = #expect(throws: ArchiveError.self) {
      try Archive.decode(New.Kind.self, from: Archive.encode(Old.Kind.gone))
    }
    #expect(error?.code == .unknownCase && error?.message.contains("gone") == true)
  }

  @Test func aPayloadSavedEmptyStaysEmpty() throws {
    guard
      case .gift(nil, bonus: 7, nil) = try Archive.decode(New.Reward.self, from: Archive.encode(Old.Reward.gift(nil)))
    else {
      Issue.record("the gift changed")
      return
    }
    guard
      case .gift(3, bonus: nil, "x") = try Archive.decode(
        New.Reward.self, from: Archive.encode(New.Reward.gift(3, bonus: nil, "x")))
    else {
      Issue.record("the gift changed")
      return
    }
  }

  @Test func objectsOfChangedClassesKeepTheirLinks() throws {
    let (a, tank) = (Old.Robot(), Old.Tank(gun: 88))
    a.next = tank
    tank.next = a
    tank.removed = tank
    tank.armor = 12
    tank.id = 2
    let new = try Archive.decode(
      New.Army.self, from: Archive.encode(Old.Army(robots: [a, tank]), classes: [Old.Tank.self]))
    let copy = try #require(new.robots[1] as? New.Tank)
    #expect(
      copy.gun == 88 && copy.armor == 12 && copy.tracks == 2 && copy.id == 2 && copy.model == "old"
        && copy.paint == "red")
    #expect(copy.next === new.robots[0] && new.robots[0].next === copy)
    #expect(copy.parts == [Item(kind: 2)] && new.robots[0].id == 1)
  }

  @Test func aListOfObjectsThatWasNilTakesItsDefault() throws {
    let empty = try Archive.decode(FullShelf.self, from: Archive.encode(OldShelf()))
    #expect(empty.volumes.isEmpty && empty.first == nil && empty.after == 7)
    let old = OldShelf()
    old.volumes = [Volume(), Volume()]
    old.first = old.volumes?.first
    let full = try Archive.decode(FullShelf.self, from: Archive.encode(old))
    #expect(full.volumes.count == 2 && full.first === full.volumes[0])
  }

  @Test func emptyStructsMayGetFields() throws {
    let new = try Archive.decode(New.Holder.self, from: Archive.encode(Old.Holder()))
    #expect(new.after == 5 && new.empty.x == 1)
    let old = try Archive.decode(Old.Holder.self, from: Archive.encode(New.Holder(after: 8)))
    #expect(old.after == 8)
  }

  @Test func aMissingFieldWithoutDefaultSaysWhichOne() throws {
    let error = #expect(throws: ArchiveError.self) {
      try Archive.decode(New.Strict.self, from: Archive.encode(Old.Hero()))
    }
    #expect(error?.code == .missingField && error?.type == "Hero" && error?.field == "missing")
    #expect(error?.message.hasSuffix(": give it a default, or @Key(\"old name\") if it was renamed") == true)
  }

  @Test func aNewerVersionIsRefusedAndAnOlderOneRead() throws {
    let error = #expect(throws: ArchiveError.self) {
      try Archive.decode(New.First.self, from: Archive.encode(New.Second()))
    }
    #expect(error?.code == .tooNew)
    #expect(try Archive.decode(New.Second.self, from: Archive.encode(New.First(x: 5))).x == 5)
  }

  @Test func numbersThatDoNotFitAreAnError() throws {
    #expect(try Archive.decode(Int8.self, from: Archive.encode(100)) == 100)
    #expect(try Archive.decode(Double.self, from: Archive.encode(Float(1.5))) == 1.5)
    #expect(try Archive.decode(Int?.self, from: Archive.encode(Int32(3))) == 3)
    #expect(try Archive.decode([UInt64].self, from: Archive.encode([Int8(3), 4])) == [3, 4])
    #expect(try Archive.decode([Double].self, from: Archive.encode([Float(0.5)])) == [0.5])
    for attempt in [
      { _ = try Archive.decode(Int8.self, from: Archive.encode(1000)) },
      { _ = try Archive.decode(UInt.self, from: Archive.encode(-1)) },
      { _ = try Archive.decode([UInt8].self, from: Archive.encode([-1])) },
      { _ = try Archive.decode(Float.self, from: Archive.encode(1e300)) },
      { _ = try Archive.decode(String.self, from: Archive.encode(1)) },
      { _ = try Archive.decode([String].self, from: Archive.encode([1])) },
      { _ = try Archive.decode(Item.self, from: Archive.encode(Event.idle)) },
      { _ = try Archive.decode(Node.self, from: Archive.encode(Item(kind: 1))) },
    ] as [() throws -> Void] {
      let error = #expect(throws: ArchiveError.self) { try attempt() }
      #expect(error?.code == .mismatch)
    }
  }

  @Test func aHandWrittenLevelIsBuiltByItsNormalInitialiser() throws {
    let level = Stage(name: "castle")
    level.monstersLeft = 2
    level.linked = level
    let hero = Creature(type: 1, name: "hero")
    level.hero = hero
    let copy = try Archive.decode(
      Campaign.self, from: Archive.encode(Campaign(level: level, heroes: [hero])), context: "disk")
    #expect(copy.level.monsters == 6 && copy.level.monstersLeft == 2 && copy.level.loadedFrom == "disk")
    #expect(copy.level.linked === copy.level && copy.level.hero === copy.heroes[0])
    let lonely = try Archive.decode(Stage.self, from: Archive.encode(level))
    #expect(lonely.hero == nil)
    copy.level.linked = nil
    lonely.linked = nil
    level.linked = nil
  }

  @Test func aChangedStructThatHoldsReferencesKeepsItsFields() throws {
    let person = Old.Person()
    person.bonds = [Old.Bond(to: person, weight: 5), Old.Bond(to: nil, weight: 6)]
    let copy = try Archive.decode(New.Person.self, from: Archive.encode(person))
    #expect(copy.bonds.map(\.weight) == [5, 6] && copy.bonds.map(\.since) == [7, 7])
    #expect(copy.bonds.first?.to === copy && copy.bonds.last?.to == nil)
    person.bonds = []
    copy.bonds = []
  }

  @Test("a default under a key is for a value that is absent or nil; one of another type is an error and not lost")
  func defaultsUnderKeys() throws {
    #expect(try Archive.decode(Purse.New.self, from: Archive.encode(Purse.Old([:]))).gold == 7)
    #expect(try Archive.decode(Purse.New.self, from: Archive.encode(Purse.Old(["gold": nil]))).gold == 7)
    let error = #expect(throws: ArchiveError.self) {
      try Archive.decode(Purse.New.self, from: Archive.encode(Purse.Old(["gold": "900"])))
    }
    #expect(error?.code == .mismatch && error?.field == "gold")
  }

  @Test func handWrittenAndGeneratedTypesReadEachOther() throws {
    let generated = try Archive.decode(Old.Keyed.self, from: Archive.encode(HandKeyed(text: "a", number: 9)))
    #expect(generated.text == "a" && generated.number == 9)
    let hand = try Archive.decode(HandKeyed.self, from: Archive.encode(Old.Keyed(text: "b", number: 3)))
    #expect(hand.text == "b" && hand.number == 3)
    let nested = try Archive.decode(
      [String: [HandKeyed]].self, from: Archive.encode(["k": [HandKeyed(text: "c", number: 1)]]))
    #expect(nested["k"]?.first?.text == "c")
  }
}

@Archivable private final class Volume {
  var pages = 10
}

@Archivable(name: "Shelf of volumes") private final class OldShelf {
  var volumes: [Volume]?
  var first: Volume?
  var after = 7
}

@Archivable(name: "Shelf of volumes") private final class FullShelf {
  var after = 1
  var first: Volume?
  var volumes: [Volume] = []
}
