import Foundation
import KeepsakeReplication
import KeepsakeSync
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake

/// Whether the cloud is available, and loads that need a current response from it.
@Suite struct AvailabilityTests {
  let cloud = MemoryCloud()

  @Test("`availability` has the reason if the cloud is unavailable, and retries or a full cloud don't change it")
  func reasons() async throws {
    let game = try Device().open()
    #expect(game.cloud.availability == .unavailable(.notConnected))
    game.cloud.isEnabled = false
    game.cloud.connect(cloud.address)
    try await until { game.cloud.availability == .unavailable(.switchedOff) }
    cloud.isCut = true
    game.cloud.isEnabled = true
    try await until { game.cloud.availability == .unavailable(.unreachable) }
    // Each attempt is in progress for a moment.
    let seen = Shared<Set<CloudAvailability>>([])
    let updates = game.cloud.statusUpdates
    let reader = Task { for await status in updates { seen.value.insert(status.availability) } }
    for _ in 0..<20 { await #expect(throws: GameDataError.self) { try await game.cloud.sync() } }
    #expect(game.cloud.availability == .unavailable(.unreachable))
    #expect(!seen.value.contains(.unavailable(.notReachedYet)) && !seen.value.contains(.available))
    cloud.isCut = false
    try await game.cloud.sync()
    #expect(game.cloud.availability == .available && game.cloud.availability.isAvailable)
    // A full cloud is still available.
    cloud.isFull = true
    try await game.saves.save(World(), to: .main)
    await #expect(throws: GameDataError.self) { try await game.cloud.sync() }
    #expect(game.cloud.availability == .available)
    game.cloud.disconnect()
    try await until { game.cloud.availability == .unavailable(.notConnected) }
    try game.close()
    await reader.value
  }

  @Test(
    "each kind of transport failure has its reason: in trouble, refused or unreachable",
    arguments: [
      (TransportFailure.Kind.server(retryAfterMilliseconds: nil), CloudAvailability.Reason.inTrouble),
      (.unauthorized, .refused), (.notEntitled, .notEntitled),
      (.rejected, .refused), (.interrupted, .unreachable),
    ])
  func kinds(kind: TransportFailure.Kind, reason: CloudAvailability.Reason) async throws {
    let game = try Device().open()
    defer { end(game) }
    game.cloud.connect(.transport(FailingCloud(kind: kind), container: cloud.id, name: "failing"))
    await #expect(throws: GameDataError.self) { try await game.cloud.fetchChanges(within: .seconds(60)) }
    #expect(game.cloud.availability == .unavailable(reason))
  }

  @Test("a load that requires a response returns the newest save or throws, and never returns an older one", .hangLimit)
  func needsAnswer() async throws {
    let here = try Device().open()
    let there = try Device().open()
    defer {
      end(here)
      end(there)
    }
    await #expect { try await there.saves.fetch(.main, requiringResponseWithin: .seconds(60)) } throws: {
      ($0 as? GameDataError)?.code == .notConnected
    }
    here.cloud.connect(cloud.address)
    try await here.saves.save(World(level: 5), to: .main)
    try here.progress.record(5, for: .level)
    try await here.cloud.sync()
    there.cloud.delivery = .manually
    there.cloud.connect(cloud.address)
    #expect(try await there.saves.fetch(.main, requiringResponseWithin: .seconds(60))?.level == 5)
    #expect(there.progress[.level] == 5)
    try here.progress.record(6, for: .level)
    try await here.cloud.sync()
    try await there.cloud.fetchChanges(within: .seconds(60))
    #expect(there.progress[.level] == 6)
    cloud.isCut = true
    await #expect { try await there.saves.fetch(.main, requiringResponseWithin: .seconds(60)) } throws: {
      ($0 as? GameDataError)?.code == .unreachable
    }
    await #expect { try await there.cloud.fetchChanges(within: .seconds(60)) } throws: {
      ($0 as? GameDataError)?.code == .unreachable
    }
    // A load that only waits for a while returns the local save.
    #expect(try await there.saves.fetch(.main, waitingUpTo: .seconds(60))?.level == 5)
  }

  @Test("fetching changes from a cloud that doesn't respond throws when the time limit has passed", .hangLimit)
  func answersInTime() async throws {
    let game = try Device().open()
    defer { end(game) }
    let (gate, answer) = AsyncStream<Void>.makeStream()
    let asking = Task { for await _ in gate {} }
    let stub = StubCloud(of: game, fetching: { await asking.value })
    defer { withExtendedLifetime(stub) {} }
    await #expect { try await game.cloud.fetchChanges(within: .milliseconds(20)) } throws: {
      ($0 as? GameDataError)?.code == .timedOut
    }
    answer.finish()
    await asking.value
    try await game.cloud.fetchChanges(within: .seconds(60))
  }
}

/// A cloud that fails in one way.
private struct FailingCloud: Transport {
  var kind: TransportFailure.Kind

  func exchange(_ request: ExchangeRequest) async throws(TransportFailure) -> ExchangeResponse {
    throw TransportFailure(kind, "no")
  }

  func putContent(
    _ content: EncodedContent, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) { throw TransportFailure(kind, "no") }

  func getContent(
    _ hash: ContentHash, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) -> EncodedContent? { throw TransportFailure(kind, "no") }

  func events(since cursor: @escaping @Sendable () async -> Cursor?) -> AsyncThrowingStream<CloudEvent, any Error> {
    AsyncThrowingStream { $0.finish(throwing: TransportFailure(kind, "no")) }
  }
}
