import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// Money handed over from one wallet to another, and data that one store adopts from another.
@Suite struct AdoptionTests {
  private static func operation(_ kind: WalletOperation.Kind, _ amount: Int64, _ number: UInt64) -> WalletOperation {
    WalletOperation(id: OperationID(high: 9, low: number), kind: kind, currency: "gems", amount: amount, reason: "test")
  }

  private var random = SeededGenerator(seed: 5)

  private mutating func wallet(_ operations: [WalletOperation]) throws -> Wallet {
    var wallet = Wallet(WalletState(chain: ChainID(using: &random)))
    for operation in operations { try wallet.perform(operation) }
    return wallet
  }

  private mutating func pack(
    _ wallet: inout Wallet, since mark: WalletParcel.Mark? = nil
  ) throws -> WalletParcel? {
    try wallet.pack(since: mark, reason: "adopted", now: 7, using: &random)
  }

  @Test("Money handed over from one wallet to another is neither lost nor duplicated")
  mutating func conserved() throws {
    for seed in 0..<200 as Range<UInt64> {
      random = SeededGenerator(seed: seed)
      var (from, to) = (try wallet([]), try wallet([]))
      var mark: WalletParcel.Mark?
      var (expected, number) = (0 as Int64, 0 as UInt64)
      var received: Set<OperationID> = []
      for _ in 0..<4 {
        for _ in 0..<Int.random(in: 0...4, using: &random) {
          let amount = Int64.random(in: 1...50, using: &random)
          number += 1
          if Bool.random(using: &random) {
            try from.perform(Self.operation(.earn, amount, number))
            expected += amount
          } else if from.spendable("gems") >= amount {
            try from.perform(Self.operation(.spend, amount, number))
            expected -= amount
          }
        }
        let parcel = try pack(&from, since: mark)
        mark = from.mark
        #expect(from.spendable("gems") == 0, "seed \(seed)")
        guard let parcel else { continue }
        for _ in 0..<2 { received.formUnion(try to.receive(parcel, knowing: received.contains).map(\.id)) }
        #expect(to.spendable("gems") == expected && to.state.late.isEmpty, "seed \(seed)")
      }
    }
  }

  @Test("A claim is handed over as it was made, and isn't made again by a player who made it")
  mutating func claimsMove() throws {
    var from = try wallet([Self.operation(.claim(key: "starter"), 100, 1), Self.operation(.earn, 30, 2)])
    let parcel = try #require(try pack(&from))
    #expect(
      parcel.operations.map(\.kind) == [.claim(key: "starter"), .earn] && parcel.operations.map(\.amount) == [100, 30])
    #expect(from.spendable("gems") == 0)
    var to = try wallet([Self.operation(.claim(key: "starter"), 100, 3)])
    #expect(try to.receive(parcel, knowing: { _ in false }).map(\.amount) == [30])
    #expect(to.pending("gems") == 100 && to.spendable("gems") == 30)
  }

  @Test("Operations that two copies of a wallet share count once, and spends beyond the balance are left to the bank")
  mutating func copies() throws {
    let earned = Self.operation(.earn, 100, 1)
    var (one, other) = (
      try wallet([earned, Self.operation(.spend, 90, 2)]), try wallet([earned, Self.operation(.spend, 60, 3)])
    )
    var to = try wallet([])
    let first = try to.receive(try #require(try pack(&one)), knowing: { _ in false })
    #expect(to.spendable("gems") == 10)
    let known = Set(first.map(\.id))
    _ = try to.receive(try #require(try pack(&other)), knowing: known.contains)
    // The second copy spent 60, and only 10 are left: the bank decides.
    #expect(to.spendable("gems") == 10 && to.state.late.map(\.amount) == [60])
  }

  @Test("Too many operations are handed over combined, and too much money in several parcels")
  mutating func large() throws {
    var from = try wallet((1...WalletParcel.maximumOperations + 1).map { Self.operation(.earn, 1, UInt64($0)) })
    let parcel = try #require(try pack(&from))
    #expect(parcel.operations.map(\.amount) == [Int64(WalletParcel.maximumOperations + 1)])
    var rich = try wallet((1...20).map { Self.operation(.earn, Wallet.maximumAmount, UInt64($0)) })
    let most = Int64(WalletParcel.maximumSpends) * Wallet.maximumAmount
    var to = try wallet([])
    _ = try to.receive(try #require(try pack(&rich)), knowing: { _ in false })
    #expect(to.spendable("gems") == most && rich.spendable("gems") == 4 * Wallet.maximumAmount)
    #expect(try pack(&rich, since: rich.mark) != nil && rich.spendable("gems") == 0)
  }

  @Test("Adopted values are queued in groups that fit into an exchange, and adopting them again queues nothing")
  func groups() throws {
    var storage = SimulatedDevice()
    var groups = AdoptedGroups()
    let cells = (0..<20_000).map { number in
      CellUpdate(
        key: CellKey(collection: "progress", key: "\(String(repeating: "k", count: 100)) \(number)"),
        state: CellState(value: .max(.int(Int64(number)))))
    }
    let adopted = try DeviceCommit.adopt(cells, into: &groups, in: &storage)
    try groups.enter(&storage)
    let outbox = storage.outbox(limit: .max)
    #expect(adopted.changed.count == 20_000 && outbox.reduce(0) { $0 + $1.cells.count } == 20_000 && outbox.count > 2)
    for group in outbox {
      #expect(group.cells.count <= ExchangeRules.maximumCells)
      #expect(group.cells.reduce(0) { $0 + $1.size } <= ExchangeRules.maximumCommitBytes)
    }
    var again = AdoptedGroups()
    #expect(try DeviceCommit.adopt(cells, into: &again, in: &storage).changed.isEmpty)
    try again.enter(&storage)
    #expect(storage.outboxCount() == outbox.count)
  }

  @Test("A version that is known only because another one covers it doesn't count as unknown")
  func replaced() throws {
    var storage = SimulatedDevice()
    let (replaced, unknown) = (VersionID(high: 0, low: 1), VersionID(high: 0, low: 2))
    storage.markCovered(replaced)
    #expect(try !DeviceCommit.isUnknown(replaced, in: storage) && DeviceCommit.isUnknown(unknown, in: storage))
  }

  @Test("A value that would be too large once joined stays unchanged, and the rest is adopted")
  func full() throws {
    func union(_ prefix: String) -> CellState {
      CellState(value: .union(Set((0..<180).map { .string("\(prefix)\($0)" + String(repeating: "x", count: 1000)) })))
    }
    var storage = SimulatedDevice()
    let (full, level) = (CellKey(collection: "progress", key: "full"), CellKey(collection: "progress", key: "level"))
    storage.setCell(CellUpdate(key: full, state: union("a")))
    var groups = AdoptedGroups()
    let adopted = try DeviceCommit.adopt(
      [CellUpdate(key: full, state: union("b")), CellUpdate(key: level, state: CellState(value: .max(.int(3))))],
      into: &groups,
      in: &storage)
    #expect(adopted.refused == [full] && adopted.changed == [level] && storage.cell(full) == union("a"))
  }
}
