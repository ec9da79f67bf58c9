import Foundation
import KeepsakeArchive
import Testing

// A hierarchy in which classes that inherit their initialisers alternate with classes that declare them: the reader
// handles these in different ways.
enum Before {
  @Archivable(name: "Thing", subclasses: [Late.self, Early.self, Leaf.self]) class Thing {
    var id = 1
    var friend: Thing?
  }
  @Archivable(name: "Late") class Late: Thing {
    var rage = 2
    var enemy: Thing?
  }
  @Archivable(name: "Early") class Early: Late {
    let fixed: Int
    var list: [Thing]
    init(fixed: Int) {
      self.fixed = fixed
      list = []
      super.init()
    }
  }
  @Archivable(name: "Leaf") final class Leaf: Early {
    var tail = "t"
    var others: [Thing] = []
  }
}

enum After {
  @Archivable(name: "Thing", subclasses: [Late.self, Early.self, Leaf.self]) class Thing {
    var added = "a"
    var friend: Thing?
    var id = 0
  }
  @Archivable(name: "Late") class Late: Thing {
    var enemy: Thing?
    var calm = 8
    var rage: Int64 = 0
  }
  @Archivable(name: "Early") class Early: Late {
    let fixed: Int
    let extra: String?
    var list: [Thing]
    init(fixed: Int) {
      self.fixed = fixed
      extra = nil
      list = []
      super.init()
    }
  }
  @Archivable(name: "Leaf") final class Leaf: Early {
    var others: [Thing] = []
    var tail = ""
  }
}

@Suite struct HierarchyTests {
  func sample() -> [Before.Thing] {
    let (thing, late, early, leaf) = (Before.Thing(), Before.Late(), Before.Early(fixed: 5), Before.Leaf(fixed: 6))
    for (index, object) in [thing, late, early, leaf].enumerated() { object.id = index + 10 }
    thing.friend = leaf
    late.enemy = early
    early.list = [thing, early]
    early.rage = 33
    leaf.rage = 44
    leaf.tail = "end"
    leaf.others = [leaf, late]
    leaf.enemy = thing
    return [leaf, early, thing, late]
  }

  @Test func everyClassOfAHierarchyKeepsItsFields() throws {
    let copy = try Archive.decode([Before.Thing].self, from: Archive.encode(sample()))
    let leaf = try #require(copy[0] as? Before.Leaf)
    let early = try #require(copy[1] as? Before.Early)
    let late = try #require(copy[3] as? Before.Late)
    #expect(copy.map(\.id) == [13, 12, 10, 11])
    #expect(
      leaf.fixed == 6 && leaf.rage == 44 && leaf.tail == "end" && early.fixed == 5 && early.rage == 33 && late.rage == 2
    )
    #expect(leaf.others[0] === leaf && leaf.others[1] === late && leaf.enemy === copy[2] && copy[2].friend === leaf)
    #expect(early.list[0] === copy[2] && early.list[1] === early && late.enemy === early && leaf.list.isEmpty)
  }

  @Test func everyClassOfAHierarchyMayChange() throws {
    let copy = try Archive.decode([After.Thing].self, from: Archive.encode(sample()))
    let leaf = try #require(copy[0] as? After.Leaf)
    let early = try #require(copy[1] as? After.Early)
    let late = try #require(copy[3] as? After.Late)
    #expect(copy.map(\.id) == [13, 12, 10, 11] && copy.allSatisfy { $0.added == "a" })
    #expect(
      leaf.fixed == 6 && leaf.rage == 44 && leaf.tail == "end" && early.fixed == 5 && early.rage == 33 && late.rage == 2
    )
    #expect(leaf.others[0] === leaf && leaf.others[1] === late && leaf.enemy === copy[2] && copy[2].friend === leaf)
    #expect(
      early.list[0] === copy[2] && early.list[1] === early && late.enemy === early && late.calm == 8
        && early.extra == nil)
  }
}
