#if Cloud
import Foundation
import Hummingbird
import KeepsakeReplication
import NIOCore

/// The event stream (server-sent events) that reports how far a device's container has come and what changed, and the
/// same events as single responses.
extension CloudRoutes {
  func addEventRoute(to router: RouterGroup<CloudContext>) {
    router.get("events/next") { request, _ in try await nextEvent(request) }
    router.get("events") { request, context in
      let identity = try await identity(of: request)
      let cursor = try Self.cursor(of: request)
      let token = Self.bearer(of: request)
      let stream = EventStream { isStillAdmitted(token) }
      // Listen before reading the position, so that no event is missed in between.
      let listening = try events.listen(identity.device, to: identity.container, stream)
      let start = try await storage.state(of: identity.container, for: cursor)
      let first = try EventStream.line(Self.json(CloudEvent(seq: start.seq, unknown: start.unknown)))
      let body = ResponseBody { [channel = context.channel] writer in
        try await writer.write(first)
        try await EventConnection.keep(channel, stream, listening, after: start.seq)
      }
      var headers: HTTPFields = [.contentType: "text/event-stream", .cacheControl: "no-cache, no-store"]
      // HTTP/2 ends a stream without its connection.
      if context.channel is any SocketOptionProvider { headers[.connection] = "close" }
      return Response(status: .ok, headers: headers, body: body)
    }
  }

  /// The listener's cursor, if the request contains one: EPOCH.SEQ.MARK.
  private static func cursor(of request: Request) throws -> Cursor? {
    guard let text = request.uri.queryParameters["cursor"] else { return nil }
    let numbers = text.split(separator: ".", omittingEmptySubsequences: false).map { UInt64($0) }
    guard numbers.count == 3, let epoch = numbers[0], let seq = numbers[1], let mark = numbers[2],
      max(epoch, seq) <= Cursor.maximumSeq
    else {
      throw APIError(.badRequest, .badRequest, "The parameter cursor has to be EPOCH.SEQ.MARK, three whole numbers.")
    }
    return Cursor(epoch: epoch, seq: seq, mark: mark)
  }

  /// Encodes an event as it is sent to all listeners.
  static func json(_ event: CloudEvent) throws -> ByteBuffer {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return ByteBuffer(bytes: try encoder.encode(event))
  }

  /// Responds with one event, for clients that no stream reaches: immediately if the container isn't at the seq that
  /// the client names, or the client's cursor isn't from its history; else when the container changes, or with 204 at
  /// the next heartbeat.
  private func nextEvent(_ request: Request) async throws -> Response {
    let identity = try await identity(of: request)
    var after: UInt64?
    if let text = request.uri.queryParameters["after"] {
      guard let seq = UInt64(text) else {
        throw APIError(.badRequest, .badRequest, "The parameter after has to be a whole number.")
      }
      after = seq
    }
    let cursor = try Self.cursor(of: request)
    let subscription = try events.subscribe(identity.device, to: identity.container)
    defer { events.unsubscribe(subscription) }
    let state = try await storage.state(of: identity.container, for: cursor)
    guard let after, after == state.seq, state.unknown == nil else {
      return try Response(json: CloudEvent(seq: state.seq, unknown: state.unknown))
    }
    let token = Self.bearer(of: request)
    for await notice in subscription.notices {
      // What was revoked meanwhile gets nothing more.
      guard notice.seq > after, isStillAdmitted(token) else { break }
      guard let json = notice.event else { return try Response(json: CloudEvent(seq: notice.seq)) }
      return Response(status: .ok, headers: [.contentType: "application/json"], body: ResponseBody(byteBuffer: json))
    }
    return Response(status: .noContent)
  }
}
#endif
