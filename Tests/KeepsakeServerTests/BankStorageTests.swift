#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite("What a bank has decided, in SQLite")
struct BankStorageTests {
  private static let player = ContainerID(high: 3, low: 4)
  private static let chain = ChainID(high: 5, low: 6)
  private static let batch = PackedDecisions.packedAtOnce

  private func open(_ folder: URL) throws -> SQLiteCloudStorage {
    let contents = folder.appendingPathComponent("contents")
    try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
    return try SQLiteCloudStorage(database: folder.appendingPathComponent("cloud.sqlite"), contents: contents)
  }

  private func with(_ body: (SQLiteCloudStorage) async throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      let storage = try open(folder)
      try await body(storage)
      try await storage.close()
    }
  }

  private static func earn(_ number: Int, goods: [String] = []) -> WalletOperation {
    // Ids in no order.
    let id = OperationID(high: UInt64(number) &* 0x9E37_79B9_7F4A_7C15, low: UInt64(number))
    return WalletOperation(
      id: id, kind: .earn, currency: "gems", amount: Int64(number % 100) + 1, reason: "a round", goods: goods)
  }

  private static func count(_ sql: String, in container: SQLiteContainer) throws -> Int {
    try Int.fetchOne(container.db, sql: sql, arguments: [container.id]) ?? 0
  }

  @Test(
    "details of the newest operations, of those with goods and of waiting ones stay; of others verdict and fingerprint")
  func packs() async throws {
    try await with { storage async throws in
      let (kept, batches) = (100, 5)
      let total = kept + batches * Self.batch
      @Sendable func operation(_ number: Int) -> WalletOperation {
        Self.earn(number, goods: number % 100 == 7 ? ["hat"] : [])
      }
      @Sendable func verdict(_ number: Int) -> WalletDecision.Verdict {
        number % 100 == 8 ? .waiting : number % 3 == 0 ? .declined : .accepted
      }
      @Sendable func isAging(_ number: Int) -> Bool { number % 100 != 7 && number % 100 != 8 }
      let numbers = Array((0...).lazy.filter(isAging).prefix(total))
      let end = try #require(numbers.last) + 1
      try await storage.transaction(on: Self.player) { container throws in
        container.detailedDecisions = Int64(kept)
        for number in 0..<end {
          try container.recordDecision(verdict(number), on: operation(number), of: Self.chain)
          let isEnough = number >= numbers[kept + Self.batch - 1]
          #expect(try container.packedLevels().isEmpty != isEnough, "\(number)")
        }
        let detailed = Set(numbers.suffix(kept))
        for number in 0..<end {
          let decided = try #require(try container.decision(on: operation(number).id))
          #expect(decided.verdict == verdict(number) && decided.fingerprint == operation(number).fingerprint)
          #expect(decided.chain == (isAging(number) && !detailed.contains(number) ? nil : Self.chain), "\(number)")
        }
        #expect(try container.decision(on: OperationID(high: 1, low: 1)) == nil)
        #expect(
          try Self.count("SELECT count(*) FROM decision WHERE container = ?", in: container) == end - total + kept)
        // One run for each bit of the number of batches.
        #expect(try container.packedLevels() == [0, 2])
        let bytes = try Self.count(
          """
          SELECT sum(length(entries) + length(container) + length(first) + 8) FROM packedDecision WHERE container = ?
          """, in: container)
        #expect(bytes <= 24 * (total - kept))
        let longest = try Self.count(
          "SELECT max(length(entries)) FROM packedDecision WHERE container = ?", in: container)
        #expect(longest <= 4_004)
      }
      try await storage.transaction(on: ContainerID(high: 3, low: 5)) { container throws in
        for number in [0, end - 1] { #expect(try container.decision(on: operation(number).id) == nil) }
      }
    }
  }

  @Test("an operation that waited is packed once enough newer ones are decided after it")
  func waited() async throws {
    try await with { storage async throws in
      try await storage.transaction(on: Self.player) { container throws in
        container.detailedDecisions = 10
        let late = Self.earn(0)
        try container.recordDecision(.waiting, on: late, of: Self.chain)
        for number in 1...(10 + Self.batch) {
          try container.recordDecision(.accepted, on: Self.earn(number), of: Self.chain)
        }
        #expect(try container.packedLevels() == [0])
        #expect(try container.decision(on: late.id)?.verdict == .waiting)
        try container.recordDecision(.declined, on: late, of: Self.chain)
        let decided = DecidedOperation(verdict: .declined, fingerprint: late.fingerprint, chain: Self.chain)
        #expect(try container.decision(on: late.id) == decided)
        for number in 1..<(Self.batch - 1) {
          try container.recordDecision(.accepted, on: Self.earn(number + 100_000), of: Self.chain)
        }
        #expect(try container.decision(on: late.id)?.chain == Self.chain)
        try container.recordDecision(.accepted, on: Self.earn(100_000), of: Self.chain)
        let packed = DecidedOperation(verdict: .declined, fingerprint: late.fingerprint, chain: nil)
        #expect(try container.decision(on: late.id) == packed)
      }
    }
  }

  @Test("however old an operation is, the bank counts it once, and knows another one with its id")
  func decidedForever() async throws {
    try await with { storage async throws in
      try await storage.transaction(on: Self.player) { container throws in
        container.detailedDecisions = 0
        let operations = (0..<Self.batch).map { Self.earn($0) }
        var bank = Bank(try container.bank())
        var head = ChainHead(emptyChain: Self.chain)
        for start in stride(from: 0, to: operations.count, by: 500) {
          let some = Array(operations[start..<min(start + 500, operations.count)])
          let offer = WalletOffer(chain: Self.chain, base: head, statement: 1, operations: some)
          guard case .accepted(let next) = try bank.answer(offer, in: &container).state else {
            Issue.record("not accepted")
            return
          }
          head = next
        }
        let balance = operations.reduce(0) { $0 + $1.amount }
        #expect(bank.balance("gems") == balance)
        #expect(try Self.count("SELECT count(*) FROM decision WHERE container = ?", in: container) == 0)
        // A copy of the store offers them again, one of them with another amount.
        var other = operations[1]
        other.amount += 400
        let copy = ChainID(high: 7, low: 8)
        let reply = try bank.answer(
          WalletOffer(
            chain: copy, follows: Self.chain, base: ChainHead(emptyChain: copy), late: [operations[0], other]),
          in: &container)
        #expect(bank.balance("gems") == balance)
        #expect(
          reply.decisions == [
            WalletDecision(id: operations[0].id, verdict: .accepted), WalletDecision(id: other.id, verdict: .idReused),
          ])
      }
    }
  }

  @Test("which vouchers were paid, and what is left to subtract of their claims, is kept for each bank")
  func vouchers() async throws {
    try await with { storage async throws in
      let banks = [ContainerID(high: 3, low: 6), ContainerID(high: 3, low: 7)]
      let chain = ChainID(high: 0, low: 9)
      try await storage.transaction(on: Self.player) { container throws in
        #expect(try container.vouchedClaim("starter", by: banks[0]) == nil)
        for left: Int64 in [30, 0] { try container.setVouchedClaim("starter", by: banks[0], left: left) }
        try container.setVouchedClaim("starter", by: banks[1], left: 7)
        #expect(try banks.map { try container.vouchedClaim("starter", by: $0) } == [0, 7])
        for _ in 1...2 { try container.markVoucherPaid(chain, of: banks[0]) }
        #expect(try banks.map { try container.isVoucherPaid(chain, of: $0) } == [true, false])
      }
    }
  }

  @Test("a claim's key is paid once for each player, whatever characters it has")
  func claims() async throws {
    try await with { storage async throws in
      let keys = ["starter", "a\u{0}b", "a\u{0}c", "a", "é", "e\u{301}"]
      try await storage.transaction(on: Self.player) { container throws in
        for key in keys {
          #expect(try !container.isClaimPaid(key))
          for _ in 0..<2 { try container.markClaimPaid(key, nil) }
          #expect(try container.isClaimPaid(key))
        }
        #expect(try container.paidClaims(after: nil, limit: 10).count == keys.count)
        #expect(try container.paidClaims(after: "a", limit: 2) == ["a\u{0}b", "a\u{0}c"])
      }
      try await storage.transaction(on: ContainerID(high: 3, low: 5)) { container throws in
        #expect(try !container.isClaimPaid("starter"))
      }
    }
  }

  // MARK: Export

  /// Returns all lines from here on, and calls `between` after the page with this number.
  private func lines(
    _ storage: SQLiteCloudStorage, afterPage number: Int = -1, _ between: () async throws -> Void = {}
  ) async throws -> [PlayerExport.Line] {
    var lines: [PlayerExport.Line] = []
    var place: PlayerExport.Position? = .decisions(after: nil)
    var pages = 0
    while let next = place {
      let page = try await storage.exported(next, of: Self.player)
      lines += page.lines
      place = page.next
      if pages == number { try await between() }
      pages += 1
    }
    return lines
  }

  private func record(_ numbers: Range<Int>, in storage: SQLiteCloudStorage) async throws {
    try await storage.transaction(on: Self.player) { container throws in
      container.detailedDecisions = 10
      for number in numbers {
        try container.recordDecision(number % 2 == 0 ? .accepted : .declined, on: Self.earn(number), of: Self.chain)
      }
    }
  }

  @Test("an export has each operation once, packed ones with id and verdict, and the keys of paid claims")
  func export() async throws {
    try await with { storage async throws in
      let total = 10 + 3 * Self.batch
      try await record(0..<total, in: storage)
      try await storage.transaction(on: Self.player) { try $0.markClaimPaid("starter", nil) }
      let lines = try await lines(storage)
      #expect(lines.compactMap(\.operation).count == 10)
      let packed = lines.compactMap(\.decision)
      #expect(packed.count == total - 10)
      let verdicts = Dictionary(uniqueKeysWithValues: packed.map { ($0.id, $0.verdict) })
      for number in 0..<(total - 10) {
        #expect(verdicts[Self.earn(number).id] == (number % 2 == 0 ? .accepted : .declined))
      }
      #expect(lines.compactMap(\.claim).map(\.key) == ["starter"])
      let text = String(decoding: try PlayerExport.Line(decision: packed[0]).json(), as: UTF8.self)
      #expect(text == #"{"decision":{"id":"\#(packed[0].id)","verdict":"\#(packed[0].verdict.rawValue)"}}"#)
    }
  }

  @Test("an export misses no operation that is packed between two of its pages", arguments: 0..<4)
  func exportWhilePacking(page: Int) async throws {
    try await with { storage async throws in
      let total = 10 + 3 * Self.batch
      try await record(0..<total, in: storage)
      let lines = try await lines(storage, afterPage: page) {
        // Merges all runs, and then begins new ones.
        try await record(total..<(total + 3 * Self.batch), in: storage)
      }
      let ids = Set(lines.compactMap(\.decision).map(\.id) + lines.compactMap(\.operation).map(\.operation.id))
      #expect((0..<total).allSatisfy { ids.contains(Self.earn($0).id) })
    }
  }

  // MARK: Older databases

  private struct OldOperation {
    var operation: WalletOperation
    var verdict = "accepted"
  }

  /// Makes a database as servers before packed decisions had it.
  private func makeOld(in folder: URL, bank: String, _ operations: [OldOperation]) async throws {
    let contents = folder.appendingPathComponent("contents")
    try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
    let queue = try DatabaseQueue(path: folder.appendingPathComponent("cloud.sqlite").path)
    try Schema.migrator(files: ContentFiles(folder: contents)).migrate(queue, upTo: Schema.migrations[4])
    try await queue.write { db in
      let id = Self.player.bytes
      try db.execute(
        sql: "INSERT INTO container (id, epoch, seq, mark, bank) VALUES (?, 0, 1, 5, ?)",
        arguments: [id, Data(bank.utf8)])
      try db.execute(sql: "INSERT INTO mark (container, seq, mark) VALUES (?, 1, 5)", arguments: [id])
      for (number, seen) in [(1, 7_300_000), (2, 3_700_000)] as [(UInt64, Int64)] {
        let device = DeviceID(high: 9, low: number).bytes
        try db.execute(
          sql: "INSERT INTO device (container, id, player, app, name, created, seen) VALUES (?, ?, ?, ?, ?, 1, ?)",
          arguments: [id, device, PlayerID(high: 2, low: 2).bytes, Data(repeating: 7, count: 16), Data(), seen])
        try db.execute(
          sql: "INSERT INTO deviceChain (container, device, chain) VALUES (?, ?, ?)",
          arguments: [id, device, Self.chain.bytes])
      }
      for old in operations {
        try db.execute(
          sql: "INSERT INTO decision (container, operation, chain, verdict, details) VALUES (?, ?, ?, ?, ?)",
          arguments: [
            id, old.operation.id.bytes, Self.chain.bytes, old.verdict, try JSONEncoder().encode(old.operation),
          ])
      }
      try db.execute(
        sql: "INSERT INTO chainHead (container, chain, count, hash) VALUES (?, ?, 1, ?)",
        arguments: [id, Self.chain.bytes, ContentHash(of: Data("h".utf8)).bytes])
    }
    try queue.close()
  }

  @Test("the bank of an older server keeps its money, chains, decisions and paid claims")
  func migrated() async throws {
    try await TemporaryFolder.with { folder in
      let (closed, begun) = (ChainID(high: 5, low: 7), ChainID(high: 5, low: 8))
      var operations = (0..<40).map { OldOperation(operation: Self.earn($0)) }
      for index in operations.indices { operations[index].operation.madeAtMilliseconds = Int64(1_000 - index) }
      operations[3].operation.goods = ["hat"]
      operations[4].verdict = "declined"
      let head = operations.reduce(ChainHead(emptyChain: Self.chain)) { $0.appending($1.operation) }
      func headText(_ head: ChainHead) -> String { #"{"count": \#(head.count), "hash": "\#(head.hash)"}"# }
      let bank = """
        {"pool": {"gems": 7}, "paidClaims": ["starter", "a gift"], "chains": {
          "\(Self.chain)": {"head": \(headText(head)), "fenced": false, "wanted": {"gems": 3},
            "totals": {"gems": {"granted": 5, "earned": 20, "spent": 4, "returned": 1}}},
          "\(closed)": {"head": \(headText(ChainHead(emptyChain: closed))), "fenced": true, "wanted": {},
            "totals": {"gems": {"granted": 9, "earned": 0, "spent": 0, "returned": 9}}},
          "\(begun)": {"head": \(headText(ChainHead(emptyChain: begun))), "follows": "\(closed)", "fenced": false,
            "wanted": {}, "begun": 1, "totals": {}}
        }}
        """
      try await makeOld(in: folder, bank: bank, operations)
      let storage = try open(folder)
      try await storage.transaction(on: Self.player) { [operations] container throws in
        let state = try container.bank()
        #expect(
          state.pool == ["gems": 7] && state.chains.count == 2 && state.closedChains == 1
            && Bank(state).balance("gems") == 27)
        let chain = try #require(state.chains[Self.chain])
        #expect(chain.head == head && chain.totals["gems"]?.rights == 20 && chain.isShown)
        // The device that was here last, to the hour.
        #expect(chain.device == DeviceID(high: 9, low: 1) && chain.seenMilliseconds == 7_200_000)
        #expect(
          try container.closedChain(closed)
            == BankState.ClosedChain(head: ChainHead(emptyChain: closed), follows: nil))
        #expect(try container.goods(changedAfter: 0, limit: 9) == [NumberedGood(name: "hat", count: 1, number: 1)])
        #expect(state.goodsNumber == 1)
        let unshown = try #require(state.chains[begun])
        #expect(unshown.follows == closed && !unshown.isShown && unshown.device == nil)
        #expect(try container.paidClaims(after: nil, limit: 10) == ["a gift", "starter"])
        for old in operations {
          let decided = DecidedOperation(
            verdict: old.verdict == "declined" ? .declined : .accepted, fingerprint: old.operation.fingerprint,
            chain: Self.chain)
          #expect(try container.decision(on: old.operation.id) == decided)
        }
        // The oldest are packed first, in the order in which they were made; those with goods never.
        let numbered = try Data.fetchAll(
          container.db, sql: "SELECT operation FROM decision WHERE arrival IS NOT NULL ORDER BY arrival")
        let expected = operations.indices.reversed().filter { $0 != 3 }.map { operations[$0].operation.id.bytes }
        #expect(numbered == expected)
        let tables = try String.fetchAll(container.db, sql: "SELECT name FROM sqlite_master WHERE type = 'table'")
        #expect(!tables.contains("chainHead") && !tables.contains("oldDecision"))

        // A device with this chain goes on: what the bank has isn't counted again, the rest is.
        var bank = Bank(state)
        let repeated = operations[39].operation
        let before = operations.dropLast().reduce(ChainHead(emptyChain: Self.chain)) { $0.appending($1.operation) }
        let reply = try bank.answer(
          WalletOffer(chain: Self.chain, base: before, operations: [repeated, Self.earn(99)]), in: &container)
        #expect(reply.state == .accepted(head.appending(Self.earn(99))))
        #expect(bank.balance("gems") == 27 + Self.earn(99).amount)
      }
      let lines = try await lines(storage)
      #expect(lines.compactMap(\.operation).count == 41)
      try await storage.close()
    }
  }

  @Test("an older database with more decisions than are kept in detail is packed as new ones arrive")
  func packsOlder() async throws {
    try await TemporaryFolder.with { folder in
      let total = 10 + 2 * Self.batch
      try await makeOld(
        in: folder, bank: #"{"pool": {}, "chains": {}, "paidClaims": []}"#,
        (0..<total).map { OldOperation(operation: Self.earn($0)) })
      let storage = try open(folder)
      try await record(total..<(total + 2), in: storage)
      try await storage.transaction(on: Self.player) { container throws in
        #expect(try container.packedLevels() == [1])
        #expect(try Self.count("SELECT count(*) FROM decision WHERE container = ?", in: container) == 12)
        for number in 0..<(total + 2) {
          #expect(try container.decision(on: Self.earn(number).id)?.fingerprint == Self.earn(number).fingerprint)
        }
      }
      try await storage.close()
    }
  }

  @Test("a database whose bank or decisions can't be read is reported as damaged, and stays as it was")
  func damagedOlder() async throws {
    for isBank in [true, false] {
      try await TemporaryFolder.with { folder in
        let bank = isBank ? "{}" : #"{"pool": {}, "chains": {}, "paidClaims": []}"#
        try await makeOld(in: folder, bank: bank, [OldOperation(operation: Self.earn(1))])
        let database = folder.appendingPathComponent("cloud.sqlite")
        if !isBank {
          let queue = try DatabaseQueue(path: database.path)
          try await queue.write { try $0.execute(sql: "UPDATE decision SET details = x'7B'") }
          try queue.close()
        }
        let error = #expect(throws: ServerError.self) { _ = try open(folder) }
        #expect(error?.code == .damaged)
        let queue = try DatabaseQueue(path: database.path)
        let old = try await queue.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM chainHead") }
        #expect(old == 1)
        try queue.close()
      }
    }
  }
}
#endif
