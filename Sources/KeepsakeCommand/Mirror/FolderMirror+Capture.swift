#if Cloud
import Foundation
import KeepsakeReplication

extension FolderMirror {
  /// Keeps what a program did to the file.
  ///
  /// - Returns: False if the file moved meanwhile: it is looked at again later.
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
    let entry = placed[path]
    if var entry, entry.hash == hash {
      entry.signature = signature
      return try placed.record(entry, at: path)
    }
    if let known = try store.version(of: path, with: hash, after: entry) {
      let entry = PlacedEntry(
        version: known.id, shown: try shown(at: path, orElse: known), hash: hash, signature: signature,
        before: entry?.shown ?? [])
      return try placed.record(entry, at: path)
    }
    let id = VersionID(using: &random)
    // Noted first: the note counts once the version is there, so a crash in between makes neither of them.
    try note(PlacedEntry(version: id, shown: [id], hash: hash, signature: signature, before: entry?.shown ?? []), at: path) {
      try self.store.commit(
        bytes, at: path, id: id, basis: self.basis(entry, at: path), savedAt: self.savedAt(signature),
        now: self.clock.now(), using: &self.random)
    }
    pass.events.append(.captured(path, id, bytes: bytes.count))
  }

  private func captureDeletion(of path: SavePath) throws {
    guard let entry = placed[path], entry.hash != nil else { return }
    if let known = try store.version(of: path, with: nil, after: entry) {
      let gone = PlacedEntry(
        version: known.id, shown: try shown(at: path, orElse: known), hash: nil, signature: nil, before: entry.shown)
      return try placed.record(gone, at: path)
    }
    let id = VersionID(using: &random)
    try note(PlacedEntry(version: id, shown: [id], hash: nil, signature: nil, before: entry.shown), at: path) {
      let now = self.clock.now()
      try self.store.commit(
        nil, at: path, id: id, basis: self.basis(entry, at: path), savedAt: now, now: now, using: &self.random)
    }
    pass.events.append(.deleted(path, id))
  }

  /// Notes `entry`, then commits the version that it names; if that fails, the note is taken back.
  private func note(_ entry: PlacedEntry, at path: SavePath, commit: () throws -> Void) throws {
    let former = placed[path]
    try placed.record(entry, at: path)
    try checkpoint(.noted, path)
    do {
      try commit()
    } catch {
      try placed.restore(former, at: path)
      throw error
    }
    try checkpoint(.committed, path)
  }

  /// A change covers what was on the disk before it, and every head that lost to that. A file of which nothing is known
  /// covers nothing that the cloud has: a fresh folder never silently replaces a save.
  private func basis(_ entry: PlacedEntry?, at path: SavePath) throws -> SaveBasis {
    if let entry { return .versions(entry.shown) }
    return try store.view(of: path) == nil ? .everyHead : .versions([])
  }

  /// When the file was last written, as far as that can be true: a time to come would win over everything.
  func savedAt(_ signature: FileSignature) -> Int64 {
    min(max(signature.modifiedMilliseconds, 0), clock.now())
  }

  /// The heads that are shown by showing `record`.
  private func shown(at path: SavePath, orElse record: VersionRecord) throws -> [VersionID] {
    guard let view = try store.view(of: path), view.stands(record) else { return [record.id] }
    return view.basis
  }
}
#endif
