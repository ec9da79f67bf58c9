import Foundation
import KeepsakeReplication
import Synchronization

/// Loads assets on its own threads: a thin shell around the decisions of `AssetQueue` and `AssetCache`.
///
/// No read runs on a thread of Swift's pool, which has only as many threads as the processor has cores, none of which
/// may block.
final class AssetLoader: Sendable {
  /// One thread reads while the other hashes; more would only compete for the disk.
  static let threadCount = 2

  struct State {
    var cache: AssetCache
    var queue = AssetQueue()
    var isClosed = false
    var hasThreads = false
    var lastID: UInt64 = 0

    mutating func newID() -> UInt64 {
      lastID += 1
      return lastID
    }
  }

  /// A read to be performed.
  private struct Job {
    var asset: Int
    /// Whether room for its bytes is reserved in the cache.
    var hasRoom: Bool
  }

  /// What to do after the lock is released: notify waiting callers, and release what was evicted.
  private struct Rest {
    var actions: [AssetQueue.Action] = []
    var letGo: [any Sendable] = []

    func run() {
      for action in actions { action() }
    }
  }

  let source: AssetSource
  /// Called before each read with the asset's path, on the thread that reads; for tests.
  private let reading: @Sendable (String) -> Void
  private let state: Mutex<State>
  private let work = DispatchSemaphore(value: 0)

  init(_ source: AssetSource, budget: Int, reading: @escaping @Sendable (String) -> Void) {
    self.source = source
    self.reading = reading
    state = Mutex(State(cache: AssetCache(budget: budget)))
  }

  private func size(_ asset: Int) -> Int { source.entries[asset].size }

  // MARK: What is in memory

  var heldBytes: Int { state.withLock { $0.cache.heldBytes } }

  func loaded(_ asset: Int) -> Data? { state.withLock { $0.cache.bytes(of: asset) } }

  func value<Value: Sendable>(of asset: Int, _ type: Value.Type) -> Value? {
    state.withLock { $0.cache.value(of: asset, type) }
  }

  func keep<Value: Sendable>(_ value: Value, of asset: Int, cost: Int?) -> Value {
    let (kept, rest) = state.withLock { state in
      let kept = state.cache.keep(value, of: asset, cost: cost ?? size(asset))
      return (kept, Rest(letGo: state.cache.takeLetGo()))
    }
    rest.run()
    return kept
  }

  func empty() {
    let rest = state.withLock { state in
      state.cache.empty()
      return Rest(letGo: state.cache.takeLetGo())
    }
    rest.run()
  }

  // MARK: One asset

  /// Returns the bytes, read on this thread unless another one is already reading them.
  func bytes(of asset: Int) throws -> Data {
    enum Step {
      case have(Data)
      case read(Job)
      case wait
    }
    let answer = AssetAnswer<Data>()
    let (step, rest) = state.withLock { state -> (Step, Rest) in
      if let bytes = state.cache.bytes(of: asset) { return (.have(bytes), Rest()) }
      if state.queue.isReading(asset) {
        state.queue.add(state.newID(), for: asset, .high) { answer.resolve($0) }
        return (.wait, Rest())
      }
      let room = state.cache.reserve(asset, size(asset))
      let rest = Rest(letGo: state.cache.takeLetGo())
      state.queue.begin(asset)
      return (.read(Job(asset: asset, hasRoom: room == .granted)), rest)
    }
    rest.run()
    switch step {
    case .have(let bytes): return bytes
    case .read(let job): return try perform(job).get()
    case .wait:
      guard let result = answer.wait() else { throw AssetError(.timedOut, "an asset was not read in time") }
      return try result.get()
    }
  }

  /// Returns the bytes, read on one of the library's threads.
  func bytes(of asset: Int, _ priority: AssetPriority) async throws -> Data {
    try Task.checkCancellation()
    let answer = AssetAnswer<Data>()
    let (bytes, id) = state.withLock { state -> (Data?, UInt64) in
      if let bytes = state.cache.bytes(of: asset) { return (bytes, 0) }
      let id = state.newID()
      state.queue.add(id, for: asset, priority) { answer.resolve($0) }
      return (nil, id)
    }
    if let bytes { return bytes }
    wake()
    return try await answer.value { [self] in state.withLock { $0.queue.withdraw(id, from: asset) } }
  }

  // MARK: Batches

  func begin(_ assets: [Int], failures: [AssetError], _ priority: AssetPriority, isPinned: Bool) -> UInt64 {
    let sizes = assets.map { (asset: $0, size: size($0)) }
    let id = state.withLock { state -> UInt64 in
      let id = state.newID()
      guard !isPinned || state.cache.pin(sizes) else {
        let inAll = sizes.reduce(Int64(0)) { $0 + Int64($1.size) }
        let error = AssetError(
          .overBudget,
          """
          a batch of \(CountText.of(assets.count, "asset")) with \(CountText.of(inAll, "byte")) doesn't fit into the \
          budget of \(state.cache.budget) bytes, of which \(state.cache.pinnedBytes) are pinned: release another \
          batch, give the library a larger budget, or load without pinning
          """)
        let batch = AssetBatchRecord(
          priority: priority, assets: [], isLoaded: { _ in false }, failures: failures + [error], pinned: [])
        state.queue.add(batch, as: id)
        return id
      }
      // Assets that are already loaded count as used now.
      for asset in assets { _ = state.cache.bytes(of: asset) }
      let cache = state.cache
      let batch = AssetBatchRecord(
        priority: priority, assets: sizes, isLoaded: { cache.isLoaded($0) }, failures: failures,
        pinned: isPinned ? assets : [])
      state.queue.add(batch, as: id)
      return id
    }
    wake()
    return id
  }

  func raise(_ batch: UInt64, to priority: AssetPriority) { state.withLock { $0.queue.raise(batch, to: priority) } }

  func cancel(_ batch: UInt64) {
    let actions = state.withLock { state in
      let actions = state.queue.cancel(batch)
      if state.queue[batch: batch]?.isCancelled == true { state.cache.unpin(state.queue.takePins(of: batch)) }
      return actions
    }
    for action in actions { action() }
    // Unpinning may have made room for which others waited.
    wake()
  }

  func release(_ batch: UInt64) {
    state.withLock { state in
      let pinned = state.queue.release(batch)
      state.cache.unpin(pinned)
    }
    wake()
  }

  func progress(of batch: UInt64) -> AssetProgress { state.withLock { $0.queue.progress(of: batch) } }

  func outcome(of batch: UInt64) -> Result<Void, AssetError>? { state.withLock { $0.queue[batch: batch]?.outcome } }

  func failures(of batch: UInt64) -> [AssetError] { state.withLock { $0.queue[batch: batch]?.failures ?? [] } }

  /// Returns an answer that is resolved when the batch is settled.
  func settling(of batch: UInt64) -> AssetAnswer<Void> {
    let answer = AssetAnswer<Void>()
    let isSettled = state.withLock { $0.queue.listen(to: batch) { answer.resolve(.success(())) } }
    if isSettled { answer.resolve(.success(())) }
    return answer
  }

  func updates(of batch: UInt64) -> AsyncStream<AssetProgress> {
    let (stream, continuation) = AsyncStream<AssetProgress>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let key = state.withLock { state -> UInt64? in
      let key = state.newID()
      return state.queue.addStream(continuation, as: key, to: batch) ? key : nil
    }
    guard let key else {
      continuation.yield(progress(of: batch))
      continuation.finish()
      return stream
    }
    continuation.onTermination = { [weak self] _ in self?.state.withLock { $0.queue.removeStream(key, from: batch) } }
    return stream
  }

  // MARK: Threads

  /// Ends the threads after their current reads. No caller is waiting then, because a waiting caller holds the library.
  func close() {
    state.withLock { $0.isClosed = true }
    for _ in 0..<Self.threadCount { work.signal() }
  }

  private func wake() {
    let (isIdle, mustBegin) = state.withLock { state -> (Bool, Bool) in
      let isIdle = state.queue.isEmpty
      defer { if !isIdle { state.hasThreads = true } }
      return (isIdle, !isIdle && !state.hasThreads)
    }
    guard !isIdle else { return }
    if mustBegin {
      for number in 1...Self.threadCount {
        let thread = Thread { [self] in run() }
        thread.name = "keepsake asset\(number)"
        thread.start()
      }
    }
    for _ in 0..<Self.threadCount { work.signal() }
  }

  private func run() {
    while true {
      work.wait()
      while let job = nextJob() {
        // A failure is reported to the callers that wait for the asset.
        _ = perform(job)
      }
      if state.withLock({ $0.isClosed }) { return }
    }
  }

  private func nextJob() -> Job? {
    let (job, rest) = state.withLock { state -> (Job?, Rest) in
      var actions: [AssetQueue.Action] = []
      let job = choose(&state, &actions)
      return (job, Rest(actions: actions, letGo: state.cache.takeLetGo()))
    }
    rest.run()
    return job
  }

  private func choose(_ state: inout State, _ actions: inout [AssetQueue.Action]) -> Job? {
    while !state.isClosed, let asset = state.queue.next() {
      switch state.cache.reserve(asset, size(asset)) {
      case .granted:
        state.queue.begin(asset)
        return Job(asset: asset, hasRoom: true)
      case .later:
        state.queue.putBack(asset)
        return nil
      case .never:
        actions += state.queue.failBatches(asset, noRoom(for: asset, state.cache))
        guard state.queue.hasSingles(asset) else { continue }
        state.queue.begin(asset)
        return Job(asset: asset, hasRoom: false)
      }
    }
    return nil
  }

  /// Reads an asset, and delivers the result to all callers that wait for it.
  private func perform(_ job: Job) -> Result<Data, AssetError> {
    let asset = job.asset
    reading(source.entries[asset].path)
    let result = Result { () throws(AssetError) in
      try source.read(asset) { done in
        // An asset that is read in one piece has no intermediate progress.
        if done < size(asset) { state.withLock { $0.queue.note(done, of: asset) } }
      }
    }
    let bytes = try? result.get()
    let (rest, isWaiting) = state.withLock { state -> (Rest, Bool) in
      var rest = Rest()
      var room = AssetCache.Room.granted
      if !job.hasRoom, bytes != nil {
        // There may be room by now, or a batch may have pinned the asset.
        room = state.cache.reserve(asset, size(asset))
      }
      if room == .later, let bytes, state.queue.hasBatches(asset) {
        rest.actions = state.queue.finishSingles(asset, bytes)
      } else {
        state.cache.finish(asset, bytes)
        let noRoom = room == .granted ? nil : noRoom(for: asset, state.cache)
        rest.actions = state.queue.finish(asset, result, noRoom: noRoom)
      }
      rest.letGo = state.cache.takeLetGo()
      return (rest, !state.queue.isEmpty)
    }
    rest.run()
    // Others may have waited for this read to end and free its room.
    if isWaiting { work.signal() }
    return result
  }

  private func noRoom(for asset: Int, _ cache: AssetCache) -> AssetError {
    let entry = source.entries[asset]
    return AssetError(
      .overBudget,
      """
      the asset \(AssetPath.shown(entry.path)) with \(entry.size) bytes doesn't fit into the budget of \
      \(cache.budget) bytes, of which \(cache.pinnedBytes) are pinned: release a batch, or give the library a larger \
      budget
      """, path: entry.path)
  }
}
