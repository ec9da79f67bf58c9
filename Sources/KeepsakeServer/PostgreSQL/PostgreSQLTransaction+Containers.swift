#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

// What transactions about devices, codes and identities have in common.
extension PostgreSQLTransaction {
  /// Has a container's turn: of two transactions that do so at a time, and of one and a decision's commit, the second
  /// fails with a conflict and is begun anew. Whatever is written about a container is written after this.
  ///
  /// What was read of the container before is as it is now, or this fails.
  ///
  /// - Throws: `APIError.retired` if everything of the player was deleted; `NotHere` if the container lives in another
  ///   database.
  func take(_ container: ContainerID) throws {
    let id: [PostgreSQLValue] = [.bytes(container.bytes)]
    if try run("UPDATE container SET revision = revision + 1 WHERE id = $1 AND revision >= 0", id).count > 0 { return }
    if try isDeleted(container) { throw APIError.retired }
    if try run([Self.fenced(container)])[0].first != nil { throw NotHere(container) }
    let first = PostgreSQLStatement(
      "INSERT INTO container (id, epoch, seq, mark, revision, used) VALUES ($1, 0, 0, 0, 1, 0)", id)
    _ = try run([first] + Self.refusingDeleted(container.deletedMark))
    notes.values.append(container.bytes)
  }

  /// Statements for whoever makes a container's row. They fail with a unique violation if everything of the player was
  /// deleted since the transaction began: the row that was there then is no obstacle any more, and the mark can't be
  /// seen yet. So they take the mark's place for a moment.
  static func refusingDeleted(_ mark: Data) -> [PostgreSQLStatement] {
    [
      PostgreSQLStatement("INSERT INTO retired (container, device, at) VALUES ($1, '', 0)", [.bytes(mark)]),
      PostgreSQLStatement("DELETE FROM retired WHERE container = $1 AND device = ''", [.bytes(mark)]),
    ]
  }

  /// Finds a container that lives in another database, or is on its way.
  static func fenced(_ container: ContainerID) -> PostgreSQLStatement {
    PostgreSQLStatement(
      "SELECT 1::bigint FROM container WHERE id = $1 AND revision < 0", [.bytes(container.bytes)])
  }

  static let deleted = "SELECT 1::bigint FROM retired WHERE container = $1 AND device = ''"

  func isDeleted(_ container: ContainerID) throws -> Bool {
    try run(Self.deleted, [.bytes(container.deletedMark)]).first != nil
  }

  func isRetired(_ device: DeviceID, of container: ContainerID) throws -> Bool {
    try run(Self.retired, [.bytes(container.bytes), .bytes(device.bytes), .bytes(container.deletedMark)]).first != nil
  }

  static let retired = """
    SELECT 1::bigint FROM retired WHERE (container = $1 AND device = $2) OR (container = $3 AND device = '')
    """

  /// Has the turn of a device's container, unless the device was removed, or everything of its player deleted.
  ///
  /// - Throws: `APIError.retired`.
  func take(_ container: ContainerID, by device: DeviceID) throws {
    try take(container)
    if try isRetired(device, of: container) { throw APIError.retired }
  }

  /// Records a device, or that it was here, unless it was removed. Its container's turn must be had.
  ///
  /// - Parameter outbox: Takes that the device is new, if it is.
  func note(_ device: DeviceRecord, _ outbox: WebhookOutbox?) throws {
    let statements = [try outbox.flatMap { try Self.telling(of: device, by: $0) }, Self.noting(device)]
    _ = try run(statements.compactMap(\.self))
  }

  private static func telling(of device: DeviceRecord, by outbox: WebhookOutbox) throws -> PostgreSQLStatement? {
    let (identity, event) = (device.identity, try WebhookEvent.deviceAdded(device.identity.device))
    let known = """
      SELECT 1 FROM device WHERE container = $2 AND id = $11
      UNION ALL SELECT 1 FROM retired WHERE (container = $2 AND device = $11) OR (container = $1 AND device = '')
      """
    return PostgreSQLOutbox.statement(
      outbox.copies(of: event), event, lane: identity.container.deletedMark, container: identity.container.bytes,
      at: .int(nil), item: 0, player: .bytes(identity.player.bytes), now: device.seenMilliseconds,
      condition: " WHERE NOT EXISTS (\(known))", [.bytes(identity.device.bytes)])
  }

  private static func noting(_ device: DeviceRecord) -> PostgreSQLStatement {
    let identity = device.identity
    return PostgreSQLStatement(
      """
      INSERT INTO device (container, id, player, app, name, created, seen)
      SELECT $1, $2, $3, $4, $5, $6, $7 WHERE NOT EXISTS (
        SELECT 1 FROM retired WHERE (container = $1 AND device = $2) OR (container = $8 AND device = '')
      ) ON CONFLICT (container, id) DO UPDATE SET seen = excluded.seen
      """,
      [
        .bytes(identity.container.bytes), .bytes(identity.device.bytes), .bytes(identity.player.bytes),
        .bytes(identity.app.bytes), .bytes(device.name.map { Data($0.utf8) }), .int(device.createdMilliseconds),
        .int(device.seenMilliseconds), .bytes(identity.container.deletedMark),
      ])
  }

  /// Returns the ban of a player.
  func ban(of container: ContainerID) throws -> Ban? {
    try run("SELECT reason, at FROM ban WHERE container = $1", [.bytes(container.bytes)]).first.map {
      Ban(reason: try $0.text(0), sinceMilliseconds: try $0.int(1))
    }
  }
}
#endif
