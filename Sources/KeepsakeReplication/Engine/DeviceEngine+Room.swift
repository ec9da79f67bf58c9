// What the cloud has no room for, and when it is tried again.
extension DeviceEngine {
  /// Whether a group goes: the cloud didn't refuse it, or it is tried once more.
  func isSendable(_ group: OutboxGroup) -> Bool { group.refusals.isEmpty || retrying.contains(group.id) }

  func lacksRoom(_ group: OutboxGroup) -> Bool { group.refusals.contains { $0.reason == .quota } }

  /// Sends a refused group again. It keeps its refusals until it is accepted, and so the status does: what is tried again and again doesn't
  /// come and go there.
  mutating func retry(_ group: OutboxGroup) {
    retrying.insert(group.id)
    roomTriedMilliseconds = now
  }

  /// Whether it is time to find out if there is room by now, though nothing says so: the player of another device may have made some, or
  /// the operator has raised the quota. A clock that was turned back counts as time gone by.
  var isSecondTryDue: Bool {
    guard let tried = roomTriedMilliseconds else { return false }
    return tried > now || Int128(now) - Int128(tried) >= Int128(options.secondTryMilliseconds)
  }

  /// The player deleted something, and the cloud has heard of it.
  func hasDelete(_ versions: [VersionID], in storage: some DeviceStorage) throws -> Bool {
    try versions.contains { try storage.version($0)?.record.tombstone == true }
  }

  mutating func retryAfterDelete(_ acknowledged: [VersionID], in storage: some DeviceStorage) throws {
    guard roomTriedMilliseconds != nil, try hasDelete(acknowledged, in: storage) else { return }
    for group in try storage.outbox(limit: storage.outboxCount()) where lacksRoom(group) { retry(group) }
  }

  /// An answer says how much room there is: what fits goes. The same number twice is no news, or a cloud whose numbers contradict its
  /// refusals would be asked without end.
  mutating func heardOfRoom(_ use: QuotaUse, in storage: some DeviceStorage) throws {
    guard use != roomKnown else { return }
    roomKnown = use
    guard refused.contains(where: { $0.refusal.reason == .quota }) else { return }
    for group in try storage.outbox(limit: storage.outboxCount()) where lacksRoom(group) {
      let needed = group.refusals.compactMap { $0.quota?.needed }
      if !needed.isEmpty, needed.allSatisfy({ use.shortage(for: $0) == nil }) { retry(group) }
    }
  }

  /// Why a group doesn't go, for the status.
  func described(_ group: OutboxGroup, in storage: some DeviceStorage) throws -> [EngineRefusal] {
    try group.refusals.map { refusal in
      let version = group.versions.first { ExchangeRules.item($0) == refusal.item }
      // One that names nothing of the group holds for all of it.
      let named = version ?? (group.cells.contains { ExchangeRules.item($0.key) == refusal.item } ? nil : group.versions.first)
      return EngineRefusal(slot: try named.flatMap { try storage.version($0)?.record.slot }, refusal: refusal)
    }
  }
}
