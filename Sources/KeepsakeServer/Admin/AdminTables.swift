#if Cloud
import Foundation

/// Admin keys and the audit log where a cloud keeps them, for commands beside its servers. Blocks.
protocol AdminTables {
  /// All admin keys, revoked ones too, the oldest first.
  func keys() throws -> [AdminKey]
  /// Changes a key, together with a row of the audit log.
  ///
  /// - Parameter check: Takes all keys as they were before. What it throws undoes everything; it may be called again.
  func change(_ change: AdminKeyChange, auditing entry: AuditEntry, _ check: ([AdminKey]) throws -> Void) throws

  /// Returns the number of the newest row that there has been, also if it was removed.
  func newestAuditRow() throws -> Int64
  /// Calls `body` with the newest rows, the newest first.
  ///
  /// - Parameter player: The hash of the player whom they are about; nil for all.
  func auditRows(of player: Data?, limit: Int, _ body: (AuditRow) throws -> Void) throws
  /// Calls `body` with all rows, the oldest first, until it returns false.
  func auditRows(_ body: (AuditRow) throws -> Bool) throws
}

/// What is done with an admin key beside a server.
enum AdminKeyChange: Sendable {
  case create(AdminKey)
  /// Does nothing if it was revoked before.
  case revoke(AdminKey, atMilliseconds: Int64)

  var key: AdminKey {
    switch self {
    case .create(let key), .revoke(let key, _): key
    }
  }

  /// Its name in the audit log.
  var act: String {
    switch self {
    case .create: "key.create"
    case .revoke: "key.revoke"
    }
  }
}
#endif
