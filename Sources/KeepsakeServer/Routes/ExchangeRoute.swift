#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication

/// The exchange: one round trip in which a device sends what it wrote and receives what others wrote.
extension CloudRoutes {
  func addExchangeRoute(to router: RouterGroup<CloudContext>) {
    router.post("exchange") { request, _ in
      // Whether the device was removed is loaded with everything else.
      let identity = try signedIdentity(of: request)
      let response: ExchangeResponse
      do {
        let message = try await request.exchange(limit: ServerLimits.exchangeBytes)
        response = try await exchange(message, from: identity)
      } catch let error where error is APIError || error is ExchangeError {
        // A device that was removed is told so, whatever it has sent.
        if try await storage.isRetired(identity) { throw APIError.retired }
        throw error
      }
      return request.wantsFrames ? try Response(exchange: response) : try Response(json: response)
    }
  }

  /// Handles an exchange, and notifies the other devices.
  ///
  /// - Throws: `APIError.retired` for a device that was removed, and ``ExchangeError`` for a request that no correct
  ///   device sends.
  func exchange(_ message: ExchangeRequest, from identity: DeviceIdentity) async throws -> ExchangeResponse {
    let rules = try await bankRules(of: identity.container, for: message.wallet)
    let (now, quota) = (clock(), quota)
    let hasListeners = events.hasListeners(in: identity.container, besides: identity.device)
    let reads = try CloudAcceptance.reads(
      of: message, from: identity.device, hasQuota: quota != nil, showsStep: hasListeners)
    let (response, event) = try await storage.decide(on: identity.container, reading: reads) { container in
      var source = SystemRandomNumberGenerator()
      try container.admit(identity.device, with: message.wallet?.chain)
      try container.recordVisit(of: identity, now: now)
      let before = container.position()
      let response = try CloudAcceptance.exchange(
        message, from: identity.device, now: now, quota: quota, rules: rules, in: &container, using: &source)
      let after = container.position()
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
    return response
  }
}
#endif
