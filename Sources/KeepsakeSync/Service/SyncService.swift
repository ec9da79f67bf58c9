package import KeepsakeReplication
import Synchronization

/// Keeps a store and its cloud the same: the thin shell around `DeviceEngine`, which decides everything.
///
/// Each step of the engine is one transaction of the store; what it wants done is done after the commit. If a transaction
/// fails, the engine is thrown away and a new one begins, exactly as after a crash.
package actor SyncService<Store: DeviceStore> {
  private struct RandomSource: RandomNumberGenerator {
    var base: any RandomNumberGenerator & Sendable

    mutating func next() -> UInt64 { base.next() }
  }
  enum Mode {
    case stopped, running, paused
  }
  /// A pause that the engine asks for is never longer than this: a day is as good as never.
  private static var longestWakeMilliseconds: Int64 { 86_400_000 }

  private nonisolated let executor = QueueExecutor(label: "keepsake.sync")
  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  let store: Store
  private let transport: any Transport
  private let container: ContainerID
  private let now: @Sendable () -> Int64
  private let sleep: @Sendable (Duration) async throws -> Void
  private let holdsArrivals: @Sendable () -> Bool
  let largestDownload: @Sendable () -> Int?
  private var random: RandomSource
  private nonisolated let publisher = SyncPublisher()
  private nonisolated let hasCommit = Atomic(false)

  private(set) var mode = Mode.stopped
  var engine = DeviceEngine()
  /// Counts engines: what a task started for an earlier one has nothing to say to a later one.
  private var generation: UInt64 = 0
  var requestTasks: [UInt64: Task<Void, Never>] = [:]
  private var wakeTask: Task<Void, Never>?
  private var eventTask: Task<Void, Never>?
  /// Where the device stands, as of the last step.
  private var cursor: Cursor?
  var nextWaiter: UInt64 = 0
  var waiters: [UInt64: SyncWaiter] = [:]

  /// A service for `store` and the container that `credentials` name.
  package init(store: Store, transport: any Transport, container: ContainerID, environment: Environment = .system) {
    self.store = store
    self.transport = transport
    self.container = container
    now = environment.now
    sleep = environment.sleep
    holdsArrivals = environment.holdsArrivals
    largestDownload = environment.largestDownload
    random = RandomSource(base: environment.random)
  }

  // MARK: What a game calls

  /// What is going on. Never waits.
  package nonisolated var status: SyncStatus { publisher.status }

  /// The status now and each time it changes, until the service stops.
  package nonisolated var statuses: AsyncStream<SyncStatus> { publisher.statuses() }

  /// What changed, from now on, until the service stops. A reader that falls far behind misses the oldest; the store always
  /// holds the truth.
  package nonisolated var notifications: AsyncStream<EngineNotification> { publisher.notifications() }

  /// How much news one reader that was there from the beginning gets of what was told by now.
  package nonisolated var notificationCount: UInt64 { publisher.notificationCount }

  /// Starts, or goes on after a pause. Returns as soon as the first step is done, without waiting for the cloud.
  ///
  /// Throws `otherContainer` if the store belongs to another container, unless `rebinding` says that what it holds shall join
  /// this one.
  package func start(rebinding: Bool = false) throws {
    guard mode != .running else { return }
    try bind(rebinding: rebinding)
    mode = .running
    begin()
  }

  /// To be called after each commit that put something into the outbox. Never waits.
  package nonisolated func committed() {
    guard !hasCommit.exchange(true, ordering: .acquiringAndReleasing) else { return }
    Task { await self.takeCommit() }
  }

  /// Sends everything and hears everything: returns when the outbox is empty and the cloud's answer is here.
  ///
  /// Throws a `SyncError` when the next try fails; synchronization then goes on by itself.
  package func sync() async throws { try await wait(for: .everything) }

  /// Hears everything: returns when all that the cloud has is here, whatever there is to be sent.
  ///
  /// Throws a `SyncError` when the next try fails; synchronization then goes on by itself.
  package func fetchChanges() async throws { try await wait(for: .fetching) }

  /// Brings the contents of a slot that were left in the cloud: returns when they are here. Cancelling ends it; what came of a content stays,
  /// and the next try goes on from there.
  ///
  /// Throws a `SyncError` when the next try fails, and `gone` if the cloud hasn't got them.
  package func downloadContents(_ slot: String) async throws {
    try await wait(for: .contents(of: slot))
  }

  /// Nothing goes over the network until `start`.
  package func pause() {
    guard mode == .running else { return }
    end()
    mode = .paused
    publisher.update { $0.phase = .paused }
    failWaiters(.notRunning)
  }

  /// Ends for good: the streams of status and news end, too.
  package func stop() {
    end()
    mode = .stopped
    publisher.update { $0.phase = .stopped }
    failWaiters(.notRunning)
    publisher.close()
  }

  // MARK: Engines

  private func bind(rebinding: Bool) throws {
    do {
      let shown: [EngineNotification] = try store.write { transaction in
        var facts = try transaction.facts()
        var shown: [EngineNotification] = []
        if facts.container == container { return shown }
        if let held = facts.container {
          guard rebinding else { throw SyncError.otherContainer(held: held, offered: container) }
          // What is kept back whole belongs to what this store has, and joins with it.
          shown = try DeviceEngine.deliver(in: &transaction)
          // The cursor stays: no seq of the other container carries its mark, so the cloud says that this device starts
          // again, and all that it holds is offered.
          try transaction.clearCloudDepths()
          try DeviceCommit.moved(in: &transaction)
          facts = try transaction.facts()
          facts.caughtUp = false
          // What was still on its way stays the other container's own.
          try transaction.clearStaged()
        } else {
          try DeviceCommit.connected(in: &transaction)
        }
        facts.container = container
        facts.isRefused = false
        try transaction.setFacts(facts)
        return shown
      }
      for notifications in shown { publisher.post(notifications) }
    } catch let error as SyncError {
      throw error
    } catch {
      throw SyncError.store(error)
    }
  }

  private func begin() {
    end()
    engine = DeviceEngine()
    listen()
    step(.started)
  }

  private func end() {
    generation &+= 1
    for task in [wakeTask, eventTask] { task?.cancel() }
    for task in requestTasks.values { task.cancel() }
    (requestTasks, wakeTask, eventTask) = ([:], nil, nil)
    publisher.updateTransfers { status, ledger in
      status.isListening = false
      ledger.update([], isQuiet: false)
    }
  }

  func step(_ event: EngineEvent, of generation: UInt64? = nil) {
    guard mode == .running, generation == nil || generation == self.generation else { return }
    var next = engine
    let effects: [EngineEffect]
    let waitingCommits: Int
    let facts: DeviceFacts
    do {
      (effects, waitingCommits, facts) = try store.write { transaction in
        next.holdsArrivals = holdsArrivals()
        next.downloadRules = downloads
        let effects = try next.step(event, now: now(), in: &transaction, using: &random)
        return (effects, try transaction.outboxCount(), try transaction.facts())
      }
    } catch {
      storeFailed(error)
      return
    }
    engine = next
    cursor = facts.cursor
    let status = engine.status
    // Before anything begins: what a transfer tells of itself finds its account.
    publisher.updateTransfers { shown, ledger in
      shown.phase = SyncStatus.Phase(status.phase)
      shown.attempts = status.attempts
      shown.waitingCommits = waitingCommits
      shown.refusals = status.refusals
      shown.lastFetchedMilliseconds = facts.lastFetchedMilliseconds
      shown.hasArrivals = facts.hasArrivals
      shown.isReached = next.isReached
      ledger.update(status.transfers, isQuiet: status.phase == .idle)
    }
    for effect in effects { perform(effect) }
    settleWaiters()
  }

  func storeFailed(_ error: any Error) {
    end()
    engine = DeviceEngine()
    publisher.update { $0.phase = .storeFailed(String(describing: error)) }
    failWaiters(.store(error))
    let generation = generation
    wakeTask = Task {
      do { try await self.sleep(.milliseconds(SyncLimits.storePauseMilliseconds)) } catch { return }
      self.retryStore(generation)
    }
  }

  private func retryStore(_ generation: UInt64) {
    guard mode == .running, generation == self.generation else { return }
    begin()
  }

  private func takeCommit() {
    hasCommit.store(false, ordering: .sequentiallyConsistent)
    step(.committed)
  }

  // MARK: Effects

  private func perform(_ effect: EngineEffect) {
    let generation = generation
    let transport = transport
    switch effect {
    case .exchange(let number, let request):
      send(number) { try await .answered(request: number, transport.exchange(request)) }
    case .upload(let number, let content):
      let report = reporter(number)
      send(number) {
        try await transport.putContent(content, progress: report)
        return .uploaded(request: number, content.hash)
      }
    case .download(let number, let hash):
      let report = reporter(number)
      send(number) { try await .downloaded(request: number, hash, transport.getContent(hash, progress: report)) }
    case .wake(let milliseconds):
      wakeTask?.cancel()
      let pause = min(max(milliseconds, 0), Self.longestWakeMilliseconds)
      wakeTask = Task {
        do { try await self.sleep(.milliseconds(pause)) } catch { return }
        self.step(.woke, of: generation)
      }
    case .notify(let notifications):
      publisher.post(notifications)
    }
  }

  private func send(_ number: UInt64, _ work: @escaping @Sendable () async throws -> EngineEvent) {
    let generation = generation
    let publisher = publisher
    requestTasks[number] = Task {
      let event: EngineEvent
      do {
        event = try await work()
        publisher.updateTransfers { _, ledger in ledger.finished(number) }
      } catch let failure as TransportFailure {
        event = .failed(request: number, failure)
      } catch {
        event = .failed(request: number, TransportFailure(.interrupted, String(describing: error)))
      }
      self.landed(number, event, of: generation)
    }
  }

  private func landed(_ number: UInt64, _ event: EngineEvent, of generation: UInt64) {
    guard generation == self.generation else { return }
    requestTasks[number] = nil
    step(event, of: generation)
  }

  private func reporter(_ number: UInt64) -> @Sendable (TransferProgress) -> Void {
    let publisher = publisher
    return { progress in publisher.updateTransfers { _, ledger in ledger.progressed(number, progress) } }
  }

  // MARK: The event stream

  private func listen() {
    let generation = generation
    let transport = transport
    eventTask = Task {
      var pause = SyncLimits.firstEventPauseMilliseconds
      while !Task.isCancelled {
        var hasReceived = false
        do {
          for try await event in transport.events(since: { [weak self] in await self?.cursor }) {
            self.handle(event, isFirst: !hasReceived, of: generation)
            if !hasReceived { pause = SyncLimits.firstEventPauseMilliseconds }
            hasReceived = true
          }
        } catch {
          // A stream that can't be had costs only time: the engine asks by itself, and tells what is wrong.
          if let failure = error as? TransportFailure, [.unauthorized, .rejected].contains(failure.kind) {
            pause = SyncLimits.longestEventPauseMilliseconds
          }
        }
        self.listeningEnded(of: generation)
        let jittered = self.jitter(pause)
        do { try await self.sleep(.milliseconds(jittered)) } catch { return }
        pause = min(pause * 2, SyncLimits.longestEventPauseMilliseconds)
      }
    }
  }

  private func handle(_ event: CloudEvent, isFirst: Bool, of generation: UInt64) {
    guard mode == .running, generation == self.generation else { return }
    publisher.update { $0.isListening = true }
    step(.announced(event), of: generation)
    // The cloud is there again: what waits because it wasn't need not wait any longer.
    if isFirst, case .waiting(let failure) = engine.status.phase, [.unreachable, .interrupted].contains(failure.kind) {
      step(.sync, of: generation)
    }
  }

  private func listeningEnded(of generation: UInt64) {
    guard generation == self.generation else { return }
    publisher.update { $0.isListening = false }
  }

  private func jitter(_ milliseconds: Int64) -> Int64 { Int64.random(in: milliseconds / 2...milliseconds, using: &random) }
}

extension SyncStatus.Phase {
  init(_ phase: EngineStatus.Phase) {
    switch phase {
    case .stopped: self = .stopped
    case .idle: self = .idle
    case .busy: self = .busy
    case .waiting(let failure): self = .waiting(failure)
    case .halted(let failure): self = .halted(failure)
    }
  }
}
