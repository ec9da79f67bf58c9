import GRDB
package import KeepsakeReplication

/// Saves of which only the record is here, because the game asks for their contents when it wants them.
extension StoreTransaction {
  package func notDownloadedVersions() throws -> [VersionID] {
    try identifiers("SELECT id FROM version WHERE deferred = 1 AND id NOT IN (SELECT id FROM covered) ORDER BY id", [])
  }

  package mutating func setNotDownloaded(_ isNotDownloaded: Bool, _ id: VersionID) throws {
    guard let version = try version(id), try self.isNotDownloaded(version.record) != isNotDownloaded else { return }
    try putVersion(version, pruned: isNotDownloaded, pinned: false, notDownloaded: isNotDownloaded)
    if isNotDownloaded { try History(transaction: self).release(version.record) }
  }

  /// It was replaced: of it, as of all that was, only the record is of use.
  mutating func pruneReplaced(_ id: VersionID) throws {
    guard var version = try version(id) else { return }
    version.record.metadata.thumbnail = nil
    try putVersion(version, pruned: true, pinned: false)
    hasReplacedNotDownloaded = true
  }

  /// Makes the table of awaited contents anew: what staged versions need, and of deferred ones what came, until the rest comes.
  ///
  /// - Parameter evicted: Of this deferred one nothing.
  func recordAwaited(but evicted: VersionID? = nil) throws {
    try run("DELETE FROM awaited", [])
    let staged = try staged().compactMap { if case .version(let record) = $0.item { record } else { nil } }
    let notDownloaded = try notDownloadedVersions().filter { $0 != evicted }.compactMap { try version($0)?.record }
    let come = try notDownloaded.flatMap(\.contents).filter(hasContent)
    for hash in staged.flatMap(\.contents) + come { try run("INSERT OR IGNORE INTO awaited (hash) VALUES (?)", [hash.bytes]) }
  }

  /// Whether only the record is here, and the rest is to be had from the cloud.
  package func isNotDownloaded(_ record: VersionRecord) throws -> Bool {
    try Bool.fetchOne(statement("SELECT deferred FROM version WHERE id = ?"), arguments: [record.id.bytes]) ?? false
  }

  /// Lets go of a head's contents, which the cloud has, and of those of the slot's past if that isn't wanted either; what is pinned stays.
  ///
  /// - Returns: Whether any of the head's contents went. Others may need all of them.
  package mutating func evict(_ id: VersionID, keepingHistory: Bool) throws -> Bool {
    guard let head = try version(id) else { return false }
    var contents = head.record.contents
    try setNotDownloaded(true, id)
    if !keepingHistory {
      let pinned = try pinnedVersions(of: head.record.slot)
      for var version in try history(of: head.record.slot) where try !pinned.contains(version.record.id) && isCovered(version.record.id) {
        contents += version.record.contents
        try History(transaction: self).release(version.record)
        version.record.metadata.thumbnail = nil
        try putVersion(version, pruned: true, pinned: false)
      }
    }
    // What is awaited isn't collected.
    try recordAwaited(but: id)
    try History.collect(contents, in: self)
    try recordAwaited()
    return try !head.record.contents.allSatisfy(hasContent)
  }
}
