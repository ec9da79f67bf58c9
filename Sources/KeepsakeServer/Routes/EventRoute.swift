#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication
import NIOCore
import ServiceLifecycle

/// The stream that tells a device how far its container has come (server-sent events).
extension Cloud {
  func addEventRoute(to router: RouterGroup<CloudContext>) {
    router.get("events") { request, _ in
      let identity = try identity(of: request)
      // Listening begins before the position is read: nothing falls between.
      let subscription = try events.subscribe(to: identity.container)
      let start = try await storage.position(of: identity.container).seq
      let body = ResponseBody { writer in
        defer { events.unsubscribe(subscription) }
        var told = start
        try await writer.write(Self.event(start))
        for await seq in subscription.seqs.cancelOnGracefulShutdown() {
          if seq > told {
            told = seq
            try await writer.write(Self.event(seq))
          } else {
            try await writer.write(ByteBuffer(string: ": still here\n\n"))
          }
        }
        try await writer.finish(nil)
      }
      return Response(
        status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-cache, no-store"], body: body)
    }
  }

  private static func event(_ seq: UInt64) -> ByteBuffer { ByteBuffer(string: "data: {\"seq\":\(seq)}\n\n") }
}
#endif
