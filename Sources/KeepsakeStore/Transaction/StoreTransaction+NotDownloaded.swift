import GRDB
package import KeepsakeReplication

/// Saves of which only the record is here, because the game requests their contents when it wants them.
extension StoreTransaction {
  package func notDownloadedVersions() throws -> [VersionID] {
    try identifiers("SELECT id FROM version WHERE deferred = 1 AND id NOT IN (SELECT id FROM covered) ORDER BY id", [])
  }

  package mutating func setNotDownloaded(_ isNotDownloaded: Bool, _ id: VersionID) throws {
    guard let version = try version(id), try self.isNotDownloaded(version.record) != isNotDownloaded else { return }
    try putVersion(version, pruned: isNotDownloaded, pinned: false, notDownloaded: isNotDownloaded)
    if isNotDownloaded { try History(transaction: self).release(version.record) }
  }

  /// Prunes a version that was replaced before it was downloaded: only the record of a replaced version is of use.
  mutating func pruneReplaced(_ id: VersionID) throws {
    guard var version = try version(id) else { return }
    version.record.metadata.thumbnail = nil
    try putVersion(version, pruned: true, pinned: false)
    hasReplacedNotDownloaded = true
  }

  /// Rebuilds the table of awaited contents: those that staged versions need and, of versions that aren't downloaded,
  /// those that have arrived, until the rest arrives.
  ///
  /// - Parameter evicted: A version that isn't downloaded, and none of whose contents is awaited.
  func recordAwaited(but evicted: VersionID? = nil) throws {
    try run("DELETE FROM awaited", [])
    let staged = try staged().compactMap { if case .version(let record) = $0.item { record } else { nil } }
    let notDownloaded = try notDownloadedVersions().filter { $0 != evicted }.compactMap { try version($0)?.record }
    let come = try notDownloaded.flatMap(\.contents).filter(hasContent)
    for hash in staged.flatMap(\.contents) + come {
      try run("INSERT OR IGNORE INTO awaited (hash) VALUES (?)", [hash.bytes])
    }
  }

  /// Returns whether only the record is here, and the contents can be had from the cloud.
  package func isNotDownloaded(_ record: VersionRecord) throws -> Bool {
    try Bool.fetchOne(statement("SELECT deferred FROM version WHERE id = ?"), arguments: [record.id.bytes]) ?? false
  }

  /// Releases a head's contents, which the cloud has, and without `keepingHistory` also those of the slot's covered
  /// versions, except pinned ones.
  ///
  /// - Returns: Whether any of the head's contents was removed. Other versions may need all of them.
  package mutating func evict(_ id: VersionID, keepingHistory: Bool) throws -> Bool {
    guard let head = try version(id) else { return false }
    var contents = head.record.contents
    try setNotDownloaded(true, id)
    if !keepingHistory {
      let pinned = try pinnedVersions(of: head.record.slot)
      for var version in try history(of: head.record.slot)
      where try !pinned.contains(version.record.id) && isCovered(version.record.id) {
        contents += version.record.contents
        try History(transaction: self).release(version.record)
        version.record.metadata.thumbnail = nil
        try putVersion(version, pruned: true, pinned: false)
      }
    }
    // Awaited contents aren't collected.
    try recordAwaited(but: id)
    try History.collect(contents, in: self)
    try recordAwaited()
    return try !head.record.contents.allSatisfy(hasContent)
  }
}
