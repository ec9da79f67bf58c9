import Foundation
import KeepsakeReplication
import KeepsakeStore

/// The store as the mirror uses it: one slot per file, whose content is the file's plain bytes.
struct MirrorStore {
  /// The most versions that are examined to find out whether one descends from another; kept histories are far shorter.
  private static let maximumWalk = 10_000

  let store: Store
  var selection = MirrorSelection.everything
  /// The names that files can have here.
  var names = SystemNames.current
  /// The name of this device, which each version records; nil to record none.
  var device: String?

  func slot(of path: SavePath) -> String { SavePath.slotPrefix + selection.prefix + path.text }

  /// Returns the path of a slot; nil if the slot isn't a file's, or the file is not one of those selected.
  ///
  /// - Throws: A refusal of a name that no file may have, or none can have on this system.
  func path(of slot: String) throws(SavePathRefusal) -> SavePath? {
    guard let whole = try SavePath(slot: slot) else { return nil }
    guard whole.text.utf8.starts(with: selection.prefix.utf8) else { return nil }
    let path = try SavePath(String(decoding: whole.text.utf8.dropFirst(selection.prefix.utf8.count), as: UTF8.self))
    guard selection.takes(path.components) else { return nil }
    guard names.allows(path) else { throw .impossibleHere }
    return path
  }

  /// Returns what the slot of `path` shows; nil if it never had a version.
  func view(of path: SavePath) throws -> SlotView? {
    try store.read { transaction in
      let view = try Resolution.view(of: slot(of: path), in: transaction, policy: .newest)
      return view.parents.isEmpty ? nil : view
    }
  }

  /// Returns the paths of all file slots with such heads, sorted, without those of names that the mirror won't write.
  func paths(where takes: ([VersionID]) -> Bool) throws -> [SavePath] {
    var paths: [SavePath] = []
    for (slot, heads) in try store.read({ try $0.headsByName() }) where takes(heads) {
      do throws(SavePathRefusal) {
        if let path = try path(of: slot) { paths.append(path) }
      } catch {
        // `differing` reports it.
        continue
      }
    }
    return paths.sorted()
  }

  /// Returns the file slots whose heads aren't just the version that is placed, and what to say of names that aren't
  /// written here.
  ///
  /// - Parameters:
  ///   - slots: The slots to look at; nil for all.
  ///   - isKnown: Whether something was said before, and needn't be found out again.
  ///   - placed: What is placed at a path.
  func differing(
    _ slots: [String]?, isKnown: (MirrorIssue) -> Bool, from placed: (SavePath) -> PlacedEntry?
  ) throws -> (paths: [SavePath], issues: [MirrorIssue]) {
    try store.read { transaction in
      let all = try slots.map { try $0.map { (slot: $0, heads: try transaction.heads(of: $0)) } }
      var paths: [SavePath] = []
      var issues: [MirrorIssue] = []
      for (slot, heads) in try all ?? transaction.headsByName() {
        do throws(SavePathRefusal) {
          guard let path = try path(of: slot) else { continue }
          if let entry = placed(path), heads == [entry.version], entry.shown == heads { continue }
          paths.append(path)
        } catch {
          let issue = MirrorIssue(path: slot, message: "not written here: \(error.message)")
          guard !isKnown(issue) else { continue }
          let view = try Resolution.view(of: slot, in: transaction, policy: .newest)
          if !view.isDeleted { issues.append(issue) }
        }
      }
      return (paths, issues)
    }
  }

  /// Returns those of these versions that were ever committed or received here, even if their records have been pruned
  /// since.
  func known(of ids: Set<VersionID>) throws -> Set<VersionID> {
    try store.read { transaction in try ids.filter { try transaction.isKnown($0) } }
  }

  /// Returns the version that has these bytes, if it isn't a change by the game that the file has them: the version
  /// that the slot shows, one that descends from what is placed (after a crash between placing it and recording that),
  /// or any version if nothing is recorded for the path.
  private func version(
    of path: SavePath, with hash: ContentHash?, after placed: PlacedEntry?, among history: [StoredVersion],
    in transaction: StoreTransaction
  ) throws -> (record: VersionRecord, shown: [VersionID])? {
    let candidates = history.map(\.record).filter { record in
      hash.map { record.contents == [$0] && !record.tombstone } ?? record.tombstone
    }
    guard let newest = candidates.first else { return nil }
    let view = try Resolution.view(of: slot(of: path), in: transaction, policy: .newest)
    if let standing = candidates.first(where: { view.stands($0) }) { return (standing, view.parents) }
    guard let placed else { return (newest, [newest.id]) }
    let ancestors = Set(placed.shown + [placed.version])
    return try candidates.first { try Self.descends($0, from: ancestors, in: transaction) }.map { ($0, [$0.id]) }
  }

  /// Whether any version of the slot that is still kept has these bytes.
  func knows(_ hash: ContentHash, at path: SavePath) throws -> Bool {
    try store.read { try $0.history(of: slot(of: path)).contains { $0.record.contents == [hash] } }
  }

  /// Commits changes in one transaction, durably. What an earlier run has committed already needs no version.
  ///
  /// - Parameter record: Called once with all that is about to be committed, before it is.
  /// - Returns: What became of each change, in their order.
  func commit(
    _ changes: [FolderMirror.Change], now: Int64, using random: inout some RandomNumberGenerator,
    record: ([(path: SavePath, entry: PlacedEntry)]) throws -> Void
  ) throws -> [FolderMirror.Committed] {
    try store.write { transaction in
      var committed: [FolderMirror.Committed] = []
      var bases: [SavePath: ContentHash] = [:]
      for change in changes {
        let entry: PlacedEntry
        let history = try transaction.history(of: slot(of: change.path))
        let known = try version(
          of: change.path, with: change.hash, after: change.former, among: history, in: transaction)
        let before = change.former?.shown ?? []
        if let known {
          entry = PlacedEntry(
            version: known.record.id, shown: known.shown, hash: change.hash, signature: change.signature,
            before: before)
        } else {
          let id = VersionID(using: &random)
          entry = PlacedEntry(version: id, shown: [id], hash: change.hash, signature: change.signature, before: before)
        }
        committed.append(FolderMirror.Committed(entry: entry, isNew: known == nil))
        if known == nil { bases[change.path] = try base(for: before, among: history, in: transaction) }
      }
      try record(zip(changes, committed).map { ($0.path, $1.entry) })
      // What waits to be sent together is sent together, in groups of this size; each change of a group is accepted or
      // refused by itself.
      let new = zip(changes, committed).filter { $0.1.isNew }
      for start in stride(from: 0, to: new.count, by: DeviceCommit.maximumGroupVersions) {
        var drafts: [SaveDraft] = []
        for (change, result) in new[start..<min(start + DeviceCommit.maximumGroupVersions, new.count)] {
          drafts.append(
            try draft(
              of: change, result.entry.version, parents: result.entry.before, base: bases[change.path],
              in: &transaction))
        }
        try DeviceCommit.apply(
          CommitDraft(saves: drafts), now: now, writer: store.writer, in: &transaction, using: &random)
      }
      for (index, change) in zip(committed.indices, changes) where committed[index].isNew {
        committed[index].isShown = try transaction.heads(of: slot(of: change.path)) == [committed[index].entry.version]
      }
      return committed
    }
  }

  /// Commits one change, durably, as a version that replaces these.
  func commit(
    _ change: FolderMirror.Change, replacing parents: [VersionID], now: Int64,
    using random: inout some RandomNumberGenerator
  ) throws -> VersionID {
    try store.write { transaction in
      let id = VersionID(using: &random)
      let base = try base(for: parents, among: transaction.history(of: slot(of: change.path)), in: transaction)
      let draft = try draft(of: change, id, parents: parents, base: base, in: &transaction)
      try DeviceCommit.apply(
        CommitDraft(saves: [draft]), now: now, writer: store.writer, in: &transaction, using: &random)
      return id
    }
  }

  private func draft(
    of change: FolderMirror.Change, _ id: VersionID, parents: [VersionID], base: ContentHash?,
    in transaction: inout StoreTransaction
  ) throws -> SaveDraft {
    var contents: [ContentHash] = []
    if let bytes = change.bytes { contents = [try transaction.keepContent(bytes, against: base)] }
    return SaveDraft(
      id: id, slot: slot(of: change.path), parents: .versions(parents), contents: contents,
      length: change.bytes?.count ?? 0, metadata: metadata(), savedAtMilliseconds: change.savedAt,
      tombstone: change.bytes == nil)
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
  private func base(
    for parents: [VersionID], among history: [StoredVersion], in transaction: StoreTransaction
  ) throws -> ContentHash? {
    for id in parents {
      if let hash = try transaction.version(id)?.record.contents.first { return hash }
    }
    return history.first { !$0.record.contents.isEmpty }?.record.contents.first
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
