import Foundation
import Keepsake
import KeepsakeReplication
import KeepsakeTesting
import TestSupport
import Testing

/// High scores of one player's devices.
@Suite struct ScoreSyncTests: AtHome {
  let home: Household

  init() throws { home = try Household() }

  private func both(_ body: (_ here: GameData, _ there: GameData) async throws -> Void) async throws {
    let here = try phone.open()
    let there = try tablet.open()
    defer {
      end(here)
      end(there)
    }
    try await body(here, there)
  }

  private func connect(_ games: GameData...) async throws {
    for game in games {
      game.cloud.connect(cloud.address)
      try await game.cloud.sync()
    }
  }

  private func values(_ game: GameData, _ board: Board = .easy) throws -> [Int] {
    try game.scores.top(9, of: board).compactMap(\.value.int)
  }

  @Test("each player's best reaches the other device once, with its context; other scores stay on their device")
  func bestsTravel() async throws {
    try await both { here, there in
      for (value, player) in [(900, "Ada"), (800, "Ada"), (500, "Eve")] {
        try here.scores.submit(value, to: .easy, player: player, context: Run(seed: value))
      }
      try there.scores.submit(700, to: .easy, player: "Ada")
      let changes = there.scores.changes
      try await connect(here, there, here)
      try await until { try values(there) == [900, 700, 500] }
      #expect(try values(here) == [900, 800, 500])
      #expect(try there.scores.top(1, of: .easy)[0].context() == Run(seed: 900))
      #expect(try there.scores.top(1, of: .easy) == here.scores.top(1, of: .easy), "the same id and date")
      var iterator = changes.makeAsyncIterator()
      #expect(await iterator.next() == ["easy"])

      // What comes back is neither reported nor stored a second time.
      for game in [here, there, here, there] { try await game.cloud.sync() }
      #expect(here.takeChanges().allSatisfy { if case .scores = $0 { false } else { true } })
      #expect(there.takeChanges().filter { if case .scores = $0 { true } else { false } } == [.scores(["easy"])])
      #expect(try values(there) == [900, 700, 500] && values(here) == [900, 800, 500])
      #expect(here.incidents.isEmpty && there.incidents.isEmpty)
    }
    // The same after a restart of both.
    try await both { here, there in
      let shown = (try values(there), try values(here))
      #expect(shown == ([900, 700, 500], [900, 800, 500]))
      #expect(try there.scores.rank(of: "Eve", on: .easy) == 3)
    }
  }

  @Test("two devices that made the same score offline agree on which of them was first")
  func ties() async throws {
    try await both { here, there in
      try await connect(here, there)
      cloud.isCut = true
      try here.scores.submit(100, to: .easy, player: "Ada")
      clock.advance(by: .seconds(1))
      try there.scores.submit(100, to: .easy, player: "Ada")
      try there.scores.submit(40, to: .lap)
      try here.scores.submit(39.5, to: .lap)
      try await heal(here, there)
      for game in [here, there, here, there] { try await game.cloud.sync() }
      try await until { try here.scores.best(of: "Ada", on: .easy) == there.scores.best(of: "Ada", on: .easy) }
      #expect(try there.scores.best(of: "Ada", on: .easy)?.date == Date(timeIntervalSince1970: 10_000_000))
      try await until { try there.scores.best(on: .lap)?.value == .double(39.5) }
    }
  }

  @Test("a removed score disappears from every device, and the next best score takes its place")
  func removalTravels() async throws {
    try await both { here, there in
      try here.scores.submit(100, to: .easy, player: "Ada")
      try here.scores.submit(9_000, to: .easy, player: "Ada")
      try there.scores.submit(50, to: .easy, player: "Ada")
      try await connect(here, there)
      try await until { try values(there) == [9_000, 50] }
      try here.scores.remove(try #require(try here.scores.best(of: "Ada", on: .easy)))
      try await here.cloud.sync()
      try await there.cloud.sync()
      try await until { try values(there) == [100, 50] }
      #expect(try values(here) == [100])
      try here.scores.removeAll(from: .easy)
      try await here.cloud.sync()
      try await there.cloud.sync()
      try await until { try values(there) == [50] }
      #expect(try values(here) == [], "a score that is only on the tablet stays there")
      for game in [there, here, there, here] { try await game.cloud.sync() }
      #expect(try values(here) == [] && values(there) == [50], "and isn't sent")
    }
  }

  @Test(
    "a better score that another device made offline survives the removal of a worse one, whichever syncs first",
    arguments: [false, true])
  func removedUnseen(removerIsFirst: Bool) async throws {
    try await both { here, there in
      for value in [800, 900] { try here.scores.submit(value, to: .easy, player: "Ada") }
      try await connect(here, there)
      try await until { try values(there) == [900] }
      cloud.isCut = true
      try there.scores.submit(950, to: .easy, player: "Ada", context: Run(seed: 950)).wait()
      try here.scores.remove(try #require(try here.scores.best(of: "Ada", on: .easy)))
      try await heal(here, there)
      for game in removerIsFirst ? [here, there] : [there, here] { try await game.cloud.sync() }
      try await until { try values(here) == [950, 800] && values(there) == [950, 800] }
      #expect(try here.scores.top(1, of: .easy)[0].context() == Run(seed: 950))
    }
  }

  @Test("when a best is removed, the best score that any device still has takes its place", arguments: [nil, 100])
  func nextOfAll(own: Int?) async throws {
    try await both { here, there in
      if let own { try here.scores.submit(own, to: .easy, player: "Ada") }
      try here.scores.submit(900, to: .easy, player: "Ada")
      try there.scores.submit(850, to: .easy, player: "Ada")
      try await connect(here, there)
      try await until { try values(there) == [900, 850] }
      try here.scores.remove(try #require(try here.scores.best(of: "Ada", on: .easy)))
      for game in [here, there, here] { try await game.cloud.sync() }
      let (first, second) = ([850, own].compactMap(\.self), [850, own].compactMap(\.self))
      try await until { try values(here) == first && values(there) == second }
    }
  }

  @Test("scores that were removed while a device was offline aren't restored by it, however many they were")
  func removedTwice() async throws {
    try await both { here, there in
      try here.scores.submit(100, to: .easy, player: "Ada")
      for value in [5_000, 9_000] {
        try here.scores.submit(value, to: .easy, player: "Ada")
        try await connect(here, there)
        try await until { try values(there).first == value }
      }
      #expect(try values(there) == [9_000, 5_000])
      cloud.isCut = true
      for _ in 0..<2 { try here.scores.remove(try #require(try here.scores.best(of: "Ada", on: .easy))) }
      try await heal(here, there)
      for game in [here, there, here, there] { try await game.cloud.sync() }
      try await until { try values(there) == [100] }
      #expect(try values(here) == [100])
    }
  }

  @Test("two devices that each removed a best while offline agree on the best that is left")
  func removedCrosswise() async throws {
    try await both { here, there in
      for value in [800, 900] { try here.scores.submit(value, to: .easy, player: "Ada") }
      try there.scores.submit(850, to: .easy, player: "Ada")
      try await connect(here, there)
      try await until { try values(there) == [900, 850] }
      cloud.isCut = true
      try here.scores.remove(try #require(try here.scores.best(of: "Ada", on: .easy)))
      try there.scores.submit(950, to: .easy, player: "Ada").wait()
      try there.scores.remove(try #require(try there.scores.best(of: "Ada", on: .easy)))
      #expect(try values(there) == [900, 850])
      try await heal(here, there)
      for game in [here, there, here, there] { try await game.cloud.sync() }
      try await until { try values(here).first == 850 && values(there).first == 850 }
      // The next score is the player's best again, on both.
      try here.scores.submit(870, to: .easy, player: "Ada")
      try await here.cloud.sync()
      try await until { try values(there).first == 870 }
    }
  }

  @Test("scores that a device removed before it first connects are not sent, and others' scores aren't removed")
  func removedBefore() async throws {
    try await both { here, there in
      try here.scores.submit(100, to: .easy, player: "Ada")
      try here.scores.submit(10, to: .easy, player: "Eve")
      try here.scores.submit(9_000, to: .easy, player: "Ada")
      // Removed before the first connection: the value isn't sent, either.
      try here.scores.remove(try #require(try here.scores.best(of: "Ada", on: .easy)))
      try await connect(here)
      try there.scores.submit(70, to: .easy, player: "Ada")
      try there.scores.removeAll(from: .easy)
      try await connect(there, here, there)
      try await until { try values(there) == [100, 10] }
      #expect(try values(here) == [100, 10])
    }
  }
}
