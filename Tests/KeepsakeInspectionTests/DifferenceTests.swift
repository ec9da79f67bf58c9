import Foundation
import Testing

@testable import ArchiveWorlds
@testable import KeepsakeArchive
@testable import KeepsakeInspection

/// Support compares two saves to find out what a player lost, so every change must be shown.
@Suite struct DifferenceTests {
  private func difference<A: Archivable, B: Archivable>(_ old: A, _ new: B) throws -> ArchiveDifference {
    try ArchiveDifference(
      from: ArchiveInspection(of: Archive.encode(old)), to: ArchiveInspection(of: Archive.encode(new)))
  }

  private func lines(_ difference: ArchiveDifference) -> [String] {
    difference.changes.map { "\($0.kind.rawValue) \($0.path) \($0.oldText ?? "") | \($0.newText ?? "")" }
  }

  private func world(_ change: (inout World, [Creature]) -> Void = { _, _ in }) -> World {
    let creatures = (0..<6).map { Creature(type: $0, name: "creature \($0)") }
    for (index, creature) in creatures.enumerated() {
      creature.inventory = (0...index).map { Item(kind: $0) }
      creature.target = creatures[(index + 1) % 6]
      creature.friends = [creatures[5 - index], creatures[0]]
    }
    var world = World(creatures: creatures, events: [.idle, .said("hello", 1)])
    change(&world, creatures)
    return world
  }

  @Test func aSaveDoesNotDifferFromItself() throws {
    let same = try difference(world(), world())
    #expect(same.isEmpty && same.text().isEmpty)
    #expect(try difference(GoldenWorld.make(), GoldenWorld.make()).isEmpty)
  }

  @Test func aChangedNumberIsNamedByItsPlace() throws {
    let changed = try difference(
      world(),
      world { world, creatures in
        creatures[3].inventory[0].count = 4
        world.name = "other"
        world.events[1] = .said("hello", nil)
      })
    #expect(
      lines(changed) == [
        "changed creatures[3].inventory[0].count 1 | 4", "changed events[1].1 1 | nil",
        "changed name \"world\" | \"other\"",
      ])
    #expect(changed.types.isEmpty && changed.removedObjects.isEmpty && changed.addedObjects.isEmpty)
    #expect(changed.text().contains("  creatures[3].inventory[0].count: 1 -> 4\n"))
  }

  @Test func anObjectThatIsGoneDoesNotMakeAllOthersLookChanged() throws {
    let removed = try difference(
      world(),
      world { world, creatures in
        world.creatures.remove(at: 2)
        creatures[1].target = creatures[3]
        creatures[3].friends = [creatures[0]]
      })
    #expect(removed.removedObjects.map(\.type) == ["Creature"] && removed.addedObjects.isEmpty)
    let paths = removed.changes.map { "\($0.kind.rawValue) \($0.path)" }
    #expect(paths == ["changed creatures[1].target", "removed creatures[2]", "removed creatures[3->2].friends[0]"])
  }

  @Test func aReferenceThatLeadsElsewhereIsAChangeAndNothingElseIs() throws {
    let changed = try difference(world(), world { _, creatures in creatures[0].target = creatures[4] })
    #expect(changed.changes.map(\.path) == ["creatures[0].target"])
    #expect(changed.changes.first?.newText?.contains("creature 4") == true)
  }

  @Test func elementsWithAnIDAreFoundAgainWhereverTheyStand() throws {
    func bag(_ ids: [Int], count: Int = 1) -> [ItemStack] { ids.map { ItemStack(id: $0, count: $0 == 3 ? count : 1) } }
    #expect(
      try lines(difference(bag([1, 2, 3]), bag([9, 1, 2, 3], count: 7))) == [
        "added [0]  | ItemStack(id: 9, count: 1)", "changed [2->3].count 1 | 7",
      ])
    #expect(try lines(difference(bag([1, 2, 3]), bag([3, 1, 2]))) == ["reordered root  | "])
    #expect(try lines(difference(bag([1, 2, 3]), bag([1, 3]))) == ["removed [1] ItemStack(id: 2, count: 1) | "])
  }

  @Test func objectsWithAnIDAreTheSameOnesInAnotherList() throws {
    func camp(_ ids: [Int], _ others: [Int], count: Int = 1) -> Camp {
      let all = Dictionary(uniqueKeysWithValues: (ids + others).map { ($0, Pet(id: $0, name: "pet \($0)")) })
      all[2]?.name += count > 1 ? "!" : ""
      let camp = Camp(home: ids.compactMap { all[$0] }, away: others.compactMap { all[$0] })
      return camp
    }
    let moved = try difference(camp([1, 2, 3], [4]), camp([1, 3], [2, 4], count: 2))
    #expect(moved.removedObjects.isEmpty && moved.addedObjects.isEmpty)
    #expect(moved.changes.map(\.path) == ["home[1]", "away[0]", "#2 Pet.name"])
  }

  @Test func listsAreAlignedSoThatWhatStaysTheSameIsNotShown() throws {
    #expect(try lines(difference([1, 2, 3, 4], [2, 3, 4, 5])) == ["removed [0] 1 | ", "added [3]  | 5"])
    #expect(try lines(difference(["a", "b", "c"], ["a", "x", "c"])) == ["changed [1] \"b\" | \"x\""])
    #expect(try lines(difference(["a", "b"], ["a", "b", "b"])) == ["added [2]  | \"b\""])
    var random = Seeded(5)
    for round in 0..<200 {
      let a = (0..<Int.random(in: 0...12, using: &random)).map { _ in UInt64.random(in: 0...3, using: &random) }
      let b = (0..<Int.random(in: 0...12, using: &random)).map { _ in UInt64.random(in: 0...3, using: &random) }
      for isWithin in [true, false] {
        var budget = isWithin ? 1_000_000 : 0
        let pairs = Alignment.inOrder([(a, b), (a.map { $0 / 2 }, b.map { $0 / 2 })], budget: &budget)
        #expect(
          pairs.compactMap(\.old) == Array(a.indices) && pairs.compactMap(\.new) == Array(b.indices),
          "seed 5, round \(round)")
      }
      let keyed = Alignment.byKey(a, b)
      #expect(
        keyed.compactMap(\.new) == Array(b.indices) && keyed.compactMap(\.old).sorted() == Array(a.indices),
        "seed 5, round \(round)")
      #expect(keyed.allSatisfy { pair in pair.old.flatMap { old in pair.new.map { a[old] == b[$0] } } ?? true })
    }
  }

  @Test func keysAndSetElementsAreMatchedByWhatTheyAre() throws {
    let old = Everything()
    var new = Everything()
    new.map = ["b": [1, 2], "c": [300, -70000], "new \u{1B}[2J": []]
    new.set = [1, 2, 4]
    new.levels = [.three: 4, .two: 2]
    let changes = try lines(difference(old, new))
    #expect(
      Set(changes) == [
        "removed map[\"a\"] [] | ", "added map[\"b\"][1]  | 2", "added map[\"new \\u{1b}[2J\"]  | []",
        "removed set[2] 3 | ",
        "added set[2]  | 4", "removed levels[.one] 1 | ", "added levels[.two]  | 2", "changed levels[.three] 3 | 4",
      ])
  }

  @Test func declarationsThatChangedAreListedApart() throws {
    let difference = try difference(Yesterday.Hero(), Today.Hero())
    let types = Set(
      difference.types.map { "\($0.kind.rawValue) \($0.type).\($0.member ?? "") \($0.old ?? "") \($0.new ?? "")" })
    #expect(
      types == [
        "version Hero. 1 2", "fieldType Hero.health int64 double", "fieldRemoved Hero.mana int64 ",
        "fieldAdded Hero.stamina  int64",
        "caseRemoved Mood.angry  ", "caseAdded Mood.calm  ",
      ])
    // Health is 10 before and after, whatever its type.
    #expect(difference.changes.map(\.path) == ["mana", "stamina"])
    #expect(difference.text().contains("  Hero.health: int64 -> double\n"))
  }

  @Test func cyclesEndAndLongChainsKeepTheirPathsShort() throws {
    func list(_ count: Int, last: Int) -> Node {
      let first = Node(0)
      var node = first
      for index in 1..<count {
        let next = Node(index == count - 1 ? last : index)
        node.next = next
        node = next
      }
      node.next = first
      return first
    }
    #expect(try difference(list(50_000, last: 1), list(50_000, last: 1)).isEmpty)
    let changed = try difference(list(50_000, last: 1), list(50_000, last: 2))
    #expect(changed.changes.count == 1 && changed.changes.allSatisfy { $0.path.count < 200 })
    #expect(changed.changes.first?.path.hasSuffix("value") == true && changed.changes.first?.new == .integer(2))
  }

  @Test func aMillionChangesAreCountedAndNotListed() throws {
    let difference = try difference([Int](repeating: 1, count: 100_000), [Int](repeating: 2, count: 100_000))
    #expect(difference.changes.count == 100 && difference.omitted == [.init(pattern: "[]", count: 99_900)])
    #expect(difference.text().contains("... 99900 more at []"))
  }

  @Test func theJSONFormIsJSONAndTellsTheSame() throws {
    let difference = try difference(
      world(),
      world { world, creatures in
        creatures[3].inventory[0].durability = .infinity
        world.creatures.append(Boss(type: 1, name: "\"boss\"\n"))
      })
    let json = try #require(try JSONSerialization.jsonObject(with: difference.json()) as? [String: Any])
    #expect(json["equal"] as? Bool == false)
    let changes = try #require(json["changes"] as? [[String: Any]])
    #expect(changes.map { $0["path"] as? String } == ["creatures[3].inventory[0].durability", "creatures[6]"])
    #expect(changes.first?["new"] as? String == "inf" && changes.first?["old"] as? Double == 1)
    let added = try #require(json["addedObjects"] as? [[String: Any]])
    #expect(added.map { $0["name"] as? String } == ["\"boss\"\n"])
  }

  @Test func alteredArchivesAreComparedWithoutACrash() throws {
    let good = try Archive.encode(GoldenWorld.make())
    let whole = try ArchiveInspection(of: good)
    var random = Seeded(8)
    var differences = 0
    for index in 16..<good.count - 8 {
      var bad = good
      bad[index] ^= .random(in: 1...255, using: &random)
      // Another test covers archives that are refused.
      guard let other = try? ArchiveInspection(of: Archive.resealed(bad)) else { continue }
      let there = ArchiveDifference(from: whole, to: other)
      let back = ArchiveDifference(from: other, to: whole)
      #expect(there.isEmpty == back.isEmpty, "seed 8, byte \(index)")
      if !there.isEmpty { differences += 1 }
    }
    #expect(differences > 300)
  }
}

@Archivable private struct ItemStack {
  var id: Int
  var count: Int
}

@Archivable private final class Pet {
  let id: Int
  var name: String
  init(id: Int, name: String) {
    self.id = id
    self.name = name
  }
}

@Archivable private struct Camp {
  var home: [Pet]
  var away: [Pet]
}

private enum Yesterday {
  @Archivable enum Mood { case happy, angry }
  @Archivable struct Hero {
    var health = 10
    var mana = 5
    var mood = Mood.happy
  }
}

private enum Today {
  @Archivable enum Mood { case happy, calm }
  @Archivable(version: 2) struct Hero {
    var health = 10.0
    var mood = Mood.happy
    var stamina = 5
  }
}
