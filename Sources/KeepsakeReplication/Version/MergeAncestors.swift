/// From which versions a merge of several heads starts.
///
/// Heads need not have one ancestor: two may come from a version that the third, a game begun anew, never saw.
package struct MergeAncestors: Hashable, Sendable {
  /// By head, and by the heads before it: the nearest versions that both descend from.
  private var shared: [[Int: Set<VersionID>]] = []
  /// By version in `shared`: the others there that it descends from.
  private var older: [VersionID: Set<VersionID>] = [:]

  /// Nothing in common.
  package init() {}

  init(shared: [[Int: Set<VersionID>]], older: [VersionID: Set<VersionID>]) {
    self.shared = shared
    self.older = older
  }

  /// Every version that a merge may start from, sorted.
  package var all: [VersionID] { Set(shared.flatMap(\.values).joined()).sorted() }

  /// The nearest versions that a head and any of those merged before it descend from, sorted. Both by their place among the heads.
  package func nearest(of head: Int, with merged: [Int]) -> [VersionID] {
    let found = merged.reduce(into: Set<VersionID>()) { found, earlier in
      guard shared.indices.contains(max(head, earlier)) else { return }
      found.formUnion(shared[max(head, earlier)][min(head, earlier)] ?? [])
    }
    return found.filter { id in !found.contains { older[$0]?.contains(id) == true } }.sorted()
  }
}

extension Resolution {
  /// So many heads before it each head is compared with. More sides than a player has devices merge as if they were strangers.
  package static let comparedHeads = 16

  /// What a merge of the heads starts from, whichever of them take part in it. Costs a walk from each head to its beginnings, and a look at what
  /// each pair has in common.
  package static func mergeAncestors(
    of heads: [VersionID], record: (VersionID) throws -> VersionRecord?
  ) throws -> MergeAncestors {
    var records: [VersionID: VersionRecord] = [:]
    var reached: [Set<VersionID>] = []
    var shared: [[Int: Set<VersionID>]] = []
    for (index, head) in heads.enumerated() {
      reached.append(try ancestors(of: head, &records, record: record))
      var nearest: [Int: Set<VersionID>] = [:]
      for earlier in max(0, index - comparedHeads)..<index {
        nearest[earlier] = Self.nearest(reached[index].intersection(reached[earlier]), records)
      }
      shared.append(nearest)
    }
    let all = Set(shared.flatMap(\.values).joined())
    var older: [VersionID: Set<VersionID>] = [:]
    for id in all { older[id] = try ancestors(of: id, &records, record: record).intersection(all) }
    return MergeAncestors(shared: shared, older: older)
  }

  /// What the rules for history never take from a slot: its heads, what they replace directly of what others have, and the versions from which
  /// several of them come.
  package static func needed(by heads: [VersionID], in storage: some DeviceStorage) throws -> Set<VersionID> {
    var needed = Set(heads)
    if storage.planted.contains(.thinAncestors) { return needed }
    for head in heads {
      for id in try storage.version(head)?.record.covers ?? [] {
        // What others don't have they can't have gone on from.
        if let version = try storage.version(id), version.acknowledged, version.offered { needed.insert(id) }
      }
    }
    guard heads.count > 1 else { return needed }
    // Each record is decoded once, however many pairs there are.
    var known: [VersionID: VersionRecord?] = [:]
    func record(_ id: VersionID) throws -> VersionRecord? {
      if let record = known[id] { return record }
      let record = try storage.version(id)?.record
      known[id] = .some(record)
      return record
    }
    // Pair by pair: three sides may have an ancestor that only two of them share.
    for (index, left) in heads.enumerated() {
      for right in heads[(index + 1)...].prefix(comparedHeads) {
        needed.formUnion(try commonAncestors(of: [left, right], record: record).known)
      }
    }
    return needed
  }
}
