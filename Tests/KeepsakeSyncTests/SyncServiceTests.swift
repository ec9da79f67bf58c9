import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import KeepsakeStore
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeSync

@Suite("The service that runs the engine", .hangLimit)
struct SyncServiceTests {
  private static let container = ContainerID(high: 1, low: 2)

  /// A cloud that stores nothing and accepts everything.
  private final class EmptyCloud: Transport {
    private struct State {
      var seq: UInt64 = 0
      var requests: [ExchangeRequest] = []
    }
    private let state = Mutex(State())
    /// Set while it refuses the device.
    let refusal = Mutex<TransportFailure?>(nil)
    /// Set if the next exchange with cells is refused, and nothing else.
    let refusesOnce = Mutex(false)
    var requests: [ExchangeRequest] { state.withLock { $0.requests } }

    func exchange(_ request: ExchangeRequest) async throws(TransportFailure) -> ExchangeResponse {
      if let refused = refusal.withLock(\.self) { throw refused }
      let isRefused =
        !request.cells.isEmpty
        && refusesOnce.withLock { once in
          defer { once = false }
          return once
        }
      if isRefused { throw TransportFailure(.unauthorized, "not now") }
      return state.withLock { state in
        state.requests.append(request)
        let sent = !request.cells.isEmpty || !request.versions.isEmpty
        if sent { state.seq += UInt64(request.cells.count + request.versions.count) }
        return ExchangeResponse(
          outcome: sent ? .accepted(seq: state.seq) : nil, changes: [], contents: [], wallet: nil,
          cursor: Cursor(epoch: 0, seq: state.seq, mark: state.seq), more: false, serverTimeMilliseconds: 0)
      }
    }

    func putContent(
      _ content: EncodedContent, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TransportFailure) {}

    func getContent(
      _ hash: ContentHash, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TransportFailure) -> EncodedContent? { nil }

    func events(since cursor: @escaping @Sendable () async -> Cursor?) -> AsyncThrowingStream<CloudEvent, any Error> {
      AsyncThrowingStream { continuation in
        if let refused = refusal.withLock(\.self) { return continuation.finish(throwing: refused) }
        continuation.yield(CloudEvent(seq: 0))
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
      try store.write { transaction in
        let value = try body(&transaction)
        // At the worst moment: when all was done but the commit.
        if isFull.withLock({ $0 }) { throw Full() }
        return value
      }
    }
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

  private func raise(_ key: String, to value: Int64, in store: Store) throws {
    var random = SystemRandomNumberGenerator()
    let draft = CommitDraft(cells: [CellDraft(CellKey(collection: "progress", key: key), .max(.int(value)))])
    _ = try store.write {
      try DeviceCommit.apply(draft, now: 0, writer: store.writer, in: &$0, using: &random)
    }
  }

  @Test("a full disk is reported, no commit is forgotten, and everything is sent once there is room")
  func fullDisk() async throws {
    try await withStore { store in
      let disk = FullDisk(store)
      let cloud = EmptyCloud()
      let service = SyncService(store: disk, transport: cloud, container: Self.container)
      try await service.start()
      try await service.sync()
      disk.isFull.withLock { $0 = true }
      try raise("level", to: 5, in: store)
      service.committed()
      try await until("noticing") { if case .storeFailed = service.status.phase { true } else { false } }
      await #expect(throws: SyncError.self) { try await service.sync() }
      disk.isFull.withLock { $0 = false }
      try await until("sending") { service.status.phase == .idle && service.status.waitingCommits == 0 }
      #expect(cloud.requests.flatMap(\.cells).map(\.key.key).contains("level"))
      #expect(try store.read { try $0.outboxCount() } == 0)
      await service.stop()
    }
  }

  @Test("a device that was refused goes on by itself once the cloud takes it again, as after the right folder is back")
  func takenAgain() async throws {
    try await withStore { store in
      let cloud = EmptyCloud()
      // All pauses are short, so that what comes after the longest of them comes soon.
      let environment = SyncService<Store>.Environment(
        now: { 0 }, random: SeededGenerator(seed: 1), sleep: { _ in try await Task.sleep(for: .milliseconds(1)) })
      let service = SyncService(store: store, transport: cloud, container: Self.container, environment: environment)
      cloud.refusal.withLock { $0 = TransportFailure(.unauthorized, "another player's") }
      try await service.start()
      try await until("being refused") { if case .halted = service.status.phase { true } else { false } }
      try raise("level", to: 5, in: store)
      service.committed()
      #expect(cloud.requests.isEmpty)
      cloud.refusal.withLock { $0 = nil }
      try await until("sending") { cloud.requests.contains { !$0.cells.isEmpty } }
      // Refused between two looks, of which the stream that is open notices nothing.
      try await until("rest") { service.status.phase == .idle }
      cloud.refusesOnce.withLock { $0 = true }
      try raise("level", to: 6, in: store)
      service.committed()
      try await until("sending") { cloud.requests.contains { $0.cells.contains { $0.state.value == .max(.int(6)) } } }
      #expect(cloud.refusesOnce.withLock { $0 } == false)
      await service.stop()
    }
  }

  @Test("commits in quick succession are all sent, and the last value reaches the cloud")
  func manyCommits() async throws {
    try await withStore { store in
      let cloud = EmptyCloud()
      let service = SyncService(store: store, transport: cloud, container: Self.container)
      try await service.start()
      for number in 0..<100 as Range<Int64> {
        try raise("level", to: number + 1, in: store)
        service.committed()
      }
      try await service.sync()
      #expect(service.status.waitingCommits == 0)
      let sent = cloud.requests.flatMap(\.cells).map(\.state.value)
      #expect(sent.contains(.max(.int(100))))
      await service.stop()
    }
  }

  @Test("`sync` throws if the service isn't running, and if it is stopped or the task is cancelled meanwhile")
  func notRunning() async throws {
    try await withStore { store in
      let service = SyncService(store: store, transport: SilentCloud(), container: Self.container)
      await #expect(throws: SyncError.self) { try await service.sync() }
      try await service.start()
      let waiting = Task { try await service.sync() }
      let cancelled = Task { try await service.sync() }
      try await until("both waiting") { await service.waiterCount == 2 }
      cancelled.cancel()
      await #expect(throws: CancellationError.self) { try await cancelled.value }
      await service.stop()
      await #expect(throws: SyncError.self) { try await waiting.value }
      #expect(service.status.phase == .stopped)
    }
  }

  @Test("the streams of statuses and notifications end when the service stops; the first status is the current one")
  func streams() async throws {
    try await withStore { store in
      let service = SyncService(store: store, transport: EmptyCloud(), container: Self.container)
      let (statuses, notifications) = (service.statuses, service.notifications)
      let reader = Task { await notifications.reduce(into: []) { $0.append($1) } }
      var iterator = statuses.makeAsyncIterator()
      #expect(await iterator.next()?.phase == .stopped)
      try await service.start()
      try await service.sync()
      await service.stop()
      #expect(await reader.value.contains(.caughtUp))
      while await iterator.next() != nil {}
    }
  }

  @Test("a store that joins another player shows and reports complete changes held back, and drops incomplete ones")
  func joinsWithArrivals() async throws {
    let key = CellKey(collection: "progress", key: "level")
    for isWhole in [true, false] {
      try await withStore { store in
        let first = SyncService(store: store, transport: EmptyCloud(), container: Self.container)
        try await first.start()
        try await first.sync()
        await first.stop()
        try store.write { transaction in
          try transaction.stage([
            CloudChange(seq: 1, item: .cell(CellUpdate(key: key, state: CellState(value: .max(.int(6))))))
          ])
          var facts = try transaction.facts()
          facts.hasArrivals = isWhole
          try transaction.setFacts(facts)
        }
        let other = ContainerID(high: 3, low: 4)
        var environment = SyncService<Store>.Environment.system
        environment.holdsArrivals = { true }
        let service = SyncService(store: store, transport: SilentCloud(), container: other, environment: environment)
        let notifications = service.notifications
        let reader = Task { await notifications.reduce(into: []) { $0.append($1) } }
        try await service.start(rebinding: true)
        await service.stop()
        let (shown, left, facts) = try store.read { (try $0.cell(key)?.value, try $0.staged().count, try $0.facts()) }
        #expect(shown == (isWhole ? .max(.int(6)) : nil) && left == 0)
        #expect(facts.container == other && !facts.hasArrivals && !facts.caughtUp)
        #expect(await reader.value == (isWhole ? [.cells([key])] : []))
      }
    }
  }

  /// A cloud that never responds.
  private final class SilentCloud: Transport {
    private func never() async throws(TransportFailure) {
      do {
        try await Task.sleep(for: .seconds(3_600))
      } catch {
        throw TransportFailure(.interrupted, "cancelled")
      }
    }

    func exchange(_ request: ExchangeRequest) async throws(TransportFailure) -> ExchangeResponse {
      try await never()
      throw TransportFailure(.interrupted, "silence")
    }

    func putContent(
      _ content: EncodedContent, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TransportFailure) { try await never() }

    func getContent(
      _ hash: ContentHash, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TransportFailure) -> EncodedContent? {
      try await never()
      return nil
    }

    func events(since cursor: @escaping @Sendable () async -> Cursor?) -> AsyncThrowingStream<CloudEvent, any Error> {
      AsyncThrowingStream { _ in }
    }
  }
}
