import BenchmarkKit
import Foundation
import Keepsake

/// Two devices of a player, of which one saves, and the other loads whatever it is told has changed.
final class WatchedPair {
  private let player: Player
  private var pot = Pot.sample
  private let reader: Task<Void, any Error>
  private var arrived: AsyncStream<(waterings: Int, at: ContinuousClock.Instant)>.Iterator

  init(_ player: Player) async throws {
    self.player = player
    _ = try await player.first.saves.save(pot, to: Slot("pot"))
    try await player.settle()
    let (second, arrivals) = (player.second, player.second.changes)
    let (loaded, hasLoaded) = AsyncStream.makeStream(of: (waterings: Int, at: ContinuousClock.Instant).self)
    reader = Task {
      for await change in arrivals {
        guard case .slots = change, let pot = try second.saves.load(Slot<Pot>("pot")) else { continue }
        hasLoaded.yield((pot.waterings, .now))
      }
    }
    arrived = loaded.makeAsyncIterator()
  }

  /// Returns the microseconds from `save` having returned on one device to `load` having given the value on the other.
  func save() async throws -> Double {
    pot.water()
    _ = try await player.first.saves.save(pot, to: Slot("pot"))
    let returned = ContinuousClock.now
    var instant = returned
    while let (waterings, at) = await arrived.next() {
      instant = at
      if waterings == pot.waterings { break }
    }
    try await player.first.cloud.sync()
    return (instant - returned) / .microseconds(1)
  }

  func close() throws {
    reader.cancel()
    try player.close()
  }
}
