// What a device does while its cloud takes nothing of it: its store went back to an older state, or it may only read.
extension DeviceEngine {
  /// Takes from a response that the cloud finds the store set back, which the next requests confirm until one of them
  /// gets a response; and whether the cloud takes what this device sends.
  mutating func learnTaking(
    from response: ExchangeResponse, answering sent: SentExchange, _ facts: inout DeviceFacts,
    in storage: some DeviceStorage
  ) throws {
    if sent.setBack != nil { facts.setBack = nil }
    if let told = response.setBack { facts.setBack = told }
    let wasRefused = facts.refusalOfAll != nil
    facts.setBackMark = response.setBackMark
    facts.isReadOnly = response.isReadOnly
    // Only at the change: a cloud that refuses and doesn't say so would be asked endlessly.
    guard wasRefused, facts.refusalOfAll == nil else { return }
    for group in try storage.outbox(limit: storage.outboxCount()) where OutboxRefusals.isOfAll(group) {
      refusals.retry(group, now: now)
    }
  }

  /// Returns why the cloud takes nothing of this device, as far as it has said: nothing is offered then, and each
  /// response may say otherwise. Nil if it takes what this device sends.
  func refusalOfAll(in storage: some DeviceStorage) throws -> Refusal? { try storage.facts().refusalOfAll }

  /// Returns whether this device may only read: it uploads nothing then, and offers no wallet.
  func isReadOnly(in storage: some DeviceStorage) throws -> Bool { try storage.facts().isReadOnly }

  /// Returns why what waits isn't sent: one refusal for all of it. None if nothing waits, or if the cloud takes what
  /// this device sends.
  package func refusalsOfAll(in storage: some DeviceStorage) throws -> [Refusal] {
    guard let refusal = try refusalOfAll(in: storage), try storage.outboxCount() > 0 else { return [] }
    return [refusal]
  }

  /// Handles that the cloud takes nothing of this device. Whole groups stay as they are, or what was saved together
  /// would be sent apart.
  mutating func refuseAll(
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

extension DeviceFacts {
  /// Why the cloud takes nothing of this device; nil if it takes what the device sends.
  package var refusalOfAll: Refusal? {
    if setBackMark?.isRefused ?? false { return .asSetBack }
    return isReadOnly ? .asReadOnly : nil
  }
}
