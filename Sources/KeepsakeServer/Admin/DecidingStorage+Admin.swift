#if Cloud
import HTTPTypes
import KeepsakeReplication

/// What became of restoring a version.
struct RestoredVersion: Sendable, Encodable {
  /// The version that shows what was restored: a new one, unless the slot showed that already.
  var version: VersionID
  var slot: String
  var isNew: Bool
  /// The seq to publish to the listeners, if there is something new.
  var seq: UInt64?

  private enum CodingKeys: String, CodingKey {
    case version, slot
    case isNew = "changed"
  }
}

extension DecidingStorage {
  /// Makes an earlier version the newest one of its slot: as a device would, by a new version with the same contents
  /// that replaces all current ones. It goes through the same acceptance as what devices send.
  ///
  /// - Parameter chosen: The new version's id; nil for any. If there is such a version, it was restored before, and
  ///   what devices have saved since isn't replaced.
  /// - Throws: `APIError` if there is no such version, it is a delete, or its bytes are gone, or if the chosen id is
  ///   another version's.
  func restore(
    _ id: VersionID, as chosen: VersionID? = nil, of container: ContainerID
  ) async throws -> RestoredVersion {
    let now = clock()
    var source = SystemRandomNumberGenerator()
    // Drawn once: deciding anew mustn't ask for another version.
    let (new, writer) = (chosen ?? VersionID(using: &source), WriterID(using: &source))
    var reads = ReadSet()
    reads.versions = [id, new]
    return try await decide(on: container, reading: reads) { storage in
      guard let old = try storage.version(id)?.record else { throw APIError.versionUnknown }
      guard !old.tombstone else {
        throw APIError(.conflict, .badRequest, "This version is a delete: there is nothing to restore.")
      }
      if let before = try storage.version(new)?.record {
        guard before.slot == old.slot, before.contents == old.contents, before.id != old.id else {
          throw APIError.versionExists
        }
        return RestoredVersion(version: new, slot: old.slot, isNew: false)
      }
      let heads = try storage.heads(of: old.slot)
      let only = heads.count == 1 ? try storage.version(heads[0])?.record : nil
      if let only, !only.tombstone, only.contents == old.contents {
        return RestoredVersion(version: only.id, slot: old.slot, isNew: false)
      }
      var record = old
      (record.id, record.covers, record.writer) = (new, heads, writer)
      (record.savedAtMilliseconds, record.provisional) = (now, false)
      record.metadata.device = AdminRoutes.deviceName
      var source = SystemRandomNumberGenerator()
      let request = ExchangeRequest(cursor: storage.position(), versions: [record], limit: 1)
      let response = try CloudAcceptance.exchange(request, now: now, in: &storage, using: &source)
      switch response.outcome {
      case .accepted(let seq)?: return RestoredVersion(version: new, slot: old.slot, isNew: true, seq: seq)
      case .refused(let refusals)?:
        throw APIError(.conflict, .badRequest, "It can't be restored: \(refusals.first?.message ?? "refused").")
      default: throw APIError.versionBytesGone
      }
    }
  }
}

extension APIError {
  static let versionUnknown = APIError(.notFound, .versionUnknown, "This player has no such version.")
  static let versionBytesGone = APIError(
    .conflict, .contentMissing, "The bytes of this version aren't here any more: nothing was changed.")

  static let versionExists = APIError(
    .conflict, .badRequest, "The id for the new version is another version's: choose one at random.")

  static let versionDamaged = APIError(
    .conflict, .contentMissing, "The bytes of this version can't be decoded: they came damaged, or were forged.")

  static let versionTooCostly = APIError(
    .conflict, .contentMissing, "These bytes take more work to decode than those of any save: they were forged.")

  static let versionTooLarge = APIError(
    .unprocessableContent, .notReadable,
    "The save, or what it is decoded from, is larger than \(AdminRoutes.shownBytes) bytes: fetch its bytes.")

  /// A player whose devices are refused for now. What they have stays on them.
  static func banned(_ ban: Ban) -> APIError {
    var error = APIError(
      .forbidden, .banned, "This player is banned: \(ban.reason). The data on the device are kept.")
    error.reason = ban.reason
    return error
  }
}
#endif
