import Foundation
import KeepsakeReplication

extension FolderMirror {
  /// A change that a program made, read and ready to be committed.
  struct Change {
    var path: SavePath
    /// Nil for a deletion.
    var bytes: Data?
    /// The entry once the change is committed, and the entry before.
    var entry: PlacedEntry
    var former: PlacedEntry?
    var parents: SaveParents
    var savedAt: Int64

    var event: MirrorEvent {
      bytes.map { .captured(path, entry.version, bytes: $0.count) } ?? .deleted(path, entry.version)
    }
  }

  /// The number of changes, and of their bytes, that share a wait for the disk: enough to make that wait small by
  /// comparison, few enough to be held in memory.
  static let batchChanges = 64
  static let batchBytes = 16 << 20

  /// Reads a program's change to the file, and appends it to `changes` if it needs a version.
  ///
  /// - Returns: False if the file changed meanwhile: it is examined again later.
  func capture(_ path: SavePath, _ state: DiskState) throws -> Bool {
    switch state {
    case .file(let signature):
      guard let bytes = try folder.read(path, expecting: signature, limit: settings.maximumBytes) else { return false }
      try checkpoint(.read, path)
      try capture(bytes, signature: signature, at: path)
    case .absent:
      guard folder.status(of: path) == .absent else { return false }
      try captureDeletion(of: path)
    case .blocked:
      return false
    }
    return true
  }

  private func capture(_ bytes: Data, signature: FileSignature, at path: SavePath) throws {
    let hash = ContentHash(of: bytes)
    let former = placed[path]
    if var former, former.hash == hash {
      former.signature = signature
      return try placed.record(former, at: path)
    }
    if let known = try store.version(of: path, with: hash, after: former) {
      let entry = PlacedEntry(
        version: known.id, shown: try shown(at: path, orElse: known), hash: hash, signature: signature,
        before: former?.shown ?? [])
      return try placed.record(entry, at: path)
    }
    let id = VersionID(using: &random)
    changes.append(
      Change(
        path: path, bytes: bytes,
        entry: PlacedEntry(version: id, shown: [id], hash: hash, signature: signature, before: former?.shown ?? []),
        former: former, parents: try parents(former, at: path), savedAt: savedAt(signature)))
  }

  private func captureDeletion(of path: SavePath) throws {
    guard let former = placed[path], former.hash != nil else { return }
    if let known = try store.version(of: path, with: nil, after: former) {
      let gone = PlacedEntry(
        version: known.id, shown: try shown(at: path, orElse: known), hash: nil, signature: nil, before: former.shown)
      return try placed.record(gone, at: path)
    }
    let id = VersionID(using: &random)
    changes.append(
      Change(
        path: path, bytes: nil,
        entry: PlacedEntry(version: id, shown: [id], hash: nil, signature: nil, before: former.shown), former: former,
        parents: try parents(former, at: path), savedAt: clock.now()))
  }

  /// Commits the waiting changes once they are worth a wait for the disk.
  func commitFullBatch() throws {
    let bytes = changes.reduce(0) { $0 + ($1.bytes?.count ?? 0) }
    if changes.count >= Self.batchChanges || bytes >= Self.batchBytes { try commitChanges() }
  }

  /// Commits the waiting changes in one transaction; if that fails, each in its own.
  func commitChanges() throws {
    let batch = changes
    changes = []
    guard !batch.isEmpty else { return }
    do {
      if batch.count > 1 { return try commit(batch) }
    } catch  where Self.isTrouble(error) {
      // One of them may be to blame: nothing was committed, and on their own the others succeed.
    }
    for change in batch { try attempt(change.path) { try self.commit([change]) } }
  }

  private func commit(_ batch: [Change]) throws {
    do {
      // Recorded first: an entry counts only once its version is there, so a crash in between leaves neither.
      for change in batch {
        try placed.record(change.entry, at: change.path)
        try checkpoint(.noted, change.path)
      }
      try store.commit(batch, now: clock.now(), using: &random)
    } catch  where Self.isTrouble(error) {
      for change in batch { try placed.restore(change.former, at: change.path) }
      throw error
    }
    for change in batch {
      try checkpoint(.committed, change.path)
      pass.events.append(change.event)
    }
    for change in batch { try attempt(change.path) { try self.show(change.path) } }
  }

  /// Returns the parents of a change: the version that was on the disk before it, and every head that lost to that
  /// version. A file of which nothing is known covers nothing that the cloud has: a fresh folder never silently
  /// replaces a save.
  private func parents(_ entry: PlacedEntry?, at path: SavePath) throws -> SaveParents {
    if let entry { return .versions(entry.shown) }
    return try store.view(of: path) == nil ? .everyHead : .versions([])
  }

  /// Returns when the file was last written, limited to plausible times: a time in the future would win over
  /// everything.
  func savedAt(_ signature: FileSignature) -> Int64 {
    min(max(signature.modifiedMilliseconds, 0), clock.now())
  }

  /// Returns the heads that are shown when `record` is shown.
  private func shown(at path: SavePath, orElse record: VersionRecord) throws -> [VersionID] {
    guard let view = try store.view(of: path), view.stands(record) else { return [record.id] }
    return view.parents
  }
}
