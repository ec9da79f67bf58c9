// What fails, and what the engine says of itself.
extension DeviceEngine {
  package var status: EngineStatus {
    EngineStatus(phase: phase, attempts: attempts, fetching: fetching, transfers: transfers.map(\.status), refusals: refused)
  }

  private var phase: EngineStatus.Phase {
    switch standing {
    case .stopped: return .stopped
    case .halted(let failure): return .halted(failure)
    case .running: break
    }
    if let failure = paused ?? transfersPaused { return .waiting(failure) }
    return exchange == nil && transfers.isEmpty ? .idle : .busy
  }

  private var fetching: EngineStatus.Phase {
    switch standing {
    case .stopped: return .stopped
    case .halted(let failure): return .halted(failure)
    case .running: break
    }
    if let paused { return .waiting(paused) }
    if exchangeDue || exchange != nil || announced > 0 || paging || !complete { return .busy }
    guard needs?.contains(where: { !$0.isAsked }) == true else { return .idle }
    if let transfersPaused, !transfers.contains(where: { !$0.isUpload }) { return .waiting(transfersPaused) }
    return .busy
  }

  mutating func failed(
    _ sent: SentExchange, _ failure: TransportFailure, _ effects: inout [EngineEffect],
    in storage: inout some DeviceStorage, using random: inout some RandomNumberGenerator
  ) throws {
    exchangeDue = true
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
    for failure: TransportFailure, of source: Source, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage,
    using random: inout some RandomNumberGenerator
  ) throws {
    switch failure.kind {
    case .unauthorized:
      standing = .halted(failure)
      var facts = try storage.facts()
      guard !facts.isRefused else { return }
      facts.isRefused = true
      try storage.setFacts(facts)
    case .server(let retryAfter):
      pause(failure, of: source, atLeast: retryAfter ?? 0, &effects, using: &random)
    case .unreachable, .interrupted, .rejected:
      pause(failure, of: source, atLeast: 0, &effects, using: &random)
    }
  }

  /// Waits before the next try: longer after each failure, and not in step with other devices.
  ///
  /// A failed exchange stops everything. A content that failed stops contents only: what the cloud announces is still heard, and what is small
  /// still goes.
  mutating func pause(
    _ failure: TransportFailure, of source: Source, atLeast minimum: Int64, _ effects: inout [EngineEffect],
    using random: inout some RandomNumberGenerator
  ) {
    failing.insert(source)
    isReached = false
    let isWaiting = paused != nil || (transfersPaused != nil && source != .exchange)
    if source == .exchange { paused = failure } else { transfersPaused = failure }
    let minimum = min(max(0, minimum), options.maximumRetryAfterMilliseconds)
    // What was under way together fails together: that is one failure.
    if isWaiting, minimum <= lastPause { return }
    if !isWaiting { attempts += 1 }
    var delay = options.firstBackoffMilliseconds
    for _ in 1..<max(2, min(attempts, 32)) where attempts > 1 && delay < options.maximumBackoffMilliseconds { delay *= 2 }
    delay = min(delay, options.maximumBackoffMilliseconds)
    delay -= Int64(random.next() % UInt64(delay / 2 + 1))
    delay = max(delay, minimum)
    lastPause = delay
    (pollIsSet, continues) = (false, false)
    effects.append(.wake(afterMilliseconds: delay))
  }

  /// Failures count as long as something fails that hasn't succeeded since: a content that the cloud never takes is tried ever more rarely,
  /// although exchanges go through.
  mutating func succeeded(_ source: Source) {
    isReached = true
    failing.remove(source)
    if failing.isEmpty { attempts = 0 }
  }

  /// The cloud won't take a request as it is: finds out what of it is to blame, so that the rest goes on.
  private mutating func rejected(
    _ sent: SentExchange, _ failure: TransportFailure, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    isReached = true
    if sent.groups.count > 1 {
      single = true
    } else if sent.hasWallet {
      walletPaused = true
    } else if let group = sent.groups.first {
      try refuse(group.id, [Refusal(item: "all", reason: .invalid, message: failure.message)], &effects, in: &storage)
    } else {
      standing = .halted(failure)
    }
  }

  private mutating func rejected(
    _ transfer: Transfer, _ failure: TransportFailure, _ effects: inout [EngineEffect], in storage: inout some DeviceStorage
  ) throws {
    // It was answered; what is done about it is another matter than the network.
    succeeded(.content(transfer.hash))
    large[transfer.hash] = nil
    if !transfer.isUpload {
      giveUpWhatNeeds(transfer.hash, &effects)
    } else if let base = transfer.base, failure.quota == nil {
      // The cloud lost the base, most likely: alone the content needs none.
      try storage.setCloudDepth(nil, of: base)
      sendFull.insert(transfer.hash)
    } else {
      wanted.removeAll { $0.hash == transfer.hash }
      try refuse(groupsWith: transfer.hash, failure, &effects, in: &storage)
    }
  }
}
