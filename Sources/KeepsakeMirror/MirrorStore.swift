import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The store as the mirror uses it: one slot per file, whose content is the file's plain bytes.
struct MirrorStore {
  /// The most versions that are examined to find out whether one descends from another; kept histories are far shorter.
  private static let maximumWalk = 10_000

  let store: Store
  var selection = MirrorSelection.everything
  /// The name of this device, which each version records; nil to record none.
  var device: String?

  func slot(of path: SavePath) -> String { SavePath.slotPrefix + selection.prefix + path.text }

  /// Returns the path of a slot; nil if the slot isn't a file's, or the file is not one of those selected.
  func path(of slot: String) throws(SavePathRefusal) -> SavePath? {
    guard let whole = try SavePath(slot: slot) else { return nil }
    guard whole.text.utf8.starts(with: selection.prefix.utf8) else { return nil }
    let path = try SavePath(String(decoding: whole.text.utf8.dropFirst(selection.prefix.utf8.count), as: UTF8.self))
    return selection.takes(path.components) ? path : nil
  }

  /// Returns what the slot of `path` shows; nil if it never had a version.
  func view(of path: SavePath) throws -> SlotView? {
    try store.read { transaction in
      let view = try Resolution.view(of: slot(of: path), in: transaction, policy: .newest)
      return view.parents.isEmpty ? nil : view
    }
  }

  /// Returns the paths of all file slots, sorted, and the names that the mirror won't touch.
  func paths() throws -> (paths: [SavePath], issues: [MirrorIssue]) {
    var paths: [SavePath] = []
    var issues: [MirrorIssue] = []
    for slot in try store.read({ try $0.slots() }) {
      do throws(SavePathRefusal) {
        if let path = try path(of: slot) { paths.append(path) }
      } catch {
        issues.append(MirrorIssue(path: slot, message: "not written here: \(error.message)"))
      }
    }
    return (paths.sorted(), issues)
  }

  /// Whether the version was ever committed or received here, even if its record has been pruned since.
  func isKnown(_ id: VersionID) throws -> Bool {
    try store.read { transaction in
      if try transaction.version(id) != nil { return true }
      return try transaction.isCovered(id)
    }
  }

  /// Returns the version that has these bytes, if it isn't a change by the game that the file has them: the version
  /// that the slot shows, one that descends from what is placed (after a crash between placing it and recording that),
  /// or any version if nothing is recorded for the path.
  func version(of path: SavePath, with hash: ContentHash?, after placed: PlacedEntry?) throws -> VersionRecord? {
    try store.read { transaction in
      let candidates = try transaction.history(of: slot(of: path)).map(\.record).filter { record in
        hash.map { record.contents == [$0] && !record.tombstone } ?? record.tombstone
      }
      guard let newest = candidates.first else { return nil }
      let view = try Resolution.view(of: slot(of: path), in: transaction, policy: .newest)
      if let standing = candidates.first(where: { view.stands($0) }) { return standing }
      guard let placed else { return newest }
      let ancestors = Set(placed.shown + [placed.version])
      return try candidates.first { try Self.descends($0, from: ancestors, in: transaction) }
    }
  }

  /// Whether any version of the slot that is still kept has these bytes.
  func knows(_ hash: ContentHash, at path: SavePath) throws -> Bool {
    try store.read { try $0.history(of: slot(of: path)).contains { $0.record.contents == [hash] } }
  }

  /// Commits changes in one transaction, durably. Each is a commit of its own for the cloud.
  func commit(_ changes: [FolderMirror.Change], now: Int64, using random: inout some RandomNumberGenerator) throws {
    try store.write { transaction in
      for change in changes {
        var contents: [ContentHash] = []
        if let bytes = change.bytes {
          let base = try base(for: change.parents, at: change.path, in: transaction)
          contents = [try transaction.keepContent(bytes, against: base)]
        }
        let draft = SaveDraft(
          id: change.entry.version, slot: slot(of: change.path), parents: change.parents, contents: contents,
          length: change.bytes?.count ?? 0, metadata: metadata(), savedAtMilliseconds: change.savedAt,
          tombstone: change.bytes == nil)
        try DeviceCommit.apply(
          CommitDraft(saves: [draft]), now: now, writer: store.writer, in: &transaction, using: &random)
      }
    }
  }

  /// Commits versions with the contents of known ones, each over all heads of its path, in one transaction. A path that
  /// shows these contents already needs none.
  func commit(
    _ choices: [(path: SavePath, version: VersionRecord)], now: Int64, using random: inout some RandomNumberGenerator
  ) throws {
    try store.write { transaction in
      var drafts: [SaveDraft] = []
      for (path, version) in choices {
        let view = try Resolution.view(of: slot(of: path), in: transaction, policy: .newest)
        if view.heads.count == 1, view.stands(version) { continue }
        drafts.append(
          SaveDraft(
            id: VersionID(using: &random), slot: slot(of: path), parents: .everyHead, contents: version.contents,
            length: version.length, metadata: metadata(version.metadata), savedAtMilliseconds: now))
      }
      guard !drafts.isEmpty else { return }
      try DeviceCommit.apply(
        CommitDraft(saves: drafts), now: now, writer: store.writer, in: &transaction, using: &random)
    }
  }

  /// Returns what is recorded beside the contents of a version that is made here.
  private func metadata(_ metadata: SaveMetadata = SaveMetadata()) -> SaveMetadata {
    var metadata = metadata
    metadata.device = device
    return metadata
  }

  /// Returns the plain bytes of a version, checked against their hashes.
  func bytes(of record: VersionRecord) throws -> Data {
    try store.read { transaction in
      return try transaction.plainBytes(of: record)
    }
  }

  /// Returns the content that the new one most likely resembles: that of a version which it replaces.
  private func base(for parents: SaveParents, at path: SavePath, in transaction: StoreTransaction) throws
    -> ContentHash?
  {
    if case .versions(let ids) = parents {
      for id in ids {
        if let hash = try transaction.version(id)?.record.contents.first { return hash }
      }
    }
    return try transaction.history(of: slot(of: path)).first { !$0.record.contents.isEmpty }?.record.contents.first
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
  /// Whether what the slot shows is what this version contains.
  func stands(_ record: VersionRecord) -> Bool {
    winner.map { $0.contents == record.contents && !record.tombstone }
      ?? (record.tombstone && parents.contains(record.id))
  }
}
