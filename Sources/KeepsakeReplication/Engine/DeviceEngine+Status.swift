// What the engine reports about itself.
extension DeviceEngine {
  /// What the engine is doing, and what it has still to send and fetch.
  package var status: EngineStatus {
    EngineStatus(
      phase: phase, attempts: backoff.attempts, fetching: fetchPhase, transfers: inFlight.transfers.map(\.status),
      refusals: refusals.current)
  }

  /// Whether the cloud has responded since the last failure.
  package var isReached: Bool { backoff.isReached }

  /// The numbers of the requests in flight.
  package var requests: Set<UInt64> { inFlight.requests }

  private var phase: EngineStatus.Phase {
    switch state {
    case .stopped: return .stopped
    case .halted(let failure): return .halted(failure)
    case .running: break
    }
    if let failure = backoff.exchangeFailure ?? backoff.contentFailure { return .waiting(failure) }
    return inFlight.isIdle ? .idle : .busy
  }

  private var fetchPhase: EngineStatus.Phase {
    switch state {
    case .stopped: return .stopped
    case .halted(let failure): return .halted(failure)
    case .running: break
    }
    if let failure = backoff.exchangeFailure { return .waiting(failure) }
    if inFlight.exchange != nil || fetching.isExchangeDue || fetching.hasMorePages || !fetching.isComplete {
      return .busy
    }
    guard downloads.isWaiting else { return .idle }
    if let failure = backoff.contentFailure, !inFlight.isDownloading { return .waiting(failure) }
    return .busy
  }
}
