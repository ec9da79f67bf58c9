#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

/// Shared containers, and to which device of a game itself each device in them belongs.
extension SQLiteCloudStorage {
  func registerShared(
    _ new: DeviceIdentity, named name: String, by right: EntryRight, now: Int64
  ) async throws -> DeviceIdentity {
    guard let parent = right.parent else {
      throw ServerError(.configuration, "A shared container is asked for by a device of a game.")
    }
    defer { outbox?.wake() }
    return try await committer.write(for: nil) { [outbox] db in
      try Self.admit(right, in: db)
      let found = try Row.fetchOne(
        db, sql: "SELECT container, player FROM shared WHERE parent = ? AND share = ? AND current",
        arguments: [parent.container.bytes, right.scope.bytes])
      var identity = new
      if let found {
        (identity.container, identity.player) = (try Self.container(found, 0), try Self.player(found, 1))
      }
      try Self.note(
        DeviceRecord(identity: identity, name: name, createdMilliseconds: now, seenMilliseconds: now), outbox, in: db)
      try Self.noteShared(identity, by: right, in: db)
      return identity
    }
  }

  func sharedDevices(of parent: ContainerID, _ device: DeviceID?) async throws -> [SharedDevice] {
    try await reading { try Self.sharedDevices(of: parent, device, in: $0) }
  }

  static func sharedDevices(of parent: ContainerID, _ device: DeviceID?, in db: Database) throws -> [SharedDevice] {
    try Row.fetchAll(
      db.cachedStatement(
        sql: """
          SELECT container, device FROM sharedDevice
          WHERE parent = ?1 AND (?2 IS NULL OR parentDevice = ?2) ORDER BY container, device
          """), arguments: [parent.bytes, device?.bytes]
    ).map { row in
      guard let device = try DeviceID(bytes: row.decode(atIndex: 1)) else { throw damaged }
      return SharedDevice(container: try container(row, 0), device: device)
    }
  }

  func sharedContainers(of parent: ContainerID) async throws -> [SharedContainer] {
    try await reading { try Self.sharedContainers(of: parent, in: $0) }
  }

  private static func sharedContainers(of parent: ContainerID, in db: Database) throws -> [SharedContainer] {
    try Row.fetchAll(
      db.cachedStatement(
        sql: """
          SELECT share, container, player,
            NOT EXISTS (
              SELECT 1 FROM shared AS other WHERE other.container = shared.container AND other.parent <> ?1 AND (
                other.current OR EXISTS (
                  SELECT 1 FROM sharedDevice AS device
                  WHERE device.container = other.container AND device.parent = other.parent)))
          FROM shared WHERE parent = ?1 ORDER BY share, container
          """), arguments: [parent.bytes]
    ).map { row in
      SharedContainer(
        share: AppID(bytes: try row.decode(atIndex: 0)), container: try container(row, 1),
        player: try player(row, 2), isAlone: try row.decode(atIndex: 3))
    }
  }

  func sharedParents(of container: ContainerID) async throws -> [SharedParent] {
    try await reading { db in
      try Row.fetchAll(
        db.cachedStatement(
          sql: """
            SELECT DISTINCT shared.parent, device.player, device.app FROM shared
            LEFT JOIN device ON device.container = shared.parent WHERE shared.container = ? ORDER BY 1, 2, 3
            """), arguments: [container.bytes]
      ).map { row in
        SharedParent(
          container: try Self.container(row, 0),
          player: try row.decode(Data?.self, atIndex: 1).flatMap(PlayerID.init(bytes:)),
          app: try row.decode(Data?.self, atIndex: 2).map(AppID.init(bytes:)))
      }
    }
  }

  /// Returns the shared containers that a player of a game has and nobody else: they are deleted with the player.
  ///
  /// - Throws: `SharedLeft` if the player has devices in other ones.
  static func sharedAlone(of parent: ContainerID, in db: Database) throws -> [ContainerID] {
    let alone = try sharedContainers(of: parent, in: db).filter(\.isAlone).map(\.container)
    guard try sharedDevices(of: parent, nil, in: db).allSatisfy({ alone.contains($0.container) }) else {
      throw SharedLeft()
    }
    return alone
  }

  func isShared(_ container: ContainerID) async throws -> Bool {
    try await reading { try Self.isShared(container, in: $0) }
  }

  static func isShared(_ container: ContainerID, in db: Database) throws -> Bool {
    try Row.fetchOne(
      db.cachedStatement(sql: "SELECT 1 FROM shared WHERE container = ? LIMIT 1"), arguments: [container.bytes]) != nil
  }

  /// Gives up a shared container for the player of a game whose only device there this is. In the transaction that
  /// removes the device: of two that are removed together, each would take the other for one that stays.
  static func leaveShared(_ device: DeviceID, of container: ContainerID, in db: Database) throws {
    try db.execute(
      sql: """
        UPDATE shared SET current = 0
        WHERE container = ?1 AND parent = (SELECT parent FROM sharedDevice WHERE container = ?1 AND device = ?2)
        AND NOT EXISTS (
          SELECT 1 FROM sharedDevice AS other
          WHERE other.container = ?1 AND other.parent = shared.parent AND other.device <> ?2)
        """, arguments: [container.bytes, device.bytes])
  }

  /// Refuses a right to a shared container if the device of the game has lost it since the request was admitted. Call
  /// it before anything is looked up, so that the answer doesn't depend on what there is to find.
  ///
  /// - Throws: `APIError.retired` if the device of the game was removed, `banned` if its player is.
  static func admit(_ right: EntryRight, in db: Database) throws {
    guard let parent = right.parent else { return }
    guard try !isRetired(parent.device, of: parent.container, in: db) else { throw APIError.retired }
    // One that was banned meanwhile has been looked for already.
    if let ban = try Ban.row(of: parent.container, in: db) { throw APIError.banned(ban) }
  }

  /// Records to which device of a game a device of a shared container belongs, and that the player has this container
  /// from now on; nothing for a device of a game itself. The right must have been admitted in this transaction.
  static func noteShared(_ identity: DeviceIdentity, by right: EntryRight, in db: Database) throws {
    guard let parent = right.parent else { return }
    try noteShared(identity, right.scope.bytes, parent.container.bytes, parent.device.bytes, in: db)
  }

  /// Whether a device of a shared container belongs to this device of a game.
  static func belongs(_ identity: DeviceIdentity, to parent: DeviceIdentity, in db: Database) throws -> Bool {
    try Row.fetchOne(
      db,
      sql: "SELECT 1 FROM sharedDevice WHERE container = ? AND device = ? AND parent = ? AND parentDevice = ?",
      arguments: [
        identity.container.bytes, identity.device.bytes, parent.container.bytes, parent.device.bytes,
      ]) != nil
  }

  /// Records a device that signed in as another one of the same game's device.
  static func noteShared(_ identity: DeviceIdentity, as other: DeviceIdentity, in db: Database) throws {
    let found = try Row.fetchOne(
      db, sql: "SELECT share, parent, parentDevice FROM sharedDevice WHERE container = ? AND device = ?",
      arguments: [other.container.bytes, other.device.bytes])
    guard let found else { return }
    if let parent = try ContainerID(bytes: found.decode(atIndex: 1)), let ban = try Ban.row(of: parent, in: db) {
      throw APIError.banned(ban)
    }
    try noteShared(
      identity, try found.decode(atIndex: 0), try found.decode(atIndex: 1), try found.decode(atIndex: 2), in: db)
  }

  private static func noteShared(
    _ identity: DeviceIdentity, _ share: Data, _ parent: Data, _ parentDevice: Data, in db: Database
  ) throws {
    try db.execute(
      sql: """
        INSERT OR REPLACE INTO sharedDevice (container, device, share, parent, parentDevice) VALUES (?, ?, ?, ?, ?)
        """, arguments: [identity.container.bytes, identity.device.bytes, share, parent, parentDevice])
    try db.execute(
      sql: "UPDATE shared SET current = 0 WHERE parent = ? AND share = ? AND container <> ?",
      arguments: [parent, share, identity.container.bytes])
    try db.execute(
      sql: "INSERT OR REPLACE INTO shared (parent, container, share, player, current) VALUES (?, ?, ?, ?, 1)",
      arguments: [parent, identity.container.bytes, share, identity.player.bytes])
  }

  private static func container(_ row: Row, _ index: Int) throws -> ContainerID {
    guard let container = try ContainerID(bytes: row.decode(atIndex: index)) else { throw damaged }
    return container
  }

  private static func player(_ row: Row, _ index: Int) throws -> PlayerID {
    guard let player = try PlayerID(bytes: row.decode(atIndex: index)) else { throw damaged }
    return player
  }

  private static var damaged: ServerError { ServerError(.damaged, "A shared container's row can't be read.") }
}

// The migration to shared containers.
extension Schema {
  static func addShared(to db: Database) throws {
    // Of each share, a player of a game has one container currently, and those that the player has left for it.
    try db.execute(
      sql: """
        CREATE TABLE shared (
          parent BLOB NOT NULL, container BLOB NOT NULL, share BLOB NOT NULL, player BLOB NOT NULL,
          current INTEGER NOT NULL, PRIMARY KEY (parent, container)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX sharedContainer ON shared (container);
        CREATE TABLE sharedDevice (
          container BLOB NOT NULL, device BLOB NOT NULL, share BLOB NOT NULL, parent BLOB NOT NULL,
          parentDevice BLOB NOT NULL, PRIMARY KEY (container, device)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX sharedParent ON sharedDevice (parent, parentDevice);
        CREATE INDEX identityJoiner ON identity (joiner) WHERE joiner IS NOT NULL;
        CREATE INDEX identityUseDevice ON identityUse (device);
        """)
  }
}
#endif
