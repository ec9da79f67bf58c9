// Which versions have to be reported to the cloud as covered.
extension DeviceEngine {
  /// Returns these versions and those of their ancestors that this device knows, newest first.
  func ancestry(of versions: [VersionID], in storage: some DeviceStorage) throws -> [VersionID] {
    var order = versions
    var seen = Set(order)
    var index = 0
    while index < order.count, index < Resolution.maximumWalk {
      for older in try storage.version(order[index])?.record.covers ?? [] where seen.insert(older).inserted {
        if try storage.version(older) != nil { order.append(older) }
      }
      index += 1
    }
    return order
  }

  /// Lets the saves that cover an accepted version stop naming what that covers itself: the cloud knows it by now.
  ///
  /// Without this `covers` would grow from save to save in a game that saves faster than exchanges complete: each save
  /// is replaced before it is acknowledged, and what replaces it inherits what it covers.
  ///
  /// - Parameters:
  ///   - accepted: The versions that the cloud has accepted, as they are stored here.
  ///   - waiting: The versions in the outbox.
  func shortenCovers(
    after accepted: [VersionRecord], waiting: Set<VersionID>, in storage: inout some DeviceStorage
  ) throws {
    for (slot, accepted) in Dictionary(grouping: accepted, by: \.slot) {
      let known = Dictionary(uniqueKeysWithValues: accepted.map { ($0.id, $0.covers) })
      for head in try storage.heads(of: slot) where waiting.contains(head) {
        guard let version = try storage.version(head) else { continue }
        // A refused save among them counts as settled once all that it covers is covered by what replaces it.
        for id in [head] + version.record.covers where waiting.contains(id) {
          guard var later = try storage.version(id), !later.acknowledged else { continue }
          let settled = later.record.covers.reduce(into: Set<VersionID>()) { $0.formUnion(known[$1] ?? []) }
          guard !settled.isDisjoint(with: later.record.covers) else { continue }
          later.record.covers.removeAll(where: settled.contains)
          try storage.putVersion(later)
        }
      }
    }
  }

  /// Lets the versions that replace `record` cover what it covered, because `record` won't be sent. Refused ones do so
  /// too, since the cloud learns this from no other version.
  func inheritCovers(
    of record: VersionRecord, by waiting: [VersionID], in storage: inout some DeviceStorage
  ) throws {
    for id in waiting {
      guard var later = try storage.version(id), later.record.covers.contains(record.id) else { continue }
      later.record.covers = Set(later.record.covers).union(record.covers).sorted()
      try storage.putVersion(later)
    }
  }

  /// Reports versions that the cloud sends although they were replaced here long ago. Each head that descends from one,
  /// but only through records that the cloud can't know, covers it from then on. Either such a record was pruned here
  /// and a restored cloud lost its copy; or a copy of this store, made while it was open, sent what was replaced here
  /// before it was ever sent.
  ///
  /// - Parameters:
  ///   - replaced: The replaced versions of the slot.
  ///   - covered: Versions that something staged covers: the cloud knows that they are replaced.
  func reportCovered(
    _ replaced: Set<VersionID>, besides covered: Set<VersionID>, in slot: String, storage: inout some DeviceStorage
  ) throws {
    let waiting = Set(try storage.outbox(limit: storage.outboxCount()).flatMap(\.versions))
    let staysHere = try storage.staysHere(slot)
    let heads = try storage.heads(of: slot).filter { try !staysHere || storage.version($0)?.record.tombstone == true }
    var unreported = replaced.subtracting(covered)
    for head in heads {
      var known: Set<VersionID> = []
      var knownHere: Set<VersionID> = []
      for id in try ancestry(of: [head], in: storage) {
        guard let version = try storage.version(id) else { continue }
        // A version that was replaced before the store was ever connected counts as offered, since a copy of the store
        // may hold it, but was never sent.
        if version.acknowledged ? !version.neverLeft : waiting.contains(id) { known.formUnion(version.record.covers) }
        knownHere.formUnion(version.record.covers)
      }
      let lacking = replaced.intersection(knownHere).subtracting(known)
      if !lacking.isEmpty { try cover(lacking, by: head, isWaiting: waiting.contains(head), in: &storage) }
      unreported.subtract(knownHere)
    }
    // It is no longer known which of the heads descends from these. One head that covers them is enough to remove them.
    if !unreported.isEmpty, let head = heads.first {
      try cover(unreported, by: head, isWaiting: waiting.contains(head), in: &storage)
    }
  }

  private func cover(
    _ replaced: Set<VersionID>, by id: VersionID, isWaiting: Bool, in storage: inout some DeviceStorage
  ) throws {
    guard var head = try storage.version(id) else { return }
    head.record.covers = replaced.union(head.record.covers).sorted()
    head.acknowledged = false
    try storage.putVersion(head)
    // A waiting version that was never offered is sent as it is by then. One that may be in flight needs another group,
    // which never joins a later commit, because its version was offered.
    if head.offered || !isWaiting { try storage.appendToOutbox(OutboxGroup(versions: [id])) }
  }
}
