import Foundation
import GRDB
import KeepsakeTesting
import Synchronization
import TestSupport
import Testing

@testable import Keepsake
@testable import KeepsakeStore

/// Received changes don't appear in a running game before it wants them to.
@Suite struct DeliveryTests: AtHome {
  let home: Household

  init() throws { home = try Household() }

  private static let theme = PreferenceKey("theme", default: "light", synced: true)

  /// Opens the phone's game, which applies changes at once, and the tablet's with the given delivery, both synced.
  private func connected(_ delivery: CloudDelivery = .manually) async throws -> (here: GameData, there: GameData) {
    let here = try phone.open()
    let there = try tablet.open()
    there.cloud.delivery = delivery
    for game in [here, there] {
      game.cloud.connect(cloud.address)
      try await game.cloud.sync()
    }
    return (here, there)
  }

  /// Syncs until the tablet has received everything from the phone, delivered or not, and the bank has processed it.
  private func exchange(_ here: GameData, _ there: GameData) async throws {
    for _ in 0..<3 {
      try await here.cloud.sync()
      try await there.cloud.sync()
    }
  }

  private func fill(_ game: GameData) throws {
    game.preferences[Self.theme] = "dark"
    try game.checkpoint { checkpoint in
      try checkpoint.save(World(level: 6), to: .main)
      try checkpoint.record(6, for: .level)
      try checkpoint.submit(900, to: .easy, player: "Ada")
      try checkpoint.earn(30, .gems, for: "quest")
    }.wait()
  }

  private func shows(_ game: GameData) throws -> [Bool] {
    [
      try game.saves.load(.main)?.level == 6, try game.saves.list().count == 1, game.progress[.level] == 6,
      try game.scores.top(1, of: .easy).count == 1, game.wallet[.gems].total == 30,
      game.preferences[Self.theme] == "dark",
    ]
  }

  @Test("received saves, values, preferences, scores and money are shown together by `deliver`, and not before")
  func showsTogether() async throws {
    let (here, there) = try await connected()
    defer {
      end(here)
      end(there)
    }
    try fill(here)
    try await here.preferences.flush()
    try await exchange(here, there)
    try await until { there.cloud.status.hasArrivals && there.cloud.status.phase == .upToDate }
    #expect(try shows(there) == [false, false, false, false, false, false])
    #expect(there.takeChanges().isEmpty)
    #expect(try !there.cloud.update(), "with manual delivery, `update` delivers nothing")
    #expect(try there.cloud.deliver())
    #expect(try shows(there) == [true, true, true, true, true, true])
    let changes = there.takeChanges()
    for change in [.slots(["main"]), .progress(["level"]), .preferences(["theme"]), .scores(["easy"]), .wallet]
      as [GameChange]
    {
      #expect(changes.contains(change))
    }
    #expect(!there.cloud.status.hasArrivals)
    #expect(try !there.cloud.deliver())
  }

  @Test("with `onUpdate`, updating the cloud or an autosave delivers changes, and does no work if there are none")
  func showsAtUpdate() async throws {
    let (here, there) = try await connected(.onUpdate)
    defer {
      end(here)
      end(there)
    }
    try fill(here)
    try await exchange(here, there)
    try await until { there.cloud.status.hasArrivals }
    #expect(there.progress[.level] == 1)
    #expect(try there.cloud.update())
    #expect(there.progress[.level] == 6)
    #expect(try !there.cloud.update() && !there.cloud.connection.deliveryBuffer.mayHaveArrivals)

    try here.progress.record(7, for: .level)
    try await exchange(here, there)
    let autosave = Autosave(there, to: .main, atSignals: .ignored) { World() }
    #expect(there.progress[.level] == 6)
    try autosave.update()
    #expect(there.progress[.level] == 7)
  }

  @Test("the game's own writes are shown at once, and a save replaces only versions that the game has seen")
  func ownWrites() async throws {
    let (here, there) = try await connected()
    defer {
      end(here)
      end(there)
    }
    try await here.saves.save(World(level: 2), to: .main)
    try await exchange(here, there)
    try there.cloud.deliver()
    #expect(try there.saves.load(.main)?.level == 2)
    try await here.saves.save(World(level: 6, cleared: ["a"]), to: .main)
    try here.progress.record(6, for: .level)
    try await exchange(here, there)

    try await there.saves.save(World(level: 3, cleared: ["b"]), to: .main)
    try there.progress.record(3, for: .level)
    try await exchange(here, there)
    #expect(try there.saves.load(.main) == World(level: 3, cleared: ["b"]) && there.saves.conflict(.main) == nil)
    #expect(there.progress[.level] == 3)
    try there.cloud.deliver()
    #expect(try there.saves.conflict(.main)?.sides.count == 2)
    #expect(try there.saves.load(.main) == World(level: 6, cleared: ["a", "b"]))
    #expect(there.progress[.level] == 6)
  }

  @Test("changes not delivered when the game ended can be delivered at its next start without a network")
  func survivesRestart() async throws {
    var (here, there) = try await connected()
    try fill(here)
    try await exchange(here, there)
    try there.close()
    there = try tablet.open()
    defer {
      end(here)
      end(there)
    }
    #expect(there.cloud.status.hasArrivals && there.progress[.level] == 1)
    there.cloud.delivery = .onUpdate
    #expect(try there.cloud.update())
    #expect(try there.saves.load(.main)?.level == 6 && there.progress[.level] == 6)
    #expect(!there.cloud.status.hasArrivals)
  }

  @Test("fetching the newest save delivers received changes, and so does changing to immediate delivery")
  func fetchesAndGivesUp() async throws {
    let (here, there) = try await connected()
    defer {
      end(here)
      end(there)
    }
    try fill(here)
    try await here.cloud.sync()
    #expect(try await there.saves.fetch(.main, waitingUpTo: .seconds(60))?.level == 6)
    #expect(there.progress[.level] == 6)
    try here.progress.record(7, for: .level)
    try here.wallet.earn(5, .gems, for: "quest")
    try await exchange(here, there)
    #expect(there.progress[.level] == 6)
    // Without those that the fetch delivered.
    _ = there.takeChanges()
    there.cloud.delivery = .immediately
    try await until { there.progress[.level] == 7 && there.wallet[.gems].total == 35 }
    #expect(there.takeChanges().contains(.wallet))
    try here.progress.record(8, for: .level)
    try await here.cloud.sync()
    try await until { there.progress[.level] == 8 }
  }

  @Test("until delivery, only this device's operations change the balance, and no more than it can be spent")
  func moneyStandsStill() async throws {
    let (here, there) = try await connected()
    defer {
      end(here)
      end(there)
    }
    try here.wallet.earn(100, .gems, for: "quest")
    try await exchange(here, there)
    // The bank has granted this device a share of it.
    let granted = try there.core.store.read { try WalletHold.balances(in: $0)["gems"]?.spendable ?? 0 }
    #expect(granted >= 10)
    #expect(there.wallet[.gems] == Balance(total: 0, spendable: 0, pending: 0))
    try there.wallet.earn(7, .gems, for: "coin")
    let claim = try there.wallet.claim(50, .gems, key: "gift", for: "gift")
    #expect(there.wallet[.gems] == Balance(total: 7, spendable: 7, pending: 50))
    #expect(gameErrorCode { try there.wallet.spend(8, .gems, for: "sword") } == .insufficient(7, of: 7))
    #expect(
      gameErrorCode { try there.checkpoint { _ = try $0.spend(8, .gems, for: "sword") } }
        == .insufficient(7, of: 7))
    let spent = try there.wallet.spend(3, .gems, for: "bow")
    try there.checkpoint { checkpoint in
      try checkpoint.earn(2, .gems, for: "coin")
      try checkpoint.spend(6, .gems, for: "sword")
    }.wait()
    #expect(there.wallet[.gems].total == 0)
    // Repeating an operation with the same id changes nothing and needs no balance.
    try there.wallet.spend(3, .gems, for: "bow", id: spent)
    try await exchange(here, there)
    #expect(there.wallet[.gems] == Balance(total: 0, spendable: 0, pending: 50))
    #expect(there.takeChanges().isEmpty)
    try there.cloud.deliver()
    #expect(there.wallet[.gems].total == 150 && there.wallet[.gems].pending == 0)
    let verdicts = there.takeChanges().flatMap { (change: GameChange) -> [WalletVerdict] in
      if case .decisions(let verdicts) = change { verdicts } else { [] }
    }
    #expect(verdicts.contains { $0.operation == claim && $0.isAccepted })
    #expect(there.wallet[.gems].spendable >= 8)
    try there.wallet.spend(8, .gems, for: "sword")
    #expect(there.wallet[.gems].total == 142)
  }

  @Test("until delivery, a conversion moves both currencies, and asking the bank spends up to the shown total")
  func asksWhileHolding() async throws {
    let crowns = Currency("crowns")
    let (here, there) = try await connected()
    defer {
      end(here)
      end(there)
    }
    try here.wallet.earn(100, .gems, for: "quest")
    try await exchange(here, there)
    try there.cloud.deliver()
    #expect(there.wallet[.gems].total == 100 && there.wallet[.gems].spendable < 60)
    try there.wallet.convert(10, .gems, to: 1, crowns, for: "exchange")
    #expect(there.wallet[.gems].total == 90 && there.wallet[crowns] == Balance(total: 1, spendable: 1, pending: 0))
    try here.wallet.earn(100, .gems, for: "another quest")
    try await exchange(here, there)
    #expect(there.wallet[.gems].total == 90)
    await #expect {
      try await there.wallet.spend(91, .gems, for: "castle", askingBankFor: .seconds(9))
    } throws: { error in
      if case .insufficient(_, 90, _) = (error as? GameDataError)?.code { true } else { false }
    }
    try await there.wallet.spend(80, .gems, for: "tower", askingBankFor: .seconds(1 << 30))
    #expect(there.wallet[.gems].total == 10 && there.wallet[.gems].spendable >= 0)
    try there.cloud.deliver()
    #expect(there.wallet[.gems].total == 110)
  }

  @Test("a restored cloud gets undelivered changes back from this device, even if the device that made them is gone")
  func survivesRestoredCloud() async throws {
    let (here, there) = try await connected()
    defer { end(there) }
    let backup = cloud.container
    try here.saves.capture(World(level: 6), to: .main).wait()
    try here.progress.record(6, for: .level)
    try await exchange(here, there)
    try await until { there.cloud.status.hasArrivals }
    #expect(there.progress[.level] == 1)
    end(here)
    cloud.container = backup
    try await there.cloud.sync()
    #expect(try there.saves.load(.main)?.level == 6 && there.progress[.level] == 6)
    #expect(there.takeChanges().contains(.slots(["main"])))
    try await until { !there.cloud.status.hasArrivals }
    let new = try Device(clock: clock).open()
    defer { end(new) }
    new.cloud.connect(cloud.address)
    try await new.cloud.sync()
    #expect(try new.saves.load(.main)?.level == 6 && new.progress[.level] == 6)
  }

  @Test("a device's own changes don't count as arrivals, and the device has caught up")
  func ownEcho() async throws {
    let there = try tablet.open()
    defer { end(there) }
    there.cloud.delivery = .manually
    try there.saves.capture(World(level: 2), to: .main).wait()
    there.cloud.connect(cloud.address)
    for _ in 0..<2 { try await there.cloud.sync() }
    #expect(try there.core.store.read { try $0.facts().caughtUp })
    #expect(try !there.cloud.status.hasArrivals && !there.cloud.deliver())
  }

  @Test("a received value that the game has exceeded meanwhile isn't shown, and no longer waits after `deliver`")
  func overtaken() async throws {
    let (here, there) = try await connected()
    defer {
      end(here)
      end(there)
    }
    try here.progress.record(5, for: .level)
    try await exchange(here, there)
    try await until { there.cloud.status.hasArrivals }
    // Replaces the service, which would exchange with the cloud at once.
    let commits = Mutex(0)
    let stub = StubCloud(of: there, onCommit: { commits.withLock { $0 += 1 } })
    defer { withExtendedLifetime(stub) {} }
    try await there.progress.record(7, for: .level).value
    try await until { commits.withLock { $0 } == 1 }
    #expect(try !there.cloud.deliver())
    #expect(!there.cloud.status.hasArrivals)
    #expect(commits.withLock { $0 } == 2, "the service is notified after the delivery")
    try await exchange(here, there)
    try await until { !there.cloud.status.hasArrivals && there.cloud.status.phase == .upToDate }
    #expect(there.progress[.level] == 7 && here.progress[.level] == 7)
  }

  @Test("immediate delivery shows waiting changes even without a connection or with the cloud switched off")
  func atOnceWithoutService() async throws {
    var (here, there) = try await connected()
    defer {
      end(here)
      end(there)
    }
    try fill(here)
    try await exchange(here, there)
    try there.close()
    there = try tablet.open()
    #expect(there.progress[.level] == 1)
    there.cloud.delivery = .immediately
    #expect(try there.saves.load(.main)?.level == 6 && there.progress[.level] == 6)
    #expect(!there.cloud.status.hasArrivals)

    // The same if the game is opened with immediate delivery.
    there.cloud.delivery = .manually
    there.cloud.connect(cloud.address)
    try here.progress.record(7, for: .level)
    try await exchange(here, there)
    there.cloud.isEnabled = false
    try there.close()
    there = try tablet.open()
    #expect(there.progress[.level] == 6)
    there.cloud.connect(cloud.address)
    try await until {
      there.progress[.level] == 7 && !there.cloud.status.hasArrivals && there.cloud.status.phase == .paused
    }
  }

  @Test("if the wallet can't be read, everything else is delivered, and the bank's changes are kept for later")
  func unreadableMoney() async throws {
    let (here, there) = try await connected()
    defer {
      end(here)
      end(there)
    }
    try fill(here)
    try await exchange(here, there)
    there.cloud.disconnect()
    try await until { there.cloud.status.phase == .off }
    let readable = try there.core.store.write { transaction in
      let database = transaction.database
      let body = try #require(
        try Data.fetchOne(database, sql: "SELECT body FROM fact WHERE name = ?", arguments: [WalletBook.name]))
      try database.execute(sql: "UPDATE fact SET body = ? WHERE name = ?", arguments: [Data([7]), WalletBook.name])
      return body
    }
    #expect(storeErrorCode { try there.cloud.deliver() } == .damaged)
    #expect(try there.saves.load(.main)?.level == 6 && there.progress[.level] == 6)
    let told = there.takeChanges()
    #expect(told.contains(.slots(["main"])) && told.contains(.progress(["level"])) && !told.contains(.wallet))
    #expect(there.cloud.status.hasArrivals && there.cloud.connection.deliveryBuffer.mayHaveArrivals)
    try there.core.store.write { transaction in
      try transaction.database.execute(
        sql: "UPDATE fact SET body = ? WHERE name = ?", arguments: [readable, WalletBook.name])
    }
    #expect(try there.cloud.deliver())
    #expect(there.takeChanges().contains(.wallet) && there.wallet[.gems].total == 30)
    #expect(!there.cloud.status.hasArrivals)
  }
}
