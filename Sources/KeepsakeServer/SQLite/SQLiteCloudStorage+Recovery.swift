#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

/// Recovery codes: one for each container, known by its hash.
extension SQLiteCloudStorage {
  func recovery(of container: ContainerID) async throws -> RecoveryFacts {
    try await reading { db in
      let made = try Row.fetchOne(
        db.cachedStatement(sql: "SELECT created, code FROM recovery WHERE container = ?"),
        arguments: [container.bytes])
      let devices = try Row.fetchOne(
        db.cachedStatement(sql: "SELECT count(*) FROM device WHERE container = ?"), arguments: [container.bytes])
      return RecoveryFacts(
        createdMilliseconds: try made?.decode(atIndex: 0),
        digest: try made.flatMap { ContentHash(bytes: try $0.decode(atIndex: 1)) },
        devices: try devices?.decode(atIndex: 0) ?? 0,
        identities: try Self.identityCount(of: container, in: db))
    }
  }

  func putRecovery(_ code: ContentHash, by identity: DeviceIdentity, scope: AppID, now: Int64) async throws {
    try await committer.write(for: identity.container) { db in
      guard try !Self.isRetired(identity.device, of: identity.container, in: db) else { throw APIError.retired }
      try Self.refuseOther(code, than: identity.container, in: db)
      try db.execute(
        sql: """
          INSERT OR REPLACE INTO recovery (container, app, player, code, used, device, created)
          VALUES (?, ?, ?, ?, NULL, ?, ?)
          """,
        arguments: [
          identity.container.bytes, scope.bytes, identity.player.bytes, code.bytes, identity.device.bytes, now,
        ])
    }
  }

  func recover(
    _ recovery: Recovery, as device: DeviceID, now: Int64, mayRecover: @escaping @Sendable (AppID) -> Bool
  ) async throws -> DeviceIdentity? {
    defer { outbox?.wake() }
    return try await committer.write(for: nil) { [outbox] db in
      try Self.admit(recovery.right, in: db)
      if let repeated = try Self.repeated(recovery, in: db) { return repeated }
      let found = try Row.fetchOne(
        db, sql: "SELECT container, player, app FROM recovery WHERE code = ?", arguments: [recovery.code.bytes])
      guard let found else { return nil }
      guard mayRecover(AppID(bytes: try found.decode(atIndex: 2))) else { throw APIError.otherAppsCode }
      let identity = try Self.identity(found, device, recovery.right.app)
      // Also if the registry of apps is an older one, which doesn't know that.
      guard try recovery.right.parent != nil || !Self.isShared(identity.container, in: db) else {
        throw APIError.otherAppsCode
      }
      try Self.refuseOther(recovery.next, than: identity.container, in: db)
      try db.execute(
        sql: "UPDATE recovery SET app = ?, code = ?, used = ?, device = ?, created = ? WHERE container = ?",
        arguments: [
          recovery.right.scope.bytes, recovery.next.bytes, recovery.code.bytes, device.bytes, now,
          identity.container.bytes,
        ])
      try Self.note(
        DeviceRecord(identity: identity, name: recovery.name, createdMilliseconds: now, seenMilliseconds: now), outbox,
        in: db)
      try Self.noteShared(identity, by: recovery.right, in: db)
      return identity
    }
  }

  /// Returns the device that has used the code, if this is the same request again: its response may have been lost.
  private static func repeated(_ recovery: Recovery, in db: Database) throws -> DeviceIdentity? {
    let found = try Row.fetchOne(
      db, sql: "SELECT container, player, device FROM recovery WHERE used = ? AND code = ? AND app = ?",
      arguments: [recovery.code.bytes, recovery.next.bytes, recovery.right.scope.bytes])
    guard let found, let device = try DeviceID(bytes: found.decode(atIndex: 2)) else { return nil }
    let identity = try identity(found, device, recovery.right.app)
    // In a shared container, another game of the player's is another device.
    if let parent = recovery.right.parent, try !belongs(identity, to: parent, in: db) { return nil }
    return try isRetired(device, of: identity.container, in: db) ? nil : identity
  }

  /// Throws if the code is another player's: no two have the same, unless somebody has made it up.
  private static func refuseOther(_ code: ContentHash, than container: ContainerID, in db: Database) throws {
    let holder = try Row.fetchOne(
      db, sql: "SELECT 1 FROM recovery WHERE code = ? AND container <> ?", arguments: [code.bytes, container.bytes])
    if holder != nil { throw APIError.codeTaken }
  }

  private static func identity(_ row: Row, _ device: DeviceID, _ app: AppID) throws -> DeviceIdentity {
    guard let container = try ContainerID(bytes: row.decode(atIndex: 0)),
      let player = try PlayerID(bytes: row.decode(atIndex: 1))
    else {
      throw ServerError(.damaged, "A recovery code's row can't be read.")
    }
    return DeviceIdentity(device: device, player: player, container: container, app: app)
  }
}
#endif
