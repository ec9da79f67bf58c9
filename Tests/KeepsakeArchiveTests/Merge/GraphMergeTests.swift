import Foundation
import KeepsakeArchive
import Testing

/// Objects that refer to each other in cycles and chains.
@Archivable final class Link {
  @Merge(.max) var number = 0
  var next: Link?
}

/// An object that several properties share.
@Archivable final class Register {
  @Merge(combining: Register.join) var text = ""
  static func join(_ mine: String, _ theirs: String, _ ancestor: String?) -> String { mine + theirs }
}

@Archivable final class Lodger {
  var name = "guest"
  weak var host: Inn?
}

/// Its neighbours refer back to it with strong references, its guests with weak ones.
@Archivable final class Inn {
  @Merge(.max) var level = 1
  var first = Register()
  var second = Register()
  var guests: [Lodger] = []
  var favourite: Lodger?
  var neighbours: [Lane] = []
}

@Archivable final class Lane {
  var house: Inn?
  var length = 1
}

/// Types that refer to each other, none of which has a merge rule.
@Archivable final class Goose {
  var gosling: Gosling?
  var yolk = Yolk()
}
@Archivable struct Gosling { var goose: Goose? }
@Archivable struct Yolk { var colour = "yellow" }

/// Types that refer to each other, the last of which has a merge rule.
@Archivable final class Duck {
  var pond = Pond()
}
@Archivable struct Pond {
  var duck: Duck?
  var depth: Depth?
}
@Archivable struct Depth { @Merge(.max) var metres = 0 }

/// Has a hand-written merge, and a property whose type has merge rules.
@Archivable struct ByHand {
  var depth = Depth()
  static var archiveHasMergeRules: Bool { true }
  mutating func mergeFields(from other: ByHand, ancestor: ByHand?) { depth.metres += other.depth.metres }
}

private enum Hidden {
  @Archivable struct Pot {
    @Merge(.max) var height = 0
    var soil = Soil()
  }
  @Archivable struct Soil { @Merge(.max) var wetness = 0 }
}

/// A generic type, which has merge rules if its argument has.
@Archivable struct Crate<Value> {
  var value: Value
  var label = ""
}

@Suite struct GraphMergeTests {
  @Test("merging objects that refer to each other terminates, and so does merging an object with itself")
  func cycles() {
    let (mine, theirs, ancestor) = (Link(), Link(), Link())
    for (index, link) in [mine, theirs, ancestor].enumerated() {
      link.next = Link()
      link.next?.next = link
      link.number = index
      link.next?.number = 10 - index
    }
    mine.mergeFields(from: theirs, ancestor: ancestor)
    #expect(mine.number == 1 && mine.next?.number == 10 && mine.next?.next === mine)
    // An object can be merged with itself, too.
    mine.mergeFields(from: mine, ancestor: nil)
    #expect(mine.number == 1)
    for link in [mine, theirs, ancestor] { link.next?.next = nil }
  }

  @Test("merging a chain of 100,000 objects doesn't overflow the stack")
  func longChains() {
    func chain(_ number: Int) -> Link {
      let first = Link()
      var last = first
      for _ in 1..<100_000 {
        let next = Link()
        next.number = number
        last.next = next
        last = next
      }
      return first
    }
    let (mine, theirs) = (chain(1), chain(2))
    mine.mergeFields(from: theirs, ancestor: nil)
    var (count, link) = (0, mine.next)
    while let next = link {
      if next.number == 2 { count += 1 }
      link = next.next
    }
    #expect(count == 99_999)
    for first in [mine, theirs] {
      var rest = first.next
      first.next = nil
      while let next = rest {
        rest = next.next
        next.next = nil
      }
    }
  }

  @Test("an object with two references to it is merged once")
  func sharedObjects() {
    let (mine, theirs) = (Inn(), Inn())
    (mine.first.text, theirs.first.text) = ("a", "b")
    (mine.second, theirs.second) = (mine.first, theirs.first)
    mine.mergeFields(from: theirs, ancestor: nil)
    #expect(mine.first.text == "ab" && mine.second === mine.first)
  }

  @Test("a property that refers back to its object can be compared while that object is merged")
  func referencesBack() throws {
    func house(_ length: Int) -> Inn {
      let house = Inn()
      house.neighbours = [Lane()]
      house.neighbours[0].house = house
      house.neighbours[0].length = length
      return house
    }
    let (mine, theirs, ancestor) = (house(1), house(2), house(1))
    mine.mergeFields(from: theirs, ancestor: ancestor)
    #expect(mine.neighbours.map(\.length) == [2])
    // As documented, values from the other side still refer to the other side's objects.
    #expect(mine.neighbours[0].house === theirs)
    for house in [mine, theirs, ancestor] { house.neighbours = [] }
  }

  @Test("an object that both sides have is there twice after the other side's list was taken over, as documented")
  func takenObjects() {
    func house(_ names: [String]) -> Inn {
      let house = Inn()
      house.guests = names.map {
        let guest = Lodger()
        guest.name = $0
        return guest
      }
      house.favourite = house.guests[0]
      return house
    }
    let (mine, theirs, ancestor) = (house(["ada"]), house(["ada", "bob"]), house(["ada"]))
    let favourite = mine.favourite
    mine.mergeFields(from: theirs, ancestor: ancestor)
    #expect(mine.guests.map(\.name) == ["ada", "bob"] && mine.guests[0] === theirs.guests[0])
    #expect(mine.favourite === favourite && mine.favourite !== mine.guests[0], "unchanged, so still this side's object")
  }

  @Test("types that refer to each other have merge rules only if one of them declares a rule")
  func rulesOfTypes() {
    #expect(!Goose.archiveHasMergeRules && !Gosling.archiveHasMergeRules)
    #expect(Duck.archiveHasMergeRules && Pond.archiveHasMergeRules && Optional<Depth>.archiveHasMergeRules)
    let (mine, theirs) = (Duck(), Duck())
    mine.pond.depth = Depth(metres: 2)
    theirs.pond.depth = Depth(metres: 5)
    mine.mergeFields(from: theirs, ancestor: nil)
    #expect(mine.pond.depth?.metres == 5)
  }

  @Test("private and generic types are merged")
  func unusualTypes() {
    var pot = Hidden.Pot(height: 2)
    pot.mergeFields(from: Hidden.Pot(height: 1, soil: Hidden.Soil(wetness: 3)), ancestor: nil)
    #expect(pot.height == 2 && pot.soil.wetness == 3)
    #expect(
      Crate<Depth>.archiveHasMergeRules && !Crate<Int>.archiveHasMergeRules && Crate<Crate<Depth?>>.archiveHasMergeRules
    )
    var crate = Crate(value: Depth(metres: 1))
    crate.mergeFields(from: Crate(value: Depth(metres: 4), label: "deep"), ancestor: Crate(value: Depth()))
    #expect(crate.value.metres == 4 && crate.label == "deep")
  }

  @Test("a type's own mergeFields(from:ancestor:) is used instead of the macro's")
  func byHand() {
    var mine = ByHand(depth: Depth(metres: 2))
    mine.mergeFields(from: ByHand(depth: Depth(metres: 3)), ancestor: nil)
    #expect(mine.depth.metres == 5)
  }
}
