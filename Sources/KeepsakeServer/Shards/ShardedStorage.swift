#if Cloud && PostgreSQL
import Foundation
import HTTPTypes
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import ServiceLifecycle
import Synchronization

/// A cloud whose players are spread over several PostgreSQL databases. Home's directory says where each of them lives.
///
/// What is done is always a transaction of one database. What needs two players, as joining a shared container does,
/// first has them live in the same one. For what may be only once in the whole cloud, a receipt or an identity, home is
/// asked first.
final class ShardedStorage: AdminStorage {
  /// How long a request waits for a player who is being moved: longer than for a mover that ended.
  static let patience = Duration.seconds(12)
  /// For how long the first start with shards waits: until all servers that don't know them refuse everything.
  static let firstWait = Duration.seconds(3)

  let clock: @Sendable () -> Int64
  let logger: Logger
  let home: PostgreSQLStorage
  /// All of them by name, home too.
  let shards: [String: PostgreSQLStorage]
  /// The same, home first.
  let all: [PostgreSQLStorage]
  let directory: ShardDirectory
  let mover: ShardMover
  private let requestMoves: RequestMoves

  init(
    home: PostgreSQLStorage, others: [String: PostgreSQLStorage], requestPause: Duration = RequestMoves.pause
  ) {
    requestMoves = RequestMoves(pause: requestPause)
    (clock, logger, self.home) = (home.clock, home.logger, home)
    shards = others.merging([ShardBinding.home: home]) { $1 }
    all = [home] + others.sorted { $0.key < $1.key }.map(\.value)
    directory = ShardDirectory(home: home, others: others)
    mover = ShardMover(directory: directory, shards: shards)
    for storage in all {
      storage.mustExist.withLock { $0 = { [weak directory] in directory?.wasMoved($0) == true } }
    }
    home.knownElsewhere.withLock { known in
      known = { [weak self] in try await self?.needed($0) ?? Set($0) }
    }
  }

  /// Opens all databases, and sees that they are this cloud's.
  ///
  /// - Parameters:
  ///   - open: Opens one of them.
  ///   - isServer: Whether new shards become part of the cloud.
  ///   - firstWait: Shorter in tests.
  ///   - requestPause: For how long requests don't move a player again. Shorter in tests.
  static func open(
    _ names: [String], isServer: Bool = true, firstWait: Duration = firstWait,
    requestPause: Duration = RequestMoves.pause,
    _ open: (_ name: String, ShardBinding) async throws -> PostgreSQLStorage
  ) async throws -> ShardedStorage {
    let home = try await open(
      ShardBinding.home, ShardBinding(name: ShardBinding.home, cloud: nil, mayBeNew: isServer))
    var others: [String: PostgreSQLStorage] = [:]
    do {
      let cloud = try await ShardBinding.cloud(home.pool)
      let entered = try await ShardDirectory(home: home).shards()
      for name in names.sorted() {
        guard isServer || entered[name] != nil else {
          throw ServerError(
            .configuration, "No server of this cloud knows the shard \(name): start them with it first.")
        }
        others[name] = try await open(name, ShardBinding(name: name, cloud: cloud, mayBeNew: entered[name] == nil))
      }
      let storage = ShardedStorage(home: home, others: others, requestPause: requestPause)
      try home.requireCurrent()
      if try await storage.directory.enter(storage.shards.keys.sorted()) {
        home.logger.notice("The players of this cloud are spread over several databases from now on")
        try await Task.sleep(for: firstWait)
      }
      try await storage.directory.refresh()
      return storage
    } catch {
      for storage in [home] + others.values { try await storage.close() }
      throw error
    }
  }

  // MARK: Where a container lives

  /// Does something about a container where it lives, again if it doesn't live there any more.
  ///
  /// - Parameter others: Further containers that have to be in the same database: they are moved there.
  func at<Result: Sendable>(
    _ container: ContainerID, with others: [ContainerID] = [],
    _ body: (PostgreSQLStorage) async throws -> Result
  ) async throws -> Result {
    let end = ContinuousClock.now + Self.patience
    var attempt = 0
    while true {
      var found: ContainerID? = container
      do {
        let shard = try await directory.shard(of: container)
        for other in others where try await directory.shard(of: other) != shard {
          try requestMoves.requireRested(other)
          found = other
          requestMoves.note(try await mover.move(familyOf: other, to: shard))
        }
        found = container
        return try await body(try mover.storage(shard))
      } catch let elsewhere as NotHere {
        found = elsewhere.container ?? container
      } catch is ShardMover.Overtaken {
      } catch let error as APIError
        where error.code == ShardMover.busy.code && found != container && !ShardMover.isHeld(error)
      {
      }
      for one in [container] + others { directory.forget(one) }
      if let found { try await settle(found) }
      guard ContinuousClock.now < end else { throw ShardMover.busy }
      try await PostgreSQLPool.pause(after: min(attempt, 5))
      attempt += 1
    }
  }

  /// Does something about a container that was found by something else than its id: what isn't where a server remembers
  /// the container may be where it lives now. A database that it has left doesn't say so unless it is asked.
  func atPresent<Result: Sendable>(
    _ container: ContainerID, with others: [ContainerID] = [],
    _ body: (PostgreSQLStorage) async throws -> Result, isNothing: (Result) -> Bool
  ) async throws -> Result {
    directory.forget(container)
    return try await at(container, with: others) { storage in
      let result = try await body(storage)
      if isNothing(result) { _ = try await storage.read([], of: container) }
      return result
    }
  }

  /// Mends what can be mended about a container that was found fenced.
  private func settle(_ container: ContainerID) async throws {
    do {
      try await mover.settle(container, cleans: false)
    } catch let error as APIError where error.code == ShardMover.busy.code {
      // It is being moved.
    } catch is ShardMover.Overtaken {
      // It has been moved since.
    }
  }

  /// Asks all databases at the same time.
  ///
  /// - Parameter excluded: One that isn't asked.
  func ask<Answer: Sendable>(
    butNot excluded: PostgreSQLStorage? = nil, _ body: @escaping @Sendable (PostgreSQLStorage) async throws -> Answer
  ) async throws -> [(shard: String, answer: Answer)] {
    try await withThrowingTaskGroup(of: (String, Answer).self) { group in
      for (name, storage) in shards where storage !== excluded { group.addTask { (name, try await body(storage)) } }
      return try await group.reduce(into: []) { $0.append(($1.0, $1.1)) }.sorted { $0.shard < $1.shard }
    }
  }

  /// Looks for something in all databases at the same time.
  ///
  /// - Returns: What was found. As long as anything was, a database that is down doesn't matter.
  func find<Answer: Sendable>(
    _ body: @escaping @Sendable (PostgreSQLStorage) async throws -> [Answer]
  ) async throws -> [Answer] {
    let results = try await ask { storage -> Result<[Answer], any Error> in
      do { return .success(try await body(storage)) } catch { return .failure(error) }
    }.map(\.answer)
    var found: [Answer] = []
    var failure: (any Error)?
    for result in results {
      switch result {
      case .success(let answers): found += answers
      case .failure(let error): failure = error
      }
    }
    guard let failure else { return found }
    // Nothing may be taken for missing that wasn't looked for.
    if found.isEmpty { throw failure }
    logger.failure("One of the databases can't be asked; another one has what was looked for", failure)
    return found
  }

  // MARK: Decisions

  func remembered(of container: ContainerID) async throws -> RememberedContainers? {
    try await at(container) { $0.remembered }
  }

  func load(_ reads: ReadSet, of container: ContainerID) async throws -> Snapshot {
    try await at(container) { storage in
      var snapshot = try await storage.load(reads, of: container)
      // Of what others were paid elsewhere, home knows. What this one asked for and wasn't paid isn't paid.
      if let receipt = reads.bank.receipt, snapshot.receiptHolder == nil {
        let holder = try await self.holder(of: receipt)
        snapshot.receiptHolder = holder == container ? nil : holder
      }
      return snapshot
    }
  }

  func commit(
    _ writes: WriteSet, of container: ContainerID, ifAt revision: UInt64, leaving: DeviceID?,
    auditing entry: AuditEntry?
  ) async throws -> Bool {
    try await at(container) { storage in
      // What was loaded may be of a database that has taken over, without the newest moves.
      if revision == 0, self.directory.wasMoved(container) { throw NotHere(container) }
      if let receipt = writes.receipt, !storage.isHome, try await !self.claim(receipt, for: container) { return false }
      return try await storage.commit(writes, of: container, ifAt: revision, leaving: leaving, auditing: entry)
    }
  }

  /// Returns to whom a receipt was paid, as home says. If home was set back to a backup, others may know better.
  private func holder(of receipt: Receipt) async throws -> ContainerID? {
    let statement = PostgreSQLStatement(
      "SELECT container FROM receipt WHERE app = $1 AND receipt = $2",
      [.bytes(receipt.app), .bytes(receipt.hash.bytes)])
    @Sendable func holder(in storage: PostgreSQLStorage) async throws -> [ContainerID] {
      try await storage.read([statement])[0].map {
        ContainerID(bytes: try $0.bytes(0)) ?? ContainerID(high: 0, low: 0)
      }
    }
    if let known = try await holder(in: home).first { return known }
    // Wherever home, as it is now, says that the player is: what was paid anywhere was paid.
    return try await findElsewhere { try await holder(in: $0) }.first?.answer
  }

  /// Looks into all databases but home for what home should have. A database that is down keeps nobody from going on,
  /// unless a backup was ever put back: home may not have it only then.
  func findElsewhere<Answer: Sendable>(
    _ body: @escaping @Sendable (PostgreSQLStorage) async throws -> [Answer]
  ) async throws -> [(shard: String, answer: Answer)] {
    let wasSetBack = home.bankEpoch > 0
    return try await ask(butNot: home) { storage -> [Answer] in
      do {
        guard wasSetBack || storage.isAnswering.load(ordering: .relaxed) else { return [] }
        return try await body(storage)
      } catch {
        if wasSetBack { throw error }
        return []
      }
    }.flatMap { shard, answers in answers.map { (shard: shard, answer: $0) } }
  }

  /// Claims a receipt for a player who doesn't live at home, before it is paid. A claim of the same player may be
  /// repeated: whatever has ended the first attempt, the player isn't locked out.
  private func claim(_ receipt: Receipt, for container: ContainerID) async throws -> Bool {
    let insert = PostgreSQLStatement(
      "INSERT INTO receipt (app, receipt, container, operation) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
      [
        .bytes(receipt.app), .bytes(receipt.hash.bytes), .bytes(container.bytes), .bytes(receipt.operation.bytes),
      ])
    if let holder = try await holder(of: receipt), holder != container { return false }
    _ = try await home.read([insert])
    return try await holder(of: receipt) == container
  }

  // MARK: The whole cloud

  /// Home's is that of the cloud.
  var bankEpoch: UInt64 { home.bankEpoch }

  func beginEpoch(after known: UInt64, now: Int64) async throws -> UInt64? {
    try await home.beginEpoch(after: known, now: now)
  }

  func frozenBanks(after container: ContainerID?, epoch: UInt64) async throws -> FrozenBanks {
    let pages = try await ask { try await $0.frozenBanks(after: container, epoch: epoch) }.map(\.answer)
    let next = pages.compactMap(\.next).min()
    // What is behind the shortest page comes again with the next one.
    let containers = pages.flatMap(\.containers).filter { id in next.map { id <= $0 } ?? true }
    return FrozenBanks(
      containers: containers.sorted(), unreadable: pages.reduce(0) { $0 + $1.unreadable }, next: next)
  }

  func containersToPrune(after place: PrunablePage.Place?, now: Int64, limit: Int) async throws -> PrunablePage {
    let pages = try await ask { try await $0.containersToPrune(after: place, now: now, limit: limit) }.map(\.answer)
    let ends = pages.compactMap { page -> ContainerID? in
      if case .container(let id) = page.next { id } else { nil }
    }
    let next = ends.min()
    var page = PrunablePage()
    page.containers = pages.flatMap(\.containers).filter { id in next.map { id <= $0 } ?? true }.sorted()
    page.next = next.map { .container($0) }
    return page
  }

  /// As long as one database answers, a server is of use to the players who are there. None waits for another one.
  func probe() async throws {
    try home.requireCurrent()
    try await withCheckedThrowingContinuation { continuation in
      let probes = Probes(all.count, continuation)
      for storage in all {
        Task {
          do {
            try await storage.probe()
            probes.end(nil)
          } catch {
            probes.end(error)
          }
        }
      }
    }
  }

  /// Resumes with the first success, or the last failure.
  private final class Probes: Sendable {
    private struct State {
      var left: Int
      var continuation: CheckedContinuation<Void, any Error>?
    }
    private let state: Mutex<State>

    init(_ count: Int, _ continuation: CheckedContinuation<Void, any Error>) {
      state = Mutex(State(left: count, continuation: continuation))
    }

    func end(_ error: (any Error)?) {
      let continuation = state.withLock { state -> CheckedContinuation<Void, any Error>? in
        state.left -= 1
        guard error == nil || state.left == 0 else { return nil }
        defer { state.continuation = nil }
        return state.continuation
      }
      if let error { continuation?.resume(throwing: error) } else { continuation?.resume() }
    }
  }

  func claimPruning(seconds: Int) async throws -> Bool { try await home.claimPruning(seconds: seconds) }

  func observeCommits(_ body: @escaping CommitObserver) { for storage in all { storage.observeCommits(body) } }

  var waitingCommits: Int { all.reduce(0) { $0 + $1.waitingCommits } }

  func watching(_ events: EventHub, heartbeatSeconds: Int) -> (any Service)? {
    PostgreSQLWatch(
      all, events, heartbeatSeconds: heartbeatSeconds,
      refreshed: { [weak self] in try await self?.directory.refresh() },
      swept: { [weak self] in try await self?.lookAfter() })
  }

  func close() async throws {
    var failure: (any Error)?
    for storage in all {
      do { try await storage.close() } catch { failure = failure ?? error }
    }
    if let failure { throw failure }
  }
}
#endif
