import Foundation
import KeepsakeReplication

extension FolderMirror {
  /// Makes the disk show the version that the slot of `path` shows. When this is called, the file is as the table
  /// records it; if it no longer is when it is replaced, what it became is kept.
  ///
  /// - Returns: False if something changed in between: try again.
  func place(_ path: SavePath) throws -> Bool {
    guard let view = try store.view(of: path) else { return true }
    reportConflict(view, at: path)
    let current = placed[path]
    guard let winner = view.winner else {
      guard let tombstone = view.parents.first else { return true }
      let entry = PlacedEntry(
        version: tombstone, shown: view.parents, hash: nil, signature: nil, before: current?.shown ?? [])
      return try takeAway(path, current: current, entry: entry)
    }
    let known = winner.contents.count == 1 ? winner.contents[0] : nil
    // Not read if the disk already has it.
    let bytes = known != nil && known == current?.hash ? Data() : try store.bytes(of: winner)
    let hash = known ?? ContentHash(of: bytes)
    var entry = PlacedEntry(
      version: winner.id, shown: view.parents, hash: hash, signature: nil, before: current?.shown ?? [])
    if let current, current.hash == hash {
      entry.signature = current.signature
      entry.before = current.before
      if entry != current { try placed.record(entry, at: path) }
      return true
    }
    return current?.hash == nil
      ? try putNew(bytes, at: path, entry: entry)
      : try exchange(bytes, at: path, current: current, entry: entry)
  }

  private func putNew(_ bytes: Data, at path: SavePath, entry: PlacedEntry) throws -> Bool {
    let temporary = try folder.writeTemporary(bytes, beside: path, using: &random)
    try checkpoint(.written, path)
    guard try folder.place(temporary, at: path) else {
      try folder.discard(temporary)
      return false
    }
    try checkpoint(.swapped, path)
    try placed.record(entry, at: path)
    try checkpoint(.recorded, path)
    pass.events.append(.placed(path, entry.version, bytes: bytes.count))
    return true
  }

  private func exchange(_ bytes: Data, at path: SavePath, current: PlacedEntry?, entry: PlacedEntry) throws -> Bool {
    let temporary = try folder.writeTemporary(bytes, beside: path, using: &random)
    try checkpoint(.written, path)
    guard let old = try folder.exchange(temporary, with: path) else {
      // The file is gone: a deletion, which must be kept as one first.
      try folder.discard(temporary)
      return false
    }
    try release(old, of: path, former: current) {
      try self.placed.record(entry, at: path)
      self.pass.events.append(.placed(path, entry.version, bytes: bytes.count))
    }
    return true
  }

  private func takeAway(_ path: SavePath, current: PlacedEntry?, entry: PlacedEntry) throws -> Bool {
    guard current?.hash != nil else {
      if current?.shown != entry.shown { try placed.record(entry, at: path) }
      return true
    }
    // Already gone: a deletion on this device, which must be kept as one first.
    guard let old = try folder.takeAway(path, using: &random) else { return false }
    try release(old, of: path, former: current) {
      try self.placed.record(entry, at: path)
      self.pass.events.append(.removed(path, entry.version))
    }
    return true
  }

  /// Releases a file that was moved aside, after `record` has recorded what replaced it: immediately if it is
  /// untouched, else once it has settled and is kept.
  private func release(_ old: Temporary, of path: SavePath, former: PlacedEntry?, record: () throws -> Void) throws {
    // Remembered before anything can fail: its bytes may be nowhere else.
    let one = Held(
      temporary: old, path: path, expected: former?.signature, hash: former?.hash, parents: former?.shown ?? [])
    held.append(one)
    try checkpoint(.swapped, path)
    try record()
    try checkpoint(.recorded, path)
    try folder.synchronize(old.folder, path: path)
    if try release(one) { held.removeAll { $0.temporary == old } }
  }
}
