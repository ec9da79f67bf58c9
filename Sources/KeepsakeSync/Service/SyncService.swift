package import KeepsakeReplication
import Synchronization

/// Keeps a store and its cloud in sync: a thin shell around `DeviceEngine`, which makes all decisions.
///
/// Each step of the engine is one transaction of the store; its effects are carried out after the commit. If a
/// transaction fails, the engine is discarded and a new one starts, exactly as after a crash.
package actor SyncService<Store: DeviceStore> {
  private struct RandomSource: RandomNumberGenerator {
    var base: any RandomNumberGenerator & Sendable

    mutating func next() -> UInt64 { base.next() }
  }
  enum Mode {
    case stopped, running, paused
  }
  /// A longer pause requested by the engine is cut to this: a day is as good as never.
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
  /// Counts engines: a task that was started for an earlier engine must not affect a later one.
  private var generation: UInt64 = 0
  var requestTasks: [UInt64: Task<Void, Never>] = [:]
  private var wakeTask: Task<Void, Never>?
  private var eventTask: Task<Void, Never>?
  /// The device's cursor as of the last step.
  private var cursor: Cursor?
  var nextWaiter: UInt64 = 0
  var waiters: [UInt64: SyncWaiter] = [:]

  /// Creates a service that syncs `store` with a container.
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

  /// The current status. Never waits.
  package nonisolated var status: SyncStatus { publisher.status }

  /// The current status and each change of it, until the service stops.
  package nonisolated var statuses: AsyncStream<SyncStatus> { publisher.statuses() }

  /// Notifications about changes from now on, until the service stops. A reader that falls far behind misses the
  /// oldest; the store always has the truth.
  package nonisolated var notifications: AsyncStream<EngineNotification> { publisher.notifications() }

  /// How many of the notifications posted so far a reader gets that has been there from the beginning.
  package nonisolated var notificationCount: UInt64 { publisher.notificationCount }

  /// Starts, or continues after a pause. Returns as soon as the first step is done, without waiting for the cloud.
  ///
  /// - Parameter rebinding: Whether the data of a store that belongs to another container should join this one.
  /// - Throws: `otherContainer` if the store belongs to another container and `rebinding` is false; `store` if the
  ///   store fails.
  package func start(rebinding: Bool = false) throws {
    guard mode != .running else { return }
    try bind(rebinding: rebinding)
    mode = .running
    begin()
  }

  /// Call this after each commit that added something to the outbox. Never waits.
  package nonisolated func committed() {
    guard !hasCommit.exchange(true, ordering: .acquiringAndReleasing) else { return }
    Task { await self.takeCommit() }
  }

  /// Sends everything and fetches everything: returns when the outbox is empty and the cloud's response is here.
  ///
  /// - Throws: A `SyncError` if the next attempt fails; synchronization then continues by itself. If the network fails
  ///   an attempt that began before this call, one more is made.
  package func sync() async throws { try await wait(for: .everything) }

  /// Fetches everything: returns when everything in the cloud is here, whatever there is to send.
  ///
  /// - Throws: A `SyncError` if the next attempt fails; synchronization then continues by itself. If the network fails
  ///   an attempt that began before this call, one more is made.
  package func fetchChanges() async throws { try await wait(for: .fetching) }

  /// Downloads the contents of a slot that were left in the cloud: returns when they are here. Cancelling the task ends
  /// this; the received part of a content is kept, and the next attempt continues from there.
  ///
  /// - Throws: A `SyncError` as `sync`, and `gone` if the cloud doesn't have them.
  package func downloadContents(_ slot: String) async throws {
    try await wait(for: .contents(of: slot))
  }

  /// Stops all network traffic until `start`.
  package func pause() {
    guard mode == .running else { return }
    end()
    mode = .paused
    publisher.update { $0.phase = .paused }
    failWaiters(.notRunning)
  }

  /// Ends permanently: the streams of status and notifications end, too.
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
          // Complete changes that are kept back are part of this store's data, and join the container with it.
          shown = try DeviceEngine.deliver(in: &transaction)
          // The cursor stays: no seq of the other container has its mark, so the cloud responds that this device has to
          // start over, and everything that it has is offered.
          try transaction.clearCloudDepths()
          var random = SystemRandomNumberGenerator()
          try DeviceCommit.moved(in: &transaction, using: &random)
          facts = try transaction.facts()
          facts.caughtUp = false
          // The other cloud knows nothing of it.
          (facts.setBack, facts.setBackMark) = (nil, nil)
          (facts.isReadOnly, facts.isRefused) = (false, false)
          // What was still incomplete stays in the other container only.
          try transaction.clearStaged()
        } else {
          try DeviceCommit.connected(in: &transaction)
        }
        facts.container = container
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
        next.hasBank = transport.hasBank
        next.downloadRules = downloads
        let effects = try next.step(event, now: now(), in: &transaction, using: &random)
        return (effects, try transaction.outboxCount(), try transaction.facts())
      }
    } catch {
      storeFailed(error)
      return
    }
    let wasRefused = engine.status.phase.isRefused
    engine = next
    cursor = facts.cursor
    // The stream may have seen nothing of it, and only a new one shows that the cloud takes this device again.
    if engine.status.phase.isRefused, !wasRefused { listen(after: SyncLimits.longestEventPauseMilliseconds) }
    let status = engine.status
    // Done before anything begins, so that the progress of each transfer finds its account.
    publisher.updateTransfers { shown, ledger in
      shown.phase = SyncStatus.Phase(status.phase)
      shown.attempts = status.attempts
      shown.waitingCommits = waitingCommits
      shown.refusals = status.refusals
      shown.lastFetchedMilliseconds = facts.lastFetchedMilliseconds
      shown.hasArrivals = facts.hasArrivals
      shown.setBackMark = facts.setBackMark
      shown.isReadOnly = facts.isReadOnly
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
      self.finished(number, event, of: generation)
    }
  }

  private func finished(_ number: UInt64, _ event: EngineEvent, of generation: UInt64) {
    guard generation == self.generation else { return }
    requestTasks[number] = nil
    step(event, of: generation)
  }

  private func reporter(_ number: UInt64) -> @Sendable (TransferProgress) -> Void {
    let publisher = publisher
    return { progress in publisher.updateTransfers { _, ledger in ledger.progressed(number, progress) } }
  }

  // MARK: The event stream

  private func listen(after milliseconds: Int64 = 0) {
    let generation = generation
    let transport = transport
    eventTask?.cancel()
    eventTask = Task {
      if milliseconds > 0 {
        do { try await self.sleep(.milliseconds(milliseconds)) } catch { return }
      }
      var pause = SyncLimits.firstEventPauseMilliseconds
      while !Task.isCancelled {
        var hasReceived = false
        var least: Int64 = 0
        do {
          for try await event in transport.events(since: { [weak self] in await self?.cursor }) {
            self.handle(event, isFirst: !hasReceived, of: generation)
            if !hasReceived { pause = SyncLimits.firstEventPauseMilliseconds }
            hasReceived = true
          }
        } catch {
          // A failing stream costs only time: the engine polls by itself, and reports what is wrong.
          switch (error as? TransportFailure)?.kind {
          case .unauthorized, .notEntitled, .rejected: pause = SyncLimits.longestEventPauseMilliseconds
          case .server(let retryAfter): least = retryAfter ?? 0
          case .unreachable, .interrupted, nil: break
          }
        }
        self.listeningEnded(of: generation)
        let jittered = max(self.jitter(pause), least)
        do { try await self.sleep(.milliseconds(jittered)) } catch { return }
        pause = min(pause * 2, SyncLimits.longestEventPauseMilliseconds)
      }
    }
  }

  private func handle(_ event: CloudEvent, isFirst: Bool, of generation: UInt64) {
    guard mode == .running, generation == self.generation else { return }
    publisher.update { $0.isListening = true }
    step(.announced(event), of: generation)
    if isFirst, engine.status.phase.endsWithAStream { step(.sync, of: generation) }
  }

  private func listeningEnded(of generation: UInt64) {
    guard generation == self.generation else { return }
    publisher.update { $0.isListening = false }
  }

  private func jitter(_ milliseconds: Int64) -> Int64 {
    Int64.random(in: milliseconds / 2...milliseconds, using: &random)
  }
}

extension EngineStatus.Phase {
  /// Whether there is no reason for it any more once the cloud answers a stream: it is reachable again, or takes this
  /// device again, because the right folder is back.
  fileprivate var endsWithAStream: Bool {
    switch self {
    case .waiting(let failure): [.unreachable, .interrupted].contains(failure.kind)
    case .halted, .stopped, .idle, .busy: isRefused
    }
  }

  fileprivate var isRefused: Bool {
    if case .halted(let failure) = self { failure.kind == .unauthorized } else { false }
  }
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
