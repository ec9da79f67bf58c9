#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication

/// The exchange: one round trip in which a device sends what it wrote and receives what others wrote.
extension CloudRoutes {
  func addExchangeRoute(to router: RouterGroup<CloudContext>) {
    router.post("exchange") { request, context in
      // Whether the device was removed is loaded with everything else.
      let token = try await admit(request, checksRemoval: false)
      let (identity, address) = (token.identity, gate.client(of: request, context))
      let work = RequestWork(of: identity.container, from: address, gate)
      defer { work.end() }
      var response: Response
      do {
        let message = try await gate.exchange(of: request, limit: ServerLimits.exchangeBytes, work: work)
        response = try await admitted(message, of: identity, from: address, as: work) {
          try await send(exchange(message, from: identity), framed: request.wantsFrames)
        }
      } catch let error where error is APIError || error is ExchangeError {
        // A device that was removed is told so, whatever it has sent.
        if try await storage.isRetired(identity) { throw APIError.retired }
        throw error
      }
      if token.isDue { response.headers[.keepsakeToken] = tokens.renewed(token) }
      return response
    }
  }

  private func send(_ response: ExchangeResponse, framed isFramed: Bool) async throws -> Response {
    let items = response.changes.reduce(0) { $0 + $1.size }
    let expected = response.contents.reduce(items) { $0 + $1.bytes.count }
    if isFramed {
      return try await gate.response(expecting: expected, type: ExchangeBody.contentType) {
        try ExchangeBody.encode(response)
      }
    }
    return try await gate.response(expecting: expected, type: "application/json") { try Response.json(response) }
  }

  /// Handles an exchange, and notifies the other devices.
  ///
  /// - Throws: `APIError.retired` for a device that was removed, and ``ExchangeError`` for a request that no correct
  ///   device sends.
  func exchange(_ message: ExchangeRequest, from identity: DeviceIdentity) async throws -> ExchangeResponse {
    var message = message
    let access = appKeys.access(of: identity.app)
    // Not even which chain is whose is recorded of it: removing the device would close that.
    if access == .readOnly { message.wallet = nil }
    // The bank isn't asked without an offer.
    let rules =
      if let offer = message.wallet { try await bankRules(of: identity.container, for: offer) } else { BankRules() }
    let (now, quota, setBackPolicy) = (clock(), quota, setBackPolicy)
    let hasListeners = events.hasListeners(in: identity.container, besides: identity.device)
    let reads = try CloudAcceptance.reads(
      of: message, from: identity.device, hasQuota: quota != nil, showsStep: hasListeners)
    let (response, event) = try await storage.decide(on: identity.container, reading: reads) {
      [message] container in
      var source = SystemRandomNumberGenerator()
      try container.admit(identity.device, with: message.wallet?.chain)
      try container.recordVisit(of: identity, now: now)
      let before = container.position()
      let response = try CloudAcceptance.exchange(
        message, from: identity.device, now: now, quota: quota, rules: rules, setBackPolicy: setBackPolicy,
        access: access, in: &container, using: &source)
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
