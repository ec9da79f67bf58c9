import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeSync

/// Brings what the game wants of the cloud about: registers this device, runs the synchronization, and hands its news on.
actor CloudConnection {
  /// Pauses between tries to register: from half a second, doubled each time, to five minutes.
  private static let firstPause = 0.5
  private static let longestPause = 300.0

  nonisolated let executor = CloudExecutor()
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let core: GameCore
  private let progress: ProgressStore
  private let scores: HighScores
  private let wallet: WalletStore
  private let preferences: Preferences
  private let board: CloudBoard
  private let file: CloudFile

  /// The address that the service, or the registering, is for.
  private var address: CloudAddress?
  private var service: SyncService<Store>?
  /// Counts services: what an earlier one still has to say is not heard.
  private var generation = 0
  private var pumps: [Task<Void, Never>] = []
  private var registering: Task<Void, Never>?
  /// One try to register, shared by all who wait for it.
  private var registration: Task<CloudCredentials, any Error>?
  private var last: Task<Void, Never>?

  init(
    core: GameCore, progress: ProgressStore, scores: HighScores, wallet: WalletStore, preferences: Preferences, board: CloudBoard
  ) {
    self.core = core
    self.progress = progress
    self.scores = scores
    self.wallet = wallet
    self.preferences = preferences
    self.board = board
    file = CloudFile(url: core.store.url.appendingPathComponent("cloud.json"))
  }

  static var platformName: String {
    #if os(macOS)
    "Mac"
    #elseif os(iOS)
    "iPhone or iPad"
    #elseif os(tvOS)
    "Apple TV"
    #elseif os(visionOS)
    "Apple Vision"
    #elseif os(watchOS)
    "Apple Watch"
    #elseif os(Windows)
    "Windows"
    #elseif os(Android)
    "Android"
    #else
    "Linux"
    #endif
  }

  // MARK: What is wanted, and what is

  /// Makes what is what is wanted; calls run one after the other.
  func reconcile() async {
    let before = last
    let task = Task {
      await before?.value
      await self.bringAbout(self.board.wish)
    }
    last = task
    await task.value
  }

  private func bringAbout(_ wish: CloudBoard.Wish) async {
    guard !wish.isClosed, let wanted = wish.address else {
      await end()
      board.post(.off)
      if wish.isClosed { board.finish() }
      return
    }
    if !wanted.isSame(as: address) {
      await end()
      address = wanted
    }
    guard wish.isEnabled else {
      registering?.cancel()
      registering = nil
      await service?.pause()
      board.post(.paused)
      return
    }
    do {
      if let service {
        try await service.start()
        return
      }
      switch wanted.kind {
      case .transport(let transport, let container, _): try await begin(transport, container)
      case .server(let server):
        guard let known = try known(at: server) else { return keepRegistering() }
        try await begin(HTTPTransport(known.credentials), known.credentials.container, rebinding: known.isJoining)
        if known.isJoining { try file.write(CloudFile.Contents(credentials: known.credentials)) }
      }
    } catch {
      failed(error)
    }
  }

  private func begin(_ transport: any Transport, _ container: ContainerID, rebinding: Bool = false) async throws {
    let service = SyncService(store: core.store, transport: transport, container: container)
    self.service = service
    // Listened to before it starts, so that no news is missed.
    let statuses = service.statuses
    let news = service.news
    generation += 1
    let generation = generation
    pumps = [
      Task { for await _ in statuses { self.showStatus(of: generation) } },
      Task { for await item in news { self.heard(item, of: generation) } },
    ]
    core.onCommit { service.committed() }
    do {
      try await service.start(rebinding: rebinding)
    } catch {
      // The next try has to begin as this one did: a service that never started doesn't know whether it may rebind.
      self.service = nil
      throw error
    }
  }

  private func end() async {
    registering?.cancel()
    registering = nil
    core.onCommit {}
    await service?.stop()
    service = nil
    // Not waited for: reading a stream takes one of the threads that all tasks share, and `close` may be blocking them.
    generation += 1
    for pump in pumps { pump.cancel() }
    pumps = []
    address = nil
  }

  private func failed(_ error: any Error) {
    let error = GameDataError.translated(error)
    if let error = error as? GameDataError, error.code == .refused {
      board.post(.refused(reason: error.message))
    } else if error is StoreError {
      board.post(.storeFailed(reason: String(describing: error)))
    } else {
      board.post(.waiting(reason: String(describing: error)))
    }
  }

  // MARK: Registering

  private func keepRegistering() {
    guard registering == nil else { return }
    board.post(.connecting)
    registering = Task {
      var pause = Self.firstPause
      while !Task.isCancelled {
        do {
          _ = try await self.register()
          self.registering = nil
          return await self.reconcile()
        } catch {
          guard !Task.isCancelled else { return }
          self.failed(error)
          // Asking again won't help; `sendNow` and `join` may.
          if (error as? GameDataError)?.code == .refused { return }
        }
        // Many devices whose server comes back must not all come at once.
        let jittered = Double.random(in: pause / 2...pause)
        do { try await Task.sleep(for: .seconds(jittered)) } catch { return }
        pause = min(pause * 2, Self.longestPause)
      }
    }
  }

  /// The credentials; makes this device known if it isn't yet. Tries once.
  private func register() async throws -> CloudCredentials {
    let server = try server()
    if let known = try known(at: server) { return known.credentials }
    if let registration { return try await registration.value }
    let name = board.wish.deviceName
    let task = Task {
      do {
        return try self.keep(try await HTTPAccount(url: server.url, appKey: server.appKey).register(name: name))
      } catch {
        throw GameDataError.translated(error)
      }
    }
    registration = task
    defer { registration = nil }
    return try await task.value
  }

  /// Writes down who this device is, unless it joined a player while it was registering: it must not become one of its own
  /// again. Looking and writing are one step here, which nothing else of this actor can come between.
  private func keep(_ fresh: CloudCredentials) throws -> CloudCredentials {
    if let known = try file.read() { return known.credentials }
    try file.write(CloudFile.Contents(credentials: fresh))
    return fresh
  }

  /// What this device is known by. A server may move, and its address may be written in several ways: the token says who this
  /// is, and is never given up for a new one.
  private func known(at server: CloudServer) throws -> CloudFile.Contents? {
    guard var known = try file.read() else { return nil }
    known.credentials.url = server.url
    return known
  }

  private func server() throws -> CloudServer {
    guard case .server(let server)? = address?.kind else { throw GameDataError.notConnected }
    return server
  }

  // MARK: What a game calls

  func sendNow() async throws {
    let service = try await connected()
    let generation = generation
    defer { showStatus(of: generation) }
    do {
      try await service.sendNow()
    } catch {
      throw GameDataError.translated(error)
    }
  }

  func pairingCode() async throws -> String {
    await reconcile()
    let credentials = try await register()
    do {
      return try await HTTPAccount.pairingCode(for: credentials).code
    } catch {
      throw GameDataError.translated(error)
    }
  }

  func join(_ code: String) async throws {
    await reconcile()
    let server = try server()
    registering?.cancel()
    registering = nil
    do {
      let credentials = try await HTTPAccount(url: server.url, appKey: server.appKey)
        .join(code: code, name: board.wish.deviceName)
      // Written down first: a crash from here on must not leave the store with one player and the token of another.
      try file.write(CloudFile.Contents(credentials: credentials, isJoining: true))
      await end()
    } catch {
      // Whatever was under way before goes on.
      await reconcile()
      throw GameDataError.translated(error)
    }
    await reconcile()
  }

  /// The running service; registers first where that has not succeeded yet.
  private func connected() async throws -> SyncService<Store> {
    await reconcile()
    if let service { return service }
    guard address != nil else { throw GameDataError.notConnected }
    guard board.wish.isEnabled else {
      throw GameDataError(.notConnected, "the cloud is switched off: set `isEnabled` first")
    }
    _ = try await register()
    await reconcile()
    guard let service else { throw GameDataError.notConnected }
    return service
  }

  // MARK: News

  /// Shows the status as it is by now: what the stream said may be older than what was shown already.
  private func showStatus(of generation: Int) {
    guard generation == self.generation, let service else { return }
    board.post(CloudStatus(service.status))
  }

  private func heard(_ news: EngineNews, of generation: Int) {
    guard generation == self.generation else { return }
    switch news {
    case .slots(let names): core.tell(.slots(names))
    case .cells(let keys): received(keys)
    case .caughtUp: received([])
    case .wallet:
      wallet.invalidate()
      core.tell(.wallet)
    case .decisions(let decisions):
      wallet.invalidate()
      core.tell(.decisions(decisions.map(WalletVerdict.init)))
    case .acknowledged: break
    case .refused(let refusals):
      for refusal in refusals {
        core.report(
          Incident(kind: .refusedByCloud, message: "\(refusal.item): \(refusal.message)", date: core.now))
      }
    case .damaged(let hash):
      core.report(
        Incident(
          kind: .damagedInCloud, message: "the content \(hash) is damaged in the cloud, or gone from it", date: core.now))
    }
  }

  private func received(_ keys: [CellKey]) {
    scores.received(keys)
    do {
      try progress.received(keys)
      try preferences.received(keys)
    } catch {
      // The store closes under the last news; what it holds is read at the next opening.
      core.report(
        Incident(kind: .unreadable, message: "what arrived can't be read: \(error)", date: core.now))
    }
  }
}
