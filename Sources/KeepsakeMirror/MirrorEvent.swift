package import KeepsakeReplication

/// Something that the mirror did or found, for the user.
package enum MirrorEvent: Hashable, Sendable {
  /// A changed file was kept as a version, and waits to be sent.
  case captured(SavePath, VersionID, bytes: Int)
  /// A deleted file was kept as a tombstone; its earlier versions stay in the history.
  case deleted(SavePath, VersionID)
  /// A version from elsewhere was written to the disk.
  case placed(SavePath, VersionID, bytes: Int)
  /// A file that was deleted elsewhere was removed here.
  case removed(SavePath, VersionID)
  /// A file that changed at the moment when it was being replaced was kept as a version.
  case rescued(SavePath, VersionID, bytes: Int)
  /// Several devices changed the file: `winner` is shown, `losers` are in the history.
  case conflict(SavePath, winner: VersionID, losers: [VersionID], related: Bool)
  /// Something isn't mirrored, with the reason.
  case issue(MirrorIssue)
}

/// What the mirror did since it was opened.
package struct MirrorCounts: Hashable, Sendable, Codable {
  package var captured = 0
  package var deleted = 0
  package var placed = 0
  package var removed = 0
  package var rescued = 0
  package var conflicts = 0
  package var issues = 0

  package init() {}

  mutating func count(_ event: MirrorEvent) {
    switch event {
    case .captured: captured += 1
    case .deleted: deleted += 1
    case .placed: placed += 1
    case .removed: removed += 1
    case .rescued: rescued += 1
    case .conflict: conflicts += 1
    case .issue: issues += 1
    }
  }
}

/// The points between which a crash must neither lose nor duplicate anything. Tests stop the mirror, or change a file,
/// there.
package enum MirrorStep: String, CaseIterable, Hashable, Sendable {
  case scanned, read, noted, committed, written, swapped, recorded, examined, discarded
}
