import Dispatch
import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync
import Synchronization

/// Makes the connection what the game asks for: registers this device, and runs sync.
actor CloudConnection: CloudLink {
  nonisolated let executor = QueueExecutor(label: "keepsake.cloud", qos: .utility)
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  nonisolated let core: GameCore
  nonisolated let eventHandler: CloudEventHandler
  nonisolated let state: CloudState
  nonisolated var deliveryBuffer: DeliveryBuffer { eventHandler.deliveryBuffer }
  let registration: CloudRegistration
  let sleep: @Sendable (Duration) async throws -> Void
  var random: any RandomNumberGenerator & Sendable

  /// The address that the service or the registration is for.
  private(set) var address: CloudAddress?
  private(set) var service: SyncService<Store>?
  /// The service that is notified of commits.
  private nonisolated let informed = Mutex<SyncService<Store>?>(nil)
  /// Settles what the store left with the banks of players that it belonged to before; nil while it can't.
  var leaving: LeavingService<Store>?
  /// Whether the cloud was reachable when the status was last shown.
  var wasReached = false
  /// The transport that the service uses.
  private(set) var transport: (any Transport)?
  private var seenByMonitor: SeenByMonitor?
  /// Counts services, so that what an earlier one still reports is ignored.
  private var generation = 0
  private var pumps: [Task<Void, Never>] = []
  /// How many notifications of the service have reached the game, and the callers that wait for more.
  private var notificationsTaken: UInt64 = 0
  private var notificationWaiters: [CheckedContinuation<Void, Never>] = []
  /// The attempts to register, until one succeeds.
  var registering: Task<Void, Never>?
  /// Whether everything secret is where the game wants it.
  var hasMovedSecrets = false
  private var last: Task<Void, Never>?

  init(core: GameCore, eventHandler: CloudEventHandler, state: CloudState) {
    self.core = core
    self.eventHandler = eventHandler
    self.state = state
    registration = CloudRegistration(of: core, executor: executor)
    sleep = core.environment.sleep
    random = core.environment.random
  }

  // MARK: What is wanted, and what is

  /// Makes the actual state match the desired one. Calls run one after the other.
  func reconcile() async {
    let before = last
    // With the executor preference, even the waiting uses none of the threads that all tasks share: a game may be
    // blocking them in `close`.
    let task = Task(executorPreference: executor) {
      await before?.value
      await self.apply(self.state.desired)
    }
    last = task
    await task.value
  }

  private func apply(_ desired: CloudState.Desired) async {
    guard !desired.isClosed, let wanted = desired.address else {
      await end()
      state.post(.off)
      if desired.isClosed { state.finish() }
      return
    }
    if !wanted.isSame(as: address) {
      await end()
      address = wanted
    }
    guard desired.isEnabled else {
      registering?.cancel()
      registering = nil
      await service?.pause()
      await endLeaving()
      state.post(.paused)
      return showWithoutService()
    }
    do {
      if let service, try await !isLeaving(for: wanted) {
        try await service.start()
        await beginLeaving()
        return
      }
      if service != nil {
        await end()
        address = wanted
      }
      switch wanted.kind {
      case .transport(let transport, let container, _): try await begin(transport, container)
      case .folder(let folder):
        guard let (shared, container) = try folder.known(of: core.store.base) else { return keepRegistering() }
        if folder.isJoining, try core.store.read({ try $0.facts().container }) != container {
          try refuseToLeaveContents()
        }
        let transport = CloudFolder.transport(to: shared, container, for: core)
        try await begin(transport, container, rebinding: folder.isJoining)
      case .server(let server):
        // First, since the others can be moved even if this device has lost its credentials.
        await moveSecrets()
        guard let known = try await knownCredentials(at: server) else { return keepRegistering() }
        let renewal = CredentialsRenewal(appKey: server.appKey) { [registration] new, old in
          try await registration.renewed(new, replacing: old)
        }
        let transport = HTTPTransport(known.credentials, renewal: renewal)
        try await begin(transport, known.credentials.container, rebinding: known.isJoining)
        if known.isJoining { try await registration.joined(known.credentials) }
      }
    } catch {
      failed(error)
      showWithoutService()
    }
  }

  private func begin(_ transport: any Transport, _ container: ContainerID, rebinding: Bool = false) async throws {
    let environment = SyncService<Store>.Environment(
      now: core.environment.nowMilliseconds, random: random, sleep: sleep,
      holdsArrivals: { [deliveryBuffer] in deliveryBuffer.isHolding },
      largestDownload: { [deliveryBuffer] in deliveryBuffer.downloads.largest })
    let service = SyncService(
      store: core.store.base, transport: transport, container: container, environment: environment)
    self.service = service
    // Subscribed before the service starts, so that no event is missed.
    let statuses = service.statuses
    let notifications = service.notifications
    generation += 1
    notificationsTaken = 0
    let generation = generation
    pumps = [
      Task { for await _ in statuses { self.showStatus(of: generation) } },
      Task { for await item in notifications { self.handle(item, of: generation) } },
    ]
    informed.withLock { $0 = service }
    do {
      try await service.start(rebinding: rebinding)
      if rebinding { try self.eventHandler.joined() }
    } catch {
      // The next attempt must begin like this one: a service that never started doesn't know whether it may rebind.
      await service.stop()
      self.service = nil
      throw error
    }
    self.transport = transport
    await beginLeaving()
    let watch = SeenByMonitor(core: core, transport: transport, executor: executor)
    seenByMonitor = watch
    await watch.start()
  }

  private func end() async {
    registering?.cancel()
    registering = nil
    informed.withLock { $0 = nil }
    await seenByMonitor?.stop()
    await endLeaving()
    (seenByMonitor, transport) = (nil, nil)
    core.seen.forget()
    await service?.stop()
    service = nil
    // Not awaited: reading a stream takes one of the threads that all tasks share, and `close` may be blocking them.
    generation += 1
    for pump in pumps { pump.cancel() }
    pumps = []
    resumeNotificationWaiters()
    address = nil
  }

  func failed(_ error: any Error) {
    let error = GameDataError.translated(error)
    if let error = error as? GameDataError, error.code == .refused {
      state.post(.refused(reason: error.message))
    } else if error is StoreError {
      state.post(.storeFailed(reason: String(describing: error)))
    } else {
      let known = error as? GameDataError
      state.post(.waiting(reason: known?.message ?? String(describing: error)), reaching: known?.code)
    }
  }

  // MARK: What a game calls

  nonisolated var status: CloudStatus { state.status }

  nonisolated var largestDownload: Int? { deliveryBuffer.downloads.largest }

  nonisolated var hasBank: Bool {
    let desired = state.desired
    guard desired.isEnabled, !desired.isClosed else { return false }
    switch desired.address?.kind {
    case .server, .transport: return true
    case .folder, nil: return false
    }
  }

  nonisolated func didCommit() { informed.withLock { $0 }?.committed() }

  func sync() async throws { try await ask { try await $0.sync() } }

  /// Waits for the cloud's changes only, not for queued ones to be sent: sending a large save could take minutes.
  func fetchChanges() async throws { try await ask { try await $0.fetchChanges() } }

  /// Downloads the contents of a slot that were left in the cloud.
  func download(_ slot: String) async throws { try await ask { try await $0.downloadContents(slot) } }

  /// Returns the player's devices, with which of these versions each one has; nil if the cloud doesn't know that.
  func devices(having versions: [VersionID]) async throws -> [AccountDevice]? {
    _ = try await connected()
    try requireEnabled()
    guard let transport else { throw GameDataError.notConnected }
    do {
      return try await transport.devices(having: versions)
    } catch {
      throw GameDataError.translated(error)
    }
  }

  /// Returns the player's devices; none in a cloud that doesn't know them.
  func devices() async throws -> [AccountDevice] {
    if case .transport(let transport, _, _)? = address?.kind { return try await transport.devices(having: []) ?? [] }
    return try await asPlayer { try await HTTPAccount.devices(for: $0) }
  }

  private func ask(_ call: (SyncService<Store>) async throws -> Void) async throws {
    let service = try await connected()
    let generation = generation
    defer { showStatus(of: generation) }
    do {
      try await call(service)
    } catch {
      await waitForNotifications(from: service, generation)
      throw GameDataError.translated(error)
    }
    await waitForNotifications(from: service, generation)
  }

  func pairingCode() async throws -> String {
    await reconcile()
    try requireEnabled()
    let credentials = try await register()
    do {
      return try await HTTPAccount.pairingCode(for: credentials).code
    } catch {
      throw GameDataError.translated(error)
    }
  }

  func join(_ code: String) async throws {
    try await join { [registration] server, name in try await registration.join(code, at: server, name: name) }
  }

  /// Makes this device one of another player.
  ///
  /// - Parameter register: Gets and stores the credentials.
  func join(_ register: @Sendable (CloudServer, _ name: String) async throws -> Void) async throws {
    await reconcile()
    try requireEnabled()
    let server = try server()
    registering?.cancel()
    registering = nil
    do {
      // Paused, so that no more versions arrive with only their records.
      await service?.pause()
      try refuseToLeaveContents()
      try await register(server, state.desired.deviceName)
      await end()
    } catch {
      // What was running before continues.
      await reconcile()
      throw GameDataError.translated(error)
    }
    await reconcile()
    state.followers.follow()
  }

  /// Throws if contents are only in the player's cloud: a device that belongs to another player can't get them any
  /// more.
  func refuseToLeaveContents() throws {
    let notDownloaded = try core.store.read { transaction in
      let kept = try transaction.notDownloadedVersions().compactMap { try transaction.version($0)?.record }
      // What is held back becomes visible when the device joins.
      let arrived = try transaction.facts().arrivalsNotDownloaded
      return try kept
        + transaction.staged().compactMap { change in
          if case .version(let record) = change.item, arrived.contains(record.id) { record } else { nil }
        }
    }
    guard let first = notDownloaded.first else { return }
    throw GameDataError(
      .notDownloaded,
      """
      \(CountText.of(notDownloaded.count, "save")) (such as "\(first.key.name)") would be left behind in the cloud \
      that this device would leave: download or delete what isn't downloaded first
      """)
  }

  func requireEnabled() throws {
    guard state.desired.isEnabled else {
      throw GameDataError(.notConnected, "the cloud is switched off: set `isEnabled` first")
    }
  }

  /// Returns the running service; registers first if that hasn't succeeded yet.
  private func connected() async throws -> SyncService<Store> {
    await reconcile()
    if let service { return service }
    guard address != nil else { throw GameDataError.notConnected }
    try requireEnabled()
    try await introduce()
    await reconcile()
    guard let service else { throw GameDataError.notConnected }
    return service
  }

  // MARK: News

  /// Shows the service's current status: the one from the stream may be older than what is already shown.
  private func showStatus(of generation: Int) {
    guard generation == self.generation, let service else { return }
    let isReached = service.status.isReached
    // There is a network again.
    if isReached, !wasReached, let leaving { Task { await leaving.look() } }
    wasReached = isReached
    let deliveryBuffer = deliveryBuffer
    state.change { shown in
      var status = CloudStatus(service.status)
      if status.hasArrivals { deliveryBuffer.arrivalsDidChange() }
      // Checked under the status lock, so that a delivery comes entirely before or after it.
      if deliveryBuffer.hasChanges { status.hasArrivals = true }
      status.availability = status.availability.after(shown.availability)
      if status.phase == .off { (status.setBack, status.isReadOnly) = (shown.setBack, shown.isReadOnly) }
      shown = status
    }
  }

  private func handle(_ item: EngineNotification, of generation: Int) {
    guard generation == self.generation else { return }
    eventHandler.handle(item)
    if deliveryBuffer.hasChanges { showStatus(of: generation) }
    notificationsTaken += 1
    resumeNotificationWaiters()
  }

  /// Returns when everything that the service has reported so far has reached the game, including its status.
  func waitForNotifications() async {
    guard let service else { return }
    let generation = generation
    await waitForNotifications(from: service, generation)
    showStatus(of: generation)
  }

  /// Returns when everything that the service has reported so far has reached the game: a caller that waited for
  /// changes must see them.
  private func waitForNotifications(from service: SyncService<Store>, _ generation: Int) async {
    let count = service.notificationCount
    while generation == self.generation, notificationsTaken < count {
      await withCheckedContinuation { waiter in
        notificationWaiters.append(waiter)
        // Checked once more, now that this waiter would be resumed.
        if generation != self.generation || notificationsTaken >= count { resumeNotificationWaiters() }
      }
    }
  }

  private func resumeNotificationWaiters() {
    let waiters = notificationWaiters
    notificationWaiters = []
    for waiter in waiters { waiter.resume() }
  }
}
