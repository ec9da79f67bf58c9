#if Cloud
import HTTPTypes
import Hummingbird
import KeepsakeReplication

/// A player's money: the bank's own orders, as the game's servers give them with a server key.
extension AdminRoutes {
  var moneyRoutes: [Route] {
    [
      Route(method: .get, path: "players/{player}/money", scope: .read, act: "money.show") { call in
        try Response(
          json: try await storage.account(
            of: call.player.container, goodsAfter: try call.number("goods") ?? 0,
            ordersAfter: try call.number("orders")))
      },
      Route(method: .post, path: "players/{player}/money/orders", scope: .money, act: "money.order") { call in
        let asked = try await cloud.gate.json(
          CloudRoutes.Order.self, of: call.request, limit: ServerLimits.orderBytes)
        call.note("kind", asked.kind.rawValue)
        call.note("currency", asked.currency)
        call.note("amount", "\(asked.amount)")
        if let goods = asked.goods, !goods.isEmpty { call.note("goods", Self.shown(goods)) }
        return try await perform(asked.order(now: cloud.clock()), call)
      },
      Route(method: .post, path: "players/{player}/money/refunds", scope: .money, act: "money.refund") { call in
        let asked = try await cloud.gate.json(
          CloudRoutes.Refund.self, of: call.request, limit: ServerLimits.orderBytes)
        return try await perform(
          BankOrder(refunding: asked.purchase, reason: asked.reason, madeAtMilliseconds: cloud.clock()), call)
      },
    ]
  }

  private func perform(_ order: BankOrder, _ call: AdminCall) async throws -> Response {
    let player = try call.player
    call.about(order.purchase ?? order.id)
    call.note("reason", String(order.reason.prefix(200)))
    // An order without a receipt doesn't depend on the app.
    let place = PlayerPlace(container: player.container, app: AppID(ofKey: ""))
    return try await cloud.perform(order, at: place, in: call.storage) { outcome in
      // Known only now: what a refund gives back, and whether anything is done at all.
      call.note("currency", outcome.order.currency)
      call.note("amount", "\(outcome.order.amount)")
      let isRepeated = if case .alreadyDone = outcome { true } else { false }
      call.storage.entry.details["alreadyDone"] = isRepeated ? "true" : nil
    }
  }

  /// Names of goods for the audit log, as many as a row can bear.
  private static func shown(_ goods: [String]) -> String {
    let (text, most) = (goods.joined(separator: ", "), 1_000)
    return text.count <= most ? text : "\(text.prefix(most))... (\(goods.count) in all)"
  }
}
#endif
