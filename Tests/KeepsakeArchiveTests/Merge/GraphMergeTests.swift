import Foundation
import KeepsakeArchive
import Testing

/// Objects that lead to each other in circles and chains.
@Archivable final class Link {
  @Merge(.max) var number = 0
  var next: Link?
}

/// Shared: several properties lead to one.
@Archivable final class Register {
  @Merge(combining: Register.join) var text = ""
  static func join(_ mine: String, _ theirs: String, _ ancestor: String?) -> String { mine + theirs }
}

@Archivable final class Lodger {
  var name = "guest"
  weak var host: Inn?
}

/// Its guests' strong references lead back to it.
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

/// Types that lead to each other, none of which has a rule.
@Archivable final class Goose {
  var gosling: Gosling?
  var yolk = Yolk()
}
@Archivable struct Gosling { var goose: Goose? }
@Archivable struct Yolk { var colour = "yellow" }

/// The same with one at the end.
@Archivable final class Duck {
  var pond = Pond()
}
@Archivable struct Pond {
  var duck: Duck?
  var depth: Depth?
}
@Archivable struct Depth { @Merge(.max) var metres = 0 }

/// Says by hand how it merges, and has a property whose type has rules.
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

/// Generic: the rules of the argument count.
@Archivable struct Crate<Value> {
  var value: Value
  var label = ""
}

@Suite struct GraphMergeTests {
  @Test("merging objects that refer to each other ends")
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
    // Nor does an object with itself.
    mine.mergeFields(from: mine, ancestor: nil)
    #expect(mine.number == 1)
    for link in [mine, theirs, ancestor] { link.next?.next = nil }
  }

  @Test("a chain of a hundred thousand objects is merged on a small stack")
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

  @Test("a property that leads back to its object can be compared while that is merged")
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
    // As the documentation says: what came from the other side still leads to the other side's objects.
    #expect(mine.neighbours[0].house === theirs)
    for house in [mine, theirs, ancestor] { house.neighbours = [] }
  }

  @Test("an object that both sides know is there twice after the merge, as the documentation says")
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
    #expect(mine.favourite === favourite && mine.favourite !== mine.guests[0], "unchanged, so this side's object stays")
  }

  @Test("types that lead to each other are asked for their rules once, and all are found")
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

  @Test("a type's own merge is used, and not the macro's")
  func byHand() {
    var mine = ByHand(depth: Depth(metres: 2))
    mine.mergeFields(from: ByHand(depth: Depth(metres: 3)), ancestor: nil)
    #expect(mine.depth.metres == 5)
  }
}
