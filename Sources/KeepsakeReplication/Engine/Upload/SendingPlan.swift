/// What is sent of the outbox, and what has to be uploaded before the rest can be.
struct SendingPlan: Sendable {
  /// The groups to send, oldest first.
  var groups: [OutboxGroup] = []
  /// Their versions, except those that one of them replaces.
  var records: [VersionRecord] = []
  var skipped: [VersionID] = []
  /// The records that none of the others covers: a replaced one needs no contents.
  var visible: Set<VersionID> = []
  /// Contents inside the exchange.
  var contents: [EncodedContent] = []
  /// Contents that have to be uploaded first, oldest first.
  var uploads: [PlannedUpload] = []
  /// Set if the groups take several requests: the part of them that is sent next.
  var part: PlannedPart?
  /// All groups wait for contents that have to be uploaded first.
  var isOfferWaiting = false

  init() {}

  /// Plans to send all of these groups, as if all their contents were in the cloud.
  init(_ groups: [OutboxGroup], _ known: [VersionID: VersionRecord]) {
    self.groups = groups
    var covered: Set<VersionID> = []
    for id in groups.flatMap(\.versions).reversed() {
      guard let record = known[id] else { continue }
      // A version is left out only if everything that it replaces is covered without it: a copy of this store, made
      // while it was open, may have sent what was replaced here before it was ever sent.
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

/// Groups of the outbox that wait for an upload, which decide what may not be sent before them.
///
/// Groups are never split, but one may overtake another that is unrelated. A later change of the same value would show
/// half of a waiting checkpoint, since counters and sets contain all earlier changes. So would a later save of the same
/// slot.
struct WaitingGroups {
  private(set) var ids: Set<Int64> = []
  /// The versions that theirs replace: those need no contents of their own once these are in the cloud.
  private(set) var covers: Set<VersionID> = []

  mutating func insert(_ group: OutboxGroup, _ known: [VersionID: VersionRecord]) {
    ids.insert(group.id)
    for id in group.versions { covers.formUnion(known[id]?.covers ?? []) }
  }

  /// Returns the groups without these, and without those that may not overtake them.
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
