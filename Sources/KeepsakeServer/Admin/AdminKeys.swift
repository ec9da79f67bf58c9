#if Cloud
import Crypto
package import Foundation
import KeepsakeReplication

/// The admin keys of a cloud, for commands beside its servers, which may be running: they accept a new key, and refuse
/// a revoked one, from their next request on.
package struct AdminKeys {
  private static let keyLength = 28
  private static let names = 1...64
  /// More than any studio has people. Each request compares with all.
  private static let maximumKeys = 1_000
  /// Who the audit log says has done it.
  private static let command = (id: "-", name: "keepsake admin key")

  private let tables: any AdminTables
  private let data: URL
  private let clock: @Sendable () -> Int64

  /// - Parameters:
  ///   - data: The data folder of a server, which must exist.
  ///   - database: The address of the PostgreSQL database that the cloud is in; nil for one in the folder.
  package init(data: URL, database: String? = nil) throws {
    try self.init(data: data, database: database, clock: ServerConfiguration.systemClock)
  }

  init(data: URL, database: String? = nil, clock: @escaping @Sendable () -> Int64) throws {
    tables = try CloudDatabase.adminTables(data: data, database: database)
    (self.data, self.clock) = (data, clock)
  }

  /// All keys, revoked ones too, the oldest first.
  package func list() throws -> [AdminKey] { try tables.keys() }

  /// Creates a key.
  ///
  /// - Parameters:
  ///   - name: Whose it is: 1 to 64 visible ASCII characters. No two keys have the same, revoked ones too, so that the
  ///     audit log's names stay unambiguous.
  ///   - scopes: What it allows; at least one.
  ///   - appKeys: App keys for whose players it is good; empty for all players.
  /// - Returns: The key, which nobody can read again, and what is kept of it.
  /// - Throws: A `ServerError` for a name that isn't allowed or that a key has, or if the database can't be written.
  package func create(
    _ name: String, scopes: Set<AdminScope>, appKeys: [String] = []
  ) throws -> (text: String, key: AdminKey) {
    guard Self.names.contains(name.utf8.count), name.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw ServerError(
        .configuration,
        "An admin key's name must have 1 to \(Self.names.upperBound) visible ASCII characters and no spaces.")
    }
    guard !scopes.isEmpty else {
      throw ServerError(.configuration, "An admin key needs at least one scope.")
    }
    var source = SystemRandomNumberGenerator()
    let text = "adm_" + ReadableCode.make(length: Self.keyLength, using: &source).lowercased()
    let key = AdminKey(
      id: String(Hexadecimal.text(source.next()).prefix(8)), name: name,
      scopes: AdminScope.allCases.filter(scopes.contains), createdMilliseconds: clock(), revokedMilliseconds: nil,
      apps: try apps(of: appKeys), digest: ContentHash(of: Data(text.utf8)).bytes)
    try change(.create(key)) { keys in
      guard !keys.contains(where: { $0.name == name }) else {
        throw ServerError(.configuration, "There is an admin key named \(name), or was one: use another name.")
      }
      guard keys.count < Self.maximumKeys else {
        throw ServerError(.configuration, "There are \(Self.maximumKeys) admin keys already.")
      }
    }
    return (text, key)
  }

  /// Returns the apps of keys: those that the registry has by their ids there.
  private func apps(of keys: [String]) throws -> Set<AppID> {
    let registered = try AppRegistry(file: data.appendingPathComponent(AppRegistry.fileName)).list()
    return Set(
      keys.map { key in
        let digest = ContentHash(of: Data(key.utf8))
        return registered.first { $0.keys.contains { $0.sha256 == digest } }?.appID ?? AppID(ofKey: key)
      })
  }

  /// Revokes a key for good.
  ///
  /// - Throws: A `ServerError` if no accepted key has that name, or if the database can't be written.
  package func revoke(_ name: String) throws {
    guard let key = try list().first(where: { $0.name == name && $0.revokedMilliseconds == nil }) else {
      throw ServerError(.missing, "There is no admin key named \(name.prefix(Self.names.upperBound)).")
    }
    try change(.revoke(key, atMilliseconds: clock())) { _ in }
  }

  private func change(_ change: AdminKeyChange, _ check: ([AdminKey]) throws -> Void) throws {
    var entry = AuditEntry(
      atMilliseconds: clock(), key: Self.command.id, name: Self.command.name, act: change.act, request: "-")
    entry.details = ["key": change.key.id, "name": change.key.name, "scopes": change.key.scopeText]
    try tables.change(change, auditing: entry, check)
  }
}
#endif
