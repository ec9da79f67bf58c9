import Foundation
import KeepsakeReplication

/// What a new version of a tracked file replaces: the version that the file on this device came from, never what
/// arrived from other devices in the meantime.
struct FileParents {
  /// The existing version that is identical to the save, if any. Then no new one is needed.
  private(set) var same: VersionID?
  private(set) var versions: [VersionID] = []

  /// - Parameters:
  ///   - save: Its contents are already in the store.
  ///   - others: Further versions that it replaces, with substitutions already applied.
  init(of save: SaveDraft, at key: SlotKey, additionalParents others: [VersionID], in transaction: StoreTransaction)
    throws
  {
    guard case .stored(let contents, let length) = save.content else {
      throw StoreError(.misuse, "a tracked file can't be deleted")
    }
    let heads = try transaction.heads(of: key).compactMap { try transaction.version($0)?.record }
    func says(_ record: VersionRecord) throws -> Bool {
      guard !record.tombstone, record.contents != contents else { return !record.tombstone }
      // A large file is cut at the boundaries of the version before it, so the same bytes may consist of different
      // segments.
      guard record.length == length, record.contents.count > 1, contents.count > 1, try !transaction.wasPruned(record)
      else {
        return false
      }
      return try transaction.plainBytes(of: record)
        == contents.reduce(into: Data()) { $0 += try transaction.plainContent($1) }
    }
    // Stores from before files were synced don't record the base. In those, only this device has versions of the file.
    let known = try transaction.fileBase(of: save.slot) ?? (key.isLocal && heads.count == 1 ? heads[0].id : nil)
    if others.isEmpty {
      if let known, let record = try transaction.version(known)?.record, try says(record) {
        same = known
      } else {
        same = try heads.first(where: says)?.id
      }
    } else if heads.count == 1 {
      same = try heads.first(where: says)?.id
    }
    versions = try transaction.onOneSide((known.map { [$0] } ?? []) + others, of: key)
  }
}
