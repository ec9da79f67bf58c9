/// How what waits to be sent is kept from it.
extension DeviceCommit {
  /// Takes what waits of a slot out of the outbox, deletes excepted: it stays on this device from here on. What was committed with it goes all the same.
  ///
  /// What is under way at this moment may get there. A later save names what these replaced, too.
  package static func withdraw(_ slot: String, in storage: inout some DeviceStorage) throws {
    for group in try storage.outbox(limit: storage.outboxCount()) {
      var left = group
      for id in group.versions {
        guard var version = try storage.version(id), version.record.slot == slot, !version.record.tombstone else { continue }
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
