#if Cloud
import Hummingbird
import KeepsakeReplication

/// The wallet outside of exchanges: a device that has joined another player settles its former wallet, with the token
/// that it had before.
extension CloudRoutes {
  func addWalletRoutes(to router: RouterGroup<CloudContext>) {
    router.post("wallet/leave") { request, context in
      // A device that was removed after it had left has a right to what the bank had given it.
      let identity = try signedIdentity(of: request)
      let work = RequestWork(of: identity.container, from: gate.client(of: request, context), gate)
      defer { work.end() }
      let offer = try await gate.json(
        LeavingRequest.self, of: request, limit: ServerLimits.exchangeBytes, work: work
      ).offer
      // Only a device that still belongs to the player, and may write, may say that the cloud was set back.
      let isReadOnly = appKeys.access(of: identity.app) == .readOnly
      let isRetired = try await storage.isRetired(identity)
      let rules =
        isRetired || isReadOnly
        ? bankRules(of: identity.container)
        : try await bankRules(of: identity.container, for: offer)
      let now = clock()
      var reads = ReadSet()
      reads.device = identity.device
      reads.chain = offer.chain
      reads.bank = CloudAcceptance.reads(of: offer)
      let (reply, seq) = try await storage.decide(on: identity.container, reading: reads) { container in
        try container.recordVisit(of: identity, now: now)
        var source = SystemRandomNumberGenerator()
        try container.admit(identity.device, leavingOn: offer.chain)
        // Of a chain that has left, the answer is always the same: what its device gets is its own.
        let hasLeft = try container.voucher(of: offer.chain) != nil
        if isReadOnly, !hasLeft { throw APIError.readOnly }
        let before = container.position().seq
        let reply = try CloudAcceptance.leave(
          with: offer, from: identity.device, now: now, rules: rules, in: &container, using: &source)
        let after = container.position().seq
        return (reply, after == before ? nil : after)
      }
      if let seq { events.publish(seq, nil, of: identity.container, from: identity.device) }
      return try await gate.response(expecting: .max, type: "application/json") {
        try Response.json(LeavingResponse(reply: reply))
      }
    }
  }
}
#endif
