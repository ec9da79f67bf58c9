import Foundation
import GRDB
import KeepsakeReplication
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake
@testable import KeepsakeStore

/// Someone who knows the format writes nonsense into the wallet's row of a store without a seal. The player has to be
/// able to play all the same, and to have what was earned.
@Suite struct ForgedWalletTests {
  let device: Device

  init() throws { device = try Device() }

  struct Nonsense: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var pattern: String
    var replacement: String
  }

  static let nonsense = [
    Nonsense(testDescription: "no JSON", pattern: "^.*$", replacement: "nonsense"),
    Nonsense(testDescription: "an empty object", pattern: "^.*$", replacement: "{}"),
    Nonsense(testDescription: "a list", pattern: "^.*$", replacement: "[1, 2]"),
    Nonsense(testDescription: "less than nothing was earned", pattern: #""earned":\d+"#, replacement: #""earned":-7"#),
    Nonsense(
      testDescription: "more was spent than there can be", pattern: #""spent":\d+"#,
      replacement: #""spent":9223372036854775807"#),
    Nonsense(
      testDescription: "a balance below zero", pattern: #""balances":\{\}"#,
      replacement: #""balances":{"gems":-9223372036854775808}"#),
    Nonsense(
      testDescription: "a currency without a name", pattern: #""balances":\{\}"#, replacement: #""balances":{"":5}"#),
    Nonsense(
      testDescription: "rights below zero are needed", pattern: #""balances":\{\}"#,
      replacement: #""balances":{},"needs":{"gems":-1}"#),
    Nonsense(
      testDescription: "a statement without end", pattern: #""statement":\d+"#,
      replacement: #""statement":18446744073709551615"#),
    Nonsense(
      testDescription: "more was acknowledged than was done", pattern: #""acknowledged":\{"count":0"#,
      replacement: #""acknowledged":{"count":99"#),
    Nonsense(
      testDescription: "a chain without end", pattern: #""head":\{"count":\d+"#,
      replacement: #""head":{"count":18446744073709551615"#),
    Nonsense(
      testDescription: "operations that were never made", pattern: #""operations":\[\{[^}]*\}\]"#,
      replacement: #""operations":[{"count":99,"first":3}]"#),
    Nonsense(
      testDescription: "numbers without end", pattern: #""next":\d+"#, replacement: #""next":9223372036854775807"#),
  ]

  /// Changes a row and corrects its checksum, as an editor could.
  private func forge(_ name: String, _ replacement: String, inPlaceOf pattern: String = "^.*$") throws {
    try edit { database in
      let body = try #require(
        try Data.fetchOne(database, sql: "SELECT body FROM fact WHERE name = ?", arguments: [name]))
      let json = String(decoding: body.dropFirst(RowCodec.checksumLength), as: UTF8.self)
      let forged = json.replacingOccurrences(of: pattern, with: replacement, options: .regularExpression)
      try #require(forged != json, "\(json)")
      let payload = Data(forged.utf8)
      try database.execute(
        sql: "UPDATE fact SET body = ? WHERE name = ?",
        arguments: [RowCodec.checksum(of: payload, place: RowIdentity.fact(name)) + payload, name])
    }
  }

  private func edit(_ body: (Database) throws -> Void) throws {
    let queue = try DatabaseQueue(path: device.url.appendingPathComponent(Store.databaseName).path)
    try queue.write(body)
    try queue.close()
  }

  private func removeBackups() throws {
    for backup in StoreFiles(folder: device.url).presentBackups { try FileManager.default.removeItem(at: backup) }
  }

  private func chain(_ game: GameData) throws -> ChainID? { try game.core.store.read { try $0.wallet()?.chain } }

  /// Stores a save, progress, and 40 operations that leave 57 gems, in two runs of the game.
  private func play() throws -> (ChainID?, [LedgerEntry]) {
    var game = try device.open()
    try game.saves.capture(World(level: 6), to: .main).wait()
    try game.progress.record(6, for: .level).wait()
    for level in 1...30 { try game.wallet.earn(3, .gems, for: "level \(level)") }
    try game.close()
    game = try device.open()
    defer { end(game) }
    for level in 31...37 { try game.wallet.earn(1, .gems, for: "level \(level)") }
    try game.wallet.spend(20, .gems, for: "sword", goods: [Goods("sword")])
    try game.wallet.spend(20, .gems, for: "shield")
    try game.wallet.claim(100, .gems, key: "daily", for: "gift")
    return (try chain(game), try game.wallet.ledger())
  }

  /// Checks that everything is there, and that the wallet works.
  private func check(_ game: GameData, _ ledger: [LedgerEntry]) throws {
    #expect(try game.saves.load(.main) == World(level: 6))
    #expect(game.progress[.level] == 6)
    #expect(game.wallet[.gems] == Balance(total: 57, spendable: 57, pending: 100))
    #expect(try game.wallet.ledger() == ledger)
    #expect(
      gameErrorCode { try game.wallet.spend(58, .gems, for: "castle") } == .insufficient(57, of: 57))
    // Repeated operations count once, and so do repeated claims.
    try game.wallet.earn(3, .gems, for: "level 1", id: try #require(ledger.last?.id))
    try game.wallet.claim(100, .gems, key: "daily", for: "gift")
    #expect(game.wallet[.gems] == Balance(total: 57, spendable: 57, pending: 100))
  }

  @Test(
    "the game opens with nonsense in the wallet's row, and recovers the money from the backup or the operations",
    arguments: zip(nonsense, nonsense.indices.map { $0 % 2 == 0 }))
  func recovers(nonsense: Nonsense, hasBackup: Bool) throws {
    let (before, ledger) = try play()
    if !hasBackup { try removeBackups() }
    try forge(WalletBook.name, nonsense.replacement, inPlaceOf: nonsense.pattern)
    var game = try device.open()
    #expect(game.incidents.map(\.kind) == [.recovered])
    #expect(game.incidents.first?.message.contains("wallet") == true, "\(game.incidents)")
    try check(game, ledger)
    #expect(try (chain(game) == before) == hasBackup)
    // The forged row is set aside.
    let damaged = try FileManager.default.subpathsOfDirectory(atPath: device.url.appendingPathComponent("damaged").path)
    let kept = try #require(damaged.first { $0.hasSuffix(Store.databaseName) })
    let aside = try DatabaseQueue(path: device.url.appendingPathComponent("damaged").appendingPathComponent(kept).path)
    let body = try aside.read { try Data.fetchOne($0, sql: "SELECT body FROM fact WHERE name = 'wallet'") }
    #expect(body.map { RowCodec.checksum(of: $0.dropFirst(8), place: "fact wallet") == $0.prefix(8) } == true)
    try aside.close()
    try game.wallet.spend(7, .gems, for: "potion")
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(game.incidents.isEmpty && game.wallet[.gems].total == 50)
    #expect(try game.wallet.ledger().map(\.reason) == ["potion"] + ledger.map(\.reason))
  }

  @Test("a wallet row that was deleted is rebuilt from the operations, and an incident reports it")
  func takenOut() throws {
    let (_, ledger) = try play()
    try edit { try $0.execute(sql: "DELETE FROM fact WHERE name = 'wallet'") }
    let game = try device.open()
    defer { end(game) }
    #expect(game.incidents.map(\.kind) == [.rebuilt])
    #expect(game.incidents.first?.message.contains("wallet") == true)
    try check(game, ledger)
  }

  @Test("nonsense in a page of operations costs no money, and the ledger keeps all other operations, once")
  func nonsensePage() throws {
    let (_, ledger) = try play()
    try forge(WalletPage.name(of: 0), "{}")
    let game = try device.open()
    defer { end(game) }
    #expect(game.incidents.map(\.kind) == [.rebuilt])
    #expect(game.wallet[.gems] == Balance(total: 57, spendable: 57, pending: 100))
    // Operations 1 to 32 are replaced by a single one; the others are unchanged.
    let entries = try game.wallet.ledger()
    #expect(entries.map(\.reason) == ["recovered"] + ledger.prefix(8).map(\.reason))
    #expect(entries.first?.amount == 92)
  }

  @Test("if no operation is left, the game still opens with a new wallet, and the incident says so")
  func nothingLeft() throws {
    _ = try play()
    try removeBackups()
    try edit { try $0.execute(sql: "DELETE FROM fact WHERE name LIKE 'wallet page%'") }
    try forge(WalletBook.name, "{}")
    let game = try device.open()
    defer { end(game) }
    #expect(try game.saves.load(.main) == World(level: 6))
    #expect(game.incidents.first?.message.contains("a new one was started") == true, "\(game.incidents)")
    #expect(game.wallet[.gems] == Balance(total: 0, spendable: 0, pending: 0))
    try game.wallet.earn(1, .gems, for: "a new start")
    #expect(game.wallet[.gems].spendable == 1)
  }

  @Test("a wallet row forged during play throws with advice, all else works, and a restart recovers the money")
  func whileRunning() throws {
    let (before, ledger) = try play()
    var game = try device.open()
    #expect(game.wallet[.gems].total == 57)
    try forge(WalletBook.name, "{}")
    #expect {
      try game.wallet.earn(1, .gems, for: "level 38")
    } throws: { error in
      (error as? StoreError)?.code == .damaged && "\(error)".contains("close and reopen the store")
    }
    #expect(storeErrorCode { _ = try game.wallet.balance(of: .gems) } == .damaged)
    #expect(storeErrorCode { _ = try game.wallet.ledger() } == .damaged)
    #expect(game.wallet[.gems].total == 0 && game.incidents.map(\.kind) == [.unreadable])
    try game.saves.capture(World(level: 7), to: .main).wait()
    try game.saves.capture(World(level: 6), to: .main).wait()
    try game.close()
    game = try device.open()
    defer { end(game) }
    #expect(game.incidents.map(\.kind) == [.recovered])
    try check(game, ledger)
    // No backup was made of the nonsense.
    #expect(try chain(game) == before)
  }

  @Test("with a cloud, a forged wallet is recovered from the bank and the unsent operations, and all can be spent")
  func cloud() async throws {
    let cloud = MemoryCloud()
    var game = try device.open()
    game.cloud.connect(cloud.address)
    for level in 1...40 { try game.wallet.earn(3, .gems, for: "level \(level)") }
    try await game.cloud.sync()
    cloud.isCut = true
    try game.wallet.earn(7, .gems, for: "offline")
    try game.wallet.spend(20, .gems, for: "sword")
    #expect(game.wallet[.gems].total == 107)
    try game.close()
    try removeBackups()
    try forge(WalletBook.name, "{}")
    game = try device.open()
    defer { end(game) }
    #expect(game.incidents.map(\.kind) == [.recovered])
    #expect(game.incidents.first?.message.contains("connect") == true, "\(game.incidents)")
    // Until the bank responds, it is unknown how much can be spent on this device.
    #expect(
      gameErrorCode { try game.wallet.spend(1, .gems, for: "sweet") } == .insufficient(0, of: 107))
    cloud.isCut = false
    game.cloud.connect(cloud.address)
    try await game.cloud.sync()
    try await until { game.wallet[.gems] == Balance(total: 107, spendable: 107, pending: 0) }
    try game.wallet.spend(107, .gems, for: "castle")
    try await game.cloud.sync()
    let tablet = try Device(clock: device.clock)
    let other = try tablet.open()
    defer { end(other) }
    other.cloud.connect(cloud.address)
    try await other.cloud.sync()
    try await until { try other.wallet.currencies() == [.gems] }
    #expect(other.wallet[.gems].total == 0)
  }
}
