#if Cloud
import Foundation
import KeepsakeReplication

/// What happened to a content. It is committed in either case, and with it what was removed to make room.
private enum PlacedContent: Sendable {
  /// With how far the container has come, if the listeners have to be notified.
  case kept(isNew: Bool, UInt64?)
  case overQuota(QuotaShortage)
}

// Contents that are put beside exchanges.
extension CloudStorage {
  /// Stores a content; durable when this returns. If it is here already, the existing one stays.
  ///
  /// A damaged content is replaced only by a full frame, and the heads that need it are then announced again: the seq
  /// to publish to the listeners is returned.
  ///
  /// - Throws: `MissingBase` for a delta whose base the container lacks, and `OverQuota`.
  func putContent(_ content: KeptContent, of container: ContainerID, quota: Int64?) async throws -> UInt64? {
    let placed: PlacedContent
    switch content.bytes {
    case .memory(let data):
      placed = try await place(content, .inline(data), in: container, quota)
    case .file(let url, let count):
      let name = "\(container)-\(content.hash)-\(UInt64.random(in: .min ... .max))"
      try await adopt(url, as: name, of: container)
      do {
        placed = try await place(content, .stored(name: name, count: count), in: container, quota)
      } catch {
        try await discard(name, of: container)
        throw error
      }
      if case .kept(isNew: true, _) = placed { break }
      try await discard(name, of: container)
    case .parts:
      throw ServerError(.configuration, "A content is put from memory or from a file.")
    }
    switch placed {
    case .kept(_, let seq): return seq
    case .overQuota(let shortage): throw OverQuota(shortage: shortage)
    }
  }

  private func place(
    _ content: KeptContent, _ bytes: WriteSet.Content.Bytes, in container: ContainerID, _ quota: Int64?
  ) async throws -> PlacedContent {
    let now = clock()
    let kept = WriteSet.Content(hash: content.hash, length: content.length, base: content.base, bytes: bytes)
    let reads = Self.reads(of: content.hash, base: content.base, quota)
    return try await decide(on: container, reading: reads) { storage in
      let heals = try storage.isSuspect(kept.hash)
      if let base = kept.base {
        // The replacement of a damaged content must not depend on any base, least of all on one that depends on it.
        if heals { throw MissingBase(base: base) }
        if try !storage.hasContent(base) { throw MissingBase(base: base) }
      }
      if let quota, !heals, try !storage.hasContent(kept.hash),
        let shortage = try CloudAcceptance.shortage(for: Int64(bytes.count), quota, now: now, in: &storage)
      {
        return .overQuota(shortage)
      }
      let isNew = try storage.keep(kept)
      guard heals else { return .kept(isNew: isNew, nil) }
      var source = SystemRandomNumberGenerator()
      try CloudAcceptance.announce(kept.hash, in: &storage, using: &source)
      return .kept(isNew: isNew, storage.position().seq)
    }
  }

  private static func reads(of hash: ContentHash, base: ContentHash?, _ quota: Int64?) -> ReadSet {
    var reads = ReadSet()
    reads.contents = Set([hash, base].compactMap(\.self))
    reads.used = quota != nil
    return reads
  }

  /// Returns how much room is lacking for a content of `bytes` bytes, after what nobody needs has been removed; nil if
  /// it fits, or replaces a damaged one.
  func shortage(for hash: ContentHash, of bytes: Int, in container: ContainerID, quota: Int64) async throws
    -> QuotaShortage?
  {
    let now = clock()
    return try await decide(on: container, reading: Self.reads(of: hash, base: nil, quota)) { storage in
      if try storage.isSuspect(hash) { return nil }
      return try CloudAcceptance.shortage(for: Int64(bytes), quota, now: now, in: &storage)
    }
  }
}
#endif
