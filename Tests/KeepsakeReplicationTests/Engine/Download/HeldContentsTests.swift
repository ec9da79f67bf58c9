import Testing

@testable import KeepsakeReplication

/// Contents that arrived before their bases.
struct HeldContentsTests {
  @Test("a base releases the contents that waited for it, and no others")
  func release() {
    var held = HeldContents()
    #expect(held.hold(Samples.content(1, base: 2)) == true)
    #expect(held.hold(Samples.content(3, base: 2)) == true)
    #expect(held.hold(Samples.content(4, base: 5)) == true)
    #expect(held.needs(Samples.hash(2)) && held.contains(Samples.hash(1)))
    #expect(held.release(for: Samples.hash(2)).map(\.hash) == [Samples.hash(1), Samples.hash(3)])
    #expect(held.hashes == [Samples.hash(4)] && !held.needs(Samples.hash(2)))
  }

  @Test("the root of a base is the content with which the chain that waits for it begins")
  func roots() {
    var held = HeldContents()
    #expect(held.roots(of: Samples.hash(3)) == [Samples.hash(3)])
    #expect(held.hold(Samples.content(1, base: 2)) == true)
    #expect(held.hold(Samples.content(2, base: 3)) == true)
    #expect(held.roots(of: Samples.hash(3)) == [Samples.hash(1)])
    held.removeAll(neededBy: Samples.hash(1))
    #expect(held.isEmpty)
  }

  @Test("contents that no needed content depends on are dropped")
  func keepOnly() {
    var held = HeldContents()
    #expect(held.hold(Samples.content(1, base: 2)) == true)
    #expect(held.hold(Samples.content(2, base: 3)) == true)
    #expect(held.hold(Samples.content(4, base: 5)) == true)
    held.keepOnly(neededBy: [Samples.hash(1)])
    #expect(held.hashes == [Samples.hash(1), Samples.hash(2)])
  }

  @Test("a content without a base isn't held, and one that is held already isn't held twice")
  func nothingToHold() {
    var held = HeldContents()
    #expect(held.hold(Samples.content(1)) == true)
    #expect(held.isEmpty)
    for base in [2, 3] { #expect(held.hold(Samples.content(1, base: base)) == true) }
    #expect(held.all.map(\.content.base) == [Samples.hash(2)])
  }

  @Test("contents whose bases form a cycle aren't held")
  func circles() {
    var held = HeldContents()
    #expect(held.hold(Samples.content(1, base: 1)) == false)
    #expect(held.hold(Samples.content(1, base: 2)) == true)
    #expect(held.hold(Samples.content(2, base: 3)) == true)
    #expect(held.hold(Samples.content(3, base: 1)) == false)
    #expect(held.all.count == 2)
  }

  @Test("a chain of bases is held up to the maximum length, and no further")
  func longChains() {
    var held = HeldContents()
    for number in 0..<HeldContents.maximumChain {
      #expect(held.hold(Samples.content(number, base: number + 1)) == true)
    }
    let next = HeldContents.maximumChain
    #expect(held.hold(Samples.content(next, base: next + 1)) == false)
  }

  @Test("the depth of a base is the length of the longest chain that leads to it")
  func branches() {
    var held = HeldContents()
    for (number, base) in [(1, 2), (2, 5), (4, 5), (5, 6)] {
      #expect(held.hold(Samples.content(number, base: base)) == true)
    }
    #expect(held.all.map(\.depth) == [1, 2, 1, 3] && held.all.last?.root == Samples.hash(1))
  }
}
