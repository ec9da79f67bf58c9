#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

@testable import KeepsakeServer

/// A real server, which `Scripts/with-postgres.sh` starts. Each test has containers of its own.
@Suite(
  "Decisions over rows in PostgreSQL", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct PostgreSQLDecisionTests {
  private let settings: PostgreSQLSettings

  init() throws {
    settings = TestDatabase.settings(try #require(TestDatabase.address))
  }

  static func newContainer() -> ContainerID {
    var random = SystemRandomNumberGenerator()
    return ContainerID(using: &random)
  }

  private func with(_ body: (PostgreSQLStorage) async throws -> Void) async throws {
    let storage = try await PostgreSQLStorage(settings, connections: 2, clock: { 5 })
    do {
      try await body(storage)
    } catch {
      try await storage.close()
      throw error
    }
    try await storage.close()
  }

  @Test("750 random exchanges get the same responses as in memory", arguments: [1, 2] as [UInt64])
  func same(seed: UInt64) async throws {
    try await with { storage in
      let player = Self.newContainer()
      for device in SameDecisionsTests.devices(of: player) { try await storage.recordDevice(device) }
      let memory = try await SameDecisionsTests.play(storage, player, seed: seed)
      var reads = ReadSet()
      reads.changes = ReadSet.Changes(after: 0, count: 9_999, bytes: .max)
      let stored = try await storage.load(reads, of: player)
      #expect(stored.changes?.list == memory.changes(after: 0, limit: 9_999) && stored.used == memory.usedBytes())
    }
  }

  @Test(
    "a device that catches up costs one load, whatever its contents build on and however many bytes they are",
    arguments: [(40, 1_000, 100_000), (100, 60_000, 0), (20, 1_000, 1_000)])
  func catchUp(slots: Int, size: Int, baseSize: Int) async throws {
    try await with { storage in
      let (player, device) = (Self.newContainer(), DeviceID(high: 1, low: 1))
      let counted = CountedLoads(storage)
      @Sendable func exchange(_ request: ExchangeRequest) async throws -> ExchangeResponse {
        let reads = try CloudAcceptance.reads(of: request, from: device, hasQuota: false)
        return try await counted.decide(on: player, reading: reads) { container in
          var random = SeededGenerator(seed: container.position().seq)
          return try CloudAcceptance.exchange(request, from: device, now: 5, in: &container, using: &random)
        }
      }
      var cursor = Cursor.start
      for slot in 0..<slots {
        var request = ExchangeRequest(cursor: cursor, limit: 500)
        var base: ContentHash?
        for (name, bytes) in [("base", baseSize), ("save", size)] where bytes > 0 {
          let content = EncodedContent(
            hash: ContentHash(of: Data("\(name) \(slot)".utf8)), length: 5, base: base,
            bytes: frameBytes(bytes, seed: UInt64(slot)))
          request.contents.append(content)
          base = content.hash
        }
        request.versions = [
          VersionRecord(
            id: VersionID(high: 1, low: UInt64(slot)), slot: "slot \(slot)", covers: [],
            contents: [ContentHash(of: Data("save \(slot)".utf8))], length: 5, savedAtMilliseconds: 5,
            writer: WriterID(1), provisional: false)
        ]
        let response = try await exchange(request)
        #expect(response.outcome != nil)
        cursor = response.cursor
      }
      counted.loads.value = 0
      let response = try await exchange(ExchangeRequest(cursor: .start, limit: 500))
      #expect(response.changes.count == slots && counted.loads.value == 1, "\(counted.loads.value) loads")
      #expect(!response.contents.isEmpty)
    }
  }

  @Test("a content counts who holds it and what leans on it, whether they come with it, alone or after it")
  func counts() async throws {
    try await with { storage in
      let (player, device) = (Self.newContainer(), DeviceID(high: 1, low: 1))
      var cursor = Cursor.start
      func save(_ number: UInt64, _ new: [(String, base: String?)], holding names: [String]) async throws {
        var request = ExchangeRequest(cursor: cursor, limit: 500)
        request.contents = new.map { name, base in
          EncodedContent(
            hash: ContentHash(of: Data(name.utf8)), length: 5, base: base.map { ContentHash(of: Data($0.utf8)) },
            bytes: frameBytes(100, seed: number))
        }
        request.versions = [
          VersionRecord(
            id: VersionID(high: 1, low: number), slot: "slot \(number)", covers: [],
            contents: names.map { ContentHash(of: Data($0.utf8)) }, length: 5, savedAtMilliseconds: 5,
            writer: WriterID(1), provisional: false)
        ]
        let (sent, reads) = (request, try CloudAcceptance.reads(of: request, from: device, hasQuota: false))
        let response = try await storage.decide(on: player, reading: reads) { container in
          var random = SeededGenerator(seed: number)
          return try CloudAcceptance.exchange(sent, from: device, now: 5, in: &container, using: &random)
        }
        #expect(response.outcome != nil)
        cursor = response.cursor
      }
      try await save(1, [("a", base: nil)], holding: ["a"])
      try await save(2, [("b", base: "a")], holding: ["b"])
      try await save(3, [("c", base: "a")], holding: ["c", "a"])
      try await save(4, [("d", base: "a"), ("e", base: "d"), ("f", base: "a")], holding: ["e", "f", "b"])
      let rows = try await storage.read(
        [
          PostgreSQLStatement(
            "SELECT hash, holders, leaning, leans FROM content WHERE container = $1", [.bytes(player.bytes)])
        ], of: player)[0]
      var found: [ContentHash: [Int64]] = [:]
      for row in rows { found[try row.hash(0)] = [try row.int(1), try row.int(2), try row.int(3)] }
      let expected = [
        "a": [2, 4, 0], "b": [2, 0, 1], "c": [1, 0, 1], "d": [0, 1, 1], "e": [1, 0, 1], "f": [1, 0, 1],
      ]
      for (name, counts) in expected {
        #expect(found[ContentHash(of: Data(name.utf8))] == counts.map { Int64($0) }, "\(name)")
      }
      #expect(found.count == expected.count)
    }
  }

  @Test("a device that is recorded by many requests at once is recorded, and none of them fails")
  func recorded() async throws {
    try await with { storage in
      let player = Self.newContainer()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<20 {
          for device in SameDecisionsTests.devices(of: player) {
            group.addTask { try await storage.recordDevice(device) }
          }
        }
        try await group.waitForAll()
      }
      var reads = ReadSet()
      reads.device = DeviceID(high: 1, low: 2)
      #expect(try await storage.load(reads, of: player).device?.seenMilliseconds == 5)
    }
  }

  // MARK: The bank

  private static let banks = (1...3 as ClosedRange<UInt64>).map { ContainerID(high: 8, low: $0) }

  /// Does one random thing to a bank, in whatever storage.
  private static func act(
    _ number: Int, _ container: inout some ContainerStorage, using random: inout SeededGenerator
  ) throws {
    let chain = ChainID(high: 4, low: random.next() % 6)
    let (key, bank) = ("claim \u{0}\(random.next() % 20)", banks[Int(random.next() % 3)])
    let id = OperationID(high: 6, low: random.next() % 60)
    switch random.next() % 9 {
    case 0:
      guard try !container.isClaimPaid(key) else { return }
      try container.markClaimPaid(
        key, random.next() % 4 == 0 ? nil : ClaimPayment(currency: "gems", amount: Int64(number)))
    case 1:
      // Only one that isn't final is ever replaced.
      guard try container.decision(on: id).map({ !$0.verdict.isFinal }) ?? true else { return }
      let operation = WalletOperation(
        id: id, kind: .earn, currency: "gems", amount: Int64(number), reason: "a round",
        goods: random.next() % 2 == 0 ? ["hat"] : [])
      let verdict = [WalletDecision.Verdict.accepted, .declined, .waiting][Int(random.next() % 3)]
      try container.recordDecision(verdict, on: operation, of: chain)
    case 2:
      var state = try container.bank()
      state.pool["gems", default: 0] += 1
      state.orderNumber = (state.orderNumber ?? 0) + 1
      try container.setBank(state)
      let order = BankOrder(
        id: OperationID(high: 7, low: UInt64(number)), kind: .grant, currency: "gems", amount: 5, reason: "sorry")
      try container.recordOrder(NumberedOrder(number: state.orderNumber ?? 0, order: order))
    case 3:
      var state = try container.bank()
      state.goodsNumber += 1
      try container.setBank(state)
      for good in 0..<(1 + random.next() % 3) {
        try container.addGood("good \(good)", Int64(random.next() % 5) - 1, number: state.goodsNumber)
      }
    case 4:
      guard try container.closedChain(chain) == nil else { return }
      try container.recordClosedChain(
        BankState.ClosedChain(
          head: ChainHead(count: random.next(), hash: ContentHash(of: Data([UInt8(chain.low)]))),
          follows: random.next() % 2 == 0 ? ChainID(high: 4, low: 99) : nil), chain)
    case 5:
      guard try container.closedChain(chain) != nil, try container.voucher(of: chain) == nil else { return }
      try container.recordVoucher(
        WalletVoucher(
          bank: bank, chain: chain, receiver: banks[0], amounts: ["gems": 5], claims: try container.payments(limit: 99),
          code: Data([0, 1])))
    case 6: try container.markVoucherPaid(chain, of: bank)
    case 7: try container.setVouchedClaim(key, by: bank, left: Int64(number))
    default:
      var state = try container.bank()
      state.chains[chain] = BankState.Chain(head: ChainHead(emptyChain: chain), follows: nil)
      try container.setBank(state)
    }
  }

  /// Everything that can be asked about a bank.
  private static func view(of container: some ContainerStorage) throws -> [String] {
    let chains = (0..<6 as Range<UInt64>).map { ChainID(high: 4, low: $0) }
    let keys = (0..<20).map { "claim \u{0}\($0)" }
    let ids = (0..<60 as Range<UInt64>).map { OperationID(high: 6, low: $0) }
    let state = try container.bank()
    return [
      "\(state.pool) \(state.goodsNumber) \(state.orderNumber ?? 0) \(state.chains.keys.sorted())",
      "\(try keys.map(container.isClaimPaid))", "\(sorted(try container.payments(limit: 99)))",
      "\(try ids.map(container.decision))",
      "\(try ids.map { try container.decision(on: $0) == nil ? nil : container.decidedOperation($0) })",
      "\(try container.orders(after: 2, limit: 5))", "\(try container.order(OperationID(high: 7, low: 9)) as Any)",
      "\(try container.goods(changedAfter: 0, limit: 2))", "\(try container.goods(changedAfter: 3, limit: 99))",
      "\(try chains.map(container.closedChain))", "\(try chains.map { try voucher(of: $0, in: container) })",
      "\(try chains.map { chain in try banks.map { try container.isVoucherPaid(chain, of: $0) } })",
      "\(try keys.map { key in try banks.map { try container.vouchedClaim(key, by: $0) } })",
    ]
  }

  // In memory, claims are in the order of their keys.
  private static func sorted(_ claims: [WalletVoucher.Claim]) -> [WalletVoucher.Claim] {
    claims.sorted { $0.key < $1.key }
  }

  private static func voucher(of chain: ChainID, in container: some ContainerStorage) throws -> WalletVoucher? {
    var voucher = try container.voucher(of: chain)
    voucher?.claims.sort { $0.key < $1.key }
    return voucher
  }

  @Test("claims are listed in the order in which they were paid, and a voucher keeps those of its time")
  func claims() async throws {
    try await with { storage in
      let (player, chain) = (Self.newContainer(), ChainID(high: 4, low: 1))
      for (number, key) in ["c", "a", "b", "a"].enumerated() {
        try await storage.decide(on: player) { container in
          try container.markClaimPaid(key, ClaimPayment(currency: "gems", amount: Int64(number)))
          guard number == 1 else { return }
          container.recordClosedChain(.init(head: ChainHead(emptyChain: chain), follows: nil), chain)
          let claims = ["c", "a"].enumerated().map {
            WalletVoucher.Claim(key: $1, currency: "gems", amount: Int64($0))
          }
          container.recordVoucher(
            WalletVoucher(
              bank: Self.banks[0], chain: chain, receiver: Self.banks[1], amounts: [:], claims: claims, code: Data()))
        }
      }
      let (payments, voucher) = try await storage.look(at: player) {
        (try $0.payments(limit: 2), try $0.voucher(of: chain))
      }
      #expect(payments.map(\.key) == ["c", "a"] && payments.map(\.amount) == [0, 1])
      #expect(voucher?.claims == payments)
      #expect(try await storage.look(at: player) { try $0.payments(limit: 9) }.map(\.key) == ["c", "a", "b"])
    }
  }

  @Test("a bank that 400 random things are done to is the same as in memory", arguments: [1, 2] as [UInt64])
  func sameBank(seed: UInt64) async throws {
    try await with { storage in
      let player = Self.newContainer()
      var memory = MemoryContainer(epoch: 0)
      var random = SeededGenerator(seed: seed)
      for number in 1...400 {
        let source = SeededGenerator(seed: random.next())
        var mine = source
        try Self.act(number, &memory, using: &mine)
        try await storage.decide(on: player) { container in
          var theirs = source
          try Self.act(number, &container, using: &theirs)
        }
        guard number % 20 == 0 else { continue }
        let stored = try await storage.look(at: player) { try Self.view(of: $0) }
        let expected = try Self.view(of: memory)
        for (found, wanted) in zip(stored, expected) { try #require(found == wanted, "seed \(seed), \(number)") }
      }
    }
  }

  // MARK: Conflicts

  @Test("of two decisions over the same revision one is committed, from the first on, and nothing of the other")
  func conflict() async throws {
    try await with { storage in
      let player = Self.newContainer()
      for round in 1...3 as ClosedRange<UInt64> {
        let snapshot = try await storage.load(ReadSet(), of: player)
        var (first, second) = (SnapshotContainer(snapshot), SnapshotContainer(snapshot))
        first.advance(to: Cursor(epoch: 0, seq: round, mark: 11))
        second.advance(to: Cursor(epoch: 0, seq: round, mark: 12))
        second.markCovered(VersionID(high: 9, low: round))
        #expect(try await storage.commit(first.writes, of: player, ifAt: snapshot.revision))
        #expect(try await !storage.commit(second.writes, of: player, ifAt: snapshot.revision))
        let after = try await storage.load(ReadSet(), of: player)
        #expect(after.revision == snapshot.revision + 1 && after.position.mark == 11)
        #expect(try await storage.look(at: player) { try !$0.isCovered(VersionID(high: 9, low: round)) })
      }
    }
  }

  @Test("decisions that two servers make at the same time about one container all count, one after the other")
  func allCount() async throws {
    try await with { one in
      try await with { other in
        let player = Self.newContainer()
        try await withThrowingTaskGroup(of: Void.self) { group in
          for number in 0..<20 as Range<UInt64> {
            group.addTask { try await (number % 2 == 0 ? one : other).addGem(to: player, mark: number) }
          }
          try await group.waitForAll()
        }
        #expect(try await one.load(ReadSet(), of: player).position.seq == 20)
        #expect(try await other.look(at: player) { try $0.bank().pool } == ["gems": 20])
      }
    }
  }

  @Test("a server that starts waits for nobody who writes, and nobody waits for it")
  func starts() async throws {
    try await with { _ in
      // As every table is held by a transaction that writes.
      let writer = try PostgreSQLConnection(settings)
      let names = try writer.run([
        PostgreSQLStatement("SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()")
      ])[0].map { String(decoding: try $0.bytes(0), as: UTF8.self) }
      #expect(names.count >= 20)
      _ = try writer.run([PostgreSQLStatement("BEGIN")])
      _ = try writer.run([PostgreSQLStatement("LOCK TABLE \(names.joined(separator: ", ")) IN ROW EXCLUSIVE MODE")])
      try await with { storage in
        let snapshot = try await storage.load(ReadSet(), of: Self.newContainer())
        #expect(snapshot.revision == 0)
      }
      _ = try writer.run([PostgreSQLStatement("ROLLBACK")])
    }
  }

  @Test("of two players whose servers pay one receipt at the same time, one gets it")
  func receipt() async throws {
    try await with { storage in
      let players = [Self.newContainer(), Self.newContainer()]
      let receipt = Receipt(
        app: players[0].bytes, hash: ContentHash(of: Data("receipt".utf8)), operation: OperationID(high: 1, low: 1))
      var reads = ReadSet()
      reads.bank.receipt = receipt
      var writes: [(WriteSet, UInt64)] = []
      for player in players {
        let snapshot = try await storage.load(reads, of: player)
        var container = SnapshotContainer(snapshot)
        #expect(try container.takeReceipt(receipt, for: player))
        writes.append((container.writes, snapshot.revision))
      }
      #expect(try await storage.commit(writes[0].0, of: players[0], ifAt: writes[0].1))
      #expect(try await !storage.commit(writes[1].0, of: players[1], ifAt: writes[1].1))
      #expect(try await storage.load(reads, of: players[1]).receiptHolder == players[0])
      #expect(try await storage.load(ReadSet(), of: players[1]).revision == 0)
    }
  }
}
#endif
