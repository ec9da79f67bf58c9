import Foundation
import GRDB
import KeepsakeReplication
import KeepsakeTesting
import TestSupport
import Testing

@testable import Keepsake
@testable import KeepsakeStore

/// A game that seals its data: its players notice nothing, and cheaters gain nothing.
@Suite struct SealTests {
  static let secret = Data((0..<32).map { UInt8(90 - $0) })
  let device: Device

  init() throws { device = try Device() }

  private func open(_ seal: Seal, profile: String = "default") throws -> GameData {
    try GameData.open(
      "com.example.space", profile: profile, at: device.url, seal: seal, environment: device.clock.environment)
  }

  /// Changes the JSON of a signed row, and corrects the checksum, as an editor could. The identity of a version's row,
  /// which the checksum covers, is taken from the row.
  private func edit(_ table: String, where condition: String, place named: String? = nil, _ change: (String) -> String)
    throws
  {
    let queue = try DatabaseQueue(path: device.url.appendingPathComponent(Store.databaseName).path)
    defer { try? queue.close() }
    try queue.write { database in
      let columns = table == "version" ? VersionRow.columns : "body"
      let row = try #require(try Row.fetchOne(database, sql: "SELECT \(columns) FROM \(table) WHERE \(condition)"))
      let body: Data = try row.checked("body")
      let place = try named ?? VersionRow(row, at: 0).place
      let head = RowCodec.checksumLength + StoreSeal.headBytes + 32
      let json = String(decoding: body.dropFirst(head), as: UTF8.self)
      let changed = change(json)
      #expect(changed != json)
      let payload = body.dropFirst(RowCodec.checksumLength).prefix(StoreSeal.headBytes + 32) + Data(changed.utf8)
      try database.execute(
        sql: "UPDATE \(table) SET body = ? WHERE \(condition)",
        arguments: [RowCodec.checksum(of: payload, place: place) + payload])
    }
  }

  /// Saves two versions, a level and five gems.
  private func play(_ seal: Seal) throws -> [Version] {
    let game = try open(seal)
    defer { end(game) }
    try game.saves.capture(World(level: 5), to: .main).wait()
    try game.saves.capture(World(level: 6), to: .main).wait()
    try game.progress.record(6, for: .level).wait()
    try game.wallet.earn(5, .gems, for: "level 6")
    return try game.saves.history(of: .main)
  }

  @Test(
    "sealed saves, progress and money can be read only with the same seal and profile",
    arguments: [Seal.signed(secret), .sealed(secret, player: "ada")])
  func wholeLife(seal: Seal) throws {
    _ = try play(seal)
    #expect(storeErrorCode { _ = try open(.none) } == .otherSeal)
    #expect(storeErrorCode { _ = try open(seal, profile: "guest") } == .wrongSecret)
    #expect(storeErrorCode { _ = try open(.signed("too short".utf8)) } == .misuse)
    let game = try open(seal)
    defer { end(game) }
    #expect(try game.saves.load(.main) == World(level: 6))
    #expect(game.progress[.level] == 6)
    #expect(game.wallet[.gems].total == 5)
    #expect(game.incidents.isEmpty)
    try game.reseal()
  }

  @Test("a balance that was edited from 5 gems to 5,000 is restored, and an incident reports it")
  func forgedMoney() throws {
    _ = try play(.signed(Self.secret))
    try edit("fact", where: "name = 'wallet'", place: "fact wallet") {
      $0.replacingOccurrences(of: "\"earned\":5", with: "\"earned\":5000")
    }
    #expect(storeErrorCode { _ = try open(.signed(Self.secret, policy: .reject)) } == .tampered)
    var game = try open(.signed(Self.secret, policy: .flag))
    #expect(game.incidents.map(\.kind) == [.tampered])
    try game.close()
    game = try open(.signed(Self.secret))
    defer { end(game) }
    #expect(game.wallet[.gems] == Balance(total: 5, spendable: 5, pending: 0))
    #expect(game.incidents.map(\.kind) == [.tampered])
    #expect(game.incidents.first?.message.contains("wallet") == true)
    #expect(game.takeChanges().contains { if case .incident = $0 { true } else { false } })
    // Everything else is unchanged.
    #expect(try game.saves.load(.main) == World(level: 6))
    #expect(game.progress[.level] == 6)
    try game.wallet.spend(1, .gems, for: "a sweet")
    #expect(game.wallet[.gems].total == 4)
    #expect(try game.wallet.ledger().map(\.reason) == ["a sweet", "level 6"])
  }

  @Test(
    "a nonsensical wallet row doesn't keep the game from opening, even if unverified rows are used",
    arguments: [Seal.Policy.quarantine, .flag])
  func nonsense(policy: Seal.Policy) throws {
    _ = try play(.signed(Self.secret))
    try edit("fact", where: "name = 'wallet'", place: "fact wallet") {
      $0.replacingOccurrences(of: "\"earned\":5", with: "\"earned\":-5")
    }
    let game = try open(.signed(Self.secret, policy: policy))
    defer { end(game) }
    #expect(game.incidents.map(\.kind) == [.tampered])
    #expect(game.wallet[.gems] == Balance(total: 5, spendable: 5, pending: 0))
    try game.wallet.spend(5, .gems, for: "sword")
  }

  @Test("a wallet operation that was edited from 5 gems to 5,000 is set aside, and the 5 gems remain")
  func forgedOperation() throws {
    _ = try play(.signed(Self.secret))
    let page = "wallet page 000000000000"
    try edit("fact", where: "name = '\(page)'", place: "fact \(page)") {
      $0.replacingOccurrences(of: "\"amount\":5", with: "\"amount\":5000")
    }
    #expect(storeErrorCode { _ = try open(.signed(Self.secret, policy: .reject)) } == .tampered)
    let game = try open(.signed(Self.secret))
    defer { end(game) }
    #expect(game.incidents.map(\.kind) == [.tampered])
    #expect(game.wallet[.gems] == Balance(total: 5, spendable: 5, pending: 0))
    try game.wallet.spend(5, .gems, for: "sword")
    #expect(try game.wallet.ledger().map(\.reason) == ["sword", "recovered"])
  }

  @Test("instead of an edited save, the newest unedited one is loaded, and the incident names both")
  func forgedSave() throws {
    let versions = try play(.signed(Self.secret))
    try edit("version", where: "id = (SELECT id FROM version ORDER BY position DESC)") {
      $0.replacingOccurrences(of: "\"savedAtMilliseconds\":1", with: "\"savedAtMilliseconds\":2")
    }
    let game = try open(.signed(Self.secret))
    defer { end(game) }
    #expect(try game.saves.load(.main) == World(level: 5))
    let incident = try #require(game.incidents.first)
    #expect(incident.kind == .tampered && incident.slot == "main")
    #expect(incident.version == versions[0].id && incident.usedInstead == versions[1].id)
    try game.saves.capture(World(level: 7), to: .main).wait()
    #expect(try game.saves.load(.main) == World(level: 7))
    #expect(try game.saves.conflict(.main) == nil)
  }

  @Test("instead of an encrypted save with altered bytes, the one before is loaded, as for any damaged save")
  func changedBytes() throws {
    let versions = try play(.sealed(Self.secret))
    let queue = try DatabaseQueue(path: device.url.appendingPathComponent(Store.databaseName).path)
    try queue.write { database in
      let frame = try #require(try Data.fetchOne(database, sql: "SELECT bytes FROM content ORDER BY position DESC"))
      var changed = frame
      changed[frame.count - 1] ^= 1
      try database.execute(sql: "UPDATE content SET bytes = ? WHERE bytes = ?", arguments: [changed, frame])
    }
    try queue.close()
    let game = try open(.sealed(Self.secret))
    defer { end(game) }
    #expect(try game.saves.load(.main) == World(level: 5))
    #expect(game.incidents.map(\.kind) == [.damagedVersion])
    #expect(game.incidents.first?.version == versions[0].id && game.incidents.first?.usedInstead == versions[1].id)
  }

  @Test("forged progress and saves are restored from the cloud, and the forgeries are never sent")
  func healsFromCloud() async throws {
    let cloud = MemoryCloud()
    let seal = Seal.signed(Self.secret)
    let tablet = try Device(clock: device.clock)
    // The other device doesn't seal: what is synced is neither signed nor encrypted.
    let there = try tablet.open()
    defer { end(there) }
    var here = try open(seal)
    here.cloud.connect(cloud.address)
    try await here.saves.save(World(level: 5), to: .main)
    try await here.saves.save(World(level: 6), to: .main)
    try await here.progress.record(6, for: .level).value
    try await here.cloud.sync()
    try here.close()

    try edit("cell", where: "key = 'level'", place: "cell progress/level") {
      $0.replacingOccurrences(of: "6", with: "99")
    }
    try edit("version", where: "id = (SELECT id FROM version ORDER BY position DESC)") {
      $0.replacingOccurrences(of: "\"savedAtMilliseconds\":1", with: "\"savedAtMilliseconds\":2")
    }
    here = try open(seal)
    defer { end(here) }
    #expect(here.progress[.level] == 1)
    #expect(try here.saves.load(.main) == World(level: 5))
    here.cloud.connect(cloud.address)
    try await here.cloud.sync()
    #expect(here.progress[.level] == 6)
    #expect(try here.saves.load(.main) == World(level: 6))
    there.cloud.connect(cloud.address)
    try await there.cloud.sync()
    try await until { there.progress[.level] == 6 }
    #expect(try there.saves.load(.main) == World(level: 6))
    #expect(here.incidents.map(\.kind) == [.tampered, .tampered])
  }

  @Test("printing a seal shows neither its secrets nor its player")
  func printsNoSecret() {
    let seal = Seal.sealed("correct horse battery".utf8, previous: [Data("staple staple staple".utf8)], player: "ada")
    var dumped = ""
    dump(seal, to: &dumped)
    for text in ["\(seal)", String(reflecting: seal), dumped, "\([seal])"] {
      #expect(text.contains("sealed"))
      for secret in ["horse", "staple", "ada", "secrets", "104"] { #expect(!text.contains(secret), "\(text)") }
    }
  }
}
