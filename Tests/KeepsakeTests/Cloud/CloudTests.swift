import Foundation
import KeepsakeReplication
import KeepsakeStore
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake

/// Two devices of one player and a cloud, in one process.
@Suite struct CloudTests: AtHome {
  let home: Household

  init() throws { home = try Household() }

  /// Opens the games of the phone and the tablet, connected and synced.
  private func bothConnected() async throws -> (here: GameData, there: GameData) {
    let here = try phone.open()
    let there = try tablet.open()
    for game in [here, there] {
      game.cloud.connect(cloud.address)
      try await game.cloud.sync()
    }
    return (here, there)
  }

  @Test("captures, progress and preferences from before a sync are in the cloud when `sync` returns")
  func sendsCaptures() async throws {
    let (here, there) = try await bothConnected()
    defer {
      end(here)
      end(there)
    }
    for level in 1...20 {
      _ = try here.saves.capture(World(level: level), to: .main)
      _ = try here.progress.record(level, for: .level)
      here.preferences[.hat] = "hat \(level)"
      try await here.cloud.sync()
      #expect(cloud.container.version(try #require(try here.saves.history(of: .main).first?.id)) != nil)
      try await there.cloud.sync()
      #expect(try there.saves.load(.main)?.level == level)
      #expect(there.progress[.level] == level && there.preferences[.hat] == "hat \(level)")
    }
  }

  @Test("a game played on the phone continues on the tablet, and later saves sync automatically")
  func handsOver() async throws {
    let here = try phone.open()
    let there = try tablet.open()
    defer {
      end(here)
      end(there)
    }
    // Played before a cloud was connected.
    let version = try await here.saves.save(World(level: 6, cleared: ["a"]), to: .main, SaveMetadata(title: "Cave"))
    #expect(version.state == .queued)
    try here.progress.record(6, for: .level)
    here.cloud.connect(cloud.address)
    try await here.cloud.sync()
    #expect(try here.saves.history(of: .main).first?.state == .stored)
    #expect(here.cloud.status.phase == .upToDate && here.cloud.status.waitingCommits == 0)
    #expect(here.cloud.status.lastFetched == Date(timeIntervalSince1970: Double(phone.clock.now) / 1000))

    there.cloud.connect(cloud.address)
    try await there.cloud.sync()
    #expect(try there.saves.load(.main) == World(level: 6, cleared: ["a"]))
    #expect(try there.saves.list().first?.current.metadata.title == "Cave")
    try await until { there.progress[.level] == 6 }
    // From here on, everything syncs automatically.
    try await there.saves.save(World(level: 7, cleared: ["a", "b"]), to: .main)
    try await until { try here.saves.load(.main)?.level == 7 }
    #expect(try here.saves.conflict(.main) == nil)
  }

  @Test("after both devices played offline, both have the same merged state, and nothing is lost")
  func bothOffline() async throws {
    let (here, there) = try await bothConnected()
    defer {
      end(here)
      end(there)
    }
    try await here.saves.save(World(level: 2), to: .main)
    try await here.cloud.sync()
    try await until { try there.saves.load(.main)?.level == 2 }

    cloud.isCut = true
    try await here.saves.save(World(level: 6, cleared: ["a"]), to: .main)
    try here.progress.record(6, for: .level)
    try here.progress.add(3, to: .coinsFound)
    try await there.saves.save(World(level: 3, cleared: ["b"]), to: .main)
    try there.progress.record(3, for: .level)
    try there.progress.add(4, to: .coinsFound)
    await #expect { try await here.cloud.sync() } throws: { ($0 as? GameDataError)?.code == .unreachable }
    try await until {
      if case .waiting = here.cloud.status.phase { true } else { false }
    }
    #expect(here.cloud.status.waitingCommits > 0)

    try await heal(here, there)
    try await here.cloud.sync()
    try await there.cloud.sync()
    try await here.cloud.sync()
    for game in [here, there] {
      #expect(try game.saves.load(.main) == World(level: 6, cleared: ["a", "b"]))
      try await until { game.progress[.level] == 6 && game.progress[.coinsFound] == 7 }
    }
    #expect(try here.saves.conflict(.main)?.sides.count == 2)
    // The next save on either device resolves the conflict for both.
    let world = try #require(try here.saves.load(.main))
    try await here.saves.save(world, to: .main, SaveMetadata(title: "both"))
    try await here.cloud.sync()
    try await there.cloud.sync()
    #expect(try there.saves.conflict(.main) == nil)
    #expect(try there.saves.load(.main) == world)
  }

  @Test("changes from another device are reported with their keys and slots, by the stream and when polled")
  func tellsChanges() async throws {
    let here = try phone.open()
    let there = try tablet.open()
    defer {
      end(here)
      end(there)
    }
    let seen = Shared<[GameChange]>([])
    let changes = there.changes
    let listener = Task { for await change in changes { seen.value.append(change) } }
    for game in [here, there] { game.cloud.connect(cloud.address) }
    try here.progress.record(9, for: .level)
    try await here.saves.save(World(level: 9), to: .main)
    try await here.cloud.sync()
    try await until { seen.value.contains(.progress(["level"])) && seen.value.contains(.slots(["main"])) }
    let polled = there.takeChanges()
    #expect(polled.contains(.progress(["level"])) && polled.contains(.slots(["main"])) && there.takeChanges().isEmpty)
    try there.close()
    await listener.value
  }

  @Test("while the player has switched the cloud off nothing is sent, and switching it on sends what waited")
  func switchedOff() async throws {
    let here = try phone.open()
    defer { end(here) }
    here.cloud.isEnabled = false
    here.cloud.connect(cloud.address)
    try await here.saves.save(World(level: 4), to: .main)
    await #expect { try await here.cloud.sync() } throws: { ($0 as? GameDataError)?.code == .notConnected }
    #expect(cloud.exchanges == 0 && here.cloud.status.phase == .paused)
    here.cloud.isEnabled = true
    try await here.cloud.sync()
    #expect(cloud.exchanges > 0 && here.cloud.status.waitingCommits == 0)
    here.cloud.disconnect()
    try await until { here.cloud.status.phase == .off }
    await #expect { try await here.cloud.sync() } throws: { ($0 as? GameDataError)?.code == .notConnected }
  }

  @Test("gems earned on one device are in the other's balance, and a gift claimed on both is paid once")
  func wallet() async throws {
    let here = try phone.open()
    let there = try tablet.open()
    defer {
      end(here)
      end(there)
    }
    for game in [here, there] {
      try game.wallet.claim(100, .gems, key: "starter", for: "starter gift")
      game.cloud.connect(cloud.address)
    }
    try here.wallet.earn(30, .gems, for: "quest")
    for _ in 0..<3 {
      try await here.cloud.sync()
      try await there.cloud.sync()
    }
    try await until { here.wallet[.gems].total == 130 && there.wallet[.gems].total == 130 }
    #expect(here.wallet[.gems].pending == 0 && there.wallet[.gems].pending == 0)
    #expect(here.wallet[.gems].spendable + there.wallet[.gems].spendable <= 130)
  }

  @Test("`fetch` returns the newest save of the cloud, or the local one if the cloud can't be reached")
  func fetches() async throws {
    let here = try phone.open()
    defer { end(here) }
    here.cloud.connect(cloud.address)
    try await here.saves.save(World(level: 5), to: .main)
    try await here.cloud.sync()
    let there = try tablet.open()
    defer { end(there) }
    #expect(try await there.saves.fetch(.main, waitingUpTo: .seconds(60)) == nil, "there is no cloud to wait for")
    there.cloud.connect(cloud.address)
    #expect(try await there.saves.fetch(.main, waitingUpTo: .seconds(60))?.level == 5)
    cloud.isCut = true
    #expect(try await there.saves.fetch(.main, waitingUpTo: .seconds(60))?.level == 5)
  }

  @Test("`fetch` waits no longer than its limit, even for a cloud whose request doesn't end when cancelled", .hangLimit)
  func fetchesInTime() async throws {
    let here = try phone.open()
    defer { end(here) }
    try await here.saves.save(World(level: 5), to: .main)
    let (gate, answer) = AsyncStream<Void>.makeStream()
    // Like the first registration at a server that accepts the connection and never responds: it doesn't end when it is
    // cancelled.
    let asking = Task { for await _ in gate {} }
    let stub = StubCloud(of: here, fetching: { await asking.value })
    defer { withExtendedLifetime(stub) {} }
    #expect(try await here.saves.fetch(.main, waitingUpTo: .milliseconds(20))?.level == 5)
    answer.finish()
    await asking.value
  }

  @Test("changes that were waiting when the game ended are sent by its next run")
  func survivesRestart() async throws {
    var here = try phone.open()
    here.cloud.connect(cloud.address)
    try await here.cloud.sync()
    cloud.isCut = true
    try await here.saves.save(World(level: 8), to: .main)
    try here.close()
    cloud.isCut = false
    here = try phone.open()
    defer { end(here) }
    here.cloud.connect(cloud.address)
    try await here.cloud.sync()
    let there = try tablet.open()
    defer { end(there) }
    there.cloud.connect(cloud.address)
    try await there.cloud.sync()
    #expect(try there.saves.load(.main)?.level == 8)
  }

  @Test("a status stream has at least one element, and ends when the game is closed")
  func statusStream() async throws {
    let here = try phone.open()
    let updates = here.cloud.statusUpdates
    here.cloud.connect(cloud.address)
    try await here.cloud.sync()
    try here.close()
    var phases: [CloudStatus.Phase] = []
    for await status in updates { phases.append(status.phase) }
    #expect(!phases.isEmpty)
    #expect(here.cloud.status.phase == .off)
  }

  @Test("versions from another device don't displace a device's own history, and each listed one can be loaded")
  func recordsFillHistory() async throws {
    let (here, there) = try await bothConnected()
    defer {
      end(here)
      end(there)
    }
    for level in 1...25 {
      clock.advance(by: .seconds(60))
      try await here.saves.save(World(level: level), to: .main)
    }
    try await here.cloud.sync()
    try await until { try there.saves.load(.main)?.level == 25 }
    // The phone is disconnected meanwhile.
    here.cloud.disconnect()
    try await until { here.cloud.status.phase == .off }
    for level in 26...50 {
      clock.advance(by: .seconds(60))
      try await there.saves.save(World(level: level), to: .main)
      try await there.cloud.sync()
    }
    here.cloud.connect(cloud.address)
    try await here.cloud.sync()
    try await until { try here.saves.load(.main)?.level == 50 }
    // The twenty newest versions of its own and the received ones: each can be loaded.
    let history = try here.saves.history(of: .main)
    #expect(history.count >= 20)
    for version in history { _ = try here.saves.value(of: version.id, in: .main) }
    #expect(here.incidents.isEmpty)
  }
}
