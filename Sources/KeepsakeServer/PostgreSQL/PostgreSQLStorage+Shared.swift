#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

/// Shared containers, and to which device of a game itself each device in them belongs.
extension PostgreSQLStorage {
  func registerShared(
    _ new: DeviceIdentity, named name: String, by right: EntryRight, now: Int64
  ) async throws -> DeviceIdentity {
    guard let parent = right.parent else {
      throw ServerError(.configuration, "A shared container is asked for by a device of a game.")
    }
    defer { outbox?.wake() }
    return try await transaction { [outbox] transaction in
      try transaction.admit(right)
      let found = try transaction.run(
        "SELECT container, player FROM shared WHERE parent = $1 AND share = $2 AND current = 1",
        [.bytes(parent.container.bytes), .bytes(right.scope.bytes)]
      ).first
      var identity = new
      if let found { (identity.container, identity.player) = (try found.identifier(0), try found.identifier(1)) }
      try transaction.take(identity.container)
      try transaction.note(
        DeviceRecord(identity: identity, name: name, createdMilliseconds: now, seenMilliseconds: now), outbox)
      try transaction.noteShared(identity, by: right)
      return identity
    }
  }

  func beginLeaving(_ container: ContainerID, _ device: DeviceID?, now: Int64) async throws {
    try await transaction { transaction in
      try transaction.take(container)
      try transaction.run(
        """
        INSERT INTO leaving (container, device, until) VALUES ($1, $2, \(DatabaseClock.now) + $3)
        ON CONFLICT (container, device) DO UPDATE SET until = excluded.until
        """,
        [.bytes(container.bytes), .bytes(device?.bytes ?? Data()), .int(Self.leavingMilliseconds)])
    }
  }

  /// However often a removal is begun anew meanwhile. By the database's clock: those of servers differ.
  private static let leavingMilliseconds: Int64 = 60_000

  func sharedDevices(of parent: ContainerID, _ device: DeviceID?) async throws -> [SharedDevice] {
    try await read([PostgreSQLTransaction.sharedDevices(of: parent, device)], of: parent)[0].map(SharedDevice.init)
  }

  func sharedContainers(of parent: ContainerID) async throws -> [SharedContainer] {
    try await read([PostgreSQLTransaction.sharedContainers(of: parent)], of: parent)[0].map(SharedContainer.init)
  }

  func isShared(_ container: ContainerID) async throws -> Bool {
    let statement = PostgreSQLStatement(PostgreSQLTransaction.shared, [.bytes(container.bytes)])
    return try await read([statement], of: container)[0].first != nil
  }
}

extension PostgreSQLTransaction {
  fileprivate static let shared = "SELECT 1::bigint FROM shared WHERE container = $1 LIMIT 1"

  func isShared(_ container: ContainerID) throws -> Bool {
    try run(Self.shared, [.bytes(container.bytes)]).first != nil
  }

  fileprivate static func sharedDevices(of parent: ContainerID, _ device: DeviceID?) -> PostgreSQLStatement {
    PostgreSQLStatement(
      """
      SELECT container, device FROM shared_device
      WHERE parent = $1 AND ($2::bytea IS NULL OR parent_device = $2::bytea) ORDER BY container, device
      """, [.bytes(parent.bytes), .bytes(device?.bytes)])
  }

  fileprivate static func sharedContainers(of parent: ContainerID) -> PostgreSQLStatement {
    PostgreSQLStatement(
      """
      SELECT share, container, player,
        (SELECT count(*) FROM shared AS other WHERE other.container = shared.container AND other.parent <> $1 AND (
          other.current = 1 OR EXISTS (
            SELECT 1 FROM shared_device AS device
            WHERE device.container = other.container AND device.parent = other.parent)))
      FROM shared WHERE parent = $1 ORDER BY share, container
      """, [.bytes(parent.bytes)])
  }

  /// Has the turn of all shared containers of a player of a game, and returns those that nobody else has: they are
  /// deleted with the player.
  ///
  /// - Throws: `SharedLeft` if the player has devices in other ones.
  func takeSharedAlone(of parent: ContainerID) throws -> [ContainerID] {
    let found = try run([Self.sharedContainers(of: parent)])[0].map(SharedContainer.init)
    for one in found { try take(one.container) }
    let alone = found.filter(\.isAlone).map(\.container)
    let devices = try run([Self.sharedDevices(of: parent, nil)])[0].map(SharedDevice.init)
    guard devices.allSatisfy({ alone.contains($0.container) }) else { throw SharedLeft() }
    return alone
  }

  /// Has the turn of the game's container, and refuses a right to a shared container if the device of the game has lost
  /// it since the request was admitted. Call it before anything is looked up, so that the answer doesn't depend on what
  /// there is to find.
  ///
  /// - Throws: `APIError.retired` if the device of the game was removed, `banned` if its player is.
  func admit(_ right: EntryRight) throws {
    guard let parent = right.parent else { return }
    try admit(parent.container, parent.device)
  }

  private func admit(_ parent: ContainerID, _ device: DeviceID) throws {
    try take(parent, by: device)
    let leaving = try run(
      """
      SELECT 1::bigint FROM leaving
      WHERE container = $1 AND (device = $2 OR device = '') AND until > \(DatabaseClock.now)
      """,
      [.bytes(parent.bytes), .bytes(device.bytes)])
    if leaving.first != nil { throw APIError.retired }
    if let ban = try ban(of: parent) { throw APIError.banned(ban) }
  }

  /// Records to which device of a game a device of a shared container belongs, and that the player has this container
  /// from now on; nothing for a device of a game itself. The right must have been admitted in this transaction, and the
  /// container's turn be had.
  func noteShared(_ identity: DeviceIdentity, by right: EntryRight) throws {
    guard let parent = right.parent else { return }
    try noteShared(identity, right.scope.bytes, parent.container.bytes, parent.device.bytes)
  }

  /// Whether a device of a shared container belongs to this device of a game.
  func belongs(_ identity: DeviceIdentity, to parent: DeviceIdentity) throws -> Bool {
    try run(
      """
      SELECT 1::bigint FROM shared_device
      WHERE container = $1 AND device = $2 AND parent = $3 AND parent_device = $4
      """,
      [
        .bytes(identity.container.bytes), .bytes(identity.device.bytes), .bytes(parent.container.bytes),
        .bytes(parent.device.bytes),
      ]
    ).first != nil
  }

  /// Records a device that signed in as another one of the same game's device.
  func noteShared(_ identity: DeviceIdentity, as other: DeviceIdentity) throws {
    let found = try run(
      "SELECT share, parent, parent_device FROM shared_device WHERE container = $1 AND device = $2",
      [.bytes(other.container.bytes), .bytes(other.device.bytes)]
    ).first
    guard let found else { return }
    let (parent, device): (ContainerID, DeviceID) = (try found.identifier(1), try found.identifier(2))
    try admit(parent, device)
    try noteShared(identity, try found.bytes(0), parent.bytes, device.bytes)
  }

  private func noteShared(_ identity: DeviceIdentity, _ share: Data, _ parent: Data, _ parentDevice: Data) throws {
    let container = PostgreSQLValue.bytes(identity.container.bytes)
    try run(
      """
      INSERT INTO shared_device (container, device, share, parent, parent_device) VALUES ($1, $2, $3, $4, $5)
      ON CONFLICT (container, device) DO UPDATE
      SET share = excluded.share, parent = excluded.parent, parent_device = excluded.parent_device
      """, [container, .bytes(identity.device.bytes), .bytes(share), .bytes(parent), .bytes(parentDevice)])
    try run(
      "UPDATE shared SET current = 0 WHERE parent = $1 AND share = $2 AND container <> $3",
      [.bytes(parent), .bytes(share), container])
    try run(
      """
      INSERT INTO shared (parent, container, share, player, current) VALUES ($1, $2, $3, $4, 1)
      ON CONFLICT (parent, container) DO UPDATE
      SET share = excluded.share, player = excluded.player, current = 1
      """, [.bytes(parent), container, .bytes(share), .bytes(identity.player.bytes)])
  }
}

extension SharedDevice {
  fileprivate init(_ row: PostgreSQLRow) throws {
    self.init(container: try row.identifier(0), device: try row.identifier(1))
  }
}

extension SharedContainer {
  fileprivate init(_ row: PostgreSQLRow) throws {
    self.init(
      share: AppID(bytes: try row.bytes(0)), container: try row.identifier(1), player: try row.identifier(2),
      isAlone: try row.int(3) == 0)
  }
}
#endif
