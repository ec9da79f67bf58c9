import Foundation
import KeepsakeReplication
import KeepsakeStore

/// Keeps a folder complete and small. Nothing depends on it, so callers may ignore its errors.
extension FolderCloud {
  /// Returns whether a file is one that a killed process may have left behind while writing.
  static func isPartial(_ name: String) -> Bool { name.hasPrefix(".") && name.hasSuffix(".partial") }

  /// Stores contents again that heads need and the folder has lost. Removes what a snapshot of this store replaces, as
  /// soon as that is allowed, together with the contents that nothing needs any more.
  func tidy(now: Int64) throws {
    guard let replica else { return }
    try checkOwner()
    let needed = try replica.neededContents()
    for hash in needed.heads.sorted() where try contents.glance(hash) == .missing {
      if let content = try ownContent(hash) { try contents.put(content) }
    }
    let old = replaceable(replica, now)
    let names = names(of: old)
    if !names.isEmpty {
      isCollectionDue = true
      try remove(names)
    }
    guard isCollectionDue else { return }
    // What can't be read yet may need any of them.
    guard arriving.isEmpty, unreadable.isEmpty, !hasHalves(since: now - options.contentMilliseconds) else { return }
    var kept = needed.heads.union(needed.ancestors)
    for segment in waiting.values {
      for version in segment.versions { kept.formUnion(version.contents) }
    }
    let partials = now - FolderLimits.partialMilliseconds
    try contents.collect(keeping: kept, changedBefore: now - options.contentMilliseconds, partialsBefore: partials)
    for name in try access.names(in: layout.state) ?? [] where Self.isPartial(name) {
      guard let signature = try access.signature(of: "\(layout.state)/\(name)"),
        signature.modifiedMilliseconds < partials
      else {
        continue
      }
      try access.remove("\(layout.state)/\(name)")
    }
    isCollectionDue = false
  }

  /// Returns what snapshots of this store replace that other stores have, or had enough time to get.
  private func replaceable(_ replica: FolderReplica, _ now: Int64) -> Set<SegmentHash> {
    let chain = ownChain()
    let places = Dictionary(chain.enumerated().map { ($1, $0) }) { first, _ in first }
    // The newest of this store's segments that another store has seen: it has all before that, too.
    var seenFrom = Int.max
    for (hash, links) in links where places[hash] == nil && replica.applied[hash] != nil {
      for seen in links.seen { seenFrom = min(seenFrom, places[seen] ?? .max) }
    }
    var old: Set<SegmentHash> = []
    for (place, hash) in chain.enumerated() {
      guard let replaces = links[hash]?.replaces, !replaces.isEmpty, let date = date(of: hash) else { continue }
      // In iCloud it may never have been uploaded: the player may have no room there.
      let isOld = owner == .identity && date < now - options.snapshotMilliseconds
      if place >= seenFrom || isOld { old.formUnion(replaces) }
    }
    return old
  }

  /// Returns whether a file that should be a segment isn't one yet: a program may still be writing it. One that has
  /// stayed that way for long is damaged. A program may give a new file an old date; the file system knows better.
  private func hasHalves(since milliseconds: Int64) -> Bool {
    files.contains { name, seen in
      guard seen.hash == nil, SegmentHash(name) != nil else { return false }
      return max(seen.signature.modifiedMilliseconds, seen.signature.changedMilliseconds) >= milliseconds
    }
  }

  /// Returns whether a head's content is lost: nothing of a snapshot with it could be shown by a new device, and the
  /// segments by themselves can.
  func lacksContents(_ replica: FolderReplica) -> Bool {
    do {
      return try replica.neededContents().heads.contains { try contents.glance($0) == .missing }
    } catch {
      // Written another time.
      return true
    }
  }

  /// Returns the names of files in `state` that contain one of these segments.
  private func names(of segments: Set<SegmentHash>) -> [String] {
    files.compactMap { name, seen in seen.hash.map(segments.contains) == true ? name : nil }.sorted()
  }

  /// Returns when a segment's file was last written; nil if it isn't there.
  private func date(of segment: SegmentHash) -> Int64? {
    files.values.filter { $0.hash == segment }.map(\.signature.modifiedMilliseconds).min()
  }
}
