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

  @Test("A merge starts from the nearest version that both sides come from")
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
    // One head skips generations that the other names.
    #expect(try view(line + [Self.version(6, over: [1]), Self.version(7, over: [3])]).ancestors == [Self.id(1)])
  }

  @Test("Two unrelated games have no common ancestor")
  func unrelated() throws {
    let result = try view([Self.version(1, savedAt: 5), Self.version(2, progress: 1, savedAt: 1)], .newest)
    #expect(!result.related)
    #expect(result.ancestors.isEmpty)
    #expect(result.winner?.id == Self.id(2))
  }

  @Test("Related saves are related also where the common ancestor was thinned")
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

  @Test("A third save that came from nowhere leaves two that are related their ancestor")
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
    #expect(try view(records).ancestors.isEmpty, "what all have in common is still nothing")
  }

  @Test("A merge of three merges two of them from what these have in common")
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
    #expect(nearest(5, [3, 4]) == [Self.id(2)], "with both, what is nearest to either")
    #expect(nearest(5, [3]) == [Self.id(1)], "the second couldn't be read")
    #expect(nearest(3, [5, 4]) == [Self.id(1)], "in any order")
    #expect(nearest(9, [3]).isEmpty && nearest(3, [9]).isEmpty)
    #expect(ancestors.common == [Self.id(1)])
    // The root of both is nowhere among them: known by its name alone.
    #expect(try mergeAncestors([4, 5], Array(records.dropFirst(2))).all.isEmpty)
  }

  @Test("Of a conflict of more sides than anybody has devices only some are compared")
  func manyHeads() throws {
    let count = UInt64(Resolution.comparedHeads) + 10
    let records = [Self.version(1)] + (2...count).map { Self.version($0, over: [1]) }
    let ancestors = try mergeAncestors(Array(2...count), records)
    #expect(ancestors.nearest(of: Self.id(count), with: (2..<count).map(Self.id)) == [Self.id(1)])
    #expect(ancestors.nearest(of: Self.id(count), with: [Self.id(2)]).isEmpty, "not compared")
  }

  /// Two devices that merge the same two saves and go on, so many times in a row: 1 is where they began, then 2 and 3,
  /// 4 and 5, and so on.
  static func ladder(_ rungs: UInt64, best: UInt64 = 0) -> [VersionRecord] {
    [version(1)]
      + (1...rungs).flatMap { rung in
        let before = rung == 1 ? [1] : [2 * rung - 2, 2 * rung - 1]
        return [
          version(2 * rung, over: before, progress: 0), version(2 * rung + 1, over: before, progress: Double(best)),
        ]
      }
  }

  @Test("Two merges of the same saves are compared with all that they came from")
  func crossedAncestors() throws {
    let ancestors = try mergeAncestors([6, 7], Self.ladder(3))
    #expect(
      ancestors.common == [4, 5].map(Self.id)
        && ancestors.nearest(of: Self.id(7), with: [Self.id(6)]) == [4, 5].map(Self.id))
    #expect(ancestors.nearest(of: Self.id(5), with: [Self.id(4)]) == [2, 3].map(Self.id))
    #expect(ancestors.nearest(of: Self.id(3), with: [Self.id(2)]) == [Self.id(1)])
    #expect(ancestors.all == (1...5).map(Self.id) && !ancestors.isCut)
    // As a device ranks them that shows both.
    #expect(try mergeAncestors([6, 7], Self.ladder(3, best: 1)).common == [5, 4].map(Self.id))
  }

  @Test("Loading a conflict takes no longer the more often two devices merged the same saves")
  func deepLadder() throws {
    let rungs = UInt64(MergeAncestors.maximumDepth) + 10
    let ancestors = try mergeAncestors([2 * rungs, 2 * rungs + 1], Self.ladder(rungs))
    #expect(ancestors.isCut && ancestors.all.count == 2 * MergeAncestors.maximumDepth)
    let oldest = try #require(ancestors.all.first)
    #expect(
      ancestors.nearest(of: VersionID(high: 0, low: oldest.low + 1), with: [oldest]).isEmpty,
      "beyond, they are strangers")
    // The last one that is looked at is the one from which all come.
    let whole = UInt64(MergeAncestors.maximumDepth)
    #expect(try !mergeAncestors([2 * whole, 2 * whole + 1], Self.ladder(whole)).isCut)
  }

  @Test("A conflict of many devices that merged the same saves can be loaded")
  func wideLadder() throws {
    let width: UInt64 = 12
    var records = [Self.version(1)]
    for rung in 0..<8 as Range<UInt64> {
      let before = rung == 0 ? [1] : (0..<width).map { 100 * rung + $0 }
      records += (0..<width).map { Self.version(100 * (rung + 1) + $0, over: before) }
    }
    let ancestors = try mergeAncestors((0..<width).map { 800 + $0 }, records)
    #expect(ancestors.isCut && ancestors.all.count == 60, "five steps of twelve, and not half of a sixth")
  }

  @Test("Two equal saves are shown as one")
  func equalContents() throws {
    let result = try view([Self.version(1, contents: "x"), Self.version(2, contents: "x", progress: 1)])
    #expect(!result.isConflict)
    #expect(result.winner?.id == Self.id(2))
    #expect(result.parents == [Self.id(1), Self.id(2)])
    #expect(
      try view([Self.version(1, contents: "x"), Self.version(2, contents: "x"), Self.version(3)]).heads.count == 2)
  }

  @Test("Two devices show the same winner of a conflict")
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
    // Nothing to choose by: the same everywhere all the same. Provisional ranks below.
    #expect(try view([Self.version(8), Self.version(7)]).winner?.id == Self.id(7))
    #expect(try view([Self.version(8), Self.version(7, provisional: true)]).winner?.id == Self.id(8))
    #expect(try view([Self.version(7, progress: .nan), Self.version(8, progress: -5)]).winner?.id == Self.id(8))
  }

  @Test("An empty or deleted slot shows no save")
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
