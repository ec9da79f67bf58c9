#if Cloud
import Crypto
import Foundation
import GRDB
import KeepsakeReplication

/// A key of the studio's staff or servers for the admin API, as the database keeps it: of the key itself, only the
/// SHA-256.
package struct AdminKey: Hashable, Sendable {
  /// Eight hexadecimal digits, which the audit log names.
  package var id: String
  package var name: String
  package var scopes: [AdminScope]
  /// Whether it is good for players of some apps only.
  package var isLimitedToApps: Bool { !apps.isEmpty }
  package var createdMilliseconds: Int64
  /// Nil for a key that is accepted.
  package var revokedMilliseconds: Int64?
  /// The apps whose players it is good for; empty for all.
  var apps: Set<AppID>
  var digest: Data

  func allows(_ player: Set<AppID>) -> Bool { apps.isEmpty || !apps.isDisjoint(with: player) }

  /// Returns the accepted key with this text. Takes the same time for every wrong key, however wrong.
  static func accepted(_ key: String, among keys: [AdminKey]) -> AdminKey? {
    let offered = SHA256.hash(data: Data(key.utf8))
    var found: AdminKey?
    // Comparing with a digest takes the same time wherever they differ, and all of them are compared.
    for entry in keys where offered == entry.digest && entry.revokedMilliseconds == nil { found = entry }
    return found
  }

  // MARK: Rows

  /// The scopes as a database has them.
  var scopeText: String { scopes.map(\.rawValue).joined(separator: ",") }
  /// The apps as a database has them.
  var appBytes: Data { apps.map(\.bytes).sorted { $0.lexicographicallyPrecedes($1) }.reduce(Data(), +) }

  static func all(in db: Database) throws -> [AdminKey] {
    try Row.fetchAll(
      db.cachedStatement(
        sql: "SELECT id, name, scopes, apps, created, revoked, digest FROM adminKey ORDER BY created, id")
    ).map { row in
      AdminKey(
        id: try row.decode(atIndex: 0), name: try row.decode(atIndex: 1), scopes: try row.decode(atIndex: 2),
        apps: try row.decode(atIndex: 3), created: try row.decode(atIndex: 4), revoked: try row.decode(atIndex: 5),
        digest: try row.decode(atIndex: 6))
    }
  }
}

extension AdminKey {
  /// - Parameters:
  ///   - scopes: As of `scopeText`.
  ///   - apps: As of `appBytes`.
  init(id: String, name: String, scopes: String, apps: Data, created: Int64, revoked: Int64?, digest: Data) {
    self.init(
      id: id, name: name, scopes: scopes.split(separator: ",").compactMap { AdminScope(rawValue: String($0)) },
      createdMilliseconds: created, revokedMilliseconds: revoked,
      apps: Set(
        stride(from: 0, to: apps.count, by: AppID.byteCount).map {
          AppID(bytes: Data(apps.dropFirst($0).prefix(AppID.byteCount)))
        }), digest: digest)
  }
}
#endif
