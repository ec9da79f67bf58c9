import Foundation
package import KeepsakeReplication

/// A file that several devices changed, before it was decided which version is shown.
package struct MirrorConflict: Hashable, Sendable {
  package var path: SavePath
  /// The version that is on the disk here.
  package var mine: VersionRecord
  /// The others, best first; never empty.
  package var theirs: [VersionRecord]
}

extension FolderMirror {
  /// How a conflict is settled. Whatever is chosen, every version stays in the history.
  package enum Settlement: String, CaseIterable, Sendable {
    case mine, theirs
    /// Mine stays, and the others are written beside it under names of their own.
    case both
  }

  /// Returns the files with a conflict in which one side is what is on the disk here, sorted by their paths. Where
  /// other devices alone disagree, there is nothing of this device to decide about. Costs a pass over the store's table
  /// of heads.
  ///
  /// - Throws: `StoreError`.
  package func conflicts() throws -> [MirrorConflict] {
    try store.paths(where: { $0.count > 1 }).compactMap { path in
      guard let hash = placed[path]?.hash, let view = try store.view(of: path), view.isConflict,
        let mine = view.heads.first(where: { $0.contents == [hash] })
      else { return nil }
      return MirrorConflict(path: path, mine: mine, theirs: view.heads.filter { $0.id != mine.id })
    }
  }

  /// Settles a conflict by a new version over all sides, in one commit; the disk changes in the next pass.
  ///
  /// - Returns: The paths of the copies beside the save. Without one for a side whose name has no room for more: that
  ///   side is in the history only.
  /// - Throws: `StoreError`, `CommitError`.
  package func settle(_ conflict: MirrorConflict, by settlement: Settlement) throws -> [SavePath] {
    let chosen = settlement == .theirs ? conflict.theirs[0] : conflict.mine
    var drafts = [(conflict.path, chosen)]
    if settlement == .both {
      for other in conflict.theirs {
        guard let path = besidePath(conflict.path, for: other) else { continue }
        drafts.append((path, other))
      }
    }
    try store.commit(drafts, now: clock.now(), using: &random)
    let beside = drafts.dropFirst().map(\.0)
    doubt([conflict.path] + beside)
    return beside
  }

  private func besidePath(_ path: SavePath, for version: VersionRecord) -> SavePath? {
    guard let hash = version.contents.first, let name = path.components.last else { return nil }
    let components = path.components.dropLast() + [MirrorSelection.besideName(name, of: hash)]
    // Nil if the name has no room for more.
    return try? SavePath(components.joined(separator: "/"))
  }
}
