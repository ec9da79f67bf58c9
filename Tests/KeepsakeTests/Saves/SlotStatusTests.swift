import Foundation
import KeepsakeReplication
import KeepsakeSync
import KeepsakeTesting
import Synchronization
import TestSupport
import Testing

@testable import Keepsake

/// Which saves are in the cloud, and which are on this device.
@Suite struct SlotStatusTests {
  let cloud = MemoryCloud()

  @Test("a save is local, then queued and then stored, and one that the cloud refuses has the reason")
  func goesThrough() async throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    let empty = SlotStatus(
      slot: "main", state: .empty, arrival: nil, isDownloaded: true, elsewhere: nil, lastFetched: nil, seenBy: nil)
    #expect(try game.saves.status(of: .main) == empty)
    try game.saves.capture(World(), to: .main)
    #expect(try game.saves.status(of: .main).state == .local(.neverConnected))
    game.cloud.connect(cloud.address)
    try await game.cloud.sync()
    let stored = try game.saves.status(of: .main)
    #expect(
      stored.state == .stored && stored.lastFetched == Date(timeIntervalSince1970: Double(device.clock.now) / 1000))

    cloud.isCut = true
    try await game.saves.save(World(level: 2), to: .main)
    #expect(try game.saves.status(of: .main).state == .queued)
    cloud.isFull = true
    try await cloud.heal(for: [game], of: device.clock)
    await #expect { try await game.cloud.sync() } throws: { ($0 as? GameDataError)?.code == .refused }
    guard case .refused(let refusal) = try game.saves.status(of: .main).state else {
      Issue.record("the state is \(try game.saves.status(of: .main).state)")
      return
    }
    #expect(refusal.reason == .quota && refusal.slot == "main" && refusal.message.contains("storage"))
    #expect(try game.saves.status(of: "another").state == .empty)
    cloud.isFull = false
    try await game.cloud.sync()
    try game.saves.delete(.main)
    #expect(try game.saves.status(of: .main).state != .empty, "a delete has to be sent as well")
    try await game.cloud.sync()
    #expect(try game.saves.status(of: .main).state == .stored)
  }

  @Test("a received save is shown as arrived until the game delivers it")
  func arrives() async throws {
    let here = try Device().open()
    let there = try Device().open()
    defer {
      end(here)
      end(there)
    }
    there.cloud.delivery = .manually
    for game in [here, there] { game.cloud.connect(cloud.address) }
    try await here.saves.save(World(level: 3), to: .main)
    try await here.cloud.sync()
    try await there.cloud.sync()
    let status = try there.saves.status(of: .main)
    #expect(status.state == .empty && status.arrival == .arrived)
    #expect(try there.saves.status(of: "another").arrival == nil)
    try there.cloud.deliver()
    #expect(try there.saves.status(of: .main).state == .stored && there.saves.status(of: .main).arrival == nil)
  }

  @Test("the status stream begins with the current status, follows the save, and ends with the game", .hangLimit)
  func live() async throws {
    let game = try Device().open()
    var updates = game.saves.statusUpdates(of: .main).makeAsyncIterator()
    #expect(try await updates.next()?.state == .empty)
    game.cloud.connect(cloud.address)
    try await game.cloud.sync()
    try await game.saves.save(World(level: 3), to: .main)
    var states: [SlotStatus.State] = []
    while states.last != .stored, let status = try await updates.next() { states.append(status.state) }
    #expect(states.last == .stored)
    try game.close()
    var left = 0
    while try await updates.next() != nil { left += 1 }
    #expect(left == 0)
  }

  @Test("with a folder it is unknown which devices have a save, and a save outside a cloud is seen by none")
  func unknown() async throws {
    let folder = try TemporaryFolder()
    let game = try Device().open()
    defer { end(game) }
    try await game.saves.save(World(level: 2), to: .main)
    #expect(try await game.saves.seenBy(.main) == [])
    game.cloud.connect(.folder(folder.url))
    try await game.cloud.sync()
    #expect(try game.saves.status(of: .main).state == .stored)
    #expect(try await game.saves.seenBy(.main) == nil)
    #expect(try game.saves.status(of: .main).seenBy == nil)
    game.cloud.disconnect()
    await #expect { _ = try await game.saves.seenBy(.main) } throws: { ($0 as? GameDataError)?.code == .notConnected }
  }

  @Test("a large save shows how much of it was transferred, in both directions", .hangLimit)
  func largeSaves() async throws {
    let gates = GatedCloud(cloud)
    let here = try Device().open()
    let there = try Device().open()
    defer {
      gates.open()
      end(here)
      end(there)
    }
    for game in [here, there] { game.cloud.connect(.transport(gates, container: cloud.id, name: "gated")) }
    for game in [here, there] { try await game.cloud.sync() }
    // Random, so that it can't be compressed enough to be part of an exchange.
    var random = SystemRandomNumberGenerator()
    let journal = Journal(
      text: String((0..<400_000).map { _ in Character(Unicode.Scalar(UInt8.random(in: 33...126, using: &random))) }))
    try await here.saves.save(journal, to: .byProgress)
    try await until {
      if case .uploading(let fraction) = try here.saves.status(of: .byProgress).state {
        fraction > 0 && fraction < 1
      } else {
        false
      }
    }
    gates.letUpload()
    try await here.cloud.sync()
    #expect(try here.saves.status(of: .byProgress).state == .stored)
    try await until {
      if case .downloading(let fraction)? = try there.saves.status(of: .byProgress).arrival {
        fraction > 0 && fraction < 1
      } else {
        false
      }
    }
    #expect(try there.saves.status(of: .byProgress).state == .empty)
    gates.open()
    try await there.cloud.sync()
    #expect(
      try there.saves.status(of: .byProgress).arrival == nil && there.saves.status(of: .byProgress).state == .stored)
  }
}

/// A cloud whose transfers stop halfway, until the test lets them continue.
private final class GatedCloud: Transport {
  private let base: MemoryCloud
  private let uploads = Gate()
  private let downloads = Gate()

  init(_ base: MemoryCloud) { self.base = base }

  func letUpload() { uploads.open() }

  func open() {
    uploads.open()
    downloads.open()
  }

  func exchange(_ request: ExchangeRequest) async throws(TransportFailure) -> ExchangeResponse {
    try await base.exchange(request)
  }

  func putContent(
    _ content: EncodedContent, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) {
    progress(TransferProgress(bytesDone: 1, bytesInAll: 2))
    await uploads.pass()
    try await base.putContent(content, progress: progress)
  }

  func getContent(
    _ hash: ContentHash, progress: @escaping @Sendable (TransferProgress) -> Void
  ) async throws(TransportFailure) -> EncodedContent? {
    progress(TransferProgress(bytesDone: 1, bytesInAll: 2))
    await downloads.pass()
    return try await base.getContent(hash, progress: progress)
  }

  func events(since cursor: @escaping @Sendable () async -> Cursor?) -> AsyncThrowingStream<CloudEvent, any Error> {
    base.events(since: cursor)
  }
}

/// Closed until it is opened, once and for all. If it isn't opened in the end, tasks keep waiting.
private final class Gate: Sendable {
  /// Nil when it is open.
  private let waiting = Mutex<[CheckedContinuation<Void, Never>]?>([])

  func open() {
    let waiting = waiting.withLock { waiting in
      defer { waiting = nil }
      return waiting ?? []
    }
    for one in waiting { one.resume() }
  }

  func pass() async {
    await withCheckedContinuation { one in
      let isOpen = waiting.withLock { waiting in
        waiting?.append(one)
        return waiting == nil
      }
      if isOpen { one.resume() }
    }
  }
}
