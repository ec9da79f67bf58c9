import KeepsakeReplication

/// Who waits for what of a service.
struct SyncWaiter {
  enum Wish: Hashable {
    /// That what is here is there, and what the cloud has here.
    case everything
    /// What the cloud has, not that what is here is there.
    case hearing
    /// The contents of a slot.
    case contents(of: String)
  }

  var wish: Wish
  var continuation: CheckedContinuation<Void, any Error>
}

extension SyncService {
  func wait(for wish: SyncWaiter.Wish) async throws {
    guard mode == .running else { throw SyncError.notRunning }
    nextWaiter += 1
    let id = nextWaiter
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        waiters[id] = SyncWaiter(wish: wish, continuation: continuation)
        step(.sendNow)
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
    let slots = waiters.values.compactMap { if case .contents(let slot) = $0.wish { slot } else { nil } }
    return DownloadRules(largest: largestDownload(), asked: Set(slots))
  }

  func settleWaiters() {
    guard !waiters.isEmpty else { return }
    let status = engine.status
    for wish in Set(waiters.values.map(\.wish)) {
      do {
        guard let result = try outcome(of: wish, status) else { continue }
        resumeWaiters(wish, result)
      } catch {
        resumeWaiters(wish, .failure(SyncError.store(error)))
      }
    }
  }

  /// What became of a wish; nil while nobody can say. Throws what the store throws.
  private func outcome(of wish: SyncWaiter.Wish, _ status: EngineStatus) throws -> Result<Void, any Error>? {
    if case .contents(let slot) = wish, try !isDeferred(slot) { return .success(()) }
    switch wish == .hearing ? status.fetching : status.phase {
    case .stopped: return nil
    case .waiting(let failure), .halted(let failure): return .failure(SyncError.transport(failure))
    case .busy, .idle: break
    }
    switch wish {
    case .contents(let slot):
      return try store.write { try engine.isDownloading(slot, in: $0) } ? nil : .failure(SyncError.gone(slot: slot))
    case .hearing:
      return status.fetching == .idle ? .success(()) : nil
    case .everything:
      guard status.phase == .idle else { return nil }
      let refusals = try store.write { try $0.outbox(limit: .max).flatMap(\.refusals) }
      return refusals.isEmpty ? .success(()) : .failure(SyncError.refused(refusals))
    }
  }

  private func isDeferred(_ slot: String) throws -> Bool {
    try store.write { transaction in
      try transaction.deferredVersions().contains { try transaction.version($0)?.record.slot == slot }
    }
  }

  func failWaiters(_ error: SyncError) {
    for wish in Set(waiters.values.map(\.wish)) { resumeWaiters(wish, .failure(error)) }
  }

  private func resumeWaiters(_ wish: SyncWaiter.Wish, _ result: Result<Void, any Error>) {
    let settled = waiters.filter { $0.value.wish == wish }.sorted { $0.key < $1.key }
    for (id, _) in settled { waiters[id] = nil }
    for (_, waiter) in settled { waiter.continuation.resume(with: result) }
  }

  private func cancelWaiter(_ id: UInt64) {
    guard let waiter = waiters.removeValue(forKey: id) else { return }
    waiter.continuation.resume(throwing: CancellationError())
    if case .contents = waiter.wish { cancelUnwantedDownloads() }
  }

  /// Nobody waits for it any more: what is under way ends, as far as nothing else needs it.
  private func cancelUnwantedDownloads() {
    guard mode == .running else { return }
    var next = engine
    next.downloadRules = downloads
    do {
      for request in try store.write({ try next.cancelUnwantedDownloads(in: $0) }) { requestTasks.removeValue(forKey: request)?.cancel() }
    } catch {
      return storeFailed(error)
    }
    engine = next
    // There is room for others.
    step(.committed)
  }
}
