import Foundation
import KeepsakeReplication
import KeepsakeStore

/// What a new version of a tracked file replaces: the version from which the file on this device came, never what came meanwhile from others.
struct FileParents {
  /// The version that says the same already; a new one isn't needed then.
  private(set) var same: VersionID?
  private(set) var parents = SaveParents.versions([])

  /// - Parameter others: What it replaces besides, as it stands now.
  init(
    of save: GameCore.Save, _ contents: [ContentHash], length: Int, at place: String, additionalParents others: [VersionID],
    in transaction: StoreTransaction
  ) throws {
    let heads = try transaction.heads(of: place).compactMap { try transaction.version($0)?.record }
    func says(_ record: VersionRecord) throws -> Bool {
      guard !record.tombstone, record.contents != contents else { return !record.tombstone }
      // Large files are cut as the one before was, so the same bytes may have other parts.
      guard record.length == length, record.contents.count > 1, contents.count > 1, try !transaction.wasPruned(record) else {
        return false
      }
      return try transaction.plainBytes(of: record) == contents.reduce(into: Data()) { $0 += try transaction.plainContent($1) }
    }
    // Stores from before files were synced say nothing of it: only this device had them.
    let known = try transaction.fileBase(of: save.slot) ?? (LocalSlot.contains(place) && heads.count == 1 ? heads[0].id : nil)
    if others.isEmpty {
      if let known, let record = try transaction.version(known)?.record, try says(record) {
        same = known
      } else {
        same = try heads.first(where: says)?.id
      }
    } else if heads.count == 1 {
      same = try heads.first(where: says)?.id
    }
    let replaced = (known.map { [$0] } ?? []) + others
    parents = try .versions(replaced, at: place, of: save.slot, in: transaction)
  }
}

extension SaveParents {
  /// Without what stands on the other side of the border between this device and the cloud, where nothing of this side replaces it.
  static func versions(_ ids: [VersionID], at place: String, of slot: String, in transaction: StoreTransaction) throws -> SaveParents {
    .versions(
      try ids.filter { id in
        guard let other = try transaction.version(id)?.record.slot else { return true }
        return other == place || LocalSlot.slot(at: other) != slot
      })
  }
}
