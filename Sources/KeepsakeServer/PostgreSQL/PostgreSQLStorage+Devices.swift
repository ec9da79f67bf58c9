#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

/// Devices, and where their players are kept.
extension PostgreSQLStorage {
  func recordDevice(_ device: DeviceRecord) async throws {
    let identity = device.identity
    let fresh = PostgreSQLStatement(
      "SELECT 1::bigint FROM device WHERE container = $1 AND id = $2 AND seen > $3",
      [
        .bytes(identity.container.bytes), .bytes(identity.device.bytes),
        .int(device.seenMilliseconds &- ServerLimits.visitMilliseconds),
      ])
    if try await read([fresh], of: identity.container)[0].first != nil { return }
    do {
      try await transaction { [outbox] transaction in
        try transaction.take(identity.container, by: identity.device)
        try transaction.note(device, outbox)
      }
      outbox?.wake()
    } catch let error as APIError where error.code == .retired {
      // What was removed while the request was on its way stays removed.
    }
  }

  func devices(of container: ContainerID) async throws -> [DeviceRecord] {
    let statement = PostgreSQLStatement(
      "SELECT id, player, app, name, created, seen, set_back FROM device WHERE container = $1 ORDER BY id",
      [.bytes(container.bytes)])
    return try await read([statement], of: container)[0].map { row in
      DeviceRecord(
        identity: DeviceIdentity(
          device: try row.identifier(0), player: try row.identifier(1), container: container,
          app: AppID(bytes: try row.bytes(2))),
        name: try row.optionalBytes(3).map { String(decoding: $0, as: UTF8.self) },
        createdMilliseconds: try row.int(4), seenMilliseconds: try row.int(5),
        setBack: try row.optionalBytes(6).flatMap { try decoded(DeviceSetBacks.self, $0).mark })
    }
  }

  func isRetired(_ identity: DeviceIdentity) async throws -> Bool {
    let container = identity.container
    let values: [PostgreSQLValue] = [
      .bytes(container.bytes), .bytes(identity.device.bytes), .bytes(container.deletedMark),
    ]
    let statement = PostgreSQLStatement(PostgreSQLTransaction.retired, values)
    return try await read([statement], of: container)[0].first != nil
  }

  func place(of player: PlayerID) async throws -> PlayerPlace? {
    // A player who has signed out everywhere may come back.
    let statement = PostgreSQLStatement(
      """
      SELECT container, app FROM device WHERE player = $1
      UNION ALL SELECT container, app FROM recovery WHERE player = $1
      UNION ALL SELECT container, app FROM identity WHERE player = $1
      LIMIT 1
      """, [.bytes(player.bytes)])
    return try await read([statement])[0].first.map {
      PlayerPlace(container: try $0.identifier(0), app: AppID(bytes: try $0.bytes(1)))
    }
  }
}

/// Which token each device has used last.
extension PostgreSQLStorage {
  func newestToken(of identity: DeviceIdentity) async throws -> Int64? {
    let statement = PostgreSQLStatement(
      "SELECT issued FROM token_use WHERE container = $1 AND device = $2",
      [.bytes(identity.container.bytes), .bytes(identity.device.bytes)])
    return try await read([statement], of: identity.container)[0].first?.int(0)
  }

  func recordToken(issuedMilliseconds: Int64, of identity: DeviceIdentity) async throws {
    do {
      try await transaction { transaction in
        try transaction.take(identity.container, by: identity.device)
        try transaction.run(
          """
          INSERT INTO token_use (container, device, issued) VALUES ($1, $2, $3)
          ON CONFLICT (container, device) DO UPDATE SET issued = greatest(token_use.issued, excluded.issued)
          """, [.bytes(identity.container.bytes), .bytes(identity.device.bytes), .int(issuedMilliseconds)])
      }
    } catch let error as APIError where error.code == .retired {
      // What was removed while the request was on its way stays removed.
    }
  }
}
#endif
