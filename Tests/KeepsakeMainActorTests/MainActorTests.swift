import Foundation
import KeepsakeArchive
import Observation
import Testing

// This module's types belong to the main actor unless they say otherwise, as in a new app project.

@Archivable struct Purse {
  var coins = 3
  var names: [String: [Int]] = ["a": [1]]
  @Unsaved var isOpen = false
}

@Archivable enum Face {
  case plain
  case smiling(teeth: Int, since: Double = 1)
  @Fallback case other(String)
}

@Archivable(subclasses: [Boss.self]) class Actor {
  var name: String
  var purse = Purse()
  var face = Face.plain
  weak var target: Actor?
  var friends: [Actor] = []
  init(name: String) { self.name = name }
}

@Archivable final class Boss: Actor { var rage = 1 }

@Observable @Archivable final class Model {
  var points = 0
  var parent: Model?
}

@Archivable nonisolated struct Free: Equatable, Sendable {
  var x = 4
  var list = [1.5]
}

@Archivable struct Box<Value> { var value: Value }

@Archivable nonisolated final class FreeNode: Hashable {
  let id: Int
  init(id: Int) { self.id = id }
  static func == (a: FreeNode, b: FreeNode) -> Bool { a.id == b.id }
  func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

@Archivable(name: "Purse", version: 2) struct Moved {
  var x = 0
  mutating func migrate(_ saved: inout ArchiveMigration) throws { x = try saved.decode(Int.self, forKey: "coins") }
}

@Archivable struct Coin: Identifiable {
  let id: Int
  @Merge(.max) var worth = 1
}

@Archivable final class Chest {
  @Merge(.max) var level = 1
  @Merge var coins: [Coin] = []
  @Merge var labels: [String: String] = [:]
  @Merge(combining: Chest.joined) var notes = ""
  var loot = Loot()
  var inner: Chest?
  static func joined(_ mine: String, _ theirs: String, _ ancestor: String?) -> String { mine + theirs }
}

@Archivable struct Loot { var first: Coin? }

/// Archived by hand-written code.
struct Hand: Archivable {
  var text: String
  init(text: String) { self.text = text }
  func encode(to writer: inout ArchiveWriter) throws { try writer.encode(text, forKey: "text") }
  init(from reader: inout ArchiveReader) throws { text = try reader.decode(String.self, forKey: "text") }
}

@Suite struct MainActorTests {
  func again<V: Archivable>(_ value: V) throws -> V { try Archive.decode(V.self, from: Archive.encode(value)) }

  @Test func aGameOfTheMainActorIsSavedOnIt() throws {
    let (hero, boss) = (Actor(name: "hero"), Boss(name: "boss"))
    hero.purse = Purse(coins: 9)
    hero.face = .smiling(teeth: 5)
    hero.target = boss
    boss.friends = [hero, boss]
    boss.rage = 7
    let copy = try again([hero, boss])
    #expect(
      copy[0].purse.coins == 9 && copy[0].target === copy[1] && (copy[1] as? Boss)?.rage == 7
        && copy[1].friends[0] === copy[0])
    guard case .smiling(teeth: 5, since: 1) = copy[0].face else {
      Issue.record("the face changed")
      return
    }
    for boss in [boss, copy[1]] { boss.friends = [] }
    #expect(try again(Box(value: Purse(coins: 2))).value.coins == 2)
    #expect(try again(Hand(text: "t")).text == "t")
    #expect(try Archive.decode(Moved.self, from: Archive.encode(Purse(coins: 8))).x == 8)
  }

  @Test func anObservedModelIsSavedOnTheMainActor() throws {
    let model = Model()
    (model.points, model.parent) = (4, model)
    let copy = try again(model)
    #expect(copy.points == 4 && copy.parent === copy)
    for model in [model, copy] { model.parent = nil }
  }

  @Test func savesOfTheMainActorAreMergedOnIt() {
    let (mine, theirs) = (Chest(), Chest())
    (mine.inner, theirs.inner) = (Chest(), Chest())
    theirs.inner?.level = 8
    (mine.coins, theirs.coins) = ([Coin(id: 1)], [Coin(id: 1, worth: 5), Coin(id: 2)])
    (mine.notes, theirs.notes) = ("a", "b")
    theirs.labels = ["x": "y"]
    theirs.loot.first = Coin(id: 3)
    mine.mergeFields(from: theirs, ancestor: nil)
    #expect(
      mine.inner?.level == 8 && mine.coins.map(\.worth) == [5, 1] && mine.notes == "ab" && mine.labels == ["x": "y"])
    #expect(mine.loot.first?.id == 3)
    // A coin with another id isn't merged with this one.
    theirs.loot.first = Coin(id: 4, worth: 9)
    mine.mergeFields(from: theirs, ancestor: nil)
    #expect(mine.loot.first?.id == 3 && mine.loot.first?.worth == 1)
  }

  @Test func whatBelongsToNoActorIsSavedAnywhere() async throws {
    let copy = try await Task.detached { try Archive.decode(Free.self, from: Archive.encode(Free(x: 6))) }.value
    #expect(copy == Free(x: 6))
    #expect(try again(Set([FreeNode(id: 1), FreeNode(id: 2)])).count == 2)
  }
}
