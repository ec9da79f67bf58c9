#if Cloud
import Foundation
import HTTPTypes
import KeepsakeReplication
import Logging
import NIOCore
import TestSupport
import Testing

@testable import KeepsakeServer

/// One budget for the unfinished uploads of all players, and who continues an upload.
@Suite("Unfinished uploads of all players together", .hangLimit)
struct UploadBudgetTests {
  private let now = Shared<Int64>(1_000_000)
  private let log = RecordedLog()

  private func refusals() -> RefusalLog {
    RefusalLog(metrics: ServerMetrics(PrometheusRegistry()), logger: log.logger) { [now] in now.value }
  }

  private func uploads(
    _ folder: URL, _ budget: UploadBudget, _ refusals: RefusalLog
  ) throws -> PartialUploads {
    try PartialUploads(
      folder: folder, budget: budget, refusals: refusals, clock: { [now] in now.value }, logger: log.logger)
  }

  private static func key(_ player: UInt64) -> PartialUploads.Key {
    PartialUploads.Key(
      container: ContainerID(high: 0, low: player), device: DeviceID(high: 0, low: player),
      hash: ContentHash(of: Data("\(player)".utf8)), frame: ContentHash(of: Data("frame \(player)".utf8)))
  }

  private static func range(_ first: Int, _ last: Int, of total: Int = 1_000) throws -> ContentRange {
    try ContentRange("bytes \(first)-\(last)/\(total)")
  }

  private static func body(_ count: Int) -> AsyncStream<ByteBuffer> {
    AsyncStream { continuation in
      continuation.yield(ByteBuffer(repeating: 7, count: count))
      continuation.finish()
    }
  }

  /// Sends a part from the beginning, and returns how much of the upload has arrived.
  private func send(_ count: Int, of player: UInt64, to uploads: PartialUploads) async throws -> Int? {
    let outcome = try await uploads.receive(
      Self.body(count), Self.range(0, count - 1), of: Self.key(player), by: uploads.arrival()
    ) { _, _ in }
    if case .incomplete(let received) = outcome { return received }
    return nil
  }

  @Test("when there is no room for all players' uploads, those that have been idle longest make room, then none do")
  func oldestMakeRoom() async throws {
    let folder = try TemporaryFolder()
    let refusals = refusals()
    let uploads = try uploads(folder.url, UploadBudget(bytes: 1_600, files: 100), refusals)
    for player in 0..<4 as Range<UInt64> {
      #expect(try await send(400, of: player, to: uploads) == 400)
      now.value += ServerLimits.uploadPauseMilliseconds
    }
    #expect(uploads.used == UploadBudget(bytes: 1_600, files: 4))
    // The last two have been sent a moment ago.
    now.value -= ServerLimits.uploadPauseMilliseconds
    #expect(try await send(500, of: 4, to: uploads) == 500)
    #expect((0..<5).map { uploads.received(Self.key($0)) } == [0, 0, 400, 400, 500])
    #expect(uploads.used == UploadBudget(bytes: 1_300, files: 3))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).count == 3)
    now.value += ServerLimits.uploadPauseMilliseconds
    #expect(try await send(900, of: 5, to: uploads) == 900)
    let refused = await #expect(throws: APIError.self) { try await send(900, of: 6, to: uploads) }
    #expect(refused?.code == .busy && refused?.status == .serviceUnavailable)
    #expect(refused?.retryAfterSeconds == ServerLimits.uploadRetrySeconds)
    #expect(refusals.counts == [.uploads: 1])
    #expect(uploads.received(Self.key(5)) == 900, "what others sent a moment ago stays")
    #expect(uploads.received(Self.key(4)) == 500, "nothing is removed in vain")
    // A body in one piece shares the room.
    let share = UploadBudget(bytes: 900, files: 1)
    #expect(throws: APIError.self) { try uploads.take(share) }
    now.value += ServerLimits.uploadPauseMilliseconds
    try uploads.take(share)
    #expect(uploads.used.bytes <= 1_600)
    uploads.giveBack(share)
    uploads.forget(nil, of: Self.key(5).container)
    uploads.forget(nil, of: Self.key(4).container)
    uploads.forget(nil, of: Self.key(3).container)
    #expect(uploads.used == UploadBudget(bytes: 0, files: 0))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path).isEmpty)
  }

  @Test("the number of uploads is limited, too, and what an earlier server left counts")
  func files() async throws {
    let folder = try TemporaryFolder()
    let budget = UploadBudget(bytes: 1_000_000, files: 3)
    let earlier = try uploads(folder.url, budget, refusals())
    for player in 0..<3 as Range<UInt64> {
      #expect(try await send(1, of: player, to: earlier) == 1)
    }
    // The files have the time of the system.
    now.value = Int64(Date().timeIntervalSince1970 * 1_000) + 60_000
    let uploads = try uploads(folder.url, budget, refusals())
    #expect(uploads.used == UploadBudget(bytes: 3, files: 3))
    // A part of an upload that is there needs no further file.
    #expect(try await send(10, of: 2, to: uploads) == 10)
    #expect(try await send(10, of: 3, to: uploads) == 10)
    #expect(uploads.used.files == 3)
  }

  @Test("a request that arrived before another one, and waited longer, doesn't take the upload over")
  func laterArrival() async throws {
    let folder = try TemporaryFolder()
    let uploads = try uploads(folder.url, UploadBudget(), refusals())
    let (first, second) = (uploads.arrival(), uploads.arrival())
    let (body, continuation) = AsyncStream<ByteBuffer>.makeStream()
    let newer = Task { () -> Int? in
      let outcome = try await uploads.receive(body, Self.range(0, 899), of: Self.key(1), by: second) { _, _ in }
      if case .incomplete(let received) = outcome { return received }
      return nil
    }
    continuation.yield(ByteBuffer(repeating: 7, count: 500))
    try await until("the newer one writes") { uploads.received(Self.key(1)) == 500 }
    let late = await #expect(throws: APIError.self) {
      _ = try await uploads.receive(Self.body(300), Self.range(0, 299), of: Self.key(1), by: first) { _, _ in }
    }
    #expect(late?.code == .superseded)
    continuation.yield(ByteBuffer(repeating: 7, count: 400))
    continuation.finish()
    #expect(try await newer.value == 900)
    // And not after it, either.
    await #expect(throws: APIError.self) {
      _ = try await uploads.receive(Self.body(300), Self.range(0, 299), of: Self.key(1), by: first) { _, _ in }
    }
  }
}
#endif
