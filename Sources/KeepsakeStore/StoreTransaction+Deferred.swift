import GRDB
package import KeepsakeReplication

/// Saves of which only the record is here, because the game asks for their contents when it wants them.
extension StoreTransaction {
  package func deferredVersions() throws -> [VersionID] {
    try identifiers("SELECT id FROM version WHERE deferred = 1 AND id NOT IN (SELECT id FROM covered) ORDER BY id", [])
  }

  package mutating func setDeferred(_ isDeferred: Bool, _ id: VersionID) throws {
    guard let version = try version(id), try self.isDeferred(version.record) != isDeferred else { return }
    try putVersion(version, thinned: isDeferred, pinned: false, deferred: isDeferred)
    if isDeferred { try History(transaction: self).release(version.record) }
    try noteAwaited()
  }

  /// Makes the table of awaited contents anew: what staged versions need, and of deferred ones what came, until the rest comes.
  ///
  /// - Parameter evicted: Of this deferred one nothing.
  func noteAwaited(but evicted: VersionID? = nil) throws {
    try run("DELETE FROM awaited", [])
    let staged = try staged().compactMap { if case .version(let record) = $0.item { record } else { nil } }
    let deferred = try deferredVersions().filter { $0 != evicted }.compactMap { try version($0)?.record }
    for hash in (staged + deferred).flatMap(\.contents) { try run("INSERT OR IGNORE INTO awaited (hash) VALUES (?)", [hash.bytes]) }
  }

  /// Whether only the record is here, and the rest is to be had from the cloud.
  package func isDeferred(_ record: VersionRecord) throws -> Bool {
    try Bool.fetchOne(statement("SELECT deferred FROM version WHERE id = ?"), arguments: [record.id.bytes]) ?? false
  }

  /// Lets go of a head's contents, which the cloud has, and of those of the slot's past if that isn't wanted either; what is pinned stays.
  package mutating func evict(_ id: VersionID, keepingHistory: Bool) throws {
    guard let head = try version(id) else { return }
    var contents = head.record.contents
    try setDeferred(true, id)
    if !keepingHistory {
      let pinned = try pinnedVersions(of: head.record.slot)
      for version in try history(of: head.record.slot) where try !pinned.contains(version.record.id) && isCovered(version.record.id) {
        try putVersion(version, thinned: true, pinned: false)
        try History(transaction: self).release(version.record)
        contents += version.record.contents
      }
    }
    // What is awaited isn't collected.
    try noteAwaited(but: id)
    try History.collect(contents, in: self)
    try noteAwaited()
  }
}
