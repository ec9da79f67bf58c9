#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

/// Pairing codes, and recovery codes: of each, one for each container.
extension PostgreSQLStorage {
  func putPairing(_ pairing: Pairing, for device: DeviceID, now: Int64) async throws {
    try await transaction { transaction in
      // A device that was removed after its request arrived must not get a way back.
      try transaction.take(pairing.container, by: device)
      try transaction.run("DELETE FROM pairing WHERE container = $1", [.bytes(pairing.container.bytes)])
      try transaction.run(
        """
        INSERT INTO pairing (app, code, container, player, expires) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (app, code) DO UPDATE
        SET container = excluded.container, player = excluded.player, expires = excluded.expires
        """,
        [
          .bytes(pairing.scope.bytes), .bytes(pairing.code), .bytes(pairing.container.bytes),
          .bytes(pairing.player.bytes), .int(pairing.expiresMilliseconds),
        ])
    }
  }

  func join(
    _ code: Data, by right: EntryRight, as device: DeviceID, name: String, now: Int64
  ) async throws -> DeviceIdentity? {
    defer { outbox?.wake() }
    return try await transaction { [outbox] transaction in
      try transaction.admit(right)
      let found = try transaction.run(
        "DELETE FROM pairing WHERE app = $1 AND code = $2 RETURNING container, player, expires",
        [.bytes(right.scope.bytes), .bytes(code)]
      ).first
      guard let found, try found.int(2) > now else { return nil }
      let identity = DeviceIdentity(
        device: device, player: try found.identifier(1), container: try found.identifier(0), app: right.app)
      // A player who was deleted has no code: this fails if that happens meanwhile.
      try transaction.take(identity.container)
      try transaction.note(
        DeviceRecord(identity: identity, name: name, createdMilliseconds: now, seenMilliseconds: now), outbox)
      try transaction.noteShared(identity, by: right)
      return identity
    }
  }

  // MARK: Recovery codes

  func recovery(of container: ContainerID) async throws -> RecoveryFacts {
    let values: [PostgreSQLValue] = [.bytes(container.bytes)]
    let answers = try await read(
      [
        PostgreSQLStatement("SELECT created, code FROM recovery WHERE container = $1", values),
        PostgreSQLStatement("SELECT count(*) FROM device WHERE container = $1", values),
        PostgreSQLStatement("SELECT count(*) FROM identity WHERE container = $1", values),
      ], of: container)
    return RecoveryFacts(
      createdMilliseconds: try answers[0].first?.int(0), digest: try answers[0].first?.hash(1),
      devices: Int(try answers[1].first?.int(0) ?? 0), identities: Int(try answers[2].first?.int(0) ?? 0))
  }

  func putRecovery(_ code: ContentHash, by identity: DeviceIdentity, scope: AppID, now: Int64) async throws {
    try await transaction { transaction in
      try transaction.take(identity.container, by: identity.device)
      try transaction.refuseOther(code, than: identity.container)
      try transaction.run(
        """
        INSERT INTO recovery (container, app, player, code, used, device, created)
        VALUES ($1, $2, $3, $4, NULL, $5, $6)
        ON CONFLICT (container) DO UPDATE SET app = excluded.app, player = excluded.player, code = excluded.code,
          used = NULL, device = excluded.device, created = excluded.created
        """,
        [
          .bytes(identity.container.bytes), .bytes(scope.bytes), .bytes(identity.player.bytes), .bytes(code.bytes),
          .bytes(identity.device.bytes), .int(now),
        ])
    }
  }

  func recover(
    _ recovery: Recovery, as device: DeviceID, now: Int64, mayRecover: @escaping @Sendable (AppID) -> Bool
  ) async throws -> DeviceIdentity? {
    defer { outbox?.wake() }
    return try await transaction { [outbox] transaction in
      try transaction.admit(recovery.right)
      if let repeated = try transaction.repeated(recovery) { return repeated }
      let found = try transaction.run(
        "SELECT container, player, app FROM recovery WHERE code = $1", [.bytes(recovery.code.bytes)]
      ).first
      guard let found else { return nil }
      guard mayRecover(AppID(bytes: try found.bytes(2))) else { throw APIError.otherAppsCode }
      let identity = DeviceIdentity(
        device: device, player: try found.identifier(1), container: try found.identifier(0), app: recovery.right.app)
      try transaction.take(identity.container)
      // Also if the registry of apps is an older one, which doesn't know that.
      guard try recovery.right.parent != nil || !transaction.isShared(identity.container) else {
        throw APIError.otherAppsCode
      }
      try transaction.refuseOther(recovery.next, than: identity.container)
      try transaction.run(
        "UPDATE recovery SET app = $2, code = $3, used = $4, device = $5, created = $6 WHERE container = $1",
        [
          .bytes(identity.container.bytes), .bytes(recovery.right.scope.bytes), .bytes(recovery.next.bytes),
          .bytes(recovery.code.bytes), .bytes(device.bytes), .int(now),
        ])
      try transaction.note(
        DeviceRecord(identity: identity, name: recovery.name, createdMilliseconds: now, seenMilliseconds: now), outbox)
      try transaction.noteShared(identity, by: recovery.right)
      return identity
    }
  }
}

extension PostgreSQLTransaction {
  /// Returns the device that has used the code, if this is the same request again: its response may have been lost.
  fileprivate func repeated(_ recovery: Recovery) throws -> DeviceIdentity? {
    let found = try run(
      "SELECT container, player, device FROM recovery WHERE used = $1 AND code = $2 AND app = $3",
      [.bytes(recovery.code.bytes), .bytes(recovery.next.bytes), .bytes(recovery.right.scope.bytes)]
    ).first
    guard let found else { return nil }
    let identity = DeviceIdentity(
      device: try found.identifier(2), player: try found.identifier(1), container: try found.identifier(0),
      app: recovery.right.app)
    try take(identity.container)
    // In a shared container, another game of the player's is another device.
    if let parent = recovery.right.parent, try !belongs(identity, to: parent) { return nil }
    return try isRetired(identity.device, of: identity.container) ? nil : identity
  }

  /// Throws if the code is another player's: no two have the same, unless somebody has made it up.
  fileprivate func refuseOther(_ code: ContentHash, than container: ContainerID) throws {
    let holder = try run(
      "SELECT 1::bigint FROM recovery WHERE code = $1 AND container <> $2",
      [.bytes(code.bytes), .bytes(container.bytes)])
    if holder.first != nil { throw APIError.codeTaken }
  }
}
#endif
