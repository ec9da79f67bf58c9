import Foundation
import KeepsakeArchive
import Testing

@testable import ArchiveWorlds

/// An element whose type has no merge rules.
@Archivable struct Pebble: Identifiable {
  var id = "x"
  var colour = "grey"
}

/// An element with merge rules, and one field without a rule.
@Archivable struct Plant: Identifiable, Equatable {
  let id: Int
  @Merge(.max) var height = 0
  @Merge(.counter) var waterings = Counter()
  var kind = "rose"
}

@Archivable struct Bed {
  @Merge var pebbles: [Pebble] = []
  @Merge var pebblesIfAny: [Pebble]?
  @Merge var signs: [String: String] = [:]
  @Merge var signsIfAny: [String: String]?
  @Merge var unlocked: Set<String> = []
  @Merge var unlockedIfAny: Set<String>?
  @Merge var plants: [Plant] = []
  @Merge var best: Plant?
  @Merge var owner = "nobody"
  @Merge(combining: Bed.joinNotes) var notes = ""

  static func joinNotes(_ mine: String, _ theirs: String, _ ancestor: String?) -> String {
    mine == theirs || theirs == ancestor ? mine : mine + "|" + theirs
  }
}

/// `@Merge` on collections and optionals: they are merged element by element and key by key, against the ancestor.
@Suite struct ElementMergeTests {
  func merged(_ mine: Bed, _ theirs: Bed, _ ancestor: Bed?) -> Bed {
    var result = mine
    result.mergeFields(from: theirs, ancestor: ancestor)
    return result
  }

  // MARK: One element in every possible state

  /// The states of an element on one side; nil if the side doesn't have it.
  static let states: [String?] = [nil, "old", "mine", "theirs"]
  /// The states in the ancestor; `.none` if no ancestor is known.
  static let ancestors: [String??] = [.none, .some(nil), .some("old")]

  /// The expected result, computed independently of the implementation.
  static func expected(_ mine: String?, _ theirs: String?, _ ancestor: String??) -> String? {
    guard let ancestor else { return mine ?? theirs }
    if mine == ancestor { return theirs }
    if theirs == ancestor { return mine }
    return mine ?? theirs
  }

  func bed(_ state: String?) -> Bed {
    let pebbles = state.map { [Pebble(colour: $0)] }
    let signs = state.map { ["x": $0] }
    return Bed(pebbles: pebbles ?? [], pebblesIfAny: pebbles, signs: signs ?? [:], signsIfAny: signs)
  }

  @Test(
    "a merge keeps what either side added, changed or removed, and prefers a change to a removal",
    arguments: states, states)
  func everyState(mine: String?, theirs: String?) {
    for ancestor in Self.ancestors {
      let result = merged(bed(mine), bed(theirs), ancestor.map(bed))
      let expected = Self.expected(mine, theirs, ancestor)
      let place: Comment = "\(mine ?? "-") and \(theirs ?? "-") from \(String(describing: ancestor))"
      #expect(result.pebbles.first?.colour == expected && result.pebbles.count == (expected == nil ? 0 : 1), place)
      #expect(result.pebblesIfAny?.first?.colour == expected, place)
      #expect(result.signs["x"] == expected && result.signs.count == (expected == nil ? 0 : 1), place)
      #expect(result.signsIfAny?["x"] == expected, place)
      #expect(
        (result.signsIfAny == nil) == (expected == nil) && (result.pebblesIfAny == nil) == (expected == nil), place)
    }
  }

  @Test(
    "a set keeps an element that either device added, and drops one that either device removed",
    arguments: [true, false],
    [true, false])
  func sets(mine: Bool, theirs: Bool) {
    func some(_ has: Bool) -> Bed { Bed(unlocked: has ? ["x", "y"] : ["y"], unlockedIfAny: has ? ["x"] : nil) }
    for ancestor in [nil, true, false] as [Bool?] {
      let result = merged(some(mine), some(theirs), ancestor.map(some))
      let has = ancestor == true ? mine && theirs : mine || theirs
      #expect(result.unlocked == (has ? ["x", "y"] : ["y"]), "\(mine), \(theirs) from \(String(describing: ancestor))")
      #expect(result.unlockedIfAny == (has ? ["x"] : nil), "\(mine), \(theirs) from \(String(describing: ancestor))")
    }
  }

  @Test("an element that both devices changed is merged field by field if its type has merge rules")
  func rulesOfElements() throws {
    var base = Plant(id: 1, height: 3)
    base.waterings += 2
    func saved(_ plant: Plant, by writer: UInt64) throws -> Plant {
      try Archive.decode(Plant.self, from: Archive.encode(plant, writer: writer))
    }
    base = try saved(base, by: 1)
    var (mine, theirs) = (base, base)
    mine.height = 5
    mine.waterings += 1
    theirs.height = 4
    theirs.waterings += 10
    theirs.kind = "tulip"
    (mine, theirs) = (try saved(mine, by: 1), try saved(theirs, by: 2))
    let result = merged(
      Bed(plants: [mine], best: mine), Bed(plants: [theirs], best: theirs), Bed(plants: [base], best: base))
    for plant in result.plants + [try #require(result.best)] {
      #expect(plant.height == 5 && plant.waterings.value == 13 && plant.kind == "tulip")
    }
  }

  @Test("values with different ids aren't merged with each other; those with the same new id are, without an ancestor")
  func anotherIdentity() {
    let (rose, tulip) = (Plant(id: 1, height: 9, kind: "rose"), Plant(id: 2, height: 1, kind: "tulip"))
    #expect(merged(Bed(best: rose), Bed(best: tulip), Bed(best: rose)).best == tulip)
    #expect(merged(Bed(best: tulip), Bed(best: rose), Bed(best: rose)).best == tulip)
    // Both sides replaced the old plant by the same new one, which has no ancestor.
    let taller = Plant(id: 2, height: 5, kind: "tulip")
    #expect(merged(Bed(best: tulip), Bed(best: taller), Bed(best: rose)).best == taller)
  }

  @Test("@Merge without a rule on a plain value takes the only change, and this side's value if both changed")
  func plainValue() {
    #expect(merged(Bed(), Bed(owner: "ada"), Bed()).owner == "ada")
    #expect(merged(Bed(owner: "bob"), Bed(owner: "ada"), Bed()).owner == "bob")
  }

  @Test("the game's combining function merges what both sides changed, with this side's value first")
  func combines() {
    #expect(merged(Bed(notes: "a"), Bed(notes: "b"), nil).notes == "a|b")
    #expect(merged(Bed(notes: "a"), Bed(notes: "b"), Bed(notes: "b")).notes == "a")
    #expect(merged(Bed(notes: "a"), Bed(notes: "b"), Bed(notes: "")).notes == "a|b")
  }

  // MARK: Order

  func order(_ mine: [Int], _ theirs: [Int], _ ancestor: [Int]?) -> [Int] {
    func bed(_ ids: [Int]) -> Bed { Bed(plants: ids.map { Plant(id: $0) }) }
    return merged(bed(mine), bed(theirs), ancestor.map(bed)).plants.map(\.id)
  }

  @Test("a merged list keeps the order of its elements")
  func order() {
    #expect(order([1, 2, 3], [1, 2, 4], [1, 2]) == [1, 2, 3, 4])
    #expect(order([1, 2, 4], [1, 2, 3], [1, 2]) == [1, 2, 4, 3])
    #expect(order([1, 2], [9, 1, 8, 2, 7], [1, 2]) == [9, 1, 8, 2, 7])
    #expect(order([5, 1, 2], [6, 1, 2], [1, 2]) == [5, 6, 1, 2])
    // The element that it followed was removed on this side, so it comes after the element before that one.
    #expect(order([1, 3], [1, 2, 4, 3], [1, 2, 3]) == [1, 4, 3])
    // Only one side moved an element; then both did.
    #expect(order([1, 2, 3], [3, 1, 2], [1, 2, 3]) == [3, 1, 2])
    #expect(order([3, 1, 2], [1, 2, 3], [1, 2, 3]) == [3, 1, 2])
    #expect(order([1, 2, 3, 5], [3, 1, 2, 4], [1, 2, 3]) == [3, 5, 1, 2, 4])
    #expect(order([2, 1, 3], [3, 1, 2], [1, 2, 3]) == [2, 1, 3])
    #expect(order([], [1, 2], nil) == [1, 2])
    #expect(order([1, 2], [], []) == [1, 2])
    #expect(order([2, 1], [1, 3, 2], nil) == [2, 1, 3])
  }

  @Test("no element is lost in a list in which several elements have the same id")
  func repeatedIDs() {
    #expect(order([1, 1, 2], [1, 1, 2, 1], [1, 1, 2]) == [1, 1, 2, 1])
    #expect(order([1, 2], [1, 1, 2], [1, 1, 2]) == [1, 2])
    #expect(order([1, 1], [1], nil) == [1, 1])
    func bed(_ heights: [Int]) -> Bed { Bed(plants: heights.map { Plant(id: 1, height: $0) }) }
    let (mine, theirs, base) = (bed([5, 9]), bed([5, 7, 2]), bed([5, 7]))
    #expect(merged(mine, theirs, base).plants.map(\.height) == [5, 9, 2])
  }

  // MARK: Laws

  @Test(
    "three devices' changes merge to the same contents in any order, and merging a save with itself changes nothing",
    arguments: 0..<80 as Range<UInt64>)
  func anyOrderOfThree(seed: UInt64) throws {
    var random = Seeded(seed)
    let base = Bed(signs: ["s": "old"], unlocked: ["a", "b", "c"], plants: (1...6).map { Plant(id: $0, height: 3) })
    let heads = (1...3).map { device in
      var bed = base
      bed.plants.removeAll { _ in Int.random(in: 0..<4, using: &random) == 0 }
      for index in bed.plants.indices where Bool.random(using: &random) { bed.plants[index].height += device }
      if Bool.random(using: &random) {
        bed.plants.insert(Plant(id: device * 10), at: Int.random(in: 0...bed.plants.count, using: &random))
      }
      for name in ["a", "b", "c"] where Bool.random(using: &random) { bed.unlocked.remove(name) }
      if Bool.random(using: &random) { bed.unlocked.insert("new \(device)") }
      if Bool.random(using: &random) { bed.signs["s\(device)"] = "new" }
      return bed
    }
    var outcomes: Set<String> = []
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
      let bed = merged(merged(heads[order[0]], heads[order[1]], base), heads[order[2]], base)
      let plants = bed.plants.sorted { $0.id < $1.id }.map { "\($0.id): \($0.height)" }
      outcomes.insert("\(plants) \(bed.unlocked.sorted()) \(bed.signs.sorted { $0.key < $1.key })")
    }
    #expect(outcomes.count == 1, "seed \(seed): \(outcomes.sorted())")
    let again = merged(heads[0], heads[0], base)
    #expect(again.plants == heads[0].plants && again.unlocked == heads[0].unlocked, "seed \(seed)")
  }

  // MARK: A whole save

  @Test("merging two versions of a save of 30 KB loses no change")
  func wholePot() throws {
    var random = Seeded(7)
    var base = Bed(
      signs: Dictionary(
        uniqueKeysWithValues: (0..<200).map {
          ("sign \($0)", "says that the way to garden \($0) leads past the old mill and over the bridge")
        }))
    base.pebbles = (0..<1_000).map {
      Pebble(id: "pebble \($0)", colour: "grey \(Int.random(in: 0..<99, using: &random))")
    }
    base.plants = (0..<400).map { Plant(id: $0, height: Int.random(in: 0..<50, using: &random)) }
    base = try Archive.decode(Bed.self, from: Archive.encode(base, writer: 1))
    #expect(try Archive.encode(base).count > 30_000)
    var (mine, theirs) = (base, base)
    for index in stride(from: 0, to: 400, by: 3) { mine.plants[index].waterings += 1 }
    for index in stride(from: 0, to: 400, by: 2) { theirs.plants[index].waterings += 1 }
    mine.pebbles.remove(at: 500)
    theirs.pebbles[1].colour = "gold"
    theirs.pebbles.append(Pebble(id: "found"))
    mine.signs["sign 3"] = nil
    theirs.signs["sign 4"] = "says hello"
    mine = try Archive.decode(Bed.self, from: Archive.encode(mine, writer: 1))
    theirs = try Archive.decode(Bed.self, from: Archive.encode(theirs, writer: 2))
    let result = merged(mine, theirs, base)
    let waterings = (0..<400).map { (number: Int) -> Int in
      (number.isMultiple(of: 3) ? 1 : 0) + (number.isMultiple(of: 2) ? 1 : 0)
    }
    #expect(result.plants.map(\.waterings.value) == waterings)
    #expect(result.pebbles.count == 1_000 && result.pebbles[1].colour == "gold" && result.pebbles.last?.id == "found")
    #expect(!result.pebbles.contains { $0.id == "pebble 500" })
    #expect(result.signs.count == 199 && result.signs["sign 4"] == "says hello")
  }
}
