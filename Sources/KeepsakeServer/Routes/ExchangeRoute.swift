#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication

/// The exchange: one round trip in which a device sends what it wrote and receives what others wrote.
extension CloudRoutes {
  func addExchangeRoute(to router: RouterGroup<CloudContext>) {
    router.post("exchange") { request, context in
      let token = try await admit(request)
      let message = try await gate.exchange(of: request, limit: ServerLimits.exchangeBytes)
      var response = try await admitted(message, of: token.identity, from: gate.client(of: request, context)) {
        try await exchange(message, from: token.identity, framed: request.wantsFrames)
      }
      if token.isDue { response.headers[.keepsakeToken] = tokens.renewed(token) }
      return response
    }
  }

  private func exchange(
    _ message: ExchangeRequest, from identity: DeviceIdentity, framed isFramed: Bool
  ) async throws -> Response {
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
    let expected = response.contents.reduce(response.changes.count * 512) { $0 + $1.bytes.count }
    if isFramed {
      return try await gate.response(expecting: expected, type: ExchangeBody.contentType) {
        try ExchangeBody.encode(response)
      }
    }
    return try await gate.response(expecting: expected, type: "application/json") { try Response.json(response) }
  }
}
#endif
