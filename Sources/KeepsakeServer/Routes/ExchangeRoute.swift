#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication

/// The one round trip in which a device tells what it wrote and hears what others wrote.
extension Cloud {
  func addExchangeRoute(to router: RouterGroup<CloudContext>) {
    router.post("exchange") { request, _ in
      let identity = try identity(of: request)
      let message = try await request.json(ExchangeRequest.self, limit: ServerLimits.exchangeBytes)
      let now = clock()
      try await storage.noteDevice(
        DeviceRecord(identity: identity, name: nil, createdMilliseconds: now, seenMilliseconds: now))
      let (response, before, after) = try await storage.transaction(on: identity.container) { container in
        var source = SystemRandomNumberGenerator()
        let before = try container.position()
        var message = message
        message.limit = min(
          message.limit, try container.changes(after: message.cursor.seq, fittingIn: ServerLimits.pageBytes))
        let response = try CloudAcceptance.exchange(message, now: now, in: &container, using: &source)
        return (response, before, try container.position())
      }
      if before != after { events.publish(after.seq, of: identity.container) }
      return try Response(json: response)
    }
  }
}
#endif
