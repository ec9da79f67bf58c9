#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

/// What the studio's port asks. Keys are in home; of what is done, the audit log of the database in which it was done
/// has a row.
extension ShardedStorage {
  func adminKeys() async throws -> [AdminKey] { try await home.adminKeys() }

  func places(_ query: PlayerQuery) async throws -> [AdminPlace] {
    var found: [AdminPlace] = []
    for place in try await find({ try await $0.places(query) }) {
      // In home, and where the player has lived before, may be some rows of those who live elsewhere.
      if found.contains(where: { $0.container == place.container }) { continue }
      found += try await atPresent(place.container) {
        try await $0.places(query).filter { $0.container == place.container }
      } isNothing: {
        $0.isEmpty
      }
    }
    return found
  }

  func usedBytes(of container: ContainerID) async throws -> Int64 {
    try await at(container) { try await $0.usedBytes(of: container) }
  }

  func ban(of container: ContainerID) -> Ban? { all.lazy.compactMap { $0.ban(of: container) }.first }

  func sharedParents(of container: ContainerID) async throws -> [SharedParent] {
    try await at(container) { try await $0.sharedParents(of: container) }
  }

  func slots(of container: ContainerID, after slot: String?, limit: Int) async throws -> [AdminSlot] {
    try await at(container) { try await $0.slots(of: container, after: slot, limit: limit) }
  }

  func versions(
    of container: ContainerID, in slot: String, before seq: UInt64, limit: Int, bytes: Int
  ) async throws -> AdminVersionPage {
    try await at(container) {
      try await $0.versions(of: container, in: slot, before: seq, limit: limit, bytes: bytes)
    }
  }

  func version(_ id: VersionID, of container: ContainerID) async throws -> AdminVersion? {
    try await at(container) { try await $0.version(id, of: container) }
  }

  func append(_ entry: AuditEntry) async throws { try await home.append(entry) }

  func unlink(_ identity: ContentHash, of container: ContainerID, auditing entry: AuditEntry) async throws {
    try await at(container) { storage in
      let holder = try await self.holder(of: identity)
      try await storage.unlink(identity, of: container, auditing: entry)
      if !storage.isHome, let holder, holder.container == container { try await self.release(identity, holder) }
    }
  }

  func setBan(_ ban: Ban?, of container: ContainerID, auditing entry: AuditEntry) async throws {
    try await at(container) { try await $0.setBan(ban, of: container, auditing: entry) }
    if ban == nil { try await removeLeftBan(of: container) }
  }

  /// Removes a lifted ban from where a move has left it, too: it would still count. One that was begun since stays, and
  /// so does its copy, by which servers know it until they have read it where the player lives.
  func removeLeftBan(of container: ContainerID) async throws {
    guard let found = try await directory.placement(of: container), let left = found.leftAt else { return }
    let banned = PostgreSQLStatement("SELECT 1::bigint FROM ban WHERE container = $1", [.bytes(container.bytes)])
    guard try await mover.storage(found.shard).read([banned])[0].first == nil else { return }
    let storage = try mover.storage(left)
    let removal = PostgreSQLStatement(
      """
      DELETE FROM ban WHERE container = $1
      AND EXISTS (SELECT 1 FROM container WHERE id = $1 AND revision < 0)
      """, [.bytes(container.bytes)])
    do {
      try await ShardCopy.take(container, found.generation, and: [removal], in: storage)
    } catch is ShardMover.Overtaken {
      // Another move, or a deletion, has removed what was left.
    }
    await storage.refreshAtOnce()
  }

  /// As of one database: it isn't for a server to say.
  func erase() async -> Bool { false }
}
#endif
