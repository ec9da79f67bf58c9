import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// What the bank orders by itself is in the ledger, and in notices until the game takes them.
@Suite struct WalletOrderTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private static let sword = WalletLab.operation(1, .spend, amount: 50, goods: ["sword"])

  private static func order(_ number: Int, _ kind: BankOrder.Kind = .grant, amount: Int64 = 10) -> BankOrder {
    BankOrder(
      id: OperationID(high: 8, low: UInt64(number)), kind: kind, currency: "gems", amount: amount,
      reason: "support \(number)", goods: kind == .charge ? [] : ["hat"], madeAtMilliseconds: 5)
  }

  private static func refund() -> BankOrder {
    var refund = BankOrder(refunding: sword.id, reason: "by mistake")
    (refund.currency, refund.amount, refund.goods) = (sword.currency, sword.amount, sword.goods)
    return refund
  }

  private static func numbered(_ orders: [BankOrder], from first: UInt64 = 1) -> [NumberedOrder] {
    orders.enumerated().map { NumberedOrder(number: first + UInt64($0), order: $1) }
  }

  private func notices(_ store: Store) throws -> [WalletNotice] { try store.read { try $0.walletNotices() } }
  private func entries(_ store: Store, newest limit: Int = .max) throws -> [WalletEntry] {
    try store.read { try $0.walletEntries(newest: limit) }
  }

  @Test(
    "orders are in the ledger where they came, and in notices, also after a restart",
    arguments: [Seal.Kind.none, .signed, .sealed])
  func records(kind: Seal.Kind) throws {
    let seal = SealLab.request(kind)
    var store = try Store.open(at: folder.store, seal: seal)
    try WalletLab.perform([WalletLab.operation(0)], in: store)
    try WalletLab.acceptAll(in: store)
    let orders = [Self.order(1), Self.order(2, .charge), Self.order(3, .shortfall)]
    try WalletLab.acceptAll(orders: Self.numbered(orders), in: store)
    try WalletLab.perform([WalletLab.operation(4)], in: store)
    try store.close()
    store = try Store.open(at: folder.store, seal: seal)
    defer { try? store.close() }
    #expect(store.incidents.isEmpty && SealLab.findings(of: store).isEmpty)
    #expect(try WalletLab.ledger(of: store).map(\.id) == [0, 1, 2, 3, 4])
    #expect(try WalletLab.ledger(of: store).map(\.status) == [.settled, .settled, .settled, .settled, .waiting])
    #expect(try entries(store).map(\.order) == [nil, orders[2], orders[1], orders[0], nil])
    #expect(try entries(store).map(\.operation.kind) == [.earn, .earn, .spend, .earn, .earn])
    #expect(try entries(store, newest: 3).map(\.order) == [nil, orders[2], orders[1]])
    #expect(try entries(store, newest: 0).isEmpty)
    // What was missing after a restore is nothing new for the player.
    #expect(try notices(store).map(\.order) == [orders[0], orders[1]])
    #expect(try notices(store).map(\.verdict) == [.accepted, .accepted])
    let charges = try store.read { try $0.walletEntries(newest: 9) { $0.kind == .spend } }
    #expect(charges.map(\.order) == [orders[1]])
  }

  @Test("an order that comes again is recorded once, also after the game took its notice, and after a restart")
  func once() throws {
    var store = try Store.open(at: folder.store)
    try WalletLab.acceptAll(in: store)
    let orders = Self.numbered([Self.order(1), Self.order(2)])
    for _ in 0..<2 { try WalletLab.acceptAll(orders: orders, in: store) }
    #expect(try entries(store).count == 2 && notices(store).count == 2)
    try store.write { try $0.removeWalletNotices(upTo: 2) }
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try WalletLab.acceptAll(orders: orders, in: store)
    #expect(try entries(store).count == 2 && notices(store).isEmpty)
    #expect(try WalletLab.state(of: store).orders == 2)
    // The game can't make one under the same id, either.
    #expect(try store.read { try $0.performedOperation(orders[0].order.id) } != nil)
  }

  @Test("what was ordered before the store first reached the bank is in the ledger without a notice")
  func before() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let most = NumberedOrder.maximumListed
    let old = (1...most + 1).map { Self.order($0) }
    try WalletLab.acceptAll(orders: Self.numbered(Array(old.prefix(most))), in: store)
    try WalletLab.acceptAll(orders: Self.numbered([old[most]], from: UInt64(most) + 1), in: store)
    #expect(try entries(store).count == most + 1 && notices(store).isEmpty)
    try WalletLab.acceptAll(orders: Self.numbered([Self.order(500)], from: UInt64(most) + 2), in: store)
    #expect(try notices(store).map(\.order) == [Self.order(500)])
  }

  @Test("a refunded purchase stays refunded in the ledger, whatever the bank says about it later")
  func refunded() throws {
    var store = try Store.open(at: folder.store)
    try WalletLab.perform([WalletLab.operation(0), Self.sword, WalletLab.operation(2)], in: store)
    try WalletLab.acceptAll(in: store)
    try WalletLab.acceptAll(orders: Self.numbered([Self.refund()]), in: store)
    #expect(try WalletLab.ledger(of: store).map(\.status) == [.settled, .refunded, .settled, .settled])
    try store.write { try $0.recordDecisions([Wallet.Decided(operation: Self.sword, verdict: .accepted)]) }
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    #expect(try WalletLab.ledger(of: store).map(\.status) == [.settled, .refunded, .settled, .settled])
    #expect(try notices(store).map(\.order?.kind) == [.refund])
    #expect(try entries(store).first?.order?.purchase == Self.sword.id)
  }

  @Test("a purchase that the bank charges and refunds in one reply is refunded; one of another device has its entry")
  func refundedAtOnce() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try WalletLab.acceptAll(in: store)
    try WalletLab.perform([WalletLab.operation(0), Self.sword], in: store)
    var other = Self.refund()
    other.purchase = OperationID(high: 9, low: 9)
    other.id = BankOrder.refundID(of: OperationID(high: 9, low: 9))
    try WalletLab.acceptAll(orders: Self.numbered([Self.refund(), other]), in: store)
    #expect(try entries(store).map(\.status) == [.settled, .settled, .refunded, .settled])
    #expect(try notices(store).count == 2)
  }

  @Test("a crash between the reply and its orders leaves neither, so that the bank sends them again")
  func together() throws {
    struct Crash: Error {}
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try WalletLab.perform([WalletLab.operation(0), Self.sword], in: store)
    try WalletLab.acceptAll(in: store)
    let before = try WalletLab.state(of: store)
    #expect(throws: Crash.self) {
      try store.write { transaction throws in
        try WalletLab.receive(
          WalletReply(
            chain: before.chain, state: .accepted(before.head), statement: before.statement + 1,
            totals: before.totals, orders: Self.numbered([Self.order(1), Self.refund()])), in: &transaction)
        #expect(try transaction.walletNotices().count == 2)
        throw Crash()
      }
    }
    #expect(try WalletLab.state(of: store) == before && notices(store).isEmpty)
    #expect(try WalletLab.ledger(of: store).map(\.status) == [.settled, .settled])
    #expect(try store.read { try $0.performedOperation(Self.order(1).id) } == nil)
  }

  @Test("of many orders the newest ten thousand are kept")
  func atMost() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try WalletLab.perform([WalletLab.operation(0)], in: store)
    for batch in 0..<51 {
      let orders = (batch * 200..<(batch + 1) * 200).map { Self.order($0, .voucher) }
      try store.write { try $0.recordOrders(orders, areNews: true) }
    }
    let kept = try entries(store).compactMap(\.order)
    #expect(kept.count == Int(StoreTransaction.maximumSettledOperations))
    #expect(kept.first?.id.low == 10_199 && kept.last?.id.low == 200)
    // What is no longer kept doesn't come back.
    try store.write { try $0.recordOrders([Self.order(0, .voucher)], areNews: true) }
    #expect(try entries(store).compactMap(\.order).count == kept.count)
  }

  @Test("an order that was forged is skipped; forged numbers don't trap", arguments: [Int64.min, -1, 0, .max])
  func forged(number: Int64) throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try WalletLab.perform([WalletLab.operation(0)], in: store)
    try WalletLab.acceptAll(orders: Self.numbered([Self.order(1), Self.order(2), Self.order(3)]), in: store)
    try store.write { transaction throws in
      try transaction.setFact(
        WalletOrder.names.name(of: 2), WalletOrder(number: number, place: 1, order: Self.order(2)))
      try transaction.setFact(
        WalletOrder.names.name(of: 3), WalletOrder(number: 3, place: number, order: Self.order(3, amount: number)))
    }
    #expect(try WalletLab.ledger(of: store).map(\.id) == [0, 1])
    try store.write { try $0.recordOrders([Self.order(4)], areNews: true) }
    #expect(try WalletLab.ledger(of: store).map(\.id) == [0, 1, 4])
  }
}
