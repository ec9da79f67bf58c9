#if Cloud
import GRDB
import KeepsakeReplication

/// Which token each device has used last.
extension SQLiteCloudStorage {
  func newestToken(of identity: DeviceIdentity) async throws -> Int64? {
    try await reading { db in
      try Int64.fetchOne(
        db.cachedStatement(sql: "SELECT issued FROM tokenUse WHERE container = ? AND device = ?"),
        arguments: [identity.container.bytes, identity.device.bytes])
    }
  }

  func recordToken(issuedMilliseconds: Int64, of identity: DeviceIdentity) async throws {
    try await committer.write(for: identity.container) { db in
      // What was removed while the request was on its way stays removed.
      guard try !Self.isRetired(identity.device, of: identity.container, in: db) else { return }
      try db.execute(
        sql: """
          INSERT INTO tokenUse (container, device, issued) VALUES (?, ?, ?)
          ON CONFLICT DO UPDATE SET issued = max(issued, excluded.issued)
          """, arguments: [identity.container.bytes, identity.device.bytes, issuedMilliseconds])
    }
  }
}

// The migration to tokens with an age.
extension Schema {
  static func addTokenUses(to db: Database) throws {
    try db.execute(
      sql: """
        CREATE TABLE tokenUse (
          container BLOB NOT NULL, device BLOB NOT NULL, issued INTEGER NOT NULL, PRIMARY KEY (container, device)
        ) STRICT, WITHOUT ROWID;
        """)
  }
}
#endif
