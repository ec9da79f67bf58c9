/// The versions that a merge of several heads starts from, and, if there are several of those, the ones that they in
/// turn are merged from.
///
/// Heads need not have a single ancestor: two may come from a version that the third, a game started anew, never saw.
/// And two heads made from the same two saves, merged on each of two devices, have both of these as nearest ancestors.
/// How those differ follows from what they come from in turn, and so on.
package struct MergeAncestors: Sendable {
  /// Two versions, in any order.
  private struct Pair: Hashable {
    let first: VersionID
    let second: VersionID

    init(_ one: VersionID, _ other: VersionID) { (first, second) = one < other ? (one, other) : (other, one) }
  }

  /// How many times in a row two devices may have merged the same saves and continued without syncing, such that the
  /// merge is still made from everything that they come from. One further back starts as if its sides had nothing in
  /// common.
  package static let maximumDepth = 16
  /// The most versions that the merges of a merge's ancestors may use, over all depths. Each is kept while there is a
  /// conflict, and decoded to load it. A depth that would exceed this isn't used, nor is anything behind it.
  package static let maximumVersions = 64

  /// The nearest versions that all heads descend from, best first.
  package private(set) var common: [VersionID] = []
  /// Whether there are more ancestors than were searched.
  package private(set) var isCut = false
  /// For two versions that are merged: the nearest ones that both descend from.
  private var shared: [Pair: Set<VersionID>] = [:]
  /// Pairs without any common ancestor, known or not.
  private var strangers: Set<Pair> = []
  /// For each version in `shared`, the others there that it descends from.
  private var older: [VersionID: Set<VersionID>] = [:]
  private var records: [VersionID: VersionRecord] = [:]
  private var policy = SavePolicy.mostProgress

  /// Creates an empty result, for heads that have nothing in common.
  package init() {}

  /// Every version that a merge may start from, at any depth, sorted.
  package var all: [VersionID] { records.keys.sorted() }

  /// Returns the nearest versions that `id`, a head or an ancestor, and any of those merged before it both descend
  /// from. They are ordered best first, as the device that merged them showed them: merged in this order, they give
  /// what their descendants come from.
  package func nearest(of id: VersionID, with merged: [VersionID]) -> [VersionID] {
    let found = merged.reduce(into: Set<VersionID>()) { $0.formUnion(shared[Pair(id, $1)] ?? []) }
    return ordered(found.filter { id in !found.contains { older[$0]?.contains(id) == true } })
  }

  private func ordered(_ ids: Set<VersionID>) -> [VersionID] {
    let ids = ids.sorted()
    let related = ids.indices.allSatisfy { index in
      ids[..<index].allSatisfy { !strangers.contains(Pair($0, ids[index])) }
    }
    return ids.compactMap { records[$0] }.sorted { Resolution.precedes($0, $1, policy, related: related) }.map(\.id)
  }

  // MARK: Finding

  /// The ancestors of each version, walked once.
  private struct Walk {
    var records: [VersionID: VersionRecord] = [:]
    private var reached: [VersionID: Set<VersionID>] = [:]

    mutating func ancestors(of id: VersionID, _ record: (VersionID) throws -> VersionRecord?) throws -> Set<VersionID> {
      if let known = reached[id] { return known }
      let found = try Resolution.ancestors(of: id, &records, record: record)
      reached[id] = found
      return found
    }
  }

  fileprivate init(
    of heads: [VersionID], policy: SavePolicy, depth: Int, record: (VersionID) throws -> VersionRecord?
  ) throws {
    self.policy = policy
    var walk = Walk()
    var level = heads
    var taken: Set<VersionID> = []
    for round in 0... {
      let pairs = try unknownPairs(of: level, &walk, record)
      guard round < depth else {
        isCut = !pairs.isEmpty
        break
      }
      var found: [Pair: Set<VersionID>] = [:]
      for pair in pairs {
        let both = try walk.ancestors(of: pair.first, record).intersection(walk.ancestors(of: pair.second, record))
        if both.isEmpty { strangers.insert(pair) }
        found[pair] = Resolution.nearest(both, walk.records)
      }
      var next = Set(found.values.joined())
      if round == 0, heads.count > 1 {
        let all = try heads.dropFirst().reduce(walk.ancestors(of: heads[0], record)) { all, head in
          all.intersection(try walk.ancestors(of: head, record))
        }
        common = Resolution.nearest(all, walk.records).sorted()
        next.formUnion(common)
      }
      guard round == 0 || taken.union(next).count <= Self.maximumVersions else {
        isCut = true
        break
      }
      shared.merge(found) { old, _ in old }
      taken.formUnion(next)
      level = next.sorted()
      if level.count < 2 { break }
    }
    for id in taken {
      records[id] = walk.records[id]
      older[id] = try walk.ancestors(of: id, record).intersection(taken)
    }
    common = ordered(Set(common))
  }

  /// Returns the pairs in which neither version comes from the other, and that weren't compared before.
  private func unknownPairs(
    of level: [VersionID], _ walk: inout Walk, _ record: (VersionID) throws -> VersionRecord?
  ) throws -> [Pair] {
    var pairs: [Pair] = []
    for (index, id) in level.enumerated() {
      let reached = try walk.ancestors(of: id, record)
      for earlier in level[max(0, index - Resolution.comparedHeads)..<index] {
        guard shared[Pair(id, earlier)] == nil, !reached.contains(earlier) else { continue }
        if try !walk.ancestors(of: earlier, record).contains(id) { pairs.append(Pair(id, earlier)) }
      }
    }
    return pairs
  }
}

extension Resolution {
  /// How many versions before it each version is compared with. Sides beyond that, more than a player has devices,
  /// merge as if they were unrelated.
  package static let comparedHeads = 16

  /// Returns what a merge of the heads starts from, whichever of them take part in it. Costs a walk from each head, and
  /// from each ancestor if there are several, to its beginnings, and a look at what each pair has in common.
  ///
  /// - Parameter depth: How many levels of the ancestors' own ancestors are searched; with one, it isn't known how
  ///   several of them differ.
  package static func mergeAncestors(
    of heads: [VersionID], policy: SavePolicy = .mostProgress, depth: Int = MergeAncestors.maximumDepth,
    record: (VersionID) throws -> VersionRecord?
  ) throws -> MergeAncestors {
    try MergeAncestors(of: heads, policy: policy, depth: depth, record: record)
  }

  /// Returns what pruning never removes from a slot: its heads, those of the versions they directly replace that other
  /// devices have, the versions from which several of either come, and what those are merged from in turn.
  package static func needed(by heads: [VersionID], in storage: some DeviceStorage) throws -> Set<VersionID> {
    if storage.faults.prunesAncestors { return Set(heads) }
    return try needed(by: heads, record: storage.sharedRecords()) { id in
      // Other devices can't have continued from what they don't have.
      guard let version = try storage.version(id) else { return false }
      return version.acknowledged && version.offered
    }
  }

  /// Does the same with any source of records.
  ///
  /// - Parameter isShared: Whether other devices may have a version.
  package static func needed(
    by heads: [VersionID], record: (VersionID) throws -> VersionRecord?, isShared: (VersionID) throws -> Bool
  ) throws -> Set<VersionID> {
    var needed = Set(heads)
    if heads.count > 1 { needed.formUnion(try mergeAncestors(of: heads, record: record).all) }
    for head in heads {
      let replaced = try record(head)?.covers.filter(isShared) ?? []
      needed.formUnion(replaced)
      // Another device that saw the same versions may make a save of them too: that save and this one are merged from
      // what these come from.
      var further: Set<VersionID> = []
      for id in replaced { further.formUnion(try record(id)?.covers ?? []) }
      let nearest = Array(replaced.filter { !further.contains($0) }.prefix(comparedHeads))
      if nearest.count > 1 { needed.formUnion(try mergeAncestors(of: nearest, record: record).all) }
    }
    return needed
  }
}
