import Foundation
import KeepsakeReplication

extension FolderMirror {
  /// Takes over what an earlier run left: half-written temporaries are removed, and files that were at a save's path,
  /// or were about to be, are examined.
  func takeUpTemporaries() throws {
    let listing = try folder.scan()
    guard !listing.temporaries.isEmpty else { return }
    var owners: [String: SavePath] = [:]
    for path in Set(placed.paths).union(try store.paths(where: { _ in true })).union(listing.files.keys).sorted() {
      owners[path.tag] = path
    }
    for temporary in listing.temporaries {
      let isPart = temporary.name.hasPrefix(MirrorFolder.partPrefix)
      let prefix = isPart ? MirrorFolder.partPrefix : MirrorFolder.swapPrefix
      let tag = temporary.name.dropFirst(prefix.count).prefix { $0 != "-" }
      let path = owners[String(tag)]
      // Of a part of a folder, the rest may have another mirror, whose temporaries these are.
      if folder.selection.isPart, path == nil { continue }
      if isPart {
        try folder.discard(temporary)
        continue
      }
      guard let path else {
        report(
          MirrorIssue(
            path: (temporary.folder + [temporary.name]).joined(separator: "/"),
            message: "a temporary file that an earlier sync left, of a file that is no longer known; it is left alone"))
        continue
      }
      let entry = placed[path]
      // If the file was already replaced, the table may or may not have recorded it; either way, what was shown before
      // is known.
      held.append(
        Held(temporary: temporary, path: path, expected: nil, hash: nil, parents: parentsOfLeftover(entry)))
    }
  }

  private func parentsOfLeftover(_ entry: PlacedEntry?) -> [VersionID] {
    guard let entry else { return [] }
    return entry.before.isEmpty ? entry.shown : entry.before
  }

  /// Releases the held files whose bytes are known; keeps the bytes of the others as versions once those files have
  /// settled.
  func lookAtHeld() throws {
    for one in held {
      try attempt(nil) {
        if try self.release(one) { self.held.removeAll { $0.temporary == one.temporary } }
      }
    }
  }

  /// Returns whether the file is gone.
  func release(_ one: Held) throws -> Bool {
    guard case .file(let signature) = try folder.status(of: one.temporary) else { return true }
    if let expected = one.expected, signature.sameContent(as: expected) {
      try checkpoint(.examined, one.path)
    } else {
      guard heldStill(one.temporary, signature),
        let bytes = try folder.read(one.temporary, expecting: signature, limit: settings.maximumBytes)
      else { return false }
      try checkpoint(.examined, one.path)
      let hash = ContentHash(of: bytes)
      if hash != one.hash, try !store.knows(hash, at: one.path) {
        let change = Change(
          path: one.path, bytes: bytes, hash: hash, signature: nil, former: nil, savedAt: savedAt(signature))
        let id = try store.commit(change, replacing: one.parents, now: clock.now(), using: &random)
        pass.events.append(.rescued(one.path, id, bytes: bytes.count))
        doubt([one.path])
      }
    }
    try folder.discard(one.temporary)
    try checkpoint(.discarded, one.path)
    return true
  }
}
