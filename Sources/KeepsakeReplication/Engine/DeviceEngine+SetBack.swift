// What a device does about its store having gone back to an older state.
extension DeviceEngine {
  /// Takes from a response that the cloud finds the store set back, which the next requests confirm until one of them
  /// gets a response; and what the cloud does about it.
  mutating func learnSetBack(
    from response: ExchangeResponse, answering sent: SentExchange, _ facts: inout DeviceFacts,
    in storage: some DeviceStorage
  ) throws {
    if sent.setBack != nil { facts.setBack = nil }
    if let told = response.setBack { facts.setBack = told }
    let wasRefused = facts.setBackMark?.isRefused ?? false
    facts.setBackMark = response.setBackMark
    // Only at the change: a cloud that refuses and doesn't say so would be asked endlessly.
    guard wasRefused, response.setBackMark?.isRefused != true else { return }
    for group in try storage.outbox(limit: storage.outboxCount()) where OutboxRefusals.isSetBack(group) {
      refusals.retry(group, now: now)
    }
  }

  /// Whether the cloud takes nothing of this device, as far as it has said: nothing is offered or uploaded then, and
  /// each response may say otherwise.
  func isRefusedAsSetBack(in storage: some DeviceStorage) throws -> Bool {
    try storage.facts().setBackMark?.isRefused ?? false
  }

  /// Returns why what waits isn't sent: one refusal for all of it. None if nothing waits, or if the cloud takes what
  /// this device sends.
  package func refusalsAsSetBack(in storage: some DeviceStorage) throws -> [Refusal] {
    try isRefusedAsSetBack(in: storage) && storage.outboxCount() > 0 ? [.asSetBack] : []
  }

  /// Handles that the cloud takes nothing of this device until its studio clears it. Whole groups stay as they are, or
  /// what was saved together would be sent apart.
  mutating func refuseSetBack(
    _ sent: SentExchange, _ refusals: [Refusal], _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    let ids = Set(sent.groups.map(\.id))
    var news: [Refusal] = []
    for var group in try storage.outbox(limit: storage.outboxCount()) where ids.contains(group.id) {
      group.refusals = refusals
      try storage.updateOutbox(group)
      news += self.refusals.refused(group, now: now)
    }
    if !news.isEmpty { effects.append(.notify(.refused(news))) }
  }
}
