import Foundation
import KeepsakeArchive
import KeepsakeInspection
import Testing

@testable import ArchiveWorlds

// How saves are read after classes were inserted into a hierarchy or removed from it, and after references became
// optional or required.

/// A hierarchy of two levels; `Three` has a class between them.
private enum Two {
  @Archivable(name: "Ship", subclasses: [Fighter.self, Ghost.self]) class Ship {
    var name = "ship"
    var wing: Ship?
  }
  @Archivable(name: "Fighter") final class Fighter: Ship {
    var shield = 5
    var missiles = [1, 2]
    var leader: Ship?
  }
  @Archivable(name: "Ghost") final class Ghost: Ship { var fog = 1.5 }
}
private enum Three {
  @Archivable(name: "Ship", subclasses: [Fighter.self, Cruiser.self]) class Ship {
    var name = ""
    var wing: Ship?
  }
  /// Inserted later, with a field and a reference that were those of the class below.
  @Archivable(name: "Armed", version: 5) class Armed: Ship {
    var missiles: [Int] = []
    var leader: Ship?
    @Unsaved var hooks = 0
    override func migrate(_ saved: inout ArchiveMigration) throws { hooks += 1 }
  }
  @Archivable(name: "Fighter") final class Fighter: Armed { var shield = 0 }
  @Archivable(name: "Cruiser") final class Cruiser: Armed {
    let crew: Int
    init(crew: Int) {
      self.crew = crew
      super.init()
    }
  }
}

private enum Loose {
  @Archivable struct Link { var target: Node?, list: [Node] = [], required: Node? }
  @Archivable(name: "Arrow") final class Arrow {
    let required: Node
    let optional: Node?
    var patched: Node?
    init(required: Node, optional: Node?) { (self.required, self.optional) = (required, optional) }
  }
}
private enum Tight {
  @Archivable struct Link { var target: Node, list: [Node]?, required: [Node]? }
  @Archivable(name: "Link") struct Present { var target: Node, list: [Node?]? = [nil], required = Node(5) }
  @Archivable(name: "Arrow") final class Arrow {
    var required: Node?
    let optional: Node
    var patched: Node?
    init(optional: Node) { self.optional = optional }
  }
  @Archivable(name: "Arrow") final class Strict {
    let required: Node
    let patched: Node
    init(_ node: Node) { (required, patched) = (node, node) }
  }
}

private enum Unrenamed {
  @Archivable struct Item { var damage = 3, owner = Owner.player(level: 2) }
  @Archivable enum Owner {
    case player(level: Int)
    case none
  }
  @Archivable(subclasses: [Sword.self]) class Weapon {
    var weight = 9
    var next: Weapon?
  }
  @Archivable final class Sword: Weapon { var edge = 4 }
  @Archivable struct Bag { var items = [Item()], weapons: [Weapon] = [], byName = ["a": Item(damage: 8)] }
}
private enum Renamed {
  @Archivable struct Thing {
    @Key("damage") var strength = 0
    @Key("owner") var holder = Holder.nobody
  }
  @Archivable enum Holder: Equatable {
    @Key("none") case nobody
    @Key("player") case hero(level: Int)
  }
  @Archivable(name: "Weapon", subclasses: [Blade.self]) class Arm {
    @Key("weight") var kilograms = 0
    @Key("next") var following: Arm?
  }
  @Archivable(name: "Sword") final class Blade: Arm { @Key("edge") var sharpness = 0 }
  @Archivable(name: "Bag") struct Sack {
    @Key("byName") var named: [String: Thing] = [:]
    @Key("weapons") var arms: [Arm] = []
    @Key("items") var things: [Thing] = []
  }
}

@Suite struct LevelTests {
  @Test func aClassPutBetweenTakesOverWhatTheOneBelowSaved() throws {
    let (ship, fighter) = (Two.Ship(), Two.Fighter())
    (fighter.shield, fighter.missiles, fighter.leader, fighter.wing) = (8, [3], ship, fighter)
    let copy = try Archive.decode([Three.Ship].self, from: Archive.encode([fighter, ship]))
    let new = try #require(copy[0] as? Three.Fighter)
    #expect(new.shield == 8 && new.missiles == [3] && new.leader === copy[1] && new.wing === new)
    // This class wasn't in the save, so it has nothing to migrate.
    #expect(new.hooks == 0)
    (fighter.wing, new.wing) = (nil, nil)
  }

  @Test func aClassTakenOutFromBetweenLeavesItsFieldsToTheOneBelow() throws {
    let (ship, fighter) = (Three.Ship(), Three.Fighter())
    (fighter.shield, fighter.missiles, fighter.leader, fighter.name) = (8, [3], ship, "f")
    let copy = try Archive.decode([Two.Ship].self, from: Archive.encode([ship, fighter]))
    let old = try #require(copy[1] as? Two.Fighter)
    #expect(old.shield == 8 && old.missiles == [3] && old.leader === copy[0] && old.name == "f")
  }

  @Test func aSubclassThatIsGoneIsNamedUnlessNoneOfItWasSaved() throws {
    let bytes = try Archive.encode([Two.Ship(), Two.Ghost()])
    let error = #expect(throws: ArchiveError.self) { try Archive.decode([Three.Ship].self, from: bytes) }
    #expect(error?.code == .unknownClass && error?.message.contains("objects of the class Ghost,") == true)
    #expect(try Archive.decode([Three.Ship].self, from: Archive.encode([Two.Ship()])).count == 1)
    #expect(try ArchiveInspection(of: bytes).text().contains("fog: 1.5"))
  }

  @Test func anOptionalReferenceMayBecomeRequiredInAStruct() throws {
    let node = Node(3)
    let tight = try Archive.decode(Tight.Present.self, from: Archive.encode(Loose.Link(target: node, list: [node])))
    #expect(tight.target.value == 3 && tight.list?.first ?? nil === tight.target && tight.required.value == 5)
    let error = #expect(throws: ArchiveError.self) {
      try Archive.decode(Tight.Present.self, from: Archive.encode(Loose.Link()))
    }
    #expect(error?.code == .missingField && error?.field == "target")
    // A reference isn't an array.
    let mismatch = #expect(throws: ArchiveError.self) {
      try Archive.decode(Tight.Link.self, from: Archive.encode(Loose.Link(target: node, required: node)))
    }
    #expect(mismatch?.code == .mismatch && mismatch?.field == "required")
  }

  @Test func referencesOfAClassMayPromiseLessOrMoreWhereTheyAreBuiltFirst() throws {
    let (a, b) = (Node(1), Node(2))
    let arrow = Loose.Arrow(required: a, optional: b)
    let copy = try Archive.decode(Tight.Arrow.self, from: Archive.encode(arrow))
    #expect(copy.required?.value == 1 && copy.optional.value == 2 && copy.patched == nil)
    let error = #expect(throws: ArchiveError.self) {
      try Archive.decode(Tight.Arrow.self, from: Archive.encode(Loose.Arrow(required: a, optional: nil)))
    }
    #expect(error?.code == .missingField && error?.field == "optional")
    // A reference that is set after all objects exist can't become one that an initialiser needs.
    arrow.patched = a
    let later = #expect(throws: ArchiveError.self) {
      try Archive.decode(Tight.Strict.self, from: Archive.encode(arrow))
    }
    #expect(later?.code == .mismatch && later?.field == "patched")
  }

  @Test func renamedFieldsCasesAndClassesAreFoundByTheirOldNames() throws {
    let (weapon, sword) = (Unrenamed.Weapon(), Unrenamed.Sword())
    (weapon.next, sword.next, sword.edge) = (sword, weapon, 7)
    let sack = try Archive.decode(Renamed.Sack.self, from: Archive.encode(Unrenamed.Bag(weapons: [weapon, sword])))
    #expect(
      sack.things.map(\.strength) == [3] && sack.things[0].holder == .hero(level: 2) && sack.named["a"]?.strength == 8)
    let blade = try #require(sack.arms[1] as? Renamed.Blade)
    #expect(
      blade.sharpness == 7 && blade.kilograms == 9 && blade.following === sack.arms[0]
        && sack.arms[0].following === blade)
    // The old program still reads what the renamed program saves.
    let bag = try Archive.decode(Unrenamed.Bag.self, from: Archive.encode(sack))
    #expect((bag.weapons[1] as? Unrenamed.Sword)?.edge == 7 && bag.items[0].damage == 3)
    for weapon in [weapon, sword] + bag.weapons { weapon.next = nil }
    for arm in sack.arms { arm.following = nil }
  }
}
