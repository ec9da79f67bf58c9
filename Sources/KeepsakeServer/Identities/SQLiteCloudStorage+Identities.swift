#if Cloud
import Foundation
import GRDB
import HTTPTypes
import KeepsakeReplication

/// Identities that lead to players, each known by its hash.
extension SQLiteCloudStorage {
  func identities(of container: ContainerID) async throws -> [LinkedIdentity] {
    try await reading { db in
      try Row.fetchAll(
        db.cachedStatement(sql: "SELECT id, issuer, created FROM identity WHERE container = ? ORDER BY created, id"),
        arguments: [container.bytes]
      ).map { row in
        guard let id = try ContentHash(bytes: row.decode(atIndex: 0)) else {
          throw ServerError(.damaged, "An identity's row can't be read.")
        }
        return LinkedIdentity(
          id: id, issuer: String(decoding: try row.decode(Data.self, atIndex: 1), as: UTF8.self),
          createdMilliseconds: try row.decode(atIndex: 2))
      }
    }
  }

  static func identityCount(of container: ContainerID, in db: Database) throws -> Int {
    try Int.fetchOne(
      db.cachedStatement(sql: "SELECT count(*) FROM identity WHERE container = ?"), arguments: [container.bytes]) ?? 0
  }

  func link(_ identity: VerifiedIdentity, to device: DeviceIdentity, now: Int64) async throws -> IdentityLink {
    try await committer.write(for: device.container) { db in
      // A device that was removed after its request arrived must not get a way back.
      guard try !Self.isRetired(device.device, of: device.container, in: db) else { throw APIError.retired }
      let use = try Self.use(of: identity, by: device.device, now: now, in: db)
      if use == .refused { return .used }
      guard let found = try Self.find(identity, in: db) else {
        // Whoever has a token that was used must not be able to undo what the player did since.
        if use == .again { return .used }
        guard try Self.identityCount(of: device.container, in: db) < ServerLimits.identitiesPerPlayer else {
          return .tooMany
        }
        try Self.record(identity.uses.map(\.effective), by: device.device, now: now, in: db)
        try db.execute(
          sql: """
            INSERT INTO identity (id, container, app, player, issuer, device, created) VALUES (?, ?, ?, ?, ?, ?, ?)
            """,
          arguments: [
            identity.id.bytes, device.container.bytes, device.app.bytes, device.player.bytes,
            Data(identity.issuer.utf8), device.device.bytes, now,
          ])
        return .linked(LinkedIdentity(id: identity.id, issuer: identity.issuer, createdMilliseconds: now))
      }
      guard found.container == device.container else { return .taken }
      try Self.record(identity.uses.map(\.effective), by: device.device, now: now, in: db)
      try db.execute(
        sql: "UPDATE identity SET device = ?, app = ? WHERE id = ?",
        arguments: [device.device.bytes, device.app.bytes, identity.id.bytes])
      return .linked(LinkedIdentity(id: identity.id, issuer: found.issuer, createdMilliseconds: found.created))
    }
  }

  func signIn(
    with identity: VerifiedIdentity, by device: DeviceIdentity, as new: NewDevice, now: Int64
  ) async throws -> IdentitySignIn {
    defer { outbox?.wake() }
    return try await committer.write(for: nil) { [outbox] db in
      guard try !Self.isRetired(device.device, of: device.container, in: db) else { throw APIError.retired }
      let use = try Self.use(of: identity, by: device.device, now: now, in: db)
      if use == .refused { return .used }
      guard let found = try Self.find(identity, in: db) else { return .unknown }
      guard found.container != device.container else { return .own }
      try Self.record(identity.uses.map(\.effective), by: device.device, now: now, in: db)
      if found.joiner == device.device, let joined = found.joined,
        try !Self.isRetired(joined, of: found.container, in: db)
      {
        return .joined(found.device(joined, for: device.app))
      }
      // What came of it has been removed since, or is another device's.
      if use == .again { return .used }
      let joined = found.device(new.device, for: device.app)
      try db.execute(
        sql: "UPDATE identity SET device = ?1, app = ?2, joiner = ?3, joined = ?1 WHERE id = ?4",
        arguments: [new.device.bytes, device.app.bytes, device.device.bytes, identity.id.bytes])
      try Self.note(
        DeviceRecord(identity: joined, name: new.name, createdMilliseconds: now, seenMilliseconds: now), outbox, in: db)
      try Self.noteShared(joined, as: device, in: db)
      return .joined(joined)
    }
  }

  func unlink(_ identity: ContentHash, by device: DeviceIdentity) async throws -> Bool {
    try await committer.write(for: device.container) { db in
      guard try !Self.isRetired(device.device, of: device.container, in: db) else { throw APIError.retired }
      try db.execute(
        sql: "DELETE FROM identity WHERE id = ? AND container = ?",
        arguments: [identity.bytes, device.container.bytes])
      return db.changesCount > 0
    }
  }

  func unlink(_ identity: ContentHash, of container: ContainerID, auditing entry: AuditEntry) async throws {
    try await committer.write(for: container) { db in
      try db.execute(
        sql: "DELETE FROM identity WHERE id = ? AND container = ?", arguments: [identity.bytes, container.bytes])
      guard db.changesCount > 0 else { throw APIError.identityNotLinked }
      try entry.append(in: db)
    }
  }

  private static func find(_ identity: VerifiedIdentity, in db: Database) throws -> FoundIdentity? {
    try Row.fetchOne(
      db.cachedStatement(sql: "SELECT container, player, issuer, created, joiner, joined FROM identity WHERE id = ?"),
      arguments: [identity.id.bytes]
    ).map(FoundIdentity.init)
  }

  // MARK: Proofs that may be used once

  /// Returns whether a device may use a proof, which is from now on no good for another one, whatever comes of it.
  private static func use(
    of identity: VerifiedIdentity, by device: DeviceID, now: Int64, in db: Database
  ) throws -> IdentityUse {
    func holder(of use: VerifiedIdentity.Use) throws -> Data? {
      try Data.fetchOne(
        db.cachedStatement(sql: "SELECT device FROM identityUse WHERE key = ? AND expires > ?"),
        arguments: [use.key.bytes, now])
    }
    for use in identity.uses {
      if let holder = try holder(of: use), holder != device.bytes { return .refused }
    }
    try record(identity.uses, by: device, now: now, in: db)
    return try identity.uses.contains { try holder(of: $0.effective) != nil } ? .again : .first
  }

  private static func record(
    _ uses: [VerifiedIdentity.Use], by device: DeviceID, now: Int64, in db: Database
  ) throws {
    guard !uses.isEmpty else { return }
    try db.execute(sql: "DELETE FROM identityUse WHERE expires <= ?", arguments: [now])
    for use in uses {
      try db.execute(
        sql: "INSERT OR IGNORE INTO identityUse (key, device, expires) VALUES (?, ?, ?)",
        arguments: [use.key.bytes, device.bytes, use.expiresMilliseconds])
    }
  }
}

extension FoundIdentity {
  fileprivate init(_ row: Row) throws {
    guard let container = try ContainerID(bytes: row.decode(atIndex: 0)),
      let player = try PlayerID(bytes: row.decode(atIndex: 1))
    else {
      throw ServerError(.damaged, "An identity's row can't be read.")
    }
    self.init(
      container: container, player: player,
      issuer: String(decoding: try row.decode(Data.self, atIndex: 2), as: UTF8.self),
      created: try row.decode(atIndex: 3),
      joiner: try row.decode(Data?.self, atIndex: 4).flatMap(DeviceID.init(bytes:)),
      joined: try row.decode(Data?.self, atIndex: 5).flatMap(DeviceID.init(bytes:)))
  }
}

// The migration to identities.
extension Schema {
  static func addIdentities(to db: Database) throws {
    // With the device that has shown it last; and of the last one that signed in with it, what it was and became.
    try db.execute(
      sql: """
        CREATE TABLE identity (
          id BLOB PRIMARY KEY, container BLOB NOT NULL, app BLOB NOT NULL, player BLOB NOT NULL, issuer BLOB NOT NULL,
          device BLOB NOT NULL, created INTEGER NOT NULL, joiner BLOB, joined BLOB
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX identityContainer ON identity (container);
        CREATE INDEX identityPlayer ON identity (player);
        CREATE TABLE identityUse (key BLOB PRIMARY KEY, device BLOB NOT NULL, expires INTEGER NOT NULL)
          STRICT, WITHOUT ROWID;
        CREATE INDEX identityUseExpires ON identityUse (expires);
        """)
  }
}
#endif
