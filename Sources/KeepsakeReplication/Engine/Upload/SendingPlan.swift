/// What of the outbox is sent now, and what has to be uploaded before the rest can be.
struct SendingPlan: Sendable {
  /// What is sent, oldest first.
  var groups: [OutboxGroup] = []
  /// Their versions, but for those that one of them replaces.
  var records: [VersionRecord] = []
  var skipped: [VersionID] = []
  /// Of the records, those that none of the others covers: a replaced one needs no contents.
  var visible: Set<VersionID> = []
  /// Contents inside the exchange.
  var contents: [EncodedContent] = []
  /// Contents that have to be uploaded first, oldest first.
  var uploads: [PlannedUpload] = []
  /// Set where the groups take several requests: what of them is sent now.
  var part: PlannedPart?
  /// Everything waits for contents that have to be uploaded first.
  var isOfferWaiting = false

  init() {}

  /// Everything of these groups, as if all their contents were in the cloud.
  init(_ groups: [OutboxGroup], _ known: [VersionID: VersionRecord]) {
    self.groups = groups
    var covered: Set<VersionID> = []
    for id in groups.flatMap(\.versions).reversed() {
      guard let record = known[id] else { continue }
      // It stays out only if all that it replaces is named without it: a copy of this store, made while it was open,
      // may have sent what was replaced before it ever left here.
      if covered.contains(id), record.covers.allSatisfy(covered.contains) {
        skipped.append(id)
        continue
      }
      covered.formUnion(record.covers)
      records.append(record)
    }
    records.reverse()
    visible = Set(records.map(\.id)).subtracting(covered)
  }
}

/// What waits in the outbox for an upload, and so what may not be sent before it.
///
/// Groups are taken apart by nobody, but one may overtake another that it has nothing to do with. A later change of the
/// same value would show half of a checkpoint that waits: counters and sets hold all that was changed before. So would
/// a later save of the same slot.
struct WaitingGroups {
  private(set) var ids: Set<Int64> = []
  /// What their versions replace: those need no contents of their own, once these are in the cloud.
  private(set) var covers: Set<VersionID> = []

  mutating func insert(_ group: OutboxGroup, _ known: [VersionID: VersionRecord]) {
    ids.insert(group.id)
    for id in group.versions { covers.formUnion(known[id]?.covers ?? []) }
  }

  /// Without these, and without what may not overtake them.
  func left(of groups: [OutboxGroup], _ known: [VersionID: VersionRecord]) -> [OutboxGroup] {
    guard !ids.isEmpty else { return groups }
    var keys: Set<CellKey> = []
    var slots: Set<String> = []
    return groups.filter { group in
      let own = group.versions.compactMap { known[$0]?.slot }
      let waits =
        ids.contains(group.id) || group.cells.contains { keys.contains($0.key) } || own.contains { slots.contains($0) }
      guard waits else { return true }
      keys.formUnion(group.cells.map(\.key))
      slots.formUnion(own)
      return false
    }
  }
}
