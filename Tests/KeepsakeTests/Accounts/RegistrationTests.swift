import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import KeepsakeSync
import TestSupport
import Testing

@testable import Keepsake

/// A device that has never reached its cloud: when it retries to register, and how long a load waits.
@Suite(.hangLimit) struct RegistrationTests {
  private let clock = ManualClock()

  /// No server listens at this address.
  private static let nowhere = URL(string: "http://127.0.0.1:1/")

  private func open(_ device: Device, seed: UInt64) throws -> GameData {
    var environment = device.clock.environment
    environment.sleep = { [clock] in try await clock.sleep(for: $0) }
    environment.random = SeededGenerator(seed: seed)
    return try GameData.open("com.example.space", at: device.url, environment: environment)
  }

  private func seconds(_ duration: Duration) -> Double {
    Double(duration.components.seconds) + Double(duration.components.attoseconds) * 1e-18
  }

  @Test(
    "registration is retried after pauses that grow and differ between devices, until the cloud is switched off",
    arguments: [61, 62] as [UInt64])
  func triesAgain(seed: UInt64) async throws {
    let device = try Device()
    let game = try open(device, seed: seed)
    defer { end(game) }
    let url = try #require(Self.nowhere)
    game.cloud.connect(.server(url, appKey: "key"))
    var random = SeededGenerator(seed: seed)
    for longest in [0.5, 1, 2, 4, 8] {
      try await until { clock.sleeps.count == 1 }
      if case .waiting = game.cloud.status.phase {} else { Issue.record("\(game.cloud.status.phase)") }
      let pause = try #require(clock.sleeps.first)
      #expect(
        abs(seconds(pause) - Double.random(in: longest / 2...longest, using: &random)) < 0.001,
        "seed \(seed), up to \(longest) s")
      clock.advance(by: pause)
    }
    // Once the cloud is switched off, nothing waits any more.
    try await until { clock.sleeps.count == 1 }
    game.cloud.isEnabled = false
    try await until { clock.sleeps.isEmpty && game.cloud.status.phase == .paused }
  }

  @Test("a load that waits for the cloud returns the local save when its time limit passes by the game's clock")
  func waitsByTheClock() async throws {
    let device = try Device()
    let game = try open(device, seed: 63)
    defer { end(game) }
    try await game.saves.save(World(level: 4), to: .main)
    game.cloud.connect(.transport(SilentCloud(), container: ContainerID(high: 7, low: 8), name: "silent"))
    let loading = Task { try await game.saves.fetch(.main, waitingUpTo: .seconds(3_600)) }
    try await until { clock.sleeps == [.seconds(3_600)] }
    clock.advance(by: .seconds(3_600))
    #expect(try await loading.value?.level == 4)
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
