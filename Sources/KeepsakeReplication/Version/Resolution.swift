/// How the shown version is chosen if a slot has several heads.
package enum SavePolicy: String, Hashable, Sendable, Codable {
  case mostProgress
  case longestPlayed
  /// The newest by the writers' clocks, compared only between saves with a common ancestor.
  case newest
}

/// A slot as it follows from the versions known here: a view, computed anew each time and never written.
package struct SlotView: Hashable, Sendable {
  /// The live heads, best first; one of those with equal contents. Empty if the slot is empty or deleted.
  package var heads: [VersionRecord]
  /// The nearest versions that all of `heads` descend from and that are known here, sorted; empty without a conflict.
  package var ancestors: [VersionID]
  /// Whether the heads have a common ancestor, known here or not.
  package var related: Bool
  /// Every head, including deletes and those with equal contents: what a save covers that was made after seeing all of
  /// them. Sorted.
  package var parents: [VersionID]

  package var isConflict: Bool { heads.count > 1 }
  package var winner: VersionRecord? { heads.first }
  package var isDeleted: Bool { heads.isEmpty && !parents.isEmpty }

  package init(heads: [VersionRecord], ancestors: [VersionID], related: Bool, parents: [VersionID]) {
    self.heads = heads
    self.ancestors = ancestors
    self.related = related
    self.parents = parents
  }
}

/// Computes what a slot shows from its heads.
package enum Resolution {
  /// The most versions that are searched for an ancestor: a year with a save each half minute, an hour a day. Beyond
  /// that, heads count as unrelated.
  package static let maximumWalk = 50_000

  /// Returns the slot as it is shown. The same versions give the same result on every device. Costs a walk from the
  /// heads to their ancestor if there is a conflict, and nothing else.
  package static func view(
    of slot: String, in storage: some DeviceStorage, policy: SavePolicy = .mostProgress
  ) throws -> SlotView {
    try view(of: slot, in: storage, policy: policy, record: storage.sharedRecords())
  }

  /// Does the same with records that the caller may have read already.
  package static func view(
    of slot: String, in storage: some DeviceStorage, policy: SavePolicy, record: (VersionID) throws -> VersionRecord?
  ) throws -> SlotView {
    let heads = try storage.heads(of: slot)
    var view = try view(heads: heads.sorted(), policy: policy, record: record)
    if storage.faults.showsFirstArrival {
      view.heads.sort { heads.firstIndex(of: $0.id) ?? 0 < heads.firstIndex(of: $1.id) ?? 0 }
    }
    if storage.faults.hidesBesideTombstones, try heads.contains(where: { try record($0)?.tombstone == true }) {
      view.heads = []
    }
    return view
  }

  /// Does the same with any source of records.
  package static func view(
    heads parents: [VersionID], policy: SavePolicy, record: (VersionID) throws -> VersionRecord?
  ) throws -> SlotView {
    var live: [VersionRecord] = []
    for id in parents {
      guard let head = try record(id), !head.tombstone else { continue }
      live.append(head)
    }
    var groups: [[ContentHash]: [VersionRecord]] = [:]
    for head in live { groups[head.contents, default: []].append(head) }
    guard groups.count > 1 else {
      let ranked = live.sorted { precedes($0, $1, policy, related: true) }
      return SlotView(heads: Array(ranked.prefix(1)), ancestors: [], related: true, parents: parents)
    }
    // Which one represents several equal heads is decided before different ones are compared.
    let (ancestors, related) = try commonAncestors(of: live.map(\.id), record: record)
    let shown = groups.values.compactMap { $0.min { precedes($0, $1, policy, related: related) } }
    return SlotView(
      heads: shown.sorted { precedes($0, $1, policy, related: related) }, ancestors: ancestors, related: related,
      parents: parents)
  }

  /// Returns the nearest known versions that all of `heads` descend from, and whether there are any, known or not.
  package static func commonAncestors(
    of heads: [VersionID], record: (VersionID) throws -> VersionRecord?
  ) throws -> (known: [VersionID], related: Bool) {
    var records: [VersionID: VersionRecord] = [:]
    var common: Set<VersionID>?
    for head in heads {
      let reached = try ancestors(of: head, &records, record: record)
      common = common?.intersection(reached) ?? reached
      if common?.isEmpty == true { return ([], false) }
    }
    guard let common, !common.isEmpty else { return ([], false) }
    return (nearest(common, records).sorted(), true)
  }

  /// Returns those of a set of common ancestors that are known and that no other of them descends from.
  static func nearest(_ common: Set<VersionID>, _ records: [VersionID: VersionRecord]) -> Set<VersionID> {
    // An ancestor of a common ancestor isn't a nearest one.
    var further: Set<VersionID> = []
    let known = common.filter { records[$0] != nil }
    for id in known { further.formUnion(records[id]?.covers ?? []) }
    // `covers` may skip generations, so what is further back has to be followed to the end.
    var open = Array(further)
    while let id = open.popLast() {
      for older in records[id]?.covers ?? [] where further.insert(older).inserted { open.append(older) }
    }
    return known.subtracting(further)
  }

  static func ancestors(
    of head: VersionID, _ records: inout [VersionID: VersionRecord], record: (VersionID) throws -> VersionRecord?
  ) throws -> Set<VersionID> {
    var reached: Set<VersionID> = []
    var open = [head]
    while let id = open.popLast(), reached.count < maximumWalk {
      var version = records[id]
      if version == nil { version = try record(id) }
      guard let version else { continue }
      records[id] = version
      for older in version.covers where reached.insert(older).inserted { open.append(older) }
    }
    return reached
  }

  /// A total order of heads, best first.
  static func precedes(_ left: VersionRecord, _ right: VersionRecord, _ policy: SavePolicy, related: Bool) -> Bool {
    func greater(_ left: Double?, _ right: Double?) -> Bool? {
      let left = left.flatMap { $0.isNaN ? nil : $0 } ?? -.infinity
      let right = right.flatMap { $0.isNaN ? nil : $0 } ?? -.infinity
      return left == right ? nil : left > right
    }
    let progress = greater(left.metadata.progress, right.metadata.progress)
    let playtime = greater(left.metadata.playtime, right.metadata.playtime)
    // Clocks can't order versions without a common ancestor.
    let newer =
      related && left.savedAtMilliseconds != right.savedAtMilliseconds
      ? left.savedAtMilliseconds > right.savedAtMilliseconds : nil
    let settled = left.provisional != right.provisional ? right.provisional : nil
    let order: [Bool?]
    switch policy {
    case .mostProgress: order = [progress, playtime, settled, newer]
    case .longestPlayed: order = [playtime, progress, settled, newer]
    case .newest: order = [newer, progress, playtime, settled]
    }
    for answer in order {
      if let answer { return answer }
    }
    if left.length != right.length { return left.length > right.length }
    return left.id < right.id
  }
}
