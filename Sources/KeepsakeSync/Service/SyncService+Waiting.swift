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
  var continuation: CheckedContinuation<Void, any Error>
}

extension SyncService {
  func wait(for goal: SyncWaiter.Goal) async throws {
    guard mode == .running else { throw SyncError.notRunning }
    nextWaiter += 1
    let id = nextWaiter
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        waiters[id] = SyncWaiter(goal: goal, continuation: continuation)
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

  func settleWaiters() {
    guard !waiters.isEmpty else { return }
    let status = engine.status
    for goal in Set(waiters.values.map(\.goal)) {
      do {
        guard let result = try outcome(of: goal, status) else { continue }
        resumeWaiters(goal, result)
      } catch {
        resumeWaiters(goal, .failure(SyncError.store(error)))
      }
    }
  }

  /// Returns the outcome of a goal; nil while it isn't known.
  ///
  /// - Throws: What the store throws.
  private func outcome(of goal: SyncWaiter.Goal, _ status: EngineStatus) throws -> Result<Void, any Error>? {
    if case .contents(let slot) = goal, try !isNotDownloaded(slot) { return .success(()) }
    switch goal == .fetching ? status.fetching : status.phase {
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
      let refusals = try store.write { try $0.outbox(limit: .max).flatMap(\.refusals) }
      return refusals.isEmpty ? .success(()) : .failure(SyncError.refused(refusals))
    }
  }

  private func isNotDownloaded(_ slot: String) throws -> Bool {
    try store.write { transaction in
      try transaction.notDownloadedVersions().contains { try transaction.version($0)?.record.slot == slot }
    }
  }

  func failWaiters(_ error: SyncError) {
    for goal in Set(waiters.values.map(\.goal)) { resumeWaiters(goal, .failure(error)) }
  }

  private func resumeWaiters(_ goal: SyncWaiter.Goal, _ result: Result<Void, any Error>) {
    let settled = waiters.filter { $0.value.goal == goal }.sorted { $0.key < $1.key }
    for (id, _) in settled { waiters[id] = nil }
    for (_, waiter) in settled { waiter.continuation.resume(with: result) }
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
