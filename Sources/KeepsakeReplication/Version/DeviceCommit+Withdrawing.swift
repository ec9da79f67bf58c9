/// How what waits to be sent is kept from being sent.
extension DeviceCommit {
  /// Removes what waits of a slot from the outbox, except deletes: it stays on this device from then on. What was
  /// committed with it is sent nevertheless.
  ///
  /// What is in flight at this moment may reach the cloud. A later save also covers what these versions replaced.
  package static func withdraw(_ slot: String, in storage: inout some DeviceStorage) throws {
    for group in try storage.outbox(limit: storage.outboxCount()) {
      var left = group
      for id in group.versions {
        guard var version = try storage.version(id), version.record.slot == slot, !version.record.tombstone else {
          continue
        }
        left.versions.removeAll { $0 == id }
        left.refusals.removeAll { $0.item == ExchangeRules.item(id) }
        version.withdraw()
        try storage.putVersion(version)
      }
      guard left != group else { continue }
      if left.cells.isEmpty, left.versions.isEmpty {
        try storage.removeFromOutbox(group.id)
      } else {
        try storage.updateOutbox(left)
      }
    }
  }
}
