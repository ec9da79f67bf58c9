#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL

/// What a database is among those over which a cloud's players are spread. It says so itself, so that no other one is
/// taken for it.
struct ShardBinding: Hashable, Sendable {
  static let home = ShardAddress.home

  var name: String
  /// Which cloud it is, and the number by which its places of contents know it; nil for home, which says so.
  var cloud: Cloud?
  /// Whether it may be recorded as this now: an empty database isn't one in which there were players.
  var mayBeNew = true

  /// Whether the cloud has had this database before, besides home.
  var isKnown: Bool { cloud != nil && !mayBeNew }

  struct Cloud: Hashable, Sendable {
    var id: Data
    var contents: Int64
  }

  /// Sees that a database is what a server takes it for, and records it if it is new.
  ///
  /// - Parameter binding: Nil for the only database of a cloud.
  /// - Throws: `ServerError` with `configuration`.
  static func check(_ binding: ShardBinding?, _ pool: PostgreSQLPool) async throws {
    guard let binding else {
      if let name = try await read(pool)?.name, name != home {
        throw ServerError(
          .configuration,
          "This database is the shard \(name) of a cloud: name it with --shard, and the cloud's own with --database.")
      }
      return
    }
    if let cloud = binding.cloud {
      try await bind(pool, to: cloud, binding)
    } else {
      try await bindHome(pool, binding)
    }
  }

  private static func bindHome(_ pool: PostgreSQLPool, _ binding: ShardBinding) async throws {
    var random = SystemRandomNumberGenerator()
    let id = Data((0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    if binding.mayBeNew { try await insert(pool, id, home) }
    guard let found = try await read(pool), found.name == home else {
      throw ServerError(.configuration, "The database after --database is a shard of a cloud: name it with --shard.")
    }
    _ = try await ContentPlaces.number(pool)
  }

  private static func bind(_ pool: PostgreSQLPool, to cloud: Cloud, _ binding: ShardBinding) async throws {
    let name = binding.name
    if try await read(pool) == nil {
      guard binding.mayBeNew else { throw isGone(name) }
      let anyone = PostgreSQLStatement("SELECT 1::bigint FROM container LIMIT 1")
      guard try await pool.runUntilDone([anyone])[0].first == nil else {
        throw ServerError(
          .configuration, "The database of the shard \(name) has players of its own: a new shard is an empty database.")
      }
      try await insert(pool, cloud.id, name)
    }
    try requireOwn(try await read(pool), binding)
    // At each start: the server that entered the shard may have ended before this.
    _ = try await pool.runUntilDone([refusingOlder])
    // They share folders and buckets, which know the cloud by this number.
    guard try await ContentPlaces.number(pool, ifNone: cloud.contents) == cloud.contents else {
      throw ServerError(.configuration, "The database of the shard \(name) has contents of another cloud.")
    }
  }

  /// Sees, without changing anything, that a database of the cloud says what it is: no tables are made in one that is
  /// another's, or into which a backup is about to be put back.
  static func require(_ binding: ShardBinding, _ pool: PostgreSQLPool) async throws {
    let found: (cloud: Data, name: String)?
    do {
      found = try await read(pool)
    } catch let error as PostgreSQLError where error.state == .undefinedTable {
      found = nil
    }
    guard let found else { throw isGone(binding.name) }
    try requireOwn(found, binding)
  }

  private static func isGone(_ name: String) -> ServerError {
    ServerError(
      .configuration,
      """
      The cloud has a shard \(name), and the database that is named as it has nothing of it: see whether the address \
      is right, or restore the database from a backup first.
      """)
  }

  private static func requireOwn(_ found: (cloud: Data, name: String)?, _ binding: ShardBinding) throws {
    let name = binding.name
    guard let found, found.cloud == binding.cloud?.id else {
      throw ServerError(.configuration, "The database of the shard \(name) is another cloud's.")
    }
    guard found.name == name else {
      throw ServerError(.configuration, "The database that is named as the shard \(name) is the shard \(found.name).")
    }
  }

  private static func insert(_ pool: PostgreSQLPool, _ cloud: Data, _ name: String) async throws {
    _ = try await pool.runUntilDone([
      PostgreSQLStatement(
        "INSERT INTO shard_self (id, cloud, name) VALUES (1, $1, $2) ON CONFLICT DO NOTHING",
        [.bytes(cloud), .bytes(Data(name.utf8))])
    ])
  }

  /// Keeps programs out that don't know of shards: they would look for all players here.
  static let refusingOlder = PostgreSQLStatement(
    "UPDATE schema_number SET oldest = greatest(oldest, $1) WHERE id = 1", [.int(PostgreSQLSchema.shardsNumber)])

  private static func read(_ pool: PostgreSQLPool) async throws -> (cloud: Data, name: String)? {
    let statement = PostgreSQLStatement("SELECT cloud, name FROM shard_self WHERE id = 1")
    return try await pool.runUntilDone([statement])[0].first.map { (try $0.bytes(0), try $0.text(1)) }
  }

  /// Finds out whether a cloud has several databases, of which this is one.
  static let spreading = PostgreSQLStatement(
    "SELECT name FROM shard UNION ALL SELECT name FROM shard_self WHERE name <> $1 LIMIT 1", [.name(home)])

  /// Which cloud home is the directory of.
  static func cloud(_ pool: PostgreSQLPool) async throws -> Cloud {
    guard let found = try await read(pool) else {
      throw ServerError(.damaged, "The database doesn't say any more which cloud it is of.")
    }
    return Cloud(id: found.cloud, contents: try await ContentPlaces.number(pool))
  }

  /// Why a server can't go on with the shards that home names; nil if it knows all of them.
  static func objection(to names: Set<String>, known: Set<String>) -> ServerError? {
    guard let name = names.subtracting(known).subtracting(known.isEmpty ? [home] : []).min() else { return nil }
    return ServerError(
      .configuration, "This cloud has players in the shard \(name): name it with --shard \(name)=postgres://...")
  }
}
#endif
