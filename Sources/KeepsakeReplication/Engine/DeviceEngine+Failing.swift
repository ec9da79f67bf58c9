// How failed requests are handled.
extension DeviceEngine {
  mutating func failed(
    _ sent: SentExchange, _ failure: TransportFailure, _ effects: inout [EngineEffect],
    in storage: inout some DeviceStorage, using random: inout some RandomNumberGenerator
  ) throws {
    fetching.isDue = true
    if failure.kind == .unreachable { try unmarkOffered(sent, in: &storage) }
    guard failure.kind != .rejected else { return try rejected(sent, failure, &effects, in: &storage) }
    try stop(for: failure, of: .exchange, &effects, in: &storage, using: &random)
  }

  mutating func failed(
    _ transfer: Transfer, _ failure: TransportFailure, _ effects: inout [EngineEffect],
    in storage: inout some DeviceStorage, using random: inout some RandomNumberGenerator
  ) throws {
    try unmarkOffered(transfer, in: &storage)
    guard failure.kind != .rejected else { return try rejected(transfer, failure, &effects, in: &storage) }
    try stop(for: failure, of: .content(transfer.hash), &effects, in: &storage, using: &random)
  }

  private mutating func stop(
    for failure: TransportFailure, of source: Backoff.Source, _ effects: inout [EngineEffect],
    in storage: inout some DeviceStorage,
    using random: inout some RandomNumberGenerator
  ) throws {
    switch failure.kind {
    case .unauthorized:
      state = .halted(failure)
      var facts = try storage.facts()
      guard !facts.isRefused else { return }
      facts.isRefused = true
      try storage.setFacts(facts)
    case .server(let retryAfter):
      pause(failure, of: source, atLeast: retryAfter ?? 0, &effects, using: &random)
    case .notEntitled:
      // Nothing announces that a studio has entitled the game again. What is kept here stays certain in the cloud.
      pause(failure, of: source, atLeast: options.secondTryMilliseconds, &effects, using: &random)
    case .unreachable, .interrupted, .rejected:
      pause(failure, of: source, atLeast: 0, &effects, using: &random)
    }
  }

  /// Pauses, and requests the wake-up that ends the pause.
  mutating func pause(
    _ failure: TransportFailure, of source: Backoff.Source, atLeast minimum: Int64, _ effects: inout [EngineEffect],
    using random: inout some RandomNumberGenerator
  ) {
    guard let delay = backoff.failed(source, failure, atLeast: minimum, using: &random) else { return }
    wakeUps.replace()
    effects.append(.wake(afterMilliseconds: delay))
  }

  /// Handles a request that the cloud won't take as it is: finds out which part of it is to blame, so that the rest is
  /// sent.
  private mutating func rejected(
    _ sent: SentExchange, _ failure: TransportFailure, _ effects: inout [EngineEffect],
    in storage: inout some DeviceStorage
  ) throws {
    backoff.reached()
    switch rejections.rejected(sent) {
    case .tryAgain: break
    case .refuse(let group):
      let refusal = Refusal(item: Refusal.everything, reason: .invalid, message: failure.message)
      try refuse(group, [refusal], &effects, in: &storage)
    case .halt: state = .halted(failure)
    }
  }

  private mutating func rejected(
    _ transfer: Transfer, _ failure: TransportFailure, _ effects: inout [EngineEffect],
    in storage: inout some DeviceStorage
  ) throws {
    // The cloud responded; how to handle a rejection has nothing to do with the network.
    backoff.succeeded(.content(transfer.hash))
    uploads.forgetSize(of: transfer.hash)
    if !transfer.isUpload {
      var losses = DownloadLosses()
      downloads.giveUpNeeds(of: transfer.hash, &losses)
      record(losses, &effects)
    } else if let base = transfer.base, failure.quota == nil {
      // The cloud has most likely lost the base: sent in full, the content needs none.
      try storage.setCloudDepth(nil, of: base)
      uploads.sendInFull(transfer.hash)
    } else {
      repair.drop(transfer.hash)
      try refuse(groupsWith: transfer.hash, failure, &effects, in: &storage)
    }
  }
}
