import Foundation
import KeepsakeReplication

extension FolderMirror {
  /// A change that a program made, read and ready to be committed.
  struct Change {
    var path: SavePath
    /// Nil for a deletion.
    var bytes: Data?
    var hash: ContentHash?
    var signature: FileSignature?
    /// The entry before the change.
    var former: PlacedEntry?
    var savedAt: Int64
  }

  /// What became of a change.
  struct Committed {
    var entry: PlacedEntry
    /// Whether it was committed as a new version, and not before.
    var isNew: Bool
    /// Whether the slot shows just this version now.
    var isShown = false
  }

  /// The number of changes, and of their bytes, that share a transaction and a wait for the disk: enough to make that
  /// wait small by comparison, few enough to be held in memory.
  static let batchChanges = 1_000
  static let batchBytes = 16 << 20

  /// Reads a program's change to the file, and appends it to `changes` if it needs a version.
  ///
  /// - Returns: False if the file changed meanwhile: it is examined again later.
  func capture(_ path: SavePath, _ state: DiskState) throws -> Bool {
    switch state {
    case .file(let signature):
      let limit = settings.maximumBytes
      guard let bytes = try ahead.take(path, signature) ?? folder.read(path, expecting: signature, limit: limit) else {
        return false
      }
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

  /// Reads a file that hasn't settled yet, if that isn't too soon.
  func readAhead(_ path: SavePath, _ state: DiskState) {
    let now = Int64(Date().timeIntervalSince1970 * 1_000)
    guard case .file(let signature) = state, ahead.takes(path, signature, now: now) else { return }
    do {
      let bytes = try folder.read(path, expecting: signature, limit: settings.maximumBytes)
      if let bytes { ahead.keep(bytes, of: path, signature) }
    } catch {
      // It is read again once it has settled, and that attempt says what is wrong.
    }
  }

  private func capture(_ bytes: Data, signature: FileSignature, at path: SavePath) throws {
    let hash = ContentHash(of: bytes)
    let former = placed[path]
    if var former, former.hash == hash {
      former.signature = signature
      return try placed.record(former, at: path)
    }
    append(
      Change(
        path: path, bytes: bytes, hash: hash, signature: signature, former: former, savedAt: savedAt(signature)))
  }

  private func captureDeletion(of path: SavePath) throws {
    guard let former = placed[path], former.hash != nil else { return }
    append(Change(path: path, bytes: nil, hash: nil, signature: nil, former: former, savedAt: clock.now()))
  }

  private func append(_ change: Change) {
    changes.append(change)
    changedBytes += change.bytes?.count ?? 0
  }

  /// Commits the waiting changes once they are worth a wait for the disk.
  func commitFullBatch() throws {
    if changes.count >= Self.batchChanges || changedBytes >= Self.batchBytes { try commitChanges() }
  }

  /// Commits the waiting changes in one transaction; if that fails, each in its own.
  func commitChanges() throws {
    let batch = changes
    (changes, changedBytes) = ([], 0)
    guard !batch.isEmpty else { return }
    do {
      if batch.count > 1 { return try commit(batch) }
    } catch  where Self.isTrouble(error) {
      // One of them may be to blame: nothing was committed, and on their own the others succeed.
    }
    var refusal: MirrorError?
    for change in batch {
      try attempt(change.path) {
        // A table that can't be written now can't be written for the others either.
        if let refusal { throw refusal }
        do {
          try self.commit([change])
        } catch let error as MirrorError where error.path == self.placed.path {
          refusal = error
          throw error
        }
      }
    }
  }

  private func commit(_ batch: [Change]) throws {
    let committed: [Committed]
    do {
      // A file of which nothing is known covers nothing that the cloud has: a fresh folder never silently replaces a
      // save.
      committed = try store.commit(batch, now: clock.now(), using: &random) { entries in
        // Recorded first: an entry counts only once its version is there, so a crash in between leaves neither.
        try placed.record(entries)
        for (path, _) in entries { try checkpoint(.noted, path) }
      }
    } catch  where Self.isTrouble(error) {
      try placed.restore(batch.map { ($0.path, $0.former) })
      throw error
    }
    self.committed()
    for (change, result) in zip(batch, committed) where result.isNew {
      try checkpoint(.committed, change.path)
      let version = result.entry.version
      pass.events.append(
        change.bytes.map { .captured(change.path, version, bytes: $0.count) } ?? .deleted(change.path, version))
    }
    for (change, result) in zip(batch, committed) {
      if result.isShown { isShown(change.path) } else { try attempt(change.path) { try self.show(change.path) } }
    }
  }

  /// Returns when the file was last written, limited to plausible times: a time in the future would win over
  /// everything.
  func savedAt(_ signature: FileSignature) -> Int64 {
    min(max(signature.modifiedMilliseconds, 0), clock.now())
  }
}
