#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

/// Identities that lead to players, each known by its hash.
extension PostgreSQLStorage {
  func identities(of container: ContainerID) async throws -> [LinkedIdentity] {
    let statement = PostgreSQLStatement(
      "SELECT id, issuer, created FROM identity WHERE container = $1 ORDER BY created, id",
      [.bytes(container.bytes)])
    return try await read([statement], of: container)[0].map {
      LinkedIdentity(id: try $0.hash(0), issuer: try $0.text(1), createdMilliseconds: try $0.int(2))
    }
  }

  func link(_ identity: VerifiedIdentity, to device: DeviceIdentity, now: Int64) async throws -> IdentityLink {
    try await transaction { transaction in
      // A device that was removed after its request arrived must not get a way back.
      try transaction.take(device.container, by: device.device)
      let use = try transaction.use(of: identity, by: device.device, now: now)
      if use == .refused { return .used }
      guard let found = try transaction.find(identity) else {
        // Whoever has a token that was used must not be able to undo what the player did since.
        if use == .again { return .used }
        let count = try transaction.run(
          "SELECT count(*) FROM identity WHERE container = $1", [.bytes(device.container.bytes)]
        ).first?.int(0)
        guard count ?? 0 < ServerLimits.identitiesPerPlayer else { return .tooMany }
        try transaction.record(identity.uses.map(\.effective), by: device.device, now: now)
        try transaction.run(
          """
          INSERT INTO identity (id, container, app, player, issuer, device, created) VALUES ($1, $2, $3, $4, $5, $6, $7)
          """,
          [
            .bytes(identity.id.bytes), .bytes(device.container.bytes), .bytes(device.app.bytes),
            .bytes(device.player.bytes), .bytes(Data(identity.issuer.utf8)), .bytes(device.device.bytes), .int(now),
          ])
        return .linked(LinkedIdentity(id: identity.id, issuer: identity.issuer, createdMilliseconds: now))
      }
      guard found.container == device.container else { return .taken }
      try transaction.record(identity.uses.map(\.effective), by: device.device, now: now)
      try transaction.run(
        "UPDATE identity SET device = $2, app = $3 WHERE id = $1",
        [.bytes(identity.id.bytes), .bytes(device.device.bytes), .bytes(device.app.bytes)])
      return .linked(LinkedIdentity(id: identity.id, issuer: found.issuer, createdMilliseconds: found.created))
    }
  }

  func signIn(
    with identity: VerifiedIdentity, by device: DeviceIdentity, as new: NewDevice, now: Int64
  ) async throws -> IdentitySignIn {
    defer { outbox?.wake() }
    return try await transaction { [outbox] transaction in
      try transaction.take(device.container, by: device.device)
      let use = try transaction.use(of: identity, by: device.device, now: now)
      if use == .refused { return .used }
      guard let found = try transaction.find(identity) else { return .unknown }
      guard found.container != device.container else { return .own }
      try transaction.take(found.container)
      try transaction.record(identity.uses.map(\.effective), by: device.device, now: now)
      if found.joiner == device.device, let joined = found.joined,
        try !transaction.isRetired(joined, of: found.container)
      {
        return .joined(found.device(joined, for: device.app))
      }
      // What came of it has been removed since, or is another device's.
      if use == .again { return .used }
      let joined = found.device(new.device, for: device.app)
      try transaction.run(
        "UPDATE identity SET device = $2, app = $3, joiner = $4, joined = $2 WHERE id = $1",
        [
          .bytes(identity.id.bytes), .bytes(new.device.bytes), .bytes(device.app.bytes), .bytes(device.device.bytes),
        ])
      try transaction.note(
        DeviceRecord(identity: joined, name: new.name, createdMilliseconds: now, seenMilliseconds: now), outbox)
      try transaction.noteShared(joined, as: device)
      return .joined(joined)
    }
  }

  func unlink(_ identity: ContentHash, by device: DeviceIdentity) async throws -> Bool {
    try await transaction { transaction in
      try transaction.take(device.container, by: device.device)
      let gone = try transaction.run(
        "DELETE FROM identity WHERE id = $1 AND container = $2",
        [.bytes(identity.bytes), .bytes(device.container.bytes)])
      return gone.count > 0
    }
  }
}

extension FoundIdentity {
  fileprivate init(_ row: PostgreSQLRow) throws {
    self.init(
      container: try row.identifier(0), player: try row.identifier(1), issuer: try row.text(2),
      created: try row.int(3), joiner: try row.optionalBytes(4).flatMap(DeviceID.init(bytes:)),
      joined: try row.optionalBytes(5).flatMap(DeviceID.init(bytes:)))
  }
}

extension PostgreSQLTransaction {
  fileprivate func find(_ identity: VerifiedIdentity) throws -> FoundIdentity? {
    try run(
      "SELECT container, player, issuer, created, joiner, joined FROM identity WHERE id = $1",
      [.bytes(identity.id.bytes)]
    ).first.map(FoundIdentity.init)
  }

  /// Returns whether a device may use a proof, which is from now on no good for another one, whatever comes of it.
  func use(of identity: VerifiedIdentity, by device: DeviceID, now: Int64) throws -> IdentityUse {
    try recordUse(of: identity, by: device, now: now).use
  }

  /// - Returns: `recorded`: The keys that this call has recorded, rather than an earlier one.
  func recordUse(
    of identity: VerifiedIdentity, by device: DeviceID, now: Int64
  ) throws -> (use: IdentityUse, recorded: [Data]) {
    let keys = identity.uses.flatMap { [$0.key.bytes, $0.effective.key.bytes] }
    var holders: [Data: Data] = [:]
    for row in try run(
      "SELECT key, device FROM identity_use WHERE key = ANY($1) AND expires > $2", [.list(keys), .int(now)])
    {
      holders[try row.bytes(0)] = try row.bytes(1)
    }
    for use in identity.uses {
      if let holder = holders[use.key.bytes], holder != device.bytes { return (.refused, []) }
    }
    let recorded = try record(identity.uses, by: device, now: now)
    return (identity.uses.contains { holders[$0.effective.key.bytes] != nil } ? .again : .first, recorded)
  }

  /// In place of those that have expired; those that are valid stay.
  ///
  /// - Returns: The keys of those that were recorded.
  @discardableResult
  func record(_ uses: [VerifiedIdentity.Use], by device: DeviceID, now: Int64) throws -> [Data] {
    try uses.flatMap { use in
      try run(
        """
        INSERT INTO identity_use (key, device, expires) VALUES ($1, $2, $3)
        ON CONFLICT (key) DO UPDATE SET device = excluded.device, expires = excluded.expires
        WHERE identity_use.expires <= $4
        RETURNING key
        """, [.bytes(use.key.bytes), .bytes(device.bytes), .int(use.expiresMilliseconds), .int(now)]
      ).map { try $0.bytes(0) }
    }
  }
}
#endif
