#if Cloud
import Foundation
import HTTPTypes
import Hummingbird
import KeepsakeReplication
import NIOCore

/// Contents by hash: put before the versions that need them, and fetched after those.
extension CloudRoutes {
  private struct Received: Encodable {
    var received: Int
  }

  /// The headers of a put.
  private struct Description {
    var hash: ContentHash
    var length: Int
    var base: ContentHash?
  }

  func addContentRoutes(to router: RouterGroup<CloudContext>) {
    router.put("contents/{hash}") { request, context in
      let arrival = partials.arrival()
      let identity = try await writingIdentity(of: request)
      let description = try Self.description(of: request, named: context.parameters.get("hash"))
      let range = try request.headers[.contentRange].map { try ContentRange($0) }
      let declared = request.headers[.contentLength].flatMap { Int($0) }
      if let declared, declared > ServerLimits.contentBytes {
        throw APIError(
          .contentTooLarge, .tooLarge,
          "A content can have at most \(ServerLimits.contentBytes) bytes; this one has \(declared).")
      }
      if try await storage.hasContent(description.hash, of: identity.container) {
        partials.forget(description.hash, of: identity.container)
        return try Response(json: ["stored": description.hash.description])
      }
      try await requireRoom(for: description.hash, of: range?.total ?? declared, of: identity.container)
      if let range {
        return try await put(
          part: range, arrived: arrival, of: description, request, declared: declared, from: identity)
      }
      if let declared, declared <= ServerLimits.inlineContentBytes {
        return try await gate.withBody(of: request, limit: ServerLimits.inlineContentBytes) { bytes in
          try await keep(description, .memory(bytes), count: bytes.count, from: identity)
        }
      }
      return try await uploads.receive(request.body, declared: declared, limit: ServerLimits.contentBytes) {
        file, count in
        try await keep(description, .file(file, count: count), count: count, from: identity)
      }
    }
    router.get("contents/{hash}/upload") { request, context in
      let identity = try await identity(of: request)
      let hash = try Self.hash(context.parameters.get("hash"), of: "The address")
      let key = try Self.key(of: request, hash, from: identity)
      if try await storage.hasContent(hash, of: identity.container) {
        return try Response(json: ["stored": hash.description])
      }
      if let text = request.headers[.keepsakeTotal] {
        guard let total = Int(text), (1...ServerLimits.contentBytes).contains(total) else {
          throw APIError(
            .badRequest, .badRequest,
            "The header Keepsake-Total has to be the frame's length, 1 to \(ServerLimits.contentBytes).")
        }
        try await requireRoom(for: hash, of: total, of: identity.container)
      }
      return try Response(json: Received(received: partials.received(key)))
    }
    router.get("contents/{hash}") { request, context in
      let identity = try await identity(of: request)
      let hash = try Self.hash(context.parameters.get("hash"), of: "The address")
      guard let content = try await storage.content(hash, of: identity.container) else {
        throw APIError(.notFound, .contentMissing, "The server doesn't have this content.")
      }
      do {
        return try await answer(content, to: request, context)
      } catch let error as HTTPError where error.status == .notFound {
        // Its file disappeared after the database was read: the content was deleted, or put again.
        throw APIError(.serviceUnavailable, .busy, "This content is being replaced.", retryAfterSeconds: 1)
      }
    }
  }

  // MARK: Putting

  /// Refuses a content that can't fit before its bytes are sent.
  private func requireRoom(for hash: ContentHash, of bytes: Int?, of container: ContainerID) async throws {
    guard let quota, let bytes,
      let shortage = try await storage.shortage(for: hash, of: bytes, in: container, quota: quota)
    else { return }
    throw APIError.overQuota(shortage)
  }

  private func put(
    part range: ContentRange, arrived: UInt64, of description: Description, _ request: Request, declared: Int?,
    from identity: DeviceIdentity
  ) async throws -> Response {
    guard declared == nil || declared == range.count else {
      throw APIError(
        .badRequest, .badRange, "Content-Range covers \(range.count) bytes, but Content-Length is \(declared ?? 0).")
    }
    let key = try Self.key(of: request, description.hash, from: identity)
    if let base = description.base, try await !storage.hasContent(base, of: identity.container) {
      // Reported before the whole frame has been sent in vain.
      throw Self.baseMissing(base)
    }
    let outcome = try await partials.receive(request.body, range, of: key, by: arrived) { file, count in
      let bytes: KeptContent.Bytes =
        count <= ServerLimits.inlineContentBytes ? .memory(try Data(contentsOf: file)) : .file(file, count: count)
      return try await keep(description, bytes, count: count, from: identity)
    }
    switch outcome {
    case .incomplete(let received): return try Response(json: Received(received: received), status: .accepted)
    case .complete(let response): return response
    }
  }

  private func keep(
    _ description: Description, _ bytes: KeptContent.Bytes, count: Int, from identity: DeviceIdentity
  ) async throws -> Response {
    guard count > 0 else { throw APIError(.badRequest, .badRequest, "A content's frame can't be empty.") }
    let content = KeptContent(hash: description.hash, length: description.length, base: description.base, bytes: bytes)
    do {
      if let seq = try await storage.putContent(content, of: identity.container, quota: quota) {
        events.publish(seq, nil, of: identity.container, from: identity.device)
      }
    } catch let error as OverQuota {
      throw APIError.overQuota(error.shortage)
    } catch let error as MissingBase {
      // An accepted content must be complete, or a save that nobody can read would become visible.
      throw Self.baseMissing(error.base)
    }
    partials.forget(description.hash, of: identity.container)
    return try Response(json: ["stored": description.hash.description], status: .created)
  }

  private static func baseMissing(_ base: ContentHash) -> APIError {
    APIError(.conflict, .baseMissing, "The server doesn't have the base \(base): send the content in full.")
  }

  // MARK: Fetching

  private func answer(
    _ content: KeptContent, to request: Request, _ context: CloudContext
  ) async throws -> Response {
    let count: Int
    let tag: String
    switch content.bytes {
    case .memory(let bytes): (count, tag) = (bytes.count, "\"\(ContentHash(of: bytes))\"")
    case .file(let url, let size):
      // A file name is never used again for other bytes. It is hashed because it contains the container's id.
      (count, tag) = (size, "\"\(ContentHash(of: Data(url.lastPathComponent.utf8)))\"")
    case .parts(let parts):
      (count, tag) = (parts.count, "\"\(ContentHash(of: Data(parts.tag.utf8)))\"")
    }
    var headers: HTTPFields = [
      .contentType: "application/zstd", .keepsakeLength: String(content.length), .eTag: tag, .acceptRanges: "bytes",
    ]
    if let base = content.base { headers[.keepsakeBase] = base.description }
    var range: ContentRange?
    let condition = request.headers[.ifRange]
    if let text = request.headers[.range], condition == nil || condition == tag {
      range = try ContentRange.wanted(text, of: count)
    }
    if let range { headers[.contentRange] = "bytes \(range.first)-\(range.last)/\(range.total)" }
    let status: HTTPResponse.Status = range == nil ? .ok : .partialContent
    switch content.bytes {
    case .memory(let bytes):
      let part = range.map { bytes.dropFirst($0.first).prefix($0.count) } ?? bytes
      return Response(status: status, headers: headers, body: try await gate.responseBody(part))
    case .file(let url, _):
      let body =
        if let range {
          try await FileIO().loadFile(path: url.path, range: range.first...range.last, context: context)
        } else {
          try await FileIO().loadFile(path: url.path, context: context)
        }
      return Response(status: status, headers: headers, body: body)
    case .parts(let parts):
      let wanted = range.map { $0.first..<$0.last + 1 } ?? 0..<count
      let body = ResponseBody(contentLength: wanted.count) { writer in
        try await parts.each(of: wanted) { try await writer.write(ByteBuffer(bytes: $0)) }
        try await writer.finish(nil)
      }
      return Response(status: status, headers: headers, body: body)
    }
  }

  // MARK: Headers

  private static func description(of request: Request, named name: String?) throws -> Description {
    let hash = try hash(name, of: "The address")
    let base = try request.headers[.keepsakeBase].map { try Self.hash($0, of: "Keepsake-Base") }
    guard base != hash else { throw APIError(.badRequest, .badRequest, "A content can't be its own base.") }
    return Description(hash: hash, length: try length(request.headers[.keepsakeLength]), base: base)
  }

  private static func key(
    of request: Request, _ hash: ContentHash, from identity: DeviceIdentity
  ) throws -> PartialUploads.Key {
    PartialUploads.Key(
      container: identity.container, device: identity.device, hash: hash,
      frame: try Self.hash(request.headers[.keepsakeFrame], of: "Keepsake-Frame"))
  }

  private static func hash(_ text: String?, of place: String) throws -> ContentHash {
    guard let text, let hash = ContentHash(text) else {
      throw APIError(.badRequest, .badRequest, "\(place) has to contain a hash of 64 hexadecimal digits.")
    }
    return hash
  }

  private static func length(_ text: String?) throws -> Int {
    guard let text, let length = Int(text), (0...ServerLimits.contentBytes).contains(length) else {
      throw APIError(
        .badRequest, .badRequest,
        "The header Keepsake-Length has to be the uncompressed length, 0 to \(ServerLimits.contentBytes).")
    }
    return length
  }
}
#endif
