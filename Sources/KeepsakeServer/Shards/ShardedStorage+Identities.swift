#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

/// Identities. Home has each of them, and says to whose container it leads; what else is known of it is where that
/// container lives.
extension ShardedStorage {
  func identities(of container: ContainerID) async throws -> [LinkedIdentity] {
    try await at(container) { try await $0.identities(of: container) }
  }

  func link(_ identity: VerifiedIdentity, to device: DeviceIdentity, now: Int64) async throws -> IdentityLink {
    try await removeVoid(identity.id, besides: device.container)
    return try await at(device.container) { storage in
      if storage.isHome {
        if try await Self.holder(of: identity.id, in: self.home) == nil,
          try await self.holderElsewhere(of: identity.id, besides: device.container) != nil
        {
          return try await self.using(identity, by: device, now: now) { IdentityLink.taken } ?? .used
        }
        return try await storage.link(identity, to: device, now: now)
      }
      return try await self.using(identity, by: device, now: now) {
        try await self.link(identity, to: device, in: storage, now: now)
      } ?? .used
    }
  }

  private func link(
    _ identity: VerifiedIdentity, to device: DeviceIdentity, in storage: PostgreSQLStorage, now: Int64
  ) async throws -> IdentityLink {
    let before = try await holder(of: identity.id)
    if let before, before.container != device.container { return .taken }
    guard try await claim(identity, for: device, now: now) else { return .taken }
    let link = try await storage.link(identity, to: device, now: now)
    guard case .linked = link else {
      if before == nil { try await release(identity.id, Holder(device)) }
      return link
    }
    // Between the two, another player may have taken it for one that leads nowhere.
    guard try await claim(identity, for: device, now: now) else {
      _ = try await storage.unlink(identity.id, by: device)
      return .taken
    }
    try await recordUses(identity, by: device.device, now: now)
    return link
  }

  func signIn(
    with identity: VerifiedIdentity, by device: DeviceIdentity, as new: NewDevice, now: Int64
  ) async throws -> IdentitySignIn {
    // First: for a proof that another device has used, nobody is moved.
    try await using(identity, by: device, now: now) {
      try await joinHolder(of: identity, by: device, as: new, now: now)
    } ?? .used
  }

  private func joinHolder(
    of identity: VerifiedIdentity, by device: DeviceIdentity, as new: NewDevice, now: Int64
  ) async throws -> IdentitySignIn {
    // Nobody is moved for an identity that leads nowhere.
    let holder = try await removeVoid(identity.id, besides: device.container)?.container
    // Its transaction needs both: the one that asks comes to the other, and has less to carry as a rule.
    let others = holder == nil || holder == device.container ? [] : [device.container]
    return try await atPresent(holder ?? device.container, with: others) { storage in
      let signIn = try await storage.signIn(with: identity, by: device, as: new, now: now)
      if !storage.isHome, case .joined = signIn {
        try await self.recordUses(identity, by: device.device, now: now)
      }
      return signIn
    } isNothing: {
      $0 == .unknown
    }
  }

  func unlink(_ identity: ContentHash, by device: DeviceIdentity) async throws -> Bool {
    try await at(device.container) { storage in
      let holder = try await self.holder(of: identity)
      let isGone = try await storage.unlink(identity, by: device)
      // Also if this was done before: whatever has ended the first attempt, home mustn't keep it.
      if !storage.isHome, let holder, holder.container == device.container {
        try await self.release(identity, holder)
      }
      return isGone
    }
  }

  // MARK: Home

  /// To whose container an identity leads, and the device that has linked it or is about to: who removes that removes
  /// no later one.
  struct Holder: Hashable, Sendable {
    var container: ContainerID
    var device: DeviceID

    init(_ container: ContainerID, _ device: DeviceID) { (self.container, self.device) = (container, device) }
    init(_ identity: DeviceIdentity) { self.init(identity.container, identity.device) }
  }

  func holder(of identity: ContentHash) async throws -> Holder? {
    if let known = try await Self.holder(of: identity, in: home) { return known }
    return try await holderElsewhere(of: identity)
  }

  /// Returns who has an identity of which home may not know, since it was set back to a backup from before it was
  /// linked.
  private func holderElsewhere(
    of identity: ContentHash, besides container: ContainerID? = nil
  ) async throws -> Holder? {
    let found = try await findElsewhere { storage in
      [try await Self.holder(of: identity, in: storage)].compactMap(\.self)
    }
    for (shard, holder) in found where holder.container != container {
      // A player may have left it where a database was set back, and have unlinked it since.
      let place = try await directory.placement(of: holder.container)
      if place == nil || place?.shard == shard { return holder }
    }
    return nil
  }

  private static func holder(of identity: ContentHash, in storage: PostgreSQLStorage) async throws -> Holder? {
    let statement = PostgreSQLStatement(
      "SELECT container, device FROM identity WHERE id = $1", [.bytes(identity.bytes)])
    return try await storage.read([statement])[0].first.map { Holder(try $0.identifier(0), try $0.identifier(1)) }
  }

  /// Enters in home to whose container an identity leads, unless it leads to another one.
  ///
  /// - Returns: Whether it leads to this one.
  private func claim(_ identity: VerifiedIdentity, for device: DeviceIdentity, now: Int64) async throws -> Bool {
    let statement = PostgreSQLStatement(
      """
      INSERT INTO identity (id, container, app, player, issuer, device, created) VALUES ($1, $2, $3, $4, $5, $6, $7)
      ON CONFLICT (id) DO UPDATE SET device = excluded.device WHERE identity.container = excluded.container
      """,
      [
        .bytes(identity.id.bytes), .bytes(device.container.bytes), .bytes(device.app.bytes),
        .bytes(device.player.bytes), .bytes(Data(identity.issuer.utf8)), .bytes(device.device.bytes), .int(now),
      ])
    return try await home.read([statement])[0].count > 0
  }

  func release(_ identity: ContentHash, _ holder: Holder) async throws {
    let statement = PostgreSQLStatement(
      "DELETE FROM identity WHERE id = $1 AND container = $2 AND device = $3",
      [.bytes(identity.bytes), .bytes(holder.container.bytes), .bytes(holder.device.bytes)])
    _ = try await home.read([statement])
  }

  /// Removes from home that an identity leads to a player who doesn't have it: a link that was ended half-way, or one
  /// that was removed with its device.
  ///
  /// - Returns: To whom it leads after that.
  @discardableResult
  private func removeVoid(_ identity: ContentHash, besides container: ContainerID) async throws -> Holder? {
    guard let holder = try await holder(of: identity) else { return nil }
    if holder.container == container { return holder }
    let isVoid = try await at(holder.container) { storage in
      // One that a deleted player was about to link.
      if storage.isHome { return try await storage.isDeleted(holder.container) }
      return try await !storage.identities(of: holder.container).contains { $0.id == identity }
    }
    guard isVoid else { return holder }
    try await release(identity, holder)
    return nil
  }

  /// Does something with a proof that no other device has used, in any database. It is from now on no good for another
  /// one, unless this one turns out to be removed: what such a device shows counts for nothing, as in one database.
  ///
  /// - Returns: `nil` if another device has used it.
  /// - Throws: `APIError.retired` for a device that is deleted meanwhile with its player: what it has used itself is
  ///   nobody's before it is gone.
  private func using<Result: Sendable>(
    _ identity: VerifiedIdentity, by device: DeviceIdentity, now: Int64, _ body: () async throws -> Result
  ) async throws -> Result? {
    let (use, recorded) = try await home.transaction {
      try $0.recordUse(of: identity, by: device.device, now: now)
    }
    if use == .refused {
      let end = ContinuousClock.now + Self.patience
      while try await directory.placement(of: device.container)?.isDeleting == true {
        guard ContinuousClock.now < end else { throw ShardMover.busy }
        try await PostgreSQLPool.pause(after: 5)
      }
      if try await isRetired(device) { throw APIError.retired }
      return nil
    }
    do {
      return try await body()
    } catch let error as APIError where error.code == .retired {
      let statement = PostgreSQLStatement(
        "DELETE FROM identity_use WHERE key = ANY($1) AND device = $2",
        [.list(recorded), .bytes(device.device.bytes)])
      _ = try await home.read([statement])
      throw error
    }
  }

  private func recordUses(_ identity: VerifiedIdentity, by device: DeviceID, now: Int64) async throws {
    try await home.transaction { try $0.record(identity.uses.map(\.effective), by: device, now: now) }
  }
}
#endif
