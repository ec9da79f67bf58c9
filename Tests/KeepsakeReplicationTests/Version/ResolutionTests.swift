import Foundation
import KeepsakeReplication
import Testing

@Suite struct ResolutionTests {
  static func id(_ number: UInt64) -> VersionID { VersionID(high: 0, low: number) }

  static func version(
    _ number: UInt64, over covers: [UInt64] = [], contents: String? = nil, progress: Double? = nil,
    playtime: Double? = nil,
    savedAt: Int64 = 0, provisional: Bool = false, tombstone: Bool = false
  ) -> VersionRecord {
    VersionRecord(
      id: id(number), slot: "main", covers: covers.map(id),
      contents: tombstone ? [] : [ContentHash(of: Data((contents ?? "\(number)").utf8))],
      length: tombstone ? 0 : 1, metadata: SaveMetadata(playtime: playtime, progress: progress),
      savedAtMilliseconds: savedAt,
      writer: WriterID(1), provisional: provisional, tombstone: tombstone)
  }

  func view(_ records: [VersionRecord], _ policy: SavePolicy = .mostProgress) throws -> SlotView {
    let covered = Set(records.flatMap(\.covers))
    let known = Dictionary(uniqueKeysWithValues: records.map { ($0.id, $0) })
    return try Resolution.view(heads: records.map(\.id).filter { !covered.contains($0) }.sorted(), policy: policy) {
      known[$0]
    }
  }

  @Test("A merge starts from the nearest versions that both sides descend from")
  func nearestAncestor() throws {
    let line = [Self.version(1), Self.version(2, over: [1]), Self.version(3, over: [2])]
    #expect(try view(line + [Self.version(4, over: [3]), Self.version(5, over: [3, 2])]).ancestors == [Self.id(3)])
    // A crossed merge has two nearest ancestors.
    let crossed =
      line + [
        Self.version(4, over: [2, 3]), Self.version(10, over: [1]), Self.version(11, over: [4, 10]),
        Self.version(12, over: [4, 10]),
      ]
    #expect(try view(crossed).ancestors == [Self.id(4), Self.id(10)])
    // One head skips generations that the other one covers.
    #expect(try view(line + [Self.version(6, over: [1]), Self.version(7, over: [3])]).ancestors == [Self.id(1)])
  }

  @Test("Two unrelated games have no common ancestor")
  func unrelated() throws {
    let result = try view([Self.version(1, savedAt: 5), Self.version(2, progress: 1, savedAt: 1)], .newest)
    #expect(!result.related)
    #expect(result.ancestors.isEmpty)
    #expect(result.winner?.id == Self.id(2))
  }

  @Test(
    "Dates rank saves only if all have a common ancestor; without one, the longer save ranks first, however old",
    arguments: [SavePolicy.mostProgress, .longestPlayed, .newest])
  func dates(policy: SavePolicy) throws {
    var long = Self.version(1, savedAt: 1)
    long.length = 2
    let newer = Self.version(2, savedAt: 9)
    #expect(try view([long, newer], policy).heads.map(\.id) == [long.id, newer.id])
    let related = [long, newer].map { head in
      var head = head
      head.covers = [Self.id(7)]
      return head
    }
    #expect(try view(related, policy).heads.map(\.id) == [newer.id, long.id])
    let third = Self.version(3, savedAt: 5)
    #expect(try view(related + [third], policy).heads.map(\.id) == [long.id, newer.id, third.id])
  }

  @Test("Related saves count as related even if their common ancestor was pruned")
  func unknownAncestor() throws {
    let result = try view([Self.version(2, over: [1], savedAt: 1), Self.version(3, over: [1], savedAt: 2)], .newest)
    #expect(result.related)
    #expect(result.ancestors.isEmpty)
    #expect(result.winner?.id == Self.id(3))
  }

  func mergeAncestors(_ heads: [UInt64], _ records: [VersionRecord]) throws -> MergeAncestors {
    let known = Dictionary(uniqueKeysWithValues: records.map { ($0.id, $0) })
    return try Resolution.mergeAncestors(of: heads.map(Self.id)) { known[$0] }
  }

  @Test("A third save without parents doesn't hide the common ancestor of two related ones")
  func strangerBesideRelatives() throws {
    let records = [Self.version(1), Self.version(2, over: [1]), Self.version(3, over: [1]), Self.version(9)]
    for heads in [[9, 2, 3], [2, 9, 3], [2, 3, 9]] as [[UInt64]] {
      let ancestors = try mergeAncestors(heads, records)
      func before(_ head: UInt64) -> [VersionID] { heads.prefix { $0 != head }.map(Self.id) }
      let later = try #require(heads.last { $0 != 9 })
      #expect(ancestors.nearest(of: Self.id(later), with: before(later)) == [Self.id(1)])
      #expect(ancestors.nearest(of: Self.id(9), with: before(9)).isEmpty)
      #expect(ancestors.all == [Self.id(1)])
      #expect(ancestors.common.isEmpty)
    }
    #expect(try view(records).ancestors.isEmpty, "all of them together still have no common ancestor")
  }

  @Test("A merge of three heads merges each one from the ancestor nearest to it and to those before it")
  func nearestOfThree() throws {
    // 4 and 5 come from 2, which comes from 1; 3 comes from 1.
    let records = [
      Self.version(1), Self.version(2, over: [1]), Self.version(3, over: [1]), Self.version(4, over: [2]),
      Self.version(5, over: [2, 1]),
    ]
    let ancestors = try mergeAncestors([3, 4, 5], records)
    func nearest(_ head: UInt64, _ merged: [UInt64]) -> [VersionID] {
      ancestors.nearest(of: Self.id(head), with: merged.map(Self.id))
    }
    #expect(nearest(4, [3]) == [Self.id(1)])
    #expect(nearest(5, [3, 4]) == [Self.id(2)], "with both: the nearest to either")
    #expect(nearest(5, [3]) == [Self.id(1)], "without the second, which couldn't be read")
    #expect(nearest(3, [5, 4]) == [Self.id(1)], "in any order")
    #expect(nearest(9, [3]).isEmpty && nearest(3, [9]).isEmpty)
    #expect(ancestors.common == [Self.id(1)])
    // The root of both isn't among them: only its id is known.
    #expect(try mergeAncestors([4, 5], Array(records.dropFirst(2))).all.isEmpty)
  }

  @Test("In a conflict of very many heads each one is compared with only some of those before it")
  func manyHeads() throws {
    let count = UInt64(Resolution.comparedHeads) + 10
    let records = [Self.version(1)] + (2...count).map { Self.version($0, over: [1]) }
    let ancestors = try mergeAncestors(Array(2...count), records)
    #expect(ancestors.nearest(of: Self.id(count), with: (2..<count).map(Self.id)) == [Self.id(1)])
    #expect(ancestors.nearest(of: Self.id(count), with: [Self.id(2)]).isEmpty, "not compared")
  }

  /// The versions of two devices that both merge the same two saves, this many times in a row: 1 is the root, then come
  /// 2 and 3, 4 and 5, and so on.
  static func ladder(_ rungs: UInt64, best: UInt64 = 0) -> [VersionRecord] {
    [version(1)]
      + (1...rungs).flatMap { rung in
        let before = rung == 1 ? [1] : [2 * rung - 2, 2 * rung - 1]
        return [
          version(2 * rung, over: before, progress: 0), version(2 * rung + 1, over: before, progress: Double(best)),
        ]
      }
  }

  @Test("Two merges of the same saves have both of these as ancestors, and so on down to the root")
  func crossedAncestors() throws {
    let ancestors = try mergeAncestors([6, 7], Self.ladder(3))
    #expect(
      ancestors.common == [4, 5].map(Self.id)
        && ancestors.nearest(of: Self.id(7), with: [Self.id(6)]) == [4, 5].map(Self.id))
    #expect(ancestors.nearest(of: Self.id(5), with: [Self.id(4)]) == [2, 3].map(Self.id))
    #expect(ancestors.nearest(of: Self.id(3), with: [Self.id(2)]) == [Self.id(1)])
    #expect(ancestors.all == (1...5).map(Self.id) && !ancestors.isCut)
    // In the order in which a device that shows both ranks them.
    #expect(try mergeAncestors([6, 7], Self.ladder(3, best: 1)).common == [5, 4].map(Self.id))
  }

  @Test("The search for ancestors has a maximum depth, however often two devices merged the same saves")
  func deepLadder() throws {
    let rungs = UInt64(MergeAncestors.maximumDepth) + 10
    let ancestors = try mergeAncestors([2 * rungs, 2 * rungs + 1], Self.ladder(rungs))
    #expect(ancestors.isCut && ancestors.all.count == 2 * MergeAncestors.maximumDepth)
    let oldest = try #require(ancestors.all.first)
    #expect(
      ancestors.nearest(of: VersionID(high: 0, low: oldest.low + 1), with: [oldest]).isEmpty,
      "beyond the maximum depth they count as unrelated")
    // At exactly the maximum depth the search reaches the root.
    let whole = UInt64(MergeAncestors.maximumDepth)
    #expect(try !mergeAncestors([2 * whole, 2 * whole + 1], Self.ladder(whole)).isCut)
  }

  @Test("The search for ancestors uses a limited number of versions, however many devices merged the same saves")
  func wideLadder() throws {
    let width: UInt64 = 12
    var records = [Self.version(1)]
    for rung in 0..<8 as Range<UInt64> {
      let before = rung == 0 ? [1] : (0..<width).map { 100 * rung + $0 }
      records += (0..<width).map { Self.version(100 * (rung + 1) + $0, over: before) }
    }
    let ancestors = try mergeAncestors((0..<width).map { 800 + $0 }, records)
    #expect(ancestors.isCut && ancestors.all.count == 60, "five steps of twelve, and no part of a sixth")
  }

  @Test("Two heads with equal contents are shown as one")
  func equalContents() throws {
    let result = try view([Self.version(1, contents: "x"), Self.version(2, contents: "x", progress: 1)])
    #expect(!result.isConflict)
    #expect(result.winner?.id == Self.id(2))
    #expect(result.parents == [Self.id(1), Self.id(2)])
    #expect(
      try view([Self.version(1, contents: "x"), Self.version(2, contents: "x"), Self.version(3)]).heads.count == 2)
  }

  @Test("A policy ranks the sides of a conflict in the same order on every device")
  func policies() throws {
    let root = Self.version(1)
    let far = Self.version(2, over: [1], progress: 9, playtime: 1, savedAt: 1)
    let long = Self.version(3, over: [1], progress: 1, playtime: 9, savedAt: 2)
    let late = Self.version(4, over: [1], progress: 1, playtime: 1, savedAt: 3)
    for order in [[root, far, long, late], [late, long, far, root]] {
      #expect(try view(order, .mostProgress).heads.map(\.id) == [2, 3, 4].map(Self.id))
      #expect(try view(order, .longestPlayed).heads.map(\.id) == [3, 2, 4].map(Self.id))
      #expect(try view(order, .newest).heads.map(\.id) == [4, 3, 2].map(Self.id))
    }
    // Without anything to choose by the order is the same everywhere, too. Provisional saves rank below others.
    #expect(try view([Self.version(8), Self.version(7)]).winner?.id == Self.id(7))
    #expect(try view([Self.version(8), Self.version(7, provisional: true)]).winner?.id == Self.id(8))
    #expect(try view([Self.version(7, progress: .nan), Self.version(8, progress: -5)]).winner?.id == Self.id(8))
  }

  @Test("An empty or deleted slot shows no save, and a save beside a delete is shown without a conflict")
  func nothingToShow() throws {
    #expect(try view([]).winner == nil)
    #expect(try !view([]).isDeleted)
    let deleted = try view([Self.version(1), Self.version(2, over: [1], tombstone: true)])
    #expect(deleted.isDeleted)
    #expect(deleted.parents == [Self.id(2)])
    let beside = try view([Self.version(1), Self.version(2, over: [1], tombstone: true), Self.version(3, over: [1])])
    #expect(beside.winner?.id == Self.id(3))
    #expect(!beside.isConflict)
  }
}
