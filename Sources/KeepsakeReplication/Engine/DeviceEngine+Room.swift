// What the cloud has no room for, and when it is sent again.
extension DeviceEngine {
  /// Returns whether one of these versions is a delete.
  func hasDelete(_ versions: [VersionID], in storage: some DeviceStorage) throws -> Bool {
    try versions.contains { try storage.version($0)?.record.tombstone == true }
  }

  mutating func retryAfterDelete(_ acknowledged: [VersionID], in storage: some DeviceStorage) throws {
    guard refusals.hasTried, try hasDelete(acknowledged, in: storage) else { return }
    for group in try storage.outbox(limit: storage.outboxCount()) where OutboxRefusals.lacksRoom(group) {
      refusals.retry(group, now: now)
    }
  }

  /// Handles a response that says how much room there is: sends what fits.
  mutating func learnedRoom(_ use: QuotaUse, in storage: some DeviceStorage) throws {
    guard refusals.learned(use), refusals.lacksRoom else { return }
    for group in try storage.outbox(limit: storage.outboxCount()) where OutboxRefusals.lacksRoom(group) {
      let needed = group.refusals.compactMap { $0.quota?.needed }
      if !needed.isEmpty, needed.allSatisfy({ use.shortage(for: $0) == nil }) { refusals.retry(group, now: now) }
    }
  }

  /// Returns why a group isn't sent, for the status.
  func described(_ group: OutboxGroup, in storage: some DeviceStorage) throws -> [EngineRefusal] {
    try group.refusals.map { refusal in
      let version = group.versions.first { ExchangeRules.item($0) == refusal.item }
      // A refusal that names nothing of the group applies to all of it.
      let named =
        version ?? (group.cells.contains { ExchangeRules.item($0.key) == refusal.item } ? nil : group.versions.first)
      return EngineRefusal(slot: try named.flatMap { try storage.version($0)?.record.slot }, refusal: refusal)
    }
  }
}
