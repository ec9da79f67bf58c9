#if Cloud
import Foundation
import HTTPTypes
import Hummingbird
import KeepsakeReplication
import NIOCore

/// Contents by name: put before the versions that need them, and fetched after.
extension Cloud {
  func addContentRoutes(to router: RouterGroup<CloudContext>) {
    router.put("contents/{hash}") { request, context in
      let identity = try identity(of: request)
      let hash = try Self.hash(context.parameters.get("hash"), of: "The address")
      let length = try Self.length(request.headers[.keepsakeLength])
      let base = try request.headers[.keepsakeBase].map { try Self.hash($0, of: "Keepsake-Base") }
      guard base != hash else { throw APIError(.badRequest, .badRequest, "A content can't be its own base.") }
      let declared = request.headers[.contentLength].flatMap { Int($0) }
      if let declared, declared > ServerLimits.contentBytes {
        throw APIError(
          .contentTooLarge, .tooLarge, "A content has at most \(ServerLimits.contentBytes) bytes, this one \(declared).")
      }
      if try await storage.hasContent(hash, of: identity.container) {
        return try Response(json: ["stored": hash.description])
      }
      func keep(_ bytes: KeptContent.Bytes, count: Int) async throws -> Response {
        guard count > 0 else { throw APIError(.badRequest, .badRequest, "A content's frame is never empty.") }
        let content = KeptContent(hash: hash, length: length, base: base, bytes: bytes)
        do {
          try await storage.putContent(content, of: identity.container)
        } catch let error as MissingBase {
          // What is taken has to be complete, or a save that nobody can read would become visible.
          throw APIError(.conflict, .baseMissing, "The base \(error.base) isn't here: send the content in full.")
        }
        return try Response(json: ["stored": hash.description], status: .created)
      }
      if let declared, declared <= ServerLimits.inlineContentBytes {
        let bytes = try await request.body(limit: ServerLimits.inlineContentBytes)
        return try await keep(.memory(bytes), count: bytes.count)
      }
      return try await uploads.receive(
        request.body, declared: declared, limit: ServerLimits.contentBytes, context: context
      ) { file, count in try await keep(.file(file, count: count), count: count) }
    }
    router.get("contents/{hash}") { request, context in
      let identity = try identity(of: request)
      let hash = try Self.hash(context.parameters.get("hash"), of: "The address")
      guard let content = try await storage.content(hash, of: identity.container) else {
        throw APIError(.notFound, .contentMissing, "This content isn't here.")
      }
      var headers: HTTPFields = [
        .contentType: "application/zstd", .keepsakeLength: String(content.length),
      ]
      if let base = content.base { headers[.keepsakeBase] = base.description }
      switch content.bytes {
      case .memory(let bytes):
        return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
      case .file(let url, _):
        return Response(status: .ok, headers: headers, body: try await FileIO().loadFile(path: url.path, context: context))
      }
    }
  }

  private static func hash(_ text: String?, of place: String) throws -> ContentHash {
    guard let text, let hash = ContentHash(text) else {
      throw APIError(.badRequest, .badRequest, "\(place) needs a hash of 64 hexadecimal digits.")
    }
    return hash
  }

  private static func length(_ text: String?) throws -> Int {
    guard let text, let length = Int(text), (0...ServerLimits.contentBytes).contains(length) else {
      throw APIError(
        .badRequest, .badRequest, "The header Keepsake-Length needs the plain length, 0 to \(ServerLimits.contentBytes).")
    }
    return length
  }
}
#endif
