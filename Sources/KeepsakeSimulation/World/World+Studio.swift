import Foundation
import KeepsakeReplication

// What the game's own servers order of the bank, in worlds about money.
extension World {
  /// One in this many actions is followed by an order.
  private static let odds = 8
  private static let receipts = 6

  /// Orders something now and then: a grant, a charge, a refund, the payment of a receipt, or one of them once more.
  func orderSomething() {
    guard swarm.isAboutMoney, studio.once(in: Self.odds), let order = drawOrder() else { return }
    let before = cloud.position()
    let isKnown = cloud.order(order.id) != nil
    report.statistics.orders += 1
    do {
      let outcome = try CloudAcceptance.perform(order, now: now, rules: bankRules, in: &cloud, using: &studio)
      trace(
        44, outcome.order.id.low, UInt64(bitPattern: outcome.order.amount),
        words: "the studio orders \(outcome.order.kind) of \(outcome.order.amount) \(outcome.order.currency)")
      if case .done = outcome, isKnown { violation("the order \(short(order.id)) counts twice") }
    } catch {
      violation("the bank refuses an order: \(error)")
    }
    checkBank()
    if cloud.position().seq > before.seq { announce(since: before, from: nil) }
  }

  private func drawOrder() -> BankOrder? {
    switch Int.random(in: 0..<10, using: &studio) {
    case 0..<3: return newOrder(.grant)
    case 3..<5: return newOrder(.charge)
    case 5..<7:
      // Sorted, so that the same seed gives the same world.
      let purchases = cloud.decisions.values.filter { $0.verdict == .accepted && $0.operation.effect == .debit }
        .map(\.operation.id).sorted()
      return purchases.randomElement(using: &studio).map { BankOrder(refunding: $0, reason: "simulated") }
    case 7:
      let number = Int.random(in: 0..<Self.receipts, using: &studio)
      let receipt = ContentHash(of: Data("receipt \(number)".utf8))
      return BankOrder(
        id: BankOrder.receiptID(receipt, of: "world"), kind: .grant, currency: "gems", amount: Int64(10 + number),
        reason: "simulated", receipt: receipt)
    default: return cloud.orders.filter { $0.kind != .voucher }.randomElement(using: &studio)
    }
  }

  private func newOrder(_ kind: BankOrder.Kind) -> BankOrder {
    BankOrder(
      id: OperationID(using: &studio), kind: kind, currency: studio.once(in: 4) ? "keys" : "gems",
      amount: Int64.random(in: 1...50, using: &studio), reason: "simulated",
      goods: kind == .grant && studio.once(in: 3) ? ["hat"] : [])
  }

  /// Every device must know every order, and what goods the player has.
  func checkOrders() {
    var goods: [String: Int64] = [:]
    for good in cloud.orders.flatMap(\.goods) { goods[good, default: 0] += 1 }
    for index in devices.indices {
      let storage = devices[index].storage
      if storage.orders != cloud.orders {
        violation("device \(index) knows \(storage.orders.count) of \(CountText.of(cloud.orders.count, "order"))")
      }
      if storage.goods().counts != goods {
        violation("device \(index) has the goods \(storage.goods().counts), not \(goods)")
      }
    }
  }
}
