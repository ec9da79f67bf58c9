import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import KeepsakeStore
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeSync

/// How long a service waits, by a clock that the test advances: no test takes as long as the pauses.
@Suite("Pauses of the sync service", .hangLimit)
struct PausesTests {
  private static let container = ContainerID(high: 1, low: 2)
  private let clock = ManualClock()

  /// A cloud that can be unreachable, and counts exchanges and event streams.
  private final class AwayCloud: Transport {
    struct State {
      /// Every exchange fails.
      var isAway = true
      var breaksStreams = false
      /// How a stream fails.
      var streamFailure = TransportFailure(.unreachable, "away")
      var exchanges = 0
      var streams = 0
      /// The exchange that fails only when it is resumed, and whether the next one becomes that.
      var held: CheckedContinuation<Void, Never>?
      var holdsNext = false
    }
    let state = Mutex(State())
    var exchanges: Int { state.withLock { $0.exchanges } }
    var streams: Int { state.withLock { $0.streams } }

    func exchange(_ request: ExchangeRequest) async throws(TransportFailure) -> ExchangeResponse {
      let isAway = state.withLock { state in
        state.exchanges += 1
        return state.isAway
      }
      if isAway {
        await hold()
        throw TransportFailure(.unreachable, "away")
      }
      return ExchangeResponse(
        outcome: request.cells.isEmpty ? nil : .accepted(seq: 1), changes: [], contents: [], wallet: nil,
        cursor: Cursor(epoch: 0, seq: 1, mark: 1), more: false, serverTimeMilliseconds: 0)
    }

    private func hold() async {
      guard state.withLock({ $0.holdsNext }) else { return }
      await withCheckedContinuation { continuation in
        state.withLock { state in
          state.holdsNext = false
          state.held = continuation
        }
      }
    }

    func putContent(
      _ content: EncodedContent, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TransportFailure) {}

    func getContent(
      _ hash: ContentHash, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TransportFailure) -> EncodedContent? { nil }

    /// Fails at once, or stays open without any event.
    func events(since cursor: @escaping @Sendable () async -> Cursor?) -> AsyncThrowingStream<CloudEvent, any Error> {
      let (breaks, failure) = state.withLock { state in
        state.streams += 1
        return (state.breaksStreams, state.streamFailure)
      }
      return AsyncThrowingStream { continuation in
        if breaks { continuation.finish(throwing: failure) }
      }
    }
  }

  /// A store whose disk can be full.
  private final class FullDisk: DeviceStore {
    struct Full: Error {}
    let store: Store
    let isFull = Mutex(false)

    init(_ store: Store) { self.store = store }

    func write<Value>(_ body: (inout StoreTransaction) throws -> Value) throws -> Value {
      if isFull.withLock({ $0 }) { throw Full() }
      return try store.write(body)
    }
  }

  private func environment<Disk: DeviceStore>(of: Disk.Type) -> SyncService<Disk>.Environment {
    SyncService<Disk>.Environment(
      now: { [clock] in clock.elapsed.components.seconds * 1000 }, random: SeededGenerator(seed: 51),
      sleep: { [clock] in try await clock.sleep(for: $0) })
  }

  private func withStore(_ body: (Store) async throws -> Void) async throws {
    let folder = TemporaryFolder.url()
    defer {
      // A folder left behind among the temporary files does no harm.
      try? FileManager.default.removeItem(at: folder)
    }
    let store = try Store.open(at: folder)
    try await body(store)
    try store.close()
  }

  @Test("an unreachable cloud is retried exactly when the pause has passed, and each pause is longer")
  func backsOff() async throws {
    try await withStore { store in
      let cloud = AwayCloud()
      let service = SyncService(
        store: store, transport: cloud, container: Self.container, environment: environment(of: Store.self))
      try await service.start()
      for (tries, longest) in [(1, 500), (2, 1_000), (3, 2_000), (4, 4_000), (5, 8_000)] {
        try await until("waiting after try \(tries)") { cloud.exchanges == tries && clock.sleeps.count == 1 }
        let pause = try #require(clock.sleeps.first)
        #expect(
          pause >= .milliseconds(longest / 2) && pause <= .milliseconds(longest), "after \(tries) tries: \(pause)")
        clock.advance(by: pause - .milliseconds(1))
        #expect(clock.sleeps == [.milliseconds(1)] && cloud.exchanges == tries)
        if tries == 5 { cloud.state.withLock { $0.isAway = false } }
        clock.advance(by: .milliseconds(1))
      }
      try await until("the cloud's response") { service.status.phase == .idle && cloud.exchanges == 6 }
      await service.stop()
      // No task goes on sleeping for a service that has stopped.
      try await until("the end of all sleep") { clock.sleeps.isEmpty }
    }
  }

  @Test("a store that gets its container stays refused, if it was before, until the cloud has responded")
  func staysRefused() async throws {
    try await withStore { store in
      try store.write { transaction in
        var facts = try transaction.facts()
        facts.isRefused = true
        try transaction.setFacts(facts)
      }
      let cloud = AwayCloud()
      let service = SyncService(
        store: store, transport: cloud, container: Self.container, environment: environment(of: Store.self))
      try await service.start()
      try await until("the first try") { cloud.exchanges == 1 && clock.sleeps.count == 1 }
      #expect(try store.read { try $0.facts() }.container == Self.container)
      #expect(try store.read { try $0.facts() }.isRefused)
      cloud.state.withLock { $0.isAway = false }
      clock.advance(by: .milliseconds(500))
      try await until("the cloud's response") { service.status.phase == .idle && cloud.exchanges == 2 }
      #expect(try !store.read { try $0.facts() }.isRefused)
      await service.stop()
    }
  }

  @Test("an event stream that fails is opened again after growing pauses")
  func streamPauses() async throws {
    try await withStore { store in
      let cloud = AwayCloud()
      cloud.state.withLock { $0 = AwayCloud.State(isAway: false, breaksStreams: true) }
      let service = SyncService(
        store: store, transport: cloud, container: Self.container, environment: environment(of: Store.self))
      try await service.start()
      for (streams, longest) in [(1, 1_000), (2, 2_000), (3, 4_000)] {
        // The other sleep is the poll's, a minute long.
        try await until("waiting after stream \(streams)") { cloud.streams == streams && clock.sleeps.count == 2 }
        let pause = try #require(clock.sleeps.first)
        #expect(
          pause >= .milliseconds(longest / 2) && pause <= .milliseconds(longest), "after \(streams) streams: \(pause)")
        clock.advance(by: pause)
      }
      try await until("one more stream") { cloud.streams == 4 }
      #expect(cloud.exchanges == 1)
      await service.stop()
    }
  }

  @Test("an event stream that the cloud refuses is opened again only after the time that the cloud asks for")
  func streamRetryAfter() async throws {
    try await withStore { store in
      let cloud = AwayCloud()
      let busy = TransportFailure(.server(retryAfterMilliseconds: 20_000), "busy")
      cloud.state.withLock { $0 = AwayCloud.State(isAway: false, breaksStreams: true, streamFailure: busy) }
      let service = SyncService(
        store: store, transport: cloud, container: Self.container, environment: environment(of: Store.self))
      try await service.start()
      // The other sleep is the poll's, a minute long.
      try await until("waiting after the stream") { cloud.streams == 1 && clock.sleeps.count == 2 }
      #expect(clock.sleeps.first == .milliseconds(20_000))
      await service.stop()
    }
  }

  @Test("after a write to a full disk fails, the store is tried again exactly when the pause has passed")
  func storePause() async throws {
    try await withStore { store in
      let disk = FullDisk(store)
      let cloud = AwayCloud()
      cloud.state.withLock { $0.isAway = false }
      let service = SyncService(
        store: disk, transport: cloud, container: Self.container, environment: environment(of: FullDisk.self))
      try await service.start()
      try await service.sync()
      disk.isFull.withLock { $0 = true }
      service.committed()
      try await until("noticing") { if case .storeFailed = service.status.phase { true } else { false } }
      try await until("waiting") { clock.sleeps == [.milliseconds(SyncLimits.storePauseMilliseconds)] }
      disk.isFull.withLock { $0 = false }
      clock.advance(by: .milliseconds(SyncLimits.storePauseMilliseconds - 1))
      #expect(clock.sleeps == [.milliseconds(1)])
      clock.advance(by: .milliseconds(1))
      try await until("going on") { service.status.phase == .idle }
      await service.stop()
    }
  }

  @Test("an attempt that began before a call fails nobody: a second is made, and no third", arguments: [true, false])
  func staleAttempt(isBack: Bool) async throws {
    try await withStore { store in
      let cloud = AwayCloud()
      cloud.state.withLock { $0.holdsNext = true }
      let service = SyncService(
        store: store, transport: cloud, container: Self.container, environment: environment(of: Store.self))
      try await service.start()
      try await until("the first exchange") { cloud.state.withLock { $0.held != nil } }
      let calls = [Task { try await service.sync() }, Task { try await service.fetchChanges() }]
      try await until("both waiting") { await service.waiterCount == 2 }
      let held = cloud.state.withLock { state in
        state.isAway = !isBack
        return state.held
      }
      held?.resume()
      for call in calls {
        if isBack {
          try await call.value
        } else {
          await #expect(throws: SyncError.self) { try await call.value }
        }
      }
      #expect(cloud.exchanges == 2)
      await service.stop()
    }
  }
}
