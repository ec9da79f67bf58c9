#if Cloud
import Foundation
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// What becomes of a bank's old decisions, wherever they are stored.
@Suite("A bank's old decisions, in each storage", .hangLimit)
struct PackedStorageTests {
  static let player = ContainerID(high: 3, low: 4)
  static let chain = ChainID(high: 5, low: 6)
  static let batch = PackedDecisions.packedAtOnce
  /// How many decisions are made in one commit.
  private static let together = 300

  static func earn(_ number: Int, goods: [String] = []) -> WalletOperation {
    // Ids in no order.
    let id = OperationID(high: UInt64(number) &* 0x9E37_79B9_7F4A_7C15, low: UInt64(number))
    return WalletOperation(
      id: id, kind: .earn, currency: "gems", amount: Int64(number % 100) + 1, reason: "a round", goods: goods)
  }

  /// Records decisions, several in each commit.
  static func record(
    _ numbers: Range<Int>, in storage: some AdminStorage,
    operation: @escaping @Sendable (Int) -> WalletOperation = { PackedStorageTests.earn($0) },
    verdict: @escaping @Sendable (Int) -> WalletDecision.Verdict = { $0 % 2 == 0 ? .accepted : .declined }
  ) async throws {
    for start in stride(from: numbers.lowerBound, to: numbers.upperBound, by: together) {
      let some = start..<min(start + together, numbers.upperBound)
      try await storage.decide(on: player) { container in
        for number in some { try container.recordDecision(verdict(number), on: operation(number), of: chain) }
      }
    }
  }

  /// Returns what was decided about operations.
  static func decided(
    _ operations: [OperationID], in storage: some AdminStorage
  ) async throws -> [OperationID: DecidedOperation] {
    var all: [OperationID: DecidedOperation] = [:]
    for start in stride(from: 0, to: operations.count, by: 500) {
      let some = Array(operations[start..<min(start + 500, operations.count)])
      var reads = ReadSet()
      reads.bank.decisions = Set(some)
      let found = try await storage.look(at: player, reading: reads) { container in
        try some.map { ($0, try container.decision(on: $0)) }
      }
      for (id, decision) in found { all[id] = decision }
    }
    return all
  }

  /// Returns the lines of an export from the decisions on, and calls `between` after the page with this number.
  private static func lines(
    _ storage: some AdminStorage, afterPage number: Int = -1, _ between: () async throws -> Void = {}
  ) async throws -> [PlayerExport.Line] {
    var lines: [PlayerExport.Line] = []
    var place: PlayerExport.Position? = .decisions(after: nil)
    var pages = 0
    while let next = place {
      let page = try await storage.exported(next, of: player)
      lines += page.lines
      place = page.next
      if pages == number { try await between() }
      pages += 1
    }
    return lines
  }

  @Test(
    "details of the newest operations, of those with goods and of waiting ones stay; of others verdict and fingerprint",
    arguments: TestStorage.all)
  func packs(_ kind: TestStorage) async throws {
    let (kept, batches) = (100, 5)
    let total = kept + batches * Self.batch
    @Sendable func operation(_ number: Int) -> WalletOperation {
      Self.earn(number, goods: number % 100 == 7 ? ["hat"] : [])
    }
    @Sendable func verdict(_ number: Int) -> WalletDecision.Verdict {
      number % 100 == 8 ? .waiting : number % 3 == 0 ? .declined : .accepted
    }
    func isAging(_ number: Int) -> Bool { number % 100 != 7 && number % 100 != 8 }
    let numbers = Array((0...).lazy.filter(isAging).prefix(total))
    let end = try #require(numbers.last) + 1
    try await kind.with(detailedDecisions: Int64(kept)) { storage in
      try await Self.record(0..<end, in: storage, operation: operation, verdict: verdict)
      let decided = try await Self.decided((0..<end).map { operation($0).id }, in: storage)
      let detailed = Set(numbers.suffix(kept))
      for number in 0..<end {
        let expected = DecidedOperation(
          verdict: verdict(number), fingerprint: operation(number).fingerprint,
          chain: isAging(number) && !detailed.contains(number) ? nil : Self.chain)
        try #require(decided[operation(number).id] == expected, "\(number)")
      }
      #expect(try await Self.decided([OperationID(high: 1, low: 1)], in: storage).isEmpty)
      let lines = try await Self.lines(storage)
      #expect(lines.compactMap(\.operation).count == end - batches * Self.batch)
      #expect(lines.compactMap(\.decision).count == batches * Self.batch)
    }
  }

  @Test("an operation that waited is packed once enough newer ones are decided after it", arguments: TestStorage.all)
  func waited(_ kind: TestStorage) async throws {
    try await kind.with(detailedDecisions: 10) { storage in
      let late = Self.earn(0)
      try await Self.record(0..<1, in: storage, operation: { _ in late }, verdict: { _ in .waiting })
      try await Self.record(1..<(11 + Self.batch), in: storage)
      #expect(try await Self.decided([late.id], in: storage)[late.id]?.verdict == .waiting)
      try await Self.record(0..<1, in: storage, operation: { _ in late }, verdict: { _ in .declined })
      var expected = DecidedOperation(verdict: .declined, fingerprint: late.fingerprint, chain: Self.chain)
      #expect(try await Self.decided([late.id], in: storage)[late.id] == expected)
      try await Self.record(100_000..<(100_000 + Self.batch + 10), in: storage)
      expected.chain = nil
      #expect(try await Self.decided([late.id], in: storage)[late.id] == expected)
    }
  }

  @Test(
    "however old an operation is, the bank counts it once, and knows another one with its id",
    arguments: TestStorage.all)
  func decidedForever(_ kind: TestStorage) async throws {
    try await kind.with(detailedDecisions: 0) { storage in
      let operations = (0..<Self.batch).map { Self.earn($0) }
      var head = ChainHead(emptyChain: Self.chain)
      for start in stride(from: 0, to: operations.count, by: 500) {
        let some = Array(operations[start..<min(start + 500, operations.count)])
        let offer = WalletOffer(chain: Self.chain, base: head, statement: 1, operations: some)
        let state = try await answer(offer, in: storage).state
        guard case .accepted(let next) = state else {
          Issue.record("\(state)")
          return
        }
        head = next
      }
      let balance = operations.reduce(0) { $0 + $1.amount }
      #expect(try await self.balance(in: storage) == balance)
      let lines = try await Self.lines(storage)
      #expect(lines.compactMap(\.operation).isEmpty && lines.compactMap(\.decision).count == Self.batch)
      // A copy of the store offers them again, one of them with another amount.
      var other = operations[1]
      other.amount += 400
      let copy = ChainID(high: 7, low: 8)
      let reply = try await answer(
        WalletOffer(chain: copy, follows: Self.chain, base: ChainHead(emptyChain: copy), late: [operations[0], other]),
        in: storage)
      #expect(try await self.balance(in: storage) == balance)
      #expect(
        reply.decisions == [
          WalletDecision(id: operations[0].id, verdict: .accepted), WalletDecision(id: other.id, verdict: .idReused),
        ])
    }
  }

  private func answer(_ offer: WalletOffer, in storage: some AdminStorage) async throws -> WalletReply {
    var reads = ReadSet()
    (reads.bank.state, reads.bank.decisions) = (true, Set((offer.operations + offer.late).map(\.id)))
    return try await storage.decide(on: Self.player, reading: reads) { container in
      var bank = Bank(try container.bank())
      let reply = try bank.answer(offer, in: &container)
      container.setBank(bank.state)
      return reply
    }
  }

  private func balance(in storage: some AdminStorage) async throws -> Int64 {
    try await storage.look(at: Self.player) { Bank(try $0.bank()).balance("gems") }
  }

  @Test(
    "an export misses no operation that is packed between two of its pages", arguments: TestStorage.all, [0, 2, 4])
  func exportWhilePacking(_ kind: TestStorage, page: Int) async throws {
    try await kind.with(detailedDecisions: 10) { storage in
      let total = 10 + 3 * Self.batch
      try await Self.record(0..<total, in: storage)
      let lines = try await Self.lines(storage, afterPage: page) {
        // Merges all runs, and then begins new ones.
        try await Self.record(total..<(total + 3 * Self.batch), in: storage)
      }
      let ids = Set(lines.compactMap(\.decision).map(\.id) + lines.compactMap(\.operation).map(\.operation.id))
      #expect((0..<total).allSatisfy { ids.contains(Self.earn($0).id) })
    }
  }

  @Test("of a deleted player no packed decision is left", arguments: TestStorage.all)
  func deleted(_ kind: TestStorage) async throws {
    try await kind.with(detailedDecisions: 0) { storage in
      try await Self.record(0..<(2 * Self.batch), in: storage)
      #expect(try await Self.decided([Self.earn(0).id], in: storage).count == 1)
      try await storage.delete(Self.player, now: 5)
      var reads = ReadSet()
      reads.bank.decisions = Set((0..<(2 * Self.batch)).map { Self.earn($0).id })
      #expect(try await storage.load(reads, of: Self.player).decisions.isEmpty)
    }
  }
}
#endif
