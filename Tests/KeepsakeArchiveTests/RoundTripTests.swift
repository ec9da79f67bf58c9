import Foundation
import KeepsakeArchive
import Testing

@testable import ArchiveWorlds

@Suite struct RoundTripTests {
  func again<V: Archivable>(_ value: V) throws -> V { try Archive.decode(V.self, from: Archive.encode(value)) }

  @Test func everyKindOfFieldComesBackAsItWas() throws {
    let value = Everything()
    #expect(try again(value) == value)
    #expect(try again([value, value]) == [value, value])
    #expect(try again(["k": value]) == ["k": value])
    #expect(try again(Optional(value)) == value)
  }

  @Test func enumsKeepTheirPayloads() throws {
    let events: [Event] = [.idle, .moved(to: [1, 2]), .said("x", 3), .both(.idle, .both(.idle, .said("", nil)))]
    #expect(try again(events) == events)
    #expect(try again([Rank.low, .middle, .high]) == [.low, .middle, .high])
  }

  @Test func genericNestedAndPrivateTypesComeBack() throws {
    let pair = try again(Pair(first: [1, 2], second: Pair<Int, String>(first: 1, second: "x")))
    #expect(pair.first == [1, 2])
    #expect(pair.second?.second == "x")
    var ship = Space.Ship()
    ship.go()
    #expect(try again(ship) == ship)
    #expect(try Space.hiddenRoundTrip() == 7)
  }

  @Test func sharedCreaturesStaySharedAndSubclassesComeBackAsThemselves() throws {
    let boss = Boss(type: 5, name: "boss")
    boss.rage = 77
    boss.frames = 9
    let hero = Creature(type: 1, name: "hero")
    hero.inventory = [Item(kind: 3), Item(kind: 4, count: 9, durability: 0.5)]
    hero.target = boss
    boss.target = hero
    hero.friends = [boss, hero]
    let minion = Minion(master: boss)
    let world = World(creatures: [minion, hero, boss, hero])
    let copy = try again(world)
    let (m, h, b) = (copy.creatures[0], copy.creatures[1], copy.creatures[2])
    #expect(copy.creatures[3] === h)
    #expect(h.target === b && b.target === h)
    #expect(h.friends.count == 2 && h.friends[0] === b && h.friends[1] === h)
    #expect((b as? Boss)?.rage == 77)
    #expect(b.frames == 0)
    #expect((m as? Minion)?.master === b)
    #expect(h.inventory == hero.inventory)
    #expect(h.name == "hero" && h.position == hero.position)
  }

  @Test func childrenKnowTheirParentAgain() throws {
    let parent = Parent()
    let (a, b) = (Child(parent: parent, name: "a"), Child(parent: parent, name: "b"))
    parent.children = [a, b]
    parent.byName = ["b": b, "a": a]
    let copy = try again(parent)
    #expect(copy.children.map(\.name) == ["a", "b"])
    #expect(copy.children.allSatisfy { $0.parent === copy })
    #expect(copy.byName["b"] === copy.children[1])
  }

  @Test func aListOfAHundredThousandObjectsDoesNotOverflowTheStack() throws {
    let first = Node(0)
    var last = first
    for value in 1..<100_000 {
      let node = Node(value)
      last.next = node
      last = node
    }
    last.next = first
    let copy = try again(first)
    var node = copy
    var count = 0
    repeat {
      #expect(node.value == count)
      count += 1
      guard let next = node.next else { break }
      node = next
    } while node !== copy && count < 200_000
    #expect(count == 100_000 && node === copy)
    unlink(first)
    unlink(copy)
  }

  @Test func aChainOfConstantReferencesIsBuiltFromItsEnd() throws {
    var chain: LetNode?
    var all: [LetNode] = []
    for value in 0..<20_000 {
      let node = LetNode(value, chain)
      all.append(node)
      chain = node
    }
    let bytes = try Archive.encode(all[19_999])
    let copy = try Archive.decode(LetNode.self, from: bytes)
    var count = 0
    var node: LetNode? = copy
    while let here = node {
      count += 1
      node = here.next
    }
    #expect(count == 20_000)
    // Both chains are released from the front, one object at a time.
    all.removeAll { _ in true }
  }

  private func unlink(_ first: Node) {
    var node: Node? = first
    while let here = node {
      node = here.next
      here.next = nil
    }
  }

  /// How a block is copied depends on its position in the archive; the prefix lengths here cover each case.
  @Test func largeBlocksAreTheSameWhereverTheyStand() throws {
    let bytes = (0..<70_003).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    let floats = (0..<20_001).map { Float($0) / 8 }
    for length in stride(from: 0, through: 4_200, by: 61) {
      let prefix = String(repeating: "p", count: length)
      let copy = try Archive.decode(
        Blocks.self, from: Archive.encode(Blocks(prefix: prefix, bytes: bytes, floats: floats)))
      #expect(copy.prefix.utf8.count == length)
      #expect(copy.bytes == bytes)
      #expect(copy.floats == floats)
    }
  }
}

@Archivable private struct Blocks {
  var prefix: String
  var bytes: [UInt8]
  var floats: [Float]
}
