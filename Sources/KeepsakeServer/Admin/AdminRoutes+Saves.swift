#if Cloud
import Foundation
import HTTPTypes
import Hummingbird
import KeepsakeReplication
import NIOCore

/// Looking at a player's saves, comparing them, and restoring one.
extension AdminRoutes {
  private static let pageSlots = 1_000
  private static let pageVersions = 200
  /// A page ends after this many bytes of versions: one alone may have twice as much.
  static let pageBytes = 1 << 20
  /// A save larger than this is too much to be shown as JSON: its bytes can be fetched.
  static let shownBytes = ShownSave.maximumBytes
  /// More bases, and more bytes to decode for one content, than any device makes: such a chain was forged to waste
  /// time.
  private static let longestChain = 1_000
  private static let chainBytes = 4 << 30

  private struct Slots: Encodable {
    var slots: [AdminSlot]
    /// The slot after which the next page begins.
    var next: String?
  }
  private struct Versions: Encodable {
    var versions: [AdminVersion]
    /// The seq before which the next page ends.
    var next: UInt64?
  }
  private struct Restoring: Decodable {
    var reason: String
    /// The new version's, so that the request can be repeated.
    var id: VersionID?
  }

  var saveRoutes: [Route] {
    [
      Route(method: .get, path: "players/{player}/slots", scope: .read, act: "save.list") { call in
        let slots = try await storage.slots(
          of: call.player.container, after: call.query("after"), limit: Self.pageSlots)
        return try Response(
          json: Slots(slots: slots, next: slots.count == Self.pageSlots ? slots.last?.slot : nil))
      },
      Route(method: .get, path: "players/{player}/versions", scope: .read, act: "save.history") { call in
        guard let slot = call.query("slot") else {
          throw APIError(.badRequest, .badRequest, "Name a slot with the parameter slot.")
        }
        let page = try await storage.versions(
          of: call.player.container, in: slot, before: try call.number("before") ?? Cursor.maximumSeq,
          limit: Self.pageVersions, bytes: Self.pageBytes)
        return try Response(json: Versions(versions: page.versions, next: page.hasMore ? page.versions.last?.seq : nil))
      },
      Route(method: .get, path: "players/{player}/versions/{version}", scope: .read, act: "save.show") { call in
        let version = try await version(call)
        return try await json(of: [version], call) { [saves] in
          Data("{\"content\":".utf8) + (try saves.json($0[0])) + Data(",\"version\":".utf8)
            + (try Response.json(version)) + Data("}".utf8)
        }
      },
      Route(method: .get, path: "players/{player}/versions/{version}/bytes", scope: .read, act: "save.bytes") {
        try await bytes($0)
      },
      Route(method: .get, path: "players/{player}/diff", scope: .read, act: "save.diff") { call in
        let (old, new) = (try await version(call, "from"), try await version(call, "to"))
        return try await json(of: [old, new], call) { [saves] in try saves.difference(from: $0[0], to: $0[1]) }
      },
      Route(method: .post, path: "players/{player}/versions/{version}/restore", scope: .saves, act: "save.restore") {
        call in
        let (player, version) = (try call.player, try call.version())
        call.about(version)
        let body = try await cloud.gate.json(Restoring.self, of: call.request, limit: ServerLimits.accountBytes)
        _ = try call.reason(body.reason)
        let restored = try await call.storage.restore(version, as: body.id, of: player.container)
        if let seq = restored.seq { cloud.events.publish(seq, nil, of: player.container, from: nil) }
        return try Response(json: restored)
      },
    ]
  }

  // MARK: Reading

  private func version(_ call: AdminCall, _ name: String = "version") async throws -> AdminVersion {
    let id = try call.version(name)
    call.about(id)
    guard let version = try await storage.version(id, of: call.player.container) else {
      throw APIError.versionUnknown
    }
    return version
  }

  /// Answers with JSON made of the bytes of saves, on a thread for such work.
  private func json(
    of versions: [AdminVersion], _ call: AdminCall, _ make: @escaping @Sendable ([Data]) throws -> Data
  ) async throws -> Response {
    guard let turn = turns.share(1) else { throw APIError.overBudget("saves to show") }
    defer { turn.end() }
    var plain: [Data] = []
    let container = try call.player.container
    let decoding = try await decoding(of: container)
    for version in versions {
      var bytes = Data()
      // A version's own length is what its device says: only what is decoded counts.
      for hash in version.contents {
        bytes += try await self.plain(hash, of: container, decoding, atMost: Self.shownBytes - bytes.count)
      }
      plain.append(bytes)
    }
    let data: Data
    do {
      data = try await decoders.run { [plain] in try make(plain) }
    } catch let error as UnreadableSave {
      throw APIError(.unprocessableContent, .notReadable, error.message)
    }
    return Response(
      status: .ok, headers: [.contentType: "application/json"], body: try await cloud.gate.responseBody(data))
  }

  /// Answers with the bytes of a save, one content after the other.
  private func bytes(_ call: AdminCall) async throws -> Response {
    let (version, container) = (try await version(call), try call.player.container)
    guard let turn = turns.share(1) else { throw APIError.overBudget("saves to send") }
    // The first one before the response begins: most saves have no other.
    let decoding = try await decoding(of: container)
    let first = try await version.contents.first.asyncMap { try await plain($0, of: container, decoding) }
    // Without a length, which would be what the device says: the bytes beyond it would be the next response.
    let body = ResponseBody { writer in
      defer { turn.end() }
      if let first { try await Self.write(first, to: &writer) }
      for hash in version.contents.dropFirst() {
        try await Self.write(try await plain(hash, of: container, decoding), to: &writer)
      }
      try await writer.finish(nil)
    }
    return Response(status: .ok, headers: [.contentType: "application/octet-stream"], body: body)
  }

  static func write(_ data: Data, to writer: inout any ResponseBodyWriter) async throws {
    var rest = ByteBuffer(bytes: data)
    while let part = rest.readSlice(length: min(rest.readableBytes, ServerLimits.responsePartBytes)),
      part.readableBytes > 0
    {
      try await writer.write(part)
    }
  }

  /// What a request about this player may decode.
  func decoding(of container: ContainerID) async throws -> ContentDecoding {
    ContentDecoding(stored: try await storage.usedBytes(of: container))
  }

  /// Returns the plain bytes of a content, decoded from its chain of bases. Holds at most one frame, its base and
  /// itself at a time, beside what `decoding` keeps.
  ///
  /// - Parameters:
  ///   - decoding: What the request may decode.
  ///   - limit: How many bytes it may have, and each of its bases.
  /// - Throws: An `APIError` before anything is decoded if one has more.
  func plain(
    _ hash: ContentHash, of container: ContainerID, _ decoding: ContentDecoding,
    atMost limit: Int = ServerLimits.contentBytes
  ) async throws -> Data {
    var chain: [ContentHash] = []
    var bytes = 0
    var plain: Data?
    var next: ContentHash? = hash
    while let link = next {
      try decoding.take(ContentDecoding.lookBytes)
      plain = decoding.kept(link)
      guard plain?.count ?? 0 <= limit else { throw APIError.versionTooLarge }
      if plain != nil { break }
      guard let content = try await storage.content(link, of: container) else { throw APIError.versionBytesGone }
      guard content.length <= limit else { throw APIError.versionTooLarge }
      chain.append(link)
      bytes += content.length
      guard chain.count <= Self.longestChain, bytes <= Self.chainBytes else { throw APIError.versionDamaged }
      next = content.base
    }
    try decoding.take(bytes)
    for link in chain.reversed() {
      guard let content = try await storage.content(link, of: container) else {
        throw APIError.versionBytesGone
      }
      let read = try await content.bytes.reader()
      let decoded = try await decoders.run { [saves, plain] in
        let frame = try read()
        do {
          return try saves.plain(frame, base: plain, length: content.length)
        } catch is UnreadableSave {
          throw APIError.versionDamaged
        }
      }
      decoding.keep(decoded, of: link)
      plain = decoded
    }
    guard let plain, ContentHash(of: plain) == hash else { throw APIError.versionDamaged }
    return plain
  }
}

extension Optional {
  fileprivate func asyncMap<Result>(_ body: (Wrapped) async throws -> Result) async rethrows -> Result? {
    guard let self else { return nil }
    return try await body(self)
  }
}
#endif
