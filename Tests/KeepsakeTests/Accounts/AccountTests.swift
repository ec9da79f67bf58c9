import Foundation
import GRDB
import KeepsakeReplication
import KeepsakeStore
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake

/// Several players share a tablet: each account that signs in finds its own data, and none of another account.
@Suite struct AccountTests {
  let folder: TemporaryFolder
  let clock = TestClock()

  init() throws { folder = try TemporaryFolder() }

  private static var tables: DatabaseMigrator {
    var migrator = DatabaseMigrator()
    migrator.registerMigration("1") { try $0.execute(sql: "CREATE TABLE seen (id INTEGER)") }
    return migrator
  }

  private func open(_ account: Account, seal: Seal = .none) throws -> GameData {
    try GameData.open("com.example.space", account: account, in: folder.url, seal: seal, environment: clock.environment)
  }

  private func accounts(seal: Seal = .none) throws -> [AccountSummary] {
    try GameData.accounts(of: "com.example.space", in: folder.url, seal: seal)
  }

  @Test("switching between accounts keeps the data of each, and no account sees another's data")
  func comesBack() throws {
    let people: [Account] = [.guest, .named("ada"), .named("Ada"), .named("ben@example.com")]
    for (number, account) in people.enumerated() {
      let game = try open(account)
      #expect(
        try game.saves.load(.main) == nil && game.progress[.level] == 1 && game.wallet[.gems].total == 0, "\(account)")
      #expect(game.account == account)
      try game.saves.capture(World(level: number + 10), to: .main).wait()
      try game.progress.record(number + 20, for: .level).wait()
      try game.wallet.earn(number + 30, .gems, for: "a quest")
      game.preferences[.volume] = Double(number)
      try game.records.migrate(Self.tables)
      try game.records.write { try $0.execute(sql: "INSERT INTO seen (id) VALUES (?)", arguments: [number]) }
      try game.close()
    }
    for _ in 0..<2 {
      for (number, account) in people.enumerated().reversed() {
        let game = try open(account)
        #expect(try game.saves.load(.main)?.level == number + 10, "\(account)")
        #expect(game.progress[.level] == number + 20 && game.wallet[.gems].total == number + 30, "\(account)")
        #expect(game.preferences[.volume] == Double(number), "\(account)")
        try game.records.migrate(Self.tables)
        #expect(try game.records.read { try Int.fetchOne($0, sql: "SELECT id FROM seen") } == number, "\(account)")
        try game.close()
      }
    }
  }

  @Test("two accounts can be open at once without sharing data or a cloud; one account can't be opened twice")
  func atOnce() async throws {
    let clouds = [MemoryCloud(), MemoryCloud(id: ContainerID(high: 8, low: 8))]
    let ada = try open(.named("ada"))
    let ben = try open(.named("ben"))
    defer {
      end(ada)
      end(ben)
    }
    #expect(storeErrorCode { _ = try open(.named("ada")) } == .inUse)
    for (game, cloud) in zip([ada, ben], clouds) { game.cloud.connect(cloud.address) }
    try ada.progress.record(6, for: .level)
    try await ada.saves.save(World(level: 6), to: .main)
    try ben.wallet.earn(5, .gems, for: "a quest")
    for game in [ada, ben] { try await game.cloud.sync() }
    #expect(try ben.saves.load(.main) == nil && ben.progress[.level] == 1 && ada.wallet[.gems].total == 0)
    // Syncing with the other account's cloud is refused.
    ada.cloud.connect(clouds[1].address)
    await #expect(throws: GameDataError.self) { try await ada.cloud.sync() }
    guard case .refused = ada.cloud.status.phase else {
      Issue.record("\(ada.cloud.status.phase)")
      return
    }
    try await ben.cloud.sync()
    #expect(try ben.saves.load(.main) == nil)
  }

  @Test("data from before a game had accounts belongs to the guest, and accounts aren't listed as profiles")
  func guest() throws {
    let before = try GameData.open("com.example.space", at: folder.url.appendingPathComponent("default"))
    try before.saves.capture(World(level: 4), to: .main).wait()
    #expect(before.account == nil)
    try before.close()
    try open(.named("ada")).close()
    let guest = try open(.guest)
    #expect(try guest.saves.load(.main)?.level == 4)
    try guest.close()
    #expect(try GameData.profiles(in: folder.url) == ["default"])
  }

  @Test("the list shows the contents of each account, open or not, and which of them aren't in a cloud yet")
  func lists() async throws {
    #expect(try accounts() == [])
    clock.advance(by: .seconds(60))
    let ben = try open(.named("ben"))
    defer { end(ben) }
    try ben.saves.capture(World(level: 2), to: .main).wait()
    try ben.saves.capture(World(level: 3), to: Slot("cave")).wait()
    try ben.saves.delete(Slot<World>("cave"))
    try ben.wallet.earn(7, .gems, for: "a quest")
    try ben.progress.record(2, for: .level).wait()
    ben.preferences[.volume] = 0.3
    try await ben.preferences.flush()
    try open(.guest).close()
    let all = try accounts()
    #expect(all.map(\.account) == [.guest, .named("ben")])
    let held = try #require(all.last?.contents)
    #expect(held.saves == 1 && held.money == [.gems: 7] && !held.hasCloud)
    #expect(held.lastSaved == Date(timeIntervalSince1970: Double(clock.now) / 1000))
    #expect(
      held.unsent.saves.contains("main") && held.unsent.values == ["progress/level"]
        && held.unsent.currencies == ["gems"])
    #expect(all.first?.contents?.unsent.isEmpty == true && all.first?.contents?.saves == 0)

    let cloud = MemoryCloud()
    ben.cloud.connect(cloud.address)
    try await ben.cloud.sync()
    let sent = try #require(try accounts().last?.contents)
    #expect(sent.unsent.isEmpty && sent.hasCloud && sent.money == [.gems: 7])
  }

  @Test("an unreadable account is listed without contents; a folder that doesn't match its account isn't listed")
  func unreadable() throws {
    let seal = Seal.sealed(Data(repeating: 7, count: 32))
    try open(.named("ada"), seal: seal).close()
    try open(.named("ben"), seal: seal).close()
    #expect(try accounts().map(\.contents) == [nil, nil])
    #expect(try accounts(seal: seal).map { $0.contents?.saves } == [0, 0])
    let ada = try #require(try accounts().first)
    try Data("nonsense".utf8).write(to: ada.url.appendingPathComponent(Store.databaseName))
    #expect(try accounts(seal: seal).map { $0.contents == nil } == [true, false])
    try Data(#"{"account": "ben", "format": 1}"#.utf8).write(to: ada.url.appendingPathComponent("account.json"))
    #expect(try accounts(seal: seal).map(\.account) == [.named("ben")])
  }

  @Test("a name of 1 to 1,024 bytes is valid, stays inside the folder, and is compared in normalized form")
  func names() throws {
    for name in ["../../default", "con", "a/b", "default", ".", "nul\u{0}", String(repeating: "x", count: 1024), "用户"] {
      let game = try open(.named(name))
      #expect(game.url.deletingLastPathComponent().lastPathComponent == ".accounts", "\(name)")
      try game.close()
    }
    #expect(try accounts().count == 8)
    #expect(gameErrorCode { _ = try open(.named("")) } == .misuse)
    #expect(gameErrorCode { _ = try open(.named(String(repeating: "x", count: 1025))) } == .misuse)
    let composed = try open(.named("Zo\u{eb}"))
    defer { end(composed) }
    #expect(storeErrorCode { _ = try open(.named("Zoe\u{308}")) } == .inUse)
  }

  @Test("an account is forgotten only if a cloud has all of it or the caller accepts the loss; others remain")
  func forgets() async throws {
    let cloud = MemoryCloud()
    for name in ["ada", "ben"] {
      let game = try open(.named(name))
      try game.saves.capture(World(level: 6), to: .main).wait()
      try game.close()
    }
    func forget(_ name: String, losing: Bool = false) throws {
      try GameData.forget(.named(name), of: "com.example.space", in: folder.url, losing: losing)
    }
    var unsent = UnsentData()
    unsent.saves = ["main"]
    #expect(gameErrorCode { try forget("ada") } == .wouldBeLost(unsent))
    let ada = try open(.named("ada"))
    #expect(storeErrorCode { try forget("ada", losing: true) } == .inUse)
    ada.cloud.connect(cloud.address)
    try await ada.cloud.sync()
    try ada.close()
    try forget("ada")
    #expect(storeErrorCode { try forget("ada") } == .missing)
    #expect(try accounts().map(\.account) == [.named("ben")])
    try forget("ben", losing: true)
    #expect(try accounts() == [])
    // The cloud still has the data.
    let again = try open(.named("ada"))
    defer { end(again) }
    again.cloud.connect(cloud.address)
    try await again.cloud.sync()
    #expect(try again.saves.load(.main)?.level == 6)
  }
}
