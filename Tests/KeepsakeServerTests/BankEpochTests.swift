#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import Logging
import TestSupport
import Testing

// GRDB has a type of this name, too.
import struct KeepsakeReplication.Cursor

@testable import KeepsakeServer

/// Epochs of all banks of a cloud, and the banks that wait since one began.
@Suite("Epochs of a cloud's banks, in SQLite") struct BankEpochTests {
  private static let now: Int64 = 1_800_000_000_000
  private static let epoch = UInt64(now / 1_000)
  private static let chain = ChainID(high: 5, low: 6)
  private static let player = ContainerID(high: 3, low: 4)
  private static let key = Data(repeating: 7, count: 32)

  private static func rules(_ epoch: UInt64 = 0, of container: ContainerID = player) -> BankRules {
    BankRules(seal: BankSeal(bank: container, keys: [key]), epoch: epoch)
  }

  private func with(_ body: (SQLiteCloudStorage, URL) async throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      var logger = Logger(label: "keepsake.test")
      logger.logLevel = .critical
      let storage = try SQLiteCloudStorage(
        database: folder.appendingPathComponent("cloud.sqlite"), contents: contents, clock: { Self.now },
        logger: logger)
      try await body(storage, folder)
      try await storage.close()
    }
  }

  /// An offer that shows a statement.
  private static func offer(epoch: UInt64 = 0, number: UInt64, bank: ContainerID = player) -> WalletOffer {
    let statement = WalletStatement(
      epoch: epoch, number: number, head: ChainHead(emptyChain: chain), totals: [:])
    let seal = BankSeal(bank: bank, keys: [key])
    return WalletOffer(
      chain: chain, base: ChainHead(emptyChain: chain), statement: number, epoch: epoch, proving: 0,
      proof: seal.signed(statement, on: chain))
  }

  /// Gives banks an open chain, whose newest statement is the fifth.
  private static func begin(_ containers: [ContainerID], in storage: SQLiteCloudStorage, _ folder: URL) async throws {
    let files = ContentFiles(folder: folder.appendingPathComponent("contents"))
    try await storage.pool.write { db in
      for id in containers {
        var bank = BankState()
        var open = BankState.Chain(head: ChainHead(emptyChain: chain), follows: nil)
        open.statement = 5
        open.device = DeviceID(high: 1, low: id.low)
        bank.chains[chain] = open
        let container = try SQLiteContainer(id, in: db, files: files, now: now)
        try container.run(
          "INSERT INTO container (id, epoch, seq, mark, bank) VALUES (?, 0, 0, 0, ?)",
          [container.id, try container.encode(bank)])
      }
    }
  }

  @Test("only a statement of the bank itself that is later than the bank begins a new epoch of all banks")
  func shown() async throws {
    try await with { storage, folder in
      try await Self.begin([Self.player], in: storage, folder)
      var forged = Self.offer(number: 9)
      forged.proof?.number = 10
      let other = ContainerID(high: 3, low: 5)
      var unasked = Self.offer(number: 9)
      unasked.proving = nil
      for offer in [Self.offer(number: 5), forged, Self.offer(number: 9, bank: other), unasked] {
        try await storage.noticeRestore(by: offer, of: Self.player, rules: Self.rules())
        #expect(storage.bankEpoch == 0)
      }
      try await storage.noticeRestore(by: Self.offer(number: 6), of: Self.player, rules: Self.rules())
      #expect(storage.bankEpoch == Self.epoch)
      // A request that came at the same time has the rules of before.
      try await storage.noticeRestore(by: Self.offer(number: 7), of: Self.player, rules: Self.rules())
      #expect(storage.bankEpoch == Self.epoch)
      // By the new rules, the statement is one of an earlier epoch.
      let rules = Self.rules(storage.bankEpoch)
      try await storage.noticeRestore(by: Self.offer(number: 7), of: Self.player, rules: rules)
      #expect(storage.bankEpoch == Self.epoch)
    }
  }

  @Test("a statement of an epoch beyond the clock changes the epoch of no other bank")
  func beyondClock() async throws {
    try await with { storage, folder in
      try await Self.begin([Self.player], in: storage, folder)
      for epoch in [Self.epoch, Self.epoch + 1, Cursor.maximumSeq] {
        try await storage.noticeRestore(
          by: Self.offer(epoch: epoch, number: 1), of: Self.player, rules: Self.rules())
        #expect(storage.bankEpoch == 0)
      }
    }
  }

  @Test("a device of a deleted player can't begin a new epoch: nothing is left to compare its statement with")
  func deleted() async throws {
    try await with { storage, folder in
      try await Self.begin([Self.player], in: storage, folder)
      try await storage.delete(Self.player, now: 5)
      let error = await #expect(throws: APIError.self) {
        try await storage.noticeRestore(by: Self.offer(number: 9), of: Self.player, rules: Self.rules())
      }
      #expect(error?.code == .retired)
      #expect(storage.bankEpoch == 0)
    }
  }

  @Test("an order, and the removal of a device, freeze a bank that nobody has told of the epoch")
  func orders() async throws {
    try await with { storage, folder in
      let other = ContainerID(high: 3, low: 5)
      try await Self.begin([Self.player, other], in: storage, folder)
      let order = BankOrder(
        id: OperationID(high: 1, low: 1), kind: .grant, currency: "gems", amount: 5, reason: "support")
      let isFrozen = try await storage.decide(on: Self.player) { container in
        var random = SystemRandomNumberGenerator()
        _ = try CloudAcceptance.perform(order, now: Self.now, rules: Self.rules(7), in: &container, using: &random)
        return try container.bank().isFrozen
      }
      #expect(isFrozen == true)
      let isFrozenAfterRemoval = try await storage.decide(on: other) { container in
        var random = SystemRandomNumberGenerator()
        _ = try CloudAcceptance.retire(
          [ChainID(high: 9, low: 9)], now: Self.now, rules: Self.rules(7, of: other), in: &container, using: &random)
        return try container.bank().isFrozen
      }
      #expect(isFrozenAfterRemoval == true)
    }
  }

  @Test("the status counts banks that nobody has told of the epoch, lists a hundred, and skips one that can't be read")
  func status() async throws {
    try await with { storage, folder in
      let count = 2 * BankPage.size + 50
      let containers = (1...count).map { ContainerID(high: 3, low: UInt64($0)) }
      try await Self.begin(containers, in: storage, folder)
      try await storage.decide(on: ContainerID(high: 4, low: 1)) { container in
        var bank = BankState()
        bank.pool = ["gems": 5]
        container.setBank(bank)
      }
      try await storage.pool.write { db in
        try db.execute(
          sql: "UPDATE container SET bank = x'00' WHERE id = ?", arguments: [ContainerID(high: 3, low: 7).bytes])
      }
      #expect(try BankStatus(data: folder).frozen == 0)
      try await storage.pool.write { _ = try CloudNumber.beginEpoch(in: $0, now: Self.now) }
      let status = try BankStatus(data: folder)
      #expect(status.epoch == Self.epoch && status.frozen == count - 1 && status.unreadable == 1)
      #expect(status.players.count == BankStatus.maximumPlayers)
      #expect(status.players.first?.devices.map(\.device) == [DeviceID(high: 1, low: 1)])

      var (released, unreadable) = (0, 0)
      var place: ContainerID?
      repeat {
        let page = try await storage.releaseBanks(after: place, rules: BankRules(epoch: Self.epoch))
        (released, unreadable) = (released + page.seqs.count, unreadable + page.unreadable)
        place = page.next
      } while place != nil
      #expect(released == count - 1 && unreadable == 1)
      #expect(try BankStatus(data: folder).frozen == 0)
      let again = try await storage.releaseBanks(after: nil, rules: BankRules(epoch: Self.epoch))
      #expect(again.seqs.isEmpty)
    }
  }

  @Test("the status sums the shortfalls of this epoch, and no other orders")
  func shortfalls() async throws {
    try await with { storage, folder in
      try await storage.decide(on: Self.player) { container in
        var state = BankState()
        for (epoch, missing) in [(6, 10), (7, 25)] as [(UInt64, Int64)] {
          state.chains[Self.chain] = BankState.Chain(head: ChainHead(emptyChain: Self.chain), follows: nil)
          var bank = Bank(state, now: Self.now, rules: Self.rules(epoch))
          bank.setBack(to: epoch)
          bank.state.missing = ["gems": missing]
          try bank.release(in: &container)
          let grant = BankOrder(
            id: OperationID(high: 1, low: epoch), kind: .grant, currency: "gems", amount: 1_000, reason: "shortfall")
          _ = try bank.perform(grant, in: &container)
          state = bank.state
        }
        container.setBank(state)
      }
      #expect(try BankStatus(data: folder).shortfalls == ["gems": 25])
    }
  }

  @Test("the status of one player, and of none")
  func player() async throws {
    try await with { storage, folder in
      let player = PlayerID(high: 8, low: 8)
      try await storage.recordDevice(
        DeviceRecord(
          identity: DeviceIdentity(
            device: DeviceID(high: 1, low: 4), player: player, container: Self.player, app: AppID(ofKey: "app")),
          name: "phone", createdMilliseconds: 1, seenMilliseconds: Self.now))
      #expect(try BankStatus(data: folder, player: player).frozen == 0)
      try await Self.begin([Self.player, ContainerID(high: 3, low: 9)], in: storage, folder)
      try await storage.pool.write { _ = try CloudNumber.beginEpoch(in: $0, now: Self.now) }
      let status = try BankStatus(data: folder, player: player)
      #expect(status.frozen == 1 && status.players.map(\.player) == [player])
      #expect(status.players.first?.devices.map(\.name) == ["phone"])
      #expect(status.players.first?.devices.map(\.seenMilliseconds) == [Self.now])
      #expect(throws: ServerError.self) { try BankStatus(data: folder, player: PlayerID(high: 8, low: 9)) }
    }
  }

  @Test("a database of another version is refused, and not changed")
  func versions() async throws {
    try await with { storage, folder in
      try await storage.pool.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('9 from the future')") }
      let newer = #expect(throws: ServerError.self) { try BankStatus(data: folder) }
      #expect(newer?.code == .newerData)
      try await storage.pool.write { db in
        try db.execute(
          sql: "DELETE FROM grdb_migrations WHERE identifier IN ('9 from the future', ?)",
          arguments: [Schema.migrations[Schema.migrations.count - 1]])
      }
      let older = #expect(throws: ServerError.self) { try BankStatus(data: folder) }
      #expect(older?.code == .unusableFile)
    }
  }
}
#endif
