#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication

/// The exchange: one round trip in which a device sends what it wrote and receives what others wrote.
extension CloudRoutes {
  func addExchangeRoute(to router: RouterGroup<CloudContext>) {
    router.post("exchange") { request, _ in
      let token = try await admit(request)
      let identity = token.identity
      let message = try await request.exchange(limit: ServerLimits.exchangeBytes)
      let rules = try await bankRules(of: identity.container, for: message.wallet)
      let (now, quota) = (clock(), quota)
      try await storage.recordDevice(
        DeviceRecord(identity: identity, name: nil, createdMilliseconds: now, seenMilliseconds: now))
      let hasListeners = events.hasListeners(in: identity.container, besides: identity.device)
      let (response, event) = try await storage.transaction(on: identity.container) { container in
        var source = SystemRandomNumberGenerator()
        try container.admit(identity.device, with: message.wallet?.chain)
        let before = try container.position()
        let response = try CloudAcceptance.exchange(
          message, from: identity.device, now: now, quota: quota, rules: rules, in: &container, using: &source)
        let after = try container.position()
        guard after != before else { return (response, CloudEvent?.none) }
        return (
          response,
          CloudEvent(seq: after.seq, step: hasListeners ? try CloudAcceptance.step(since: before, in: container) : nil)
        )
      }
      if let event {
        events.publish(
          event.seq, event.step == nil ? nil : try Self.json(event), of: identity.container, from: identity.device)
      }
      var answer = request.wantsFrames ? try Response(exchange: response) : try Response(json: response)
      if token.isDue { answer.headers[.keepsakeToken] = tokens.renewed(token) }
      return answer
    }
  }
}
#endif
