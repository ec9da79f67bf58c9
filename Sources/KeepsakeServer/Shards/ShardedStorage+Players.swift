#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging

/// What is asked of one player: the database in which the player lives answers it.
extension ShardedStorage {
  func newestSeq(of container: ContainerID) async throws -> UInt64 {
    try await at(container) { try await $0.newestSeq(of: container) }
  }

  // MARK: Contents

  func hasContent(_ hash: ContentHash, of container: ContainerID) async throws -> Bool {
    try await at(container) { try await $0.hasContent(hash, of: container) }
  }

  func content(_ hash: ContentHash, of container: ContainerID) async throws -> KeptContent? {
    try await at(container) { try await $0.content(hash, of: container) }
  }

  func adopt(_ file: URL, as name: String, of container: ContainerID) async throws {
    try await at(container) { try await $0.adopt(file, as: name, of: container) }
  }

  func discard(_ name: String, of container: ContainerID) async throws {
    try await at(container) { try await $0.discard(name, of: container) }
  }

  // MARK: Devices

  func recordDevice(_ device: DeviceRecord) async throws {
    // Who registers has a container whose id was just made.
    _ = try await directory.shard(of: device.identity.container, isNew: true)
    try await at(device.identity.container) { try await $0.recordDevice(device) }
  }

  func devices(of container: ContainerID) async throws -> [DeviceRecord] {
    try await at(container) { try await $0.devices(of: container) }
  }

  func isRetired(_ identity: DeviceIdentity) async throws -> Bool {
    try await at(identity.container) { try await $0.isRetired(identity) }
  }

  func ban(of identity: DeviceIdentity) -> Ban? { all.lazy.compactMap { $0.ban(of: identity) }.first }

  func newestToken(of identity: DeviceIdentity) async throws -> Int64? {
    try await at(identity.container) { try await $0.newestToken(of: identity) }
  }

  func recordToken(issuedMilliseconds: Int64, of identity: DeviceIdentity) async throws {
    try await at(identity.container) {
      try await $0.recordToken(issuedMilliseconds: issuedMilliseconds, of: identity)
    }
  }

  func place(of player: PlayerID) async throws -> PlayerPlace? {
    let places = try await find { try await $0.place(of: player).map { [$0] } ?? [] }
    // In home, and where the player has lived before, may be some rows of those who live elsewhere.
    guard let found = places.first else { return nil }
    return try await at(found.container) { try await $0.place(of: player) } ?? found
  }

  // MARK: Shared containers

  func registerShared(
    _ new: DeviceIdentity, named name: String, by right: EntryRight, now: Int64
  ) async throws -> DeviceIdentity {
    guard let parent = right.parent?.container else {
      throw ServerError(.configuration, "A shared container is asked for by a device of a game.")
    }
    return try await at(parent) { storage in
      let shard = storage.binding?.name ?? ShardBinding.home
      guard try await self.directory.place(new.container, at: shard) == shard else {
        throw ServerError(.damaged, "A new shared container lives somewhere already.")
      }
      let registered: DeviceIdentity
      do {
        registered = try await storage.registerShared(new, named: name, by: right, now: now)
      } catch let elsewhere as NotHere {
        // Nothing of it is there yet: it gets a place anew, beside the player.
        try await self.directory.remove([new.container])
        throw elsewhere
      }
      // The player has one already. Whatever ends before this leaves an entry without rows, which does no harm.
      if registered.container != new.container { try await self.directory.remove([new.container]) }
      return registered
    }
  }

  func beginLeaving(_ container: ContainerID, _ device: DeviceID?, now: Int64) async throws {
    try await at(container) { try await $0.beginLeaving(container, device, now: now) }
  }

  func sharedDevices(of parent: ContainerID, _ device: DeviceID?) async throws -> [SharedDevice] {
    try await at(parent) { try await $0.sharedDevices(of: parent, device) }
  }

  func isShared(_ container: ContainerID) async throws -> Bool {
    try await at(container) { try await $0.isShared(container) }
  }

  func sharedContainers(of parent: ContainerID) async throws -> [SharedContainer] {
    try await at(parent) { try await $0.sharedContainers(of: parent) }
  }

  // MARK: Deletion

  func exported(_ place: PlayerExport.Position, of container: ContainerID) async throws -> PlayerExport.Page {
    try await at(container) { try await $0.exported(place, of: container) }
  }

  func delete(_ container: ContainerID, now: Int64, auditing entry: AuditEntry?) async throws -> Deletion {
    let shared = try await sharedContainers(of: container).map(\.container)
    let concerned = [container] + shared
    try await directory.setDeleting(true, concerned)
    let deletion: Deletion
    do {
      try await forgetDevices(of: concerned)
      deletion = try await at(container) { try await $0.delete(container, now: now, auditing: entry) }
    } catch {
      // Otherwise it may have been done: the look for what is unfinished finds out.
      if error is SharedLeft { try await directory.setDeleting(false, concerned) }
      throw error
    }
    for one in [container] + deletion.shared { try await finishDeletion(of: one, now: now) }
    try await directory.setDeleting(false, shared.filter { !deletion.shared.contains($0) })
    return deletion
  }

  /// Has the other databases forget devices that are about to be deleted: what they have used and signed in to there.
  /// The one where they live does so in the deletion's own transaction: a request that comes before that mustn't find
  /// its own proof used by nobody.
  private func forgetDevices(of containers: [ContainerID]) async throws {
    for container in containers {
      try await at(container) { storage in
        let known = PostgreSQLStatement(
          "SELECT id FROM device WHERE container = $1 UNION SELECT device FROM retired WHERE container = $1",
          [.bytes(container.bytes)])
        let rows = try await storage.read([known], of: container)[0]
        let devices = PostgreSQLValue.list(try rows.map { try $0.bytes(0) })
        _ = try await self.ask(butNot: storage) { other in
          _ = try await other.read([
            PostgreSQLStatement("UPDATE identity_use SET device = '' WHERE device = ANY($1)", [devices]),
            PostgreSQLStatement(
              "UPDATE identity SET joiner = NULL, joined = NULL WHERE joiner = ANY($1) AND container <> $2",
              [devices, .bytes(container.bytes)]),
          ])
        }
      }
    }
  }

  /// Has every database refuse a deleted player forever, and forgets where the player lived. May be repeated.
  func finishDeletion(of container: ContainerID, now: Int64) async throws {
    let id: [PostgreSQLValue] = [.bytes(container.bytes)]
    let left = ShardTable.all.filter { !$0.isClaimed }
    _ = try await ask { storage in
      _ = try await storage.read(
        [
          PostgreSQLStatement(
            "INSERT INTO retired (container, device, at) VALUES ($1, '', $2) ON CONFLICT DO NOTHING",
            [.bytes(container.deletedMark), .int(now)]),
          PostgreSQLStatement("DELETE FROM fence WHERE container = $1", id),
          PostgreSQLStatement("DELETE FROM container WHERE id = $1 AND revision < 0", id),
          PostgreSQLStatement("DELETE FROM identity WHERE container = $1", id),
          // Of a time when there was one database, with webhooks.
          PostgreSQLStatement("DELETE FROM webhook_event WHERE lane = $1", [.bytes(container.deletedMark)]),
          PostgreSQLStatement("DELETE FROM webhook_conflict WHERE container = $1", id),
          PostgreSQLStatement("UPDATE receipt SET container = '', operation = '' WHERE container = $1", id),
        ] + left.map { $0.removal(of: container.bytes, after: nil, through: nil) })
    }
    try await directory.remove([container])
  }
}
#endif
