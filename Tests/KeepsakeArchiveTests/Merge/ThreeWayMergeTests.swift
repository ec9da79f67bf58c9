import Foundation
import KeepsakeArchive
import Testing

/// Not Equatable, like most types of a game.
@Archivable struct Thing {
  var kind = "stone"
  var weight = 1.0
}

@Archivable struct Bag {
  @Merge(.max) var level = 1
  var things: [Thing] = []
  var best: Score?
  var heaviest = Double.zero
}

@Archivable struct Weighed {
  @Merge(.max) var heaviest = 0.0
  @Merge(.min) var lightest = 0.0
  @Merge(.max) var deepest: Double?
  @Merge(.min) var highest: Double?
}

/// Has no merge rule of its own, but a field whose type has some.
@Archivable struct Slotted {
  var score = Score()
  var name = "nobody"
}

/// Equal by its name alone, as types in sets often are.
@Archivable struct Town: Hashable {
  var name = "home"
  var houses = 0
  static func == (left: Town, right: Town) -> Bool { left.name == right.name }
  func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

@Archivable struct Country {
  @Merge(.max) var level = 1
  var capital = Town()
}

/// What only one device changed, removed or added, merged from either side.
@Suite struct ThreeWayMergeTests {
  func merged<Value: Archivable>(_ mine: Value, _ theirs: Value, _ ancestor: Value?) -> Value {
    var result = mine
    result.mergeFields(from: theirs, ancestor: ancestor)
    return result
  }

  @Test("a change on one side only is merged even if the type isn't Equatable; otherwise this side's value remains")
  func uncomparableFields() {
    let base = Bag(things: [Thing()])
    let theirs = Bag(things: [Thing(), Thing(kind: "gold")])
    #expect(merged(base, theirs, base).things.map(\.kind) == ["stone", "gold"])
    #expect(merged(theirs, base, base).things.map(\.kind) == ["stone", "gold"])
    let mine = Bag(things: [])
    #expect(merged(mine, theirs, base).things.isEmpty, "both changed it, so this side's value remains")
    #expect(merged(mine, theirs, nil).things.isEmpty, "without an ancestor, this side's value remains")
  }

  @Test("an optional that one device set to nil stays nil if the other didn't change it; else a value wins over nil")
  func removedOptionals() {
    let base = Bag(best: Score(best: 3, holder: "ada"))
    let without = Bag(best: nil)
    #expect(merged(without, base, base).best == nil)
    #expect(merged(base, without, base).best == nil)
    // A change counts more than a removal, and without an ancestor any value more than none.
    let raised = Bag(best: Score(best: 4, holder: "ada"))
    #expect(merged(without, raised, base).best?.best == 4)
    #expect(merged(raised, without, base).best?.best == 4)
    #expect(merged(without, raised, Bag(best: nil)).best?.best == 4)
    #expect(merged(without, base, nil).best?.best == 3)
    #expect(merged(base, without, nil).best?.best == 3)
  }

  @Test("NaN on one device doesn't hide the other's minimum or maximum, in either order")
  func notANumber() {
    let wrong = Weighed(heaviest: .nan, lightest: .nan, deepest: .nan, highest: .nan)
    let right = Weighed(heaviest: 3, lightest: 3, deepest: 3, highest: 3)
    for result in [
      merged(wrong, right, nil), merged(right, wrong, nil), merged(wrong, right, right), merged(right, wrong, wrong),
    ] {
      #expect(result.heaviest == 3 && result.lightest == 3 && result.deepest == 3 && result.highest == 3)
    }
    #expect(merged(wrong, wrong, nil).heaviest.isNaN)
  }

  @Test("a save without merge rules of its own is merged by the rules of its parts")
  func nestedRules() {
    #expect(Slotted.archiveHasMergeRules)
    let base = Slotted(score: Score(best: 2, holder: "ada"))
    let mine = Slotted(score: Score(best: 5, holder: "ada"))
    let theirs = Slotted(score: Score(best: 3, holder: "bob"), name: "bob")
    let result = merged(mine, theirs, base)
    #expect(result.score == Score(best: 5, holder: "bob") && result.name == "bob")
  }

  @Test("a change is kept even if the type's == ignores the changed field")
  func equalByName() {
    let base = Country()
    let built = Country(capital: Town(houses: 7))
    #expect(merged(base, built, base).capital.houses == 7)
    #expect(merged(built, base, base).capital.houses == 7)
  }

  @Test("NaN that stayed NaN doesn't count as changed")
  func unchangedNotANumber() {
    let base = Bag(heaviest: .nan)
    #expect(merged(base, Bag(heaviest: 4), base).heaviest == 4)
  }
}
