import KeepsakeReplication

/// A caller that waits for a service to reach a goal.
struct SyncWaiter {
  enum Goal: Hashable {
    /// Everything here is in the cloud, and everything in the cloud is here.
    case everything
    /// Everything in the cloud is here, but not necessarily the reverse.
    case fetching
    /// The contents of a slot are here.
    case contents(of: String)
  }

  var goal: Goal
  /// The requests that were in flight when the caller began to wait, and still are. If the network fails one of them,
  /// that says nothing about the time since, and one more attempt is made.
  var earlierRequests: Set<UInt64>
  var continuation: CheckedContinuation<Void, any Error>
}

extension TransportFailure.Kind {
  /// No response arrived, so trying again at once is no burden to the cloud.
  fileprivate var isOfNetwork: Bool { self == .unreachable || self == .interrupted }
}

extension SyncService {
  func wait(for goal: SyncWaiter.Goal) async throws {
    guard mode == .running else { throw SyncError.notRunning }
    nextWaiter += 1
    let id = nextWaiter
    let requests = engine.requests
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        waiters[id] = SyncWaiter(goal: goal, earlierRequests: requests, continuation: continuation)
        step(.sync)
        if Task.isCancelled {
          cancelWaiter(id)
        } else {
          settleWaiters()
        }
      }
    } onCancel: {
      Task { await self.cancelWaiter(id) }
    }
  }

  var downloads: DownloadRules {
    let slots = waiters.values.compactMap { if case .contents(let slot) = $0.goal { slot } else { nil } }
    return DownloadRules(largest: largestDownload(), asked: Set(slots))
  }

  /// Resumes the callers whose goal is reached or failed. Call this after each step.
  func settleWaiters() {
    guard !waiters.isEmpty else { return }
    let status = engine.status
    let requests = engine.requests
    // Those of whose earlier requests one ended in this step.
    let retrying = Set(waiters.filter { !$0.value.earlierRequests.isSubset(of: requests) }.keys)
    for id in retrying { waiters[id]?.earlierRequests.formIntersection(requests) }
    var needsAttempt = false
    for goal in Set(waiters.values.map(\.goal)) {
      do {
        guard let result = try outcome(of: goal, status) else { continue }
        var settled = waiters.filter { $0.value.goal == goal }
        if case .failure = result, case .waiting(let failure) = phase(of: goal, status), failure.kind.isOfNetwork {
          settled = settled.filter { !retrying.contains($0.key) }
          needsAttempt = needsAttempt || waiters.contains { $0.value.goal == goal && retrying.contains($0.key) }
        }
        resume(settled, with: result)
      } catch {
        resumeAll(waitingFor: goal, with: .failure(SyncError.store(error)))
      }
    }
    if needsAttempt { step(.sync) }
  }

  private func phase(of goal: SyncWaiter.Goal, _ status: EngineStatus) -> EngineStatus.Phase {
    goal == .fetching ? status.fetching : status.phase
  }

  /// Returns the outcome of a goal; nil while it isn't known.
  ///
  /// - Throws: What the store throws.
  private func outcome(of goal: SyncWaiter.Goal, _ status: EngineStatus) throws -> Result<Void, any Error>? {
    if case .contents(let slot) = goal, try !isNotDownloaded(slot) { return .success(()) }
    switch phase(of: goal, status) {
    case .stopped: return nil
    case .waiting(let failure), .halted(let failure): return .failure(SyncError.transport(failure))
    case .busy, .idle: break
    }
    switch goal {
    case .contents(let slot):
      return try store.write { try engine.isDownloading(slot, in: $0) } ? nil : .failure(SyncError.gone(slot: slot))
    case .fetching:
      return status.fetching == .idle ? .success(()) : nil
    case .everything:
      guard status.phase == .idle else { return nil }
      let refusals = try store.write { transaction in
        let whole = try engine.refusalsOfAll(in: transaction)
        return whole.isEmpty ? try transaction.outbox(limit: .max).flatMap(\.refusals) : whole
      }
      return refusals.isEmpty ? .success(()) : .failure(SyncError.refused(refusals))
    }
  }

  private func isNotDownloaded(_ slot: String) throws -> Bool {
    try store.write { transaction in
      try transaction.notDownloadedVersions().contains { try transaction.version($0)?.record.slot == slot }
    }
  }

  func failWaiters(_ error: SyncError) {
    for goal in Set(waiters.values.map(\.goal)) { resumeAll(waitingFor: goal, with: .failure(error)) }
  }

  private func resumeAll(waitingFor goal: SyncWaiter.Goal, with result: Result<Void, any Error>) {
    resume(waiters.filter { $0.value.goal == goal }, with: result)
  }

  /// Resumes callers in the order in which they began to wait.
  private func resume(_ settled: [UInt64: SyncWaiter], with result: Result<Void, any Error>) {
    for id in settled.keys { waiters[id] = nil }
    for (_, waiter) in settled.sorted(by: { $0.key < $1.key }) { waiter.continuation.resume(with: result) }
  }

  private func cancelWaiter(_ id: UInt64) {
    guard let waiter = waiters.removeValue(forKey: id) else { return }
    waiter.continuation.resume(throwing: CancellationError())
    if case .contents = waiter.goal { cancelUnwantedDownloads() }
  }

  /// Ends requests for contents that nobody waits for any more, as far as nothing else needs them.
  private func cancelUnwantedDownloads() {
    guard mode == .running else { return }
    var next = engine
    next.downloadRules = downloads
    do {
      for request in try store.write({ try next.cancelUnwantedDownloads(in: $0) }) {
        requestTasks.removeValue(forKey: request)?.cancel()
      }
    } catch {
      return storeFailed(error)
    }
    engine = next
    // There is room for other requests.
    step(.committed)
  }
}
