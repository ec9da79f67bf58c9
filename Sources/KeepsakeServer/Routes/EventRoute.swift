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
    router.get("events") { request, _ in
      let identity = try await identity(of: request)
      let cursor = try Self.cursor(of: request)
      // Subscribe before reading the position, so that no event is missed in between.
      let subscription = try events.subscribe(identity.device, to: identity.container)
      let start: ContainerState
      let first: ByteBuffer
      do {
        start = try await storage.state(of: identity.container, for: cursor)
        first = try Self.line(Self.json(CloudEvent(seq: start.seq, unknown: start.unknown)))
      } catch {
        events.unsubscribe(subscription)
        throw error
      }
      let token = Self.bearer(of: request)
      let body = ResponseBody { writer in
        defer { events.unsubscribe(subscription) }
        var lastSent = start.seq
        try await writer.write(first)
        for await notice in subscription.notices {
          guard isStillAdmitted(token) else { break }
          if notice.seq > lastSent {
            lastSent = notice.seq
            try await writer.write(notice.event.map(Self.line) ?? Self.event(notice.seq))
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

  private static func event(_ seq: UInt64) -> ByteBuffer { line(ByteBuffer(string: "{\"seq\":\(seq)}")) }

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

  private static func line(_ json: ByteBuffer) -> ByteBuffer {
    var line = ByteBuffer(string: "data: ")
    line.writeImmutableBuffer(json)
    line.writeString("\n\n")
    return line
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
