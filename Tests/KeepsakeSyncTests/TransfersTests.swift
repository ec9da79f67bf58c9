import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import KeepsakeStore
import Synchronization
import TestSupport
import Testing

@testable import KeepsakeSync

/// Several contents in flight at the same time, and how they are reported.
@Suite("Transfers of a service", .hangLimit)
struct TransfersTests {
  private static let container = ContainerID(high: 1, low: 2)

  /// A cloud whose uploads end when the test ends them.
  private final class SlowCloud: Transport {
    struct Upload {
      var content: EncodedContent
      var progress: @Sendable (TransferProgress) -> Void
      var end: CheckedContinuation<Result<Void, TransportFailure>, Never>
    }
    private struct State {
      var seq: UInt64 = 0
      var exchanges: [ExchangeRequest] = []
      var uploads: [Upload] = []
    }
    private let state = Mutex(State())
    var uploads: [Upload] { state.withLock { $0.uploads } }
    var exchanges: [ExchangeRequest] { state.withLock { $0.exchanges } }

    func end(_ index: Int, _ result: Result<Void, TransportFailure> = .success(())) {
      state.withLock { $0.uploads.remove(at: index) }.end.resume(returning: result)
    }

    func endAll() { while !uploads.isEmpty { end(0) } }

    func exchange(_ request: ExchangeRequest) async throws(TransportFailure) -> ExchangeResponse {
      state.withLock { state in
        state.exchanges.append(request)
        let sent = request.cells.count + request.versions.count
        state.seq += UInt64(sent)
        return ExchangeResponse(
          outcome: sent > 0 ? .accepted(seq: state.seq) : nil, changes: [], contents: [], wallet: nil,
          cursor: Cursor(epoch: 0, seq: state.seq, mark: state.seq), more: false, serverTimeMilliseconds: 0)
      }
    }

    func putContent(
      _ content: EncodedContent, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TransportFailure) {
      let result = await withCheckedContinuation { continuation in
        state.withLock { $0.uploads.append(Upload(content: content, progress: progress, end: continuation)) }
      }
      try result.get()
    }

    func getContent(
      _ hash: ContentHash, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TransportFailure) -> EncodedContent? { nil }

    func events(since cursor: @escaping @Sendable () async -> Cursor?) -> AsyncThrowingStream<CloudEvent, any Error> {
      AsyncThrowingStream { _ in }
    }
  }

  private func withService(_ body: (Store, SlowCloud, SyncService<Store>) async throws -> Void) async throws {
    let folder = TemporaryFolder.url()
    defer {
      // A folder left behind among the temporary files does no harm.
      try? FileManager.default.removeItem(at: folder)
    }
    let store = try Store.open(at: folder)
    let cloud = SlowCloud()
    let service = SyncService(store: store, transport: cloud, container: Self.container)
    try await service.start()
    try await service.sync()
    try await body(store, cloud, service)
    await service.stop()
    cloud.endAll()
    try store.close()
  }

  /// Saves this many parts of 300,000 bytes that don't compress, and returns their hashes.
  @discardableResult
  private func save(_ slot: String, parts: Int, seed: UInt64, in store: Store) throws -> [ContentHash] {
    var random = SeededGenerator(seed: seed)
    return try store.write { transaction in
      let contents = try (0..<parts).map { _ in
        try transaction.keepContent(Data((0..<300_000).map { _ in UInt8.random(in: 0...255, using: &random) }))
      }
      let draft = SaveDraft(
        id: VersionID(using: &random), slot: slot, parents: .everyHead, contents: contents, length: parts * 300_000,
        savedAtMilliseconds: 0)
      _ = try DeviceCommit.apply(
        CommitDraft(saves: [draft]), now: 0, writer: store.writer, in: &transaction, using: &random)
      return contents
    }
  }

  @Test("each save's own progress is shown and never decreases, even if an upload is interrupted and starts again")
  func progress() async throws {
    try await withService { store, cloud, service in
      let castle = try save("castle", parts: 2, seed: 1, in: store)
      let forest = try save("forest", parts: 1, seed: 2, in: store)
      service.committed()
      try await until("three uploads") { cloud.uploads.count == 3 }
      #expect(service.status.transfers.map(\.slot) == ["castle", "forest"])
      #expect(service.status.transfers.map(\.bytesInAll) == [600_000, 300_000])
      #expect(service.status.transfers.allSatisfy { $0.bytesDone == 0 && $0.direction == .up })
      // The uploads are tasks of their own, which reach the cloud in any order.
      let parts = try (castle + forest).map { hash in
        try #require(cloud.uploads.first { $0.content.hash == hash })
      }
      parts[0].progress(TransferProgress(bytesDone: 75, bytesInAll: 100))
      parts[1].progress(TransferProgress(bytesDone: 1, bytesInAll: 2))
      #expect(service.status.transfers.map(\.bytesDone) == [375_000, 0])
      parts[0].progress(TransferProgress(bytesDone: 10, bytesInAll: 100))
      parts[2].progress(TransferProgress(bytesDone: 100, bytesInAll: 100))
      let before = service.status.transfers.map(\.bytesDone).reduce(0, +)
      #expect(before == 675_000)
      // An interrupted upload is tried again, and its progress remains as shown.
      let broken = castle[0]
      let index = try #require(cloud.uploads.firstIndex { $0.content.hash == broken })
      cloud.end(index, .failure(TransportFailure(.interrupted, "cut")))
      try await until("the next try") { cloud.uploads.contains { $0.content.hash == broken } }
      #expect(service.status.transfers.map(\.bytesDone).reduce(0, +) == before)
      let again = try #require(cloud.uploads.first { $0.content.hash == broken })
      again.progress(TransferProgress(bytesDone: 1, bytesInAll: 100))
      #expect(service.status.transfers.map(\.bytesDone).reduce(0, +) == before)
      // Senseless progress, and progress of an upload that has ended, changes nothing.
      parts[0].progress(TransferProgress(bytesDone: .max, bytesInAll: .max))
      again.progress(TransferProgress(bytesDone: -5, bytesInAll: 0))
      #expect(service.status.transfers.map(\.bytesDone).reduce(0, +) == before)
      cloud.endAll()
      try await until("the end") { service.status.phase == .idle && service.status.waitingCommits == 0 }
      #expect(service.status.transfers.isEmpty)
    }
  }

  @Test("fetching doesn't wait for a large save to be sent, and throws during a pause")
  func fetching() async throws {
    try await withService { store, cloud, service in
      try save("castle", parts: 1, seed: 3, in: store)
      service.committed()
      try await until("the upload") { cloud.uploads.count == 1 }
      let asked = cloud.exchanges.count
      try await service.fetchChanges()
      #expect(cloud.exchanges.count == asked + 1 && cloud.uploads.count == 1)
      let sending = Task { try await service.sync() }
      try await until("asking") { cloud.exchanges.count == asked + 2 }
      #expect(service.status.waitingCommits == 1)
      cloud.endAll()
      try await sending.value
      #expect(service.status.waitingCommits == 0)
      await service.pause()
      await #expect(throws: SyncError.self) { try await service.fetchChanges() }
    }
  }

  @Test("requests in flight when sync was called don't fail it, in whatever order the network fails them")
  func earlierFailures() async throws {
    try await withService { store, cloud, service in
      for number in 0..<3 { try save("slot \(number)", parts: 1, seed: 20 + UInt64(number), in: store) }
      service.committed()
      try await until("three uploads") { cloud.uploads.count == 3 }
      let earlier = cloud.uploads.map(\.content.hash)
      let isWaiting = Shared(false)
      let syncing = Task {
        isWaiting.value = true
        try await service.sync()
      }
      try await until("sync is called") { isWaiting.value }
      try await until("sync waits") { await service.waiterCount == 1 }
      for (count, hash) in earlier.enumerated() {
        let index = try #require(cloud.uploads.firstIndex { $0.content.hash == hash })
        cloud.end(index, .failure(TransportFailure(.unreachable, "no network")))
        try await until("upload \(count) again") { cloud.uploads.contains { $0.content.hash == hash } }
        #expect(await service.waiterCount == 1)
      }
      cloud.endAll()
      try await syncing.value
      #expect(service.status.waitingCommits == 0)
    }
  }

  @Test("a pause during several uploads leaves no transfer under way, and everything is sent after it")
  func pausing() async throws {
    try await withService { store, cloud, service in
      for number in 0..<3 { try save("slot \(number)", parts: 1, seed: 10 + UInt64(number), in: store) }
      service.committed()
      try await until("three uploads") { cloud.uploads.count == 3 }
      let old = cloud.uploads
      await service.pause()
      #expect(service.status.phase == .paused && service.status.transfers.isEmpty)
      old[0].progress(TransferProgress(bytesDone: 1, bytesInAll: 2))
      cloud.endAll()
      #expect(service.status.transfers.isEmpty)
      try await service.start()
      try await until("three uploads again") { cloud.uploads.count == 3 }
      #expect(service.status.transfers.count == 3)
      cloud.endAll()
      try await until("the end") { service.status.phase == .idle && service.status.waitingCommits == 0 }
      #expect(cloud.exchanges.flatMap(\.versions).count == 3)
    }
  }
}
