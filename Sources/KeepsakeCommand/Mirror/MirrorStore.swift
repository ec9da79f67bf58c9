#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The store as the mirror uses it: one slot a file, its content the file's plain bytes.
struct MirrorStore {
  /// Versions looked at when one is asked whether it comes from another; kept histories are far shorter.
  private static let maximumWalk = 10_000

  let store: Store

  /// What stands in the slot of `path`; nil if it never had a version.
  func view(of path: SavePath) throws -> SlotView? {
    try store.read { transaction in
      let view = try Resolution.view(of: path.slot, in: transaction, policy: .newest)
      return view.parents.isEmpty ? nil : view
    }
  }

  /// The paths of all file slots, sorted, and the names that the mirror won't touch.
  func paths() throws -> (paths: [SavePath], issues: [MirrorIssue]) {
    var paths: [SavePath] = []
    var issues: [MirrorIssue] = []
    for slot in try store.read({ try $0.slots() }) {
      do throws(SavePathRefusal) {
        if let path = try SavePath(slot: slot) { paths.append(path) }
      } catch {
        issues.append(MirrorIssue(path: Printable.text(slot), message: "not written here: \(error.message)"))
      }
    }
    return (paths.sorted(), issues)
  }

  /// Whether the version was ever committed or received here, though its record may have been thinned since.
  func isKnown(_ id: VersionID) throws -> Bool {
    try store.read { transaction in
      if try transaction.version(id) != nil { return true }
      return try transaction.isCovered(id)
    }
  }

  /// The version whose bytes these are, if the file's having them is no change by the game: the one that stands, one that
  /// comes from what is placed (a crash came between placing it and noting that), or any if nothing is known of the place.
  func version(of path: SavePath, with hash: ContentHash?, after placed: PlacedEntry?) throws -> VersionRecord? {
    try store.read { transaction in
      let candidates = try transaction.history(of: path.slot).map(\.record).filter { record in
        hash.map { record.contents == [$0] && !record.tombstone } ?? record.tombstone
      }
      guard let newest = candidates.first else { return nil }
      let view = try Resolution.view(of: path.slot, in: transaction, policy: .newest)
      if let standing = candidates.first(where: { view.stands($0) }) { return standing }
      guard let placed else { return newest }
      let ancestors = Set(placed.shown + [placed.version])
      return try candidates.first { try Self.descends($0, from: ancestors, in: transaction) }
    }
  }

  /// Whether any version of the slot, kept to this day, has these bytes.
  func knows(_ hash: ContentHash, at path: SavePath) throws -> Bool {
    try store.read { try $0.history(of: path.slot).contains { $0.record.contents == [hash] } }
  }

  /// Commits changes in one transaction, durably. Each is a commit of its own for the cloud.
  func commit(_ changes: [FolderMirror.Change], now: Int64, using random: inout some RandomNumberGenerator) throws {
    try store.write { transaction in
      for change in changes {
        var contents: [ContentHash] = []
        if let bytes = change.bytes {
          let base = try Self.base(for: change.parents, at: change.path, in: transaction)
          contents = [try transaction.keepContent(bytes, against: base)]
        }
        let draft = SaveDraft(
          id: change.entry.version, slot: change.path.slot, parents: change.parents, contents: contents,
          length: change.bytes?.count ?? 0, savedAtMilliseconds: change.savedAt, tombstone: change.bytes == nil)
        try DeviceCommit.apply(CommitDraft(saves: [draft]), now: now, writer: store.writer, in: &transaction, using: &random)
      }
    }
  }

  /// The plain bytes of a version, checked against their hashes.
  func bytes(of record: VersionRecord) throws -> Data {
    try store.read { transaction in
      return try transaction.plainBytes(of: record)
    }
  }

  /// The content that the new one most likely resembles: that of a version which it replaces.
  private static func base(for parents: SaveParents, at path: SavePath, in transaction: StoreTransaction) throws -> ContentHash? {
    if case .versions(let ids) = parents {
      for id in ids {
        if let hash = try transaction.version(id)?.record.contents.first { return hash }
      }
    }
    return try transaction.history(of: path.slot).first { !$0.record.contents.isEmpty }?.record.contents.first
  }

  private static func descends(
    _ record: VersionRecord, from ancestors: Set<VersionID>, in transaction: StoreTransaction
  ) throws -> Bool {
    var waiting = record.covers
    var seen = Set(waiting)
    while let next = waiting.popLast() {
      if ancestors.contains(next) { return true }
      guard seen.count <= maximumWalk else { return false }
      for earlier in try transaction.version(next)?.record.covers ?? [] where seen.insert(earlier).inserted {
        waiting.append(earlier)
      }
    }
    return false
  }
}

extension SlotView {
  /// Whether the slot is shown as this version has it.
  func stands(_ record: VersionRecord) -> Bool {
    winner.map { $0.contents == record.contents && !record.tombstone } ?? (record.tombstone && parents.contains(record.id))
  }
}
#endif
