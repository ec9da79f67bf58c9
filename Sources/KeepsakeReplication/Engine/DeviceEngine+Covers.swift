// Which versions the cloud has to know as covered.
extension DeviceEngine {
  /// These versions and what is known here of their ancestors, newest first.
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

  /// A version won't be sent: what it covered, those that replace it cover from now on, refused ones too, since the
  /// cloud learns it from nobody else.
  func inheritCovers(
    of record: VersionRecord, by waiting: [VersionID], in storage: inout some DeviceStorage
  ) throws {
    for id in waiting {
      guard var later = try storage.version(id), later.record.covers.contains(record.id) else { continue }
      later.record.covers = Set(later.record.covers).union(record.covers).sorted()
      try storage.putVersion(later)
    }
  }

  /// The cloud sends versions that were replaced here long ago. Each head that descends from one, but by no record that
  /// the cloud can know, covers it from now on. Either that record was pruned here, and a restored cloud lost its copy;
  /// or a copy of this store, made while it was open, sent what was replaced here before it was ever sent.
  ///
  /// - Parameters:
  ///   - replaced: The versions of the slot.
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
        // What was replaced before the store was ever connected is offered as far as copies know, but was never sent.
        if version.acknowledged ? !version.neverLeft : waiting.contains(id) { known.formUnion(version.record.covers) }
        knownHere.formUnion(version.record.covers)
      }
      let lacking = replaced.intersection(knownHere).subtracting(known)
      if !lacking.isEmpty { try cover(lacking, by: head, isWaiting: waiting.contains(head), in: &storage) }
      unreported.subtract(knownHere)
    }
    // Nobody knows any more which of the heads descends from it. One that covers it is enough to take it away.
    if !unreported.isEmpty, let head = heads.first { try cover(unreported, by: head, isWaiting: waiting.contains(head), in: &storage) }
  }

  private func cover(
    _ replaced: Set<VersionID>, by id: VersionID, isWaiting: Bool, in storage: inout some DeviceStorage
  ) throws {
    guard var head = try storage.version(id) else { return }
    head.record.covers = replaced.union(head.record.covers).sorted()
    head.acknowledged = false
    try storage.putVersion(head)
    // What waits and was never offered is sent as it is then. For what may be in flight it takes another group; that
    // one never joins a later commit, because its version was offered.
    if head.offered || !isWaiting { try storage.appendToOutbox(OutboxGroup(versions: [id])) }
  }
}
