import FlowerGarden
import Foundation
import Keepsake
import KeepsakeTesting
import Testing

// The keys of the older game.
extension ProgressKey<Int> {
  fileprivate static let stars = ProgressKey("stars", default: 0, rule: .max)
  fileprivate static let coins = ProgressKey("coins", rule: .counter)
  fileprivate static let hatNumber = ProgressKey("hat number", default: 0, rule: .latest)
  fileprivate static let bestTime = ProgressKey("best time", default: 1_000, rule: .min)
}
// The keys of the newer game that replace them.
extension ProgressKey<Set<Int>> {
  fileprivate static let starsFound = ProgressKey("stars found", rule: .union).migrating(from: .stars) { Set(1...$0) }
}
extension ProgressKey<Int> {
  fileprivate static let cents = ProgressKey("cents", rule: .counter).migrating(from: .coins) { $0 * 100 }
  fileprivate static let bestMilliseconds = ProgressKey("best milliseconds", default: 1_000_000, rule: .min)
    .migrating(from: .bestTime) { $0 * 1_000 }
  /// Replaces several keys.
  fileprivate static let treasure = ProgressKey("treasure", rule: .counter).migrating(from: .coins) { $0 * 100 }
    .migrating(from: .gems) { $0 * 1_000 }.migrating(from: .stars) { $0 }
  fileprivate static let gems = ProgressKey("gems", rule: .counter)
  /// A key of a third release.
  fileprivate static let mills = ProgressKey("mills", rule: .counter).migrating(from: .cents) { $0 * 10 }
}
extension ProgressKey<String> {
  fileprivate static let hat = ProgressKey("hat", default: "none", rule: .latest)
    .migrating(from: .hatNumber) { "hat \($0)" }
}
extension ProgressKey<[String: Int]> {
  fileprivate static let bestTimes = ProgressKey("best times", rule: .dictionary(of: .min))
    .migrating(from: .bestTime) { ["cave": $0] }
}

/// One device runs the older game, the other the newer one.
struct MigratedKeyTests {
  @Test("a migrated key shows what the older game recorded before and records later; the old key is unchanged")
  func union() async throws {
    let pair = try await Pair()
    let (old, new) = (pair.here.game, pair.there.game)
    #expect(new.progress[.starsFound].isEmpty && !new.progress.contains(.starsFound))
    try old.progress.record(3, for: .stars)
    try await pair.world.settle()
    #expect(new.progress[.starsFound] == [1, 2, 3] && new.progress.contains(.starsFound))
    try new.progress.insert(7, into: .starsFound)
    try old.progress.record(4, for: .stars)
    try await pair.world.settle()
    #expect(new.progress[.starsFound] == [1, 2, 3, 4, 7])
    #expect(old.progress[.stars] == 4)
    // A third device with the newer game, and the second after a restart.
    let laptop = try pair.world.device("laptop").garden()
    try await pair.world.settle()
    #expect(laptop.game.progress[.starsFound] == [1, 2, 3, 4, 7])
    try pair.tablet.close()
    let again = try pair.tablet.garden().game
    #expect(again.progress[.starsFound] == [1, 2, 3, 4, 7])
  }

  @Test("counts under an old key and under its migrated key add up, also over three releases")
  func counters() async throws {
    let pair = try await Pair()
    let (old, new) = (pair.here.game, pair.there.game)
    pair.cut()
    try old.progress.add(3, to: .coins)
    try new.progress.add(50, to: .cents)
    #expect(new.progress[.cents] == 50)
    try await pair.heal()
    #expect(new.progress[.cents] == 350 && new.progress[.mills] == 3_500)
    try new.progress.add(-25, to: .cents)
    try new.progress.add(1, to: .mills)
    try old.progress.add(1, to: .coins)
    try await pair.world.settle()
    #expect(new.progress[.cents] == 425 && new.progress[.mills] == 4_251 && old.progress[.coins] == 4)
    #expect(new.progress[.cents] == 425, "reading adds nothing")
  }

  @Test("counts under several old keys add up in the one key that replaces them")
  func severalCounters() async throws {
    let pair = try await Pair()
    let (old, new) = (pair.here.game, pair.there.game)
    try old.progress.add(3, to: .coins)
    try old.progress.add(2, to: .gems)
    try old.progress.record(7, for: .stars)
    try new.progress.add(10, to: .treasure)
    try await pair.world.settle()
    #expect(new.progress[.treasure] == 2_317)
    try old.progress.add(-1, to: .gems)
    try await pair.world.settle()
    #expect(new.progress[.treasure] == 1_317)
  }

  @Test("the latest value counts, whether it was set under the old key or the migrated one")
  func latest() async throws {
    let pair = try await Pair()
    // Each device in each part: of values that were set at the same time, the devices' own order must not decide.
    let games = (pair.here.game, pair.there.game)
    for (first, (old, new)) in [(1, games), (3, (games.1, games.0))] {
      try old.progress.set(first, for: .hatNumber)
      try await pair.world.settle()
      #expect(new.progress[.hat] == "hat \(first)")
      try new.progress.set("crown", for: .hat)
      #expect(new.progress[.hat] == "crown")
      pair.world.clock.advance(days: 1)
      try await pair.world.settle()
      #expect(new.progress[.hat] == "crown")
      try old.progress.set(first + 1, for: .hatNumber)
      try await pair.world.settle()
      #expect(new.progress[.hat] == "hat \(first + 1)")
      // The same value as before under its own key, which still is a new choice.
      try new.progress.set("crown", for: .hat)
      #expect(new.progress[.hat] == "crown")
      try await pair.world.settle()
      #expect(new.progress[.hat] == "crown" && old.progress[.hatNumber] == first + 1)
      pair.world.clock.advance(days: 1)
      try await pair.world.settle()
    }
  }

  @Test("a dictionary and a minimum take over the value of the old key")
  func others() async throws {
    let pair = try await Pair()
    let (old, new) = (pair.here.game, pair.there.game)
    #expect(new.progress[.bestMilliseconds] == 1_000_000 && new.progress[.bestTimes, at: "cave"] == nil)
    try old.progress.record(61, for: .bestTime)
    try await pair.world.settle()
    #expect(new.progress[.bestMilliseconds] == 61_000 && new.progress[.bestTimes] == ["cave": 61])
    try new.progress.record(60_500, for: .bestMilliseconds)
    try new.progress.record(70, at: "cave", for: .bestTimes)
    try new.progress.record(40, at: "hill", for: .bestTimes)
    #expect(new.progress[.bestMilliseconds] == 60_500)
    #expect(new.progress[.bestTimes] == ["cave": 61, "hill": 40] && new.progress[.bestTimes, at: "cave"] == 61)
  }

  @Test("resetting a migrated key resets the old key, too")
  func reset() async throws {
    let pair = try await Pair()
    let (old, new) = (pair.here.game, pair.there.game)
    try old.progress.record(5, for: .stars)
    try old.progress.add(2, to: .coins)
    try await pair.world.settle()
    try new.progress.reset(.starsFound, to: [1])
    try new.progress.reset(.mills, to: 7)
    #expect(new.progress[.starsFound] == [1] && new.progress[.mills] == 7 && new.progress[.cents] == 0)
    try await pair.world.settle()
    #expect(old.progress[.stars] == 0 && old.progress[.coins] == 0)
    try old.progress.record(2, for: .stars)
    try await pair.world.settle()
    #expect(new.progress[.starsFound] == [1, 2])
  }

  @Test("a migration function may read another key")
  func asking() async throws {
    let pair = try await Pair()
    let game = pair.here.game
    let key = ProgressKey("asking", default: 0, rule: .max).migrating(from: .stars) { $0 + game.progress[.coins] }
    try game.progress.record(3, for: .stars)
    try game.progress.add(4, to: .coins)
    #expect(game.progress[key] == 7)
  }
}
