import Testing

@testable import KeepsakeReplication

/// Contents that came before their bases.
struct HeldContentsTests {
  @Test("a base lets go of what waited for it, and of nothing else")
  func release() {
    var held = HeldContents()
    #expect(held.hold(Samples.content(1, base: 2)) == true)
    #expect(held.hold(Samples.content(3, base: 2)) == true)
    #expect(held.hold(Samples.content(4, base: 5)) == true)
    #expect(held.needs(Samples.hash(2)) && held.contains(Samples.hash(1)))
    #expect(held.release(for: Samples.hash(2)).map(\.hash) == [Samples.hash(1), Samples.hash(3)])
    #expect(held.hashes == [Samples.hash(4)] && !held.needs(Samples.hash(2)))
  }

  @Test("what is needed in the end of a base is what the chain began with")
  func roots() {
    var held = HeldContents()
    #expect(held.roots(of: Samples.hash(3)) == [Samples.hash(3)])
    #expect(held.hold(Samples.content(1, base: 2)) == true)
    #expect(held.hold(Samples.content(2, base: 3)) == true)
    #expect(held.roots(of: Samples.hash(3)) == [Samples.hash(1)])
    held.removeAll(neededBy: Samples.hash(1))
    #expect(held.isEmpty)
  }

  @Test("what nobody needs in the end is let go of")
  func keepOnly() {
    var held = HeldContents()
    #expect(held.hold(Samples.content(1, base: 2)) == true)
    #expect(held.hold(Samples.content(2, base: 3)) == true)
    #expect(held.hold(Samples.content(4, base: 5)) == true)
    held.keepOnly(neededBy: [Samples.hash(1)])
    #expect(held.hashes == [Samples.hash(1), Samples.hash(2)])
  }

  @Test("a content without a base, or one that is held, changes nothing")
  func nothingToHold() {
    var held = HeldContents()
    #expect(held.hold(Samples.content(1)) == true)
    #expect(held.isEmpty)
    for base in [2, 3] { #expect(held.hold(Samples.content(1, base: base)) == true) }
    #expect(held.all.map(\.content.base) == [Samples.hash(2)])
  }

  @Test("bases that go in a circle aren't held")
  func circles() {
    var held = HeldContents()
    #expect(held.hold(Samples.content(1, base: 1)) == false)
    #expect(held.hold(Samples.content(1, base: 2)) == true)
    #expect(held.hold(Samples.content(2, base: 3)) == true)
    #expect(held.hold(Samples.content(3, base: 1)) == false)
    #expect(held.all.count == 2)
  }

  @Test("a chain of bases is held up to the longest, and no further")
  func longChains() {
    var held = HeldContents()
    for number in 0..<HeldContents.maximumChain {
      #expect(held.hold(Samples.content(number, base: number + 1)) == true)
    }
    let next = HeldContents.maximumChain
    #expect(held.hold(Samples.content(next, base: next + 1)) == false)
  }

  @Test("a chain of bases is as long as the longest that leads to it")
  func branches() {
    var held = HeldContents()
    for (number, base) in [(1, 2), (2, 5), (4, 5), (5, 6)] {
      #expect(held.hold(Samples.content(number, base: base)) == true)
    }
    #expect(held.all.map(\.depth) == [1, 2, 1, 3] && held.all.last?.root == Samples.hash(1))
  }
}
