// How events of the event stream are handled.
extension DeviceEngine {
  /// Applies what one exchange of another device changed, if it continues exactly from this device's cursor: the result
  /// is that of an exchange, without the round trip. An event that is late, early, repeated or of another history
  /// counts only as an announcement, and an exchange finds out the rest.
  mutating func apply(
    _ step: CloudEvent.Step, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    guard case .running = state, !fetching.hasMorePages, inFlight.exchange == nil else { return }
    var facts = try storage.facts()
    let isNext = facts.cursor == step.after && facts.cursor.ahead == nil
    guard isNext || storage.faults.takesEventsPastGaps else { return }
    // What is kept back is complete, and the event continues from it.
    guard try storage.staged().isEmpty || holdsArrivals && facts.hasArrivals else { return }
    let answer = ExchangeResponse(
      outcome: nil, changes: step.changes, contents: step.contents, wallet: nil, cursor: step.cursor, more: false,
      serverTimeMilliseconds: now)
    let fault = answer.fault(answering: SentExchange(cursor: step.after), limit: options.page)
    guard step.cursor.ahead == nil, fault == nil else { return }
    facts.cursor = step.cursor
    facts.lastFetchedMilliseconds = now
    facts.hasArrivals = false
    try storage.setFacts(facts)
    try storage.stage(step.changes)
    downloads.invalidate()
    fetching.appliedEvent()
    downloads.reconsider(step.changes)
    // A delete may have made room for what was refused, and only the response to an exchange says how much there is.
    if refusals.lacksRoom, step.hasDelete { fetching.isDue = true }
    try take(step.contents, &effects, in: &storage)
    // Done even while the outbox waits after a failure.
    try showIfComplete(&effects, in: &storage)
  }
}

extension CloudEvent.Step {
  fileprivate var hasDelete: Bool {
    changes.contains { if case .version(let record) = $0.item { record.tombstone } else { false } }
  }
}
