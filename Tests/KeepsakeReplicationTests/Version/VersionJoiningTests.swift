import Foundation
import KeepsakeReplication
import Testing

/// Two records of one version, as two devices know it.
@Suite struct VersionJoiningTests {
  @Test("what two records of a version contain is joined: it covers all, and is provisional only if both say so")
  func joins() {
    var mine = ResolutionTests.version(5, over: [1, 3], contents: "x", provisional: true)
    var other = ResolutionTests.version(5, over: [2, 3], contents: "x")
    mine.metadata.title = "Cave"
    other.metadata.thumbnail = Data([1])
    for joined in [mine.joined(with: other), other.joined(with: mine)] {
      #expect(joined.covers == [1, 2, 3].map(ResolutionTests.id) && !joined.provisional)
      #expect(joined.metadata.title == "Cave" && joined.metadata.thumbnail == Data([1]))
      #expect(joined.isSame(as: mine) && joined.isSame(as: other))
    }
    #expect(mine.joined(with: mine) == mine && mine.provisional)
    other.length += 1
    #expect(!mine.isSame(as: other) && mine.joined(with: other).length == mine.length)
  }
}

/// What pruning may not remove, because a merge starts from it.
@Suite struct NeededVersionsTests {
  private func needed(_ heads: [UInt64], _ records: [VersionRecord], unshared: Set<UInt64> = []) throws -> [UInt64] {
    let known = Dictionary(uniqueKeysWithValues: records.map { ($0.id, $0) })
    let needed = try Resolution.needed(by: heads.map(ResolutionTests.id)) {
      known[$0]
    } isShared: {
      !unshared.contains($0.low)
    }
    return needed.map(\.low).sorted()
  }

  @Test("the versions from which the sides of a conflict come are kept, and nothing older")
  func conflict() throws {
    let records = [
      ResolutionTests.version(1), ResolutionTests.version(2, over: [1]), ResolutionTests.version(3, over: [2]),
      ResolutionTests.version(4, over: [3]), ResolutionTests.version(5, over: [2]),
    ]
    #expect(try needed([4, 5], records) == [2, 3, 4, 5])
    #expect(try needed([4, 5], records, unshared: [2, 3]) == [2, 4, 5], "no other device continued from 3")
  }

  @Test("what a merged save was merged from is kept with its ancestor, since another device may merge the same")
  func merged() throws {
    let records = [
      ResolutionTests.version(1), ResolutionTests.version(2, over: [1]), ResolutionTests.version(3, over: [1]),
      ResolutionTests.version(4, over: [2, 3]),
    ]
    #expect(try needed([4], records) == [1, 2, 3, 4])
    #expect(try needed([4], records, unshared: [3]) == [2, 4])
  }
}
