#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Synchronization

/// Says in which database each container lives: the table `placement` of home, and what was read of it before.
///
/// What is remembered may be old. That does no harm: a database that a container has left knows it (`NotHere`).
final class ShardDirectory: Sendable {
  /// Containers whose shards are remembered: some 10 MB.
  private static let remembered = 200_000

  let home: PostgreSQLStorage
  /// The other databases, by name.
  private let others: [String: PostgreSQLStorage]
  private struct Known {
    var shard: String
    /// It counts only as long as no other connection to the shard has been made: a database that takes over may lack
    /// the newest moves. Nil for one that was never moved.
    var connections: Int?
  }
  private struct State {
    var shards: [ContainerID: Known] = [:]
    /// Those that new players get, by name.
    var open: [String] = []
  }
  private let state = Mutex(State())

  init(home: PostgreSQLStorage, others: [String: PostgreSQLStorage] = [:]) { (self.home, self.others) = (home, others) }

  // MARK: Where containers are

  /// Returns where a container lives. One that is new gets a place, unless everything of its player was deleted: of
  /// that, each database knows.
  ///
  /// - Parameter isNew: Whether the container's id was just made, so that no database can have it.
  /// - Throws: `ServerError` with `damaged` if a database was set back to a backup: the player would begin anew.
  func shard(of container: ContainerID, isNew: Bool = false) async throws -> String {
    if let known = state.withLock({ $0.shards[container] }),
      known.connections == nil || known.connections == storage(known.shard)?.pool.connectionsMade
    {
      return known.shard
    }
    if let found = try await placement(of: container) {
      let connections = storage(found.shard)?.pool.connectionsMade
      try await requireThere(container, found)
      return remember(container, found.shard, found.generation > 0 ? connections : nil)
    }
    if !isNew {
      switch try await trace(of: container) {
      case .home: return try await place(container, at: ShardBinding.home)
      case .other(let shard, let generation): return try await place(container, at: shard, generation)
      case .none: break
      }
    }
    // One that is down gets no players now, unless all others are closed.
    let answering = self.open.filter { storage($0)?.isAnswering.load(ordering: .relaxed) == true }
    let open = answering.isEmpty ? self.open : answering
    // Identifiers are random, so that the players are spread evenly.
    let number = container.bytes.reduce(UInt64(0)) { $0 &* 31 &+ UInt64($1) }
    return try await place(container, at: open.isEmpty ? ShardBinding.home : open[Int(number % UInt64(open.count))])
  }

  /// Has a container live at a shard, unless it lives somewhere already.
  ///
  /// - Parameter generation: That of its newest move.
  /// - Returns: Where it lives.
  func place(_ container: ContainerID, at shard: String, _ generation: Int64 = 0) async throws -> String {
    // Those who were here before there were several shards live at home.
    let insert = PostgreSQLStatement(
      """
      INSERT INTO placement (container, shard, generation, since)
      SELECT $1, CASE WHEN \(Self.isAtHome) THEN $3::bytea ELSE $2::bytea END, $5, \(DatabaseClock.now)
      WHERE NOT EXISTS (SELECT 1 FROM retired WHERE container = $4 AND device = '')
      ON CONFLICT (container) DO NOTHING
      """,
      [
        .bytes(container.bytes), .name(shard), .name(ShardBinding.home), .bytes(container.deletedMark),
        .int(generation),
      ])
    _ = try await home.run([insert])
    guard let found = try await placement(of: container) else { return ShardBinding.home }
    return remember(container, found.shard, found.generation > 0 ? storage(found.shard)?.pool.connectionsMade : nil)
  }

  private func remember(_ container: ContainerID, _ shard: String, _ connections: Int?) -> String {
    state.withLock { state in
      if state.shards.count >= Self.remembered { state.shards.removeAll() }
      state.shards[container] = Known(shard: shard, connections: connections)
    }
    return shard
  }

  private func storage(_ shard: String) -> PostgreSQLStorage? { shard == ShardBinding.home ? home : others[shard] }

  /// The shards that new players get, by name.
  var open: [String] { state.withLock(\.open) }

  /// Whether a container is known to have been moved, so that there must be something of it where it lives.
  func wasMoved(_ container: ContainerID) -> Bool { state.withLock { $0.shards[container]?.connections != nil } }

  func forget(_ container: ContainerID) { state.withLock { _ = $0.shards.removeValue(forKey: container) } }

  /// Returns what the directory says now; nil for a container that isn't in it.
  func placement(of container: ContainerID) async throws -> Placement? {
    let statement = PostgreSQLStatement(
      "SELECT \(Placement.columns) FROM placement WHERE container = $1", [.bytes(container.bytes)])
    return try await home.read([statement])[0].first.map { try Placement($0) }
  }

  /// Returns containers with something unfinished: a move that was abandoned, rows that were left, a deletion. First
  /// those that have waited longest.
  func unfinished(limit: Int) async throws -> [ContainerID] {
    let limit = PostgreSQLValue.int(Int64(limit))
    func found(_ what: String, since column: String) -> PostgreSQLStatement {
      let before = "\(DatabaseClock.now) - \(Placement.remainderMilliseconds)"
      return PostgreSQLStatement(
        """
        SELECT container FROM placement WHERE \(what) IS NOT NULL AND \(column) < \(before)
        ORDER BY \(column) LIMIT $1
        """, [limit])
    }
    let answers = try await home.read([
      found("moving_to", since: "since"), found("left_at", since: "since"), found("deleting", since: "deleting"),
    ])
    return try answers.flatMap { try $0.map { try $0.identifier(0) } }
  }

  /// Puts a container, of which something is left that can't be removed now, behind all others.
  func postpone(_ container: ContainerID) async throws {
    let statement = PostgreSQLStatement(
      """
      UPDATE placement SET since = \(DatabaseClock.now)
      WHERE container = $1 AND moving_to IS NULL AND left_at IS NOT NULL
      """,
      [.bytes(container.bytes)])
    _ = try await home.run([statement])
  }

  /// Returns containers that are being moved away from a shard.
  func moving(from shard: String) async throws -> [ContainerID] {
    let statement = PostgreSQLStatement(
      "SELECT container FROM placement WHERE moving_to IS NOT NULL AND shard = $1 ORDER BY since LIMIT 1000",
      [.name(shard)])
    return try await home.read([statement])[0].map { try $0.identifier(0) }
  }

  // MARK: Databases that were set back

  /// Whether home has something that only the database has in which a player lives. Those who came with a cloud of one
  /// database needn't have a container's row.
  private static let isAtHome = """
    (EXISTS (SELECT 1 FROM container WHERE id = $1 AND revision >= 0)
    OR EXISTS (SELECT 1 FROM device WHERE container = $1) OR EXISTS (SELECT 1 FROM recovery WHERE container = $1))
    """

  private enum Trace {
    case none, home
    case other(String, generation: Int64)
  }
  /// What a database knows of a container.
  private struct Found {
    var shard: String
    var isLiving: Bool
    var generation: Int64?
  }

  /// Looks for a container that has no place: in home, where players were before there were several shards; and if home
  /// knows nothing of it, in the others, since home may have been set back to a backup from before the player came.
  private func trace(of container: ContainerID) async throws -> Trace {
    let id: [PostgreSQLValue] = [.bytes(container.bytes)]
    let known = try await home.read([
      PostgreSQLStatement("SELECT 1::bigint WHERE \(Self.isAtHome)", id),
      // Nothing of a deleted player is anywhere.
      PostgreSQLStatement(PostgreSQLTransaction.deleted, [.bytes(container.deletedMark)]),
      PostgreSQLStatement("SELECT 1::bigint FROM identity WHERE container = $1 LIMIT 1", id),
    ])
    if known[0].first != nil || known[1].first != nil { return .home }
    let statements = [
      PostgreSQLStatement("SELECT 1::bigint FROM container WHERE id = $1 AND revision >= 0", id),
      PostgreSQLStatement("SELECT generation FROM fence WHERE container = $1", id),
    ]
    let found: [Found] = try await withThrowingTaskGroup(of: Found.self) { group in
      for (name, storage) in others {
        group.addTask {
          let rows = try await storage.read(statements)
          return Found(shard: name, isLiving: rows[0].first != nil, generation: try rows[1].first?.int(0))
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    let living = found.filter(\.isLiving)
    let newest = found.compactMap(\.generation).max()
    if living.count == 1, (living[0].generation ?? 0) == (newest ?? 0) {
      return .other(living[0].shard, generation: newest ?? 0)
    }
    // Home has each identity: also of those who came with a cloud of one database, and had nothing but that.
    if living.isEmpty, newest == nil { return known[2].first == nil ? .none : .home }
    // Another server may have placed it in the meantime.
    guard try await placement(of: container) == nil else { return .none }
    throw Self.setBack
  }

  /// Sees that a shard to which a container was moved knows of it. Otherwise it was set back to a backup from before
  /// the move, or another one has taken over, and the player would begin anew there.
  private func requireThere(_ container: ContainerID, _ placement: Placement) async throws {
    guard placement.generation > 0, placement.movingTo == nil, !placement.isDeleting else { return }
    guard let storage = storage(placement.shard) else { return }
    let fence = PostgreSQLStatement("SELECT generation FROM fence WHERE container = $1", [.bytes(container.bytes)])
    if let newest = try await storage.read([fence])[0].first?.int(0), newest >= placement.generation { return }
    // It may have been deleted, or moved on.
    let now = try await self.placement(of: container)
    guard let now, !now.isDeleting, now.shard == placement.shard, now.generation == placement.generation else { return }
    // A move that isn't finished: settling it finds out what became of the rows.
    if placement.leftAt != nil { throw NotHere(container) }
    throw Self.setBack
  }

  static let setBack = ServerError(
    .damaged, "A database was set back to a backup from before a player was moved. The player can't be found.")

  // MARK: Shards

  /// Learns which shards new players get.
  func refresh() async throws {
    let statement = PostgreSQLStatement("SELECT name FROM shard WHERE is_open = 1 ORDER BY name")
    let open = try await home.read([statement])[0].map { try $0.text(0) }
    state.withLock { $0.open = open }
  }

  /// Enters shards, open for new players.
  ///
  /// - Returns: Whether the cloud had none before.
  func enter(_ names: [String]) async throws -> Bool {
    try await home.transaction { transaction in
      let known = try Set(transaction.run("SELECT name FROM shard").map { try $0.text(0) })
      for name in names where !known.contains(name) {
        try transaction.run("INSERT INTO shard (name, is_open) VALUES ($1, 1)", [.name(name)])
      }
      if !known.isSuperset(of: names) { _ = try transaction.run([ShardBinding.refusingOlder]) }
      return known.isEmpty
    }
  }

  /// - Returns: Of each shard, whether new players get it.
  func shards() async throws -> [String: Bool] {
    let statement = PostgreSQLStatement("SELECT name, is_open FROM shard")
    let rows = try await home.read([statement])[0].map { (try $0.text(0), try $0.int(1) == 1) }
    return Dictionary(rows) { $1 }
  }

  /// Has new players get a shard, or not.
  ///
  /// - Throws: `ServerError` with `configuration` if it is the last open one, or none of this cloud.
  func setOpen(_ isOpen: Bool, _ name: String) async throws {
    guard try await shards()[name] != nil else {
      throw ServerError(.configuration, "This cloud has no shard \(name).")
    }
    try await home.transaction { transaction in
      // All rows, so that of two that close the last two shards, one is begun anew.
      try transaction.run(
        "UPDATE shard SET is_open = CASE WHEN name = $1 THEN $2 ELSE is_open END",
        [.name(name), .int(isOpen ? 1 : 0)])
      guard try transaction.run("SELECT 1::bigint FROM shard WHERE is_open = 1 LIMIT 1").first != nil else {
        throw ServerError(
          .configuration, "\(name) is the only shard that new players get: open another one first.")
      }
    }
  }

  // MARK: Moves

  private static let heldName = PostgreSQLValue.name("moves held")

  /// Has no move begin for some time, whatever asks for it; 0 to have them begin again.
  func hold(seconds: Int64) async throws {
    let statement = PostgreSQLStatement(
      """
      INSERT INTO number (name, value) VALUES ($1, \(DatabaseClock.now) + $2)
      ON CONFLICT (name) DO UPDATE SET value = excluded.value
      """, [Self.heldName, .int(seconds * 1_000)])
    // A move that begins at the same time is before this, or sees it.
    let turn = PostgreSQLStatement("UPDATE shard SET is_open = is_open WHERE name = $1", [.name(ShardBinding.home)])
    _ = try await home.run([turn, statement])
  }

  /// Whether anybody is being moved.
  func isMoving() async throws -> Bool {
    let statement = PostgreSQLStatement("SELECT 1::bigint FROM placement WHERE moving_to IS NOT NULL LIMIT 1")
    return try await home.read([statement])[0].first != nil
  }

  /// Enters that a family is being moved.
  ///
  /// - Returns: The move's generation; nil if one of them isn't where it was, or something of it is unfinished.
  /// - Throws: `APIError` with `busy` as long as nobody is moved (``hold(seconds:)``).
  func begin(_ family: [ContainerID], from shard: String, to target: String) async throws -> Int64? {
    try await home.transaction { transaction in
      try transaction.run("SELECT 1::bigint FROM shard WHERE name = $1 FOR SHARE", [.name(ShardBinding.home)])
      let held = try transaction.run(
        "SELECT 1::bigint FROM number WHERE name = $1 AND value > \(DatabaseClock.now)", [Self.heldName])
      if held.first != nil { throw ShardMover.held }
      let ids = PostgreSQLValue.list(family.map(\.bytes))
      let newest = try transaction.run(
        "SELECT coalesce(max(generation), 0) FROM placement WHERE container = ANY($1)", [ids]
      ).first?.int(0)
      let next = (newest ?? 0) + 1
      let begun = try transaction.run(
        """
        UPDATE placement SET moving_to = $3, generation = $4, since = \(DatabaseClock.now)
        WHERE container = ANY($1) AND shard = $2 AND moving_to IS NULL AND left_at IS NULL AND deleting IS NULL
        """, [ids, .name(shard), .name(target), .int(next)])
      if begun.count == family.count { return next }
      // Undoes what was begun.
      throw Unready()
    }
  }

  /// Something of a container is unfinished.
  struct Unready: Error {}

  /// Says that a mover is alive.
  ///
  /// - Throws: `Overtaken` if the move was undone.
  func renew(_ family: [ContainerID], _ generation: Int64) async throws {
    let statement = PostgreSQLStatement(
      """
      UPDATE placement SET since = \(DatabaseClock.now)
      WHERE container = ANY($1) AND generation = $2 AND moving_to IS NOT NULL
      """, [.list(family.map(\.bytes)), .int(generation)])
    guard try await home.run([statement])[0].count == family.count else { throw ShardMover.Overtaken() }
  }

  /// Makes a family live at its new shard, all of it or nothing: this decides.
  ///
  /// - Throws: `Overtaken` if the move was undone.
  func decide(_ family: [ContainerID], from shard: String, to target: String, _ generation: Int64) async throws {
    let statement = PostgreSQLStatement(
      """
      WITH decided AS (
        UPDATE placement SET shard = $3, moving_to = NULL, left_at = $2, since = \(DatabaseClock.now)
        WHERE container = ANY($1) AND shard = $2 AND generation = $4 AND moving_to = $3 RETURNING 1
      ) SELECT 1 / (CASE WHEN count(*) = $5 THEN 1 ELSE 0 END) FROM decided
      """,
      [
        .list(family.map(\.bytes)), .name(shard), .name(target), .int(generation), .int(Int64(family.count)),
      ])
    do {
      _ = try await home.run([statement])
    } catch let error as PostgreSQLError where error.state == .divisionByZero {
      throw ShardMover.Overtaken()
    }
    for container in family { forget(container) }
  }

  /// Ends a container's part of a move that wasn't decided.
  ///
  /// - Parameter generation: The move's, which ends it in any case; nil to end it only if it was abandoned.
  /// - Returns: Whether it was ended by this.
  func undo(_ container: ContainerID, _ generation: Int64?) async throws -> Bool {
    let statement = PostgreSQLStatement(
      """
      UPDATE placement
      SET moving_to = NULL, left_at = moving_to, generation = generation + 1, since = \(DatabaseClock.now)
      WHERE container = $1 AND moving_to IS NOT NULL AND (
        generation = $2::bigint
        OR ($2::bigint IS NULL AND since < \(DatabaseClock.now) - \(Placement.leaseMilliseconds)))
      """, [.bytes(container.bytes), .int(generation)])
    return try await home.run([statement])[0].count > 0
  }

  /// Has a container live again where it was before a move that was decided, but not finished.
  ///
  /// - Returns: Whether nobody else has done anything about it meanwhile.
  func turnBack(_ container: ContainerID, _ placement: Placement) async throws -> Bool {
    let statement = PostgreSQLStatement(
      """
      UPDATE placement SET shard = left_at, left_at = shard, generation = generation + 1, since = \(DatabaseClock.now)
      WHERE container = $1 AND shard = $2 AND generation = $3
      AND moving_to IS NULL AND left_at IS NOT NULL AND deleting IS NULL
      """, [.bytes(container.bytes), .name(placement.shard), .int(placement.generation)])
    return try await home.run([statement])[0].count > 0
  }

  /// Says that a shard has nothing more of a container.
  func cleaned(_ container: ContainerID, at shard: String, _ generation: Int64) async throws {
    let statement = PostgreSQLStatement(
      "UPDATE placement SET left_at = NULL WHERE container = $1 AND left_at = $2 AND generation = $3",
      [.bytes(container.bytes), .name(shard), .int(generation)])
    _ = try await home.run([statement])
  }

  // MARK: Deletions

  /// Longer than a deletion takes: until then, one that isn't done is one that somebody is at.
  private static let deletionMilliseconds: Int64 = 900_000

  /// Enters that everything of a player is being deleted, or that it isn't any more.
  func setDeleting(_ isDeleting: Bool, _ containers: [ContainerID]) async throws {
    let statement = PostgreSQLStatement(
      "UPDATE placement SET deleting = \(isDeleting ? DatabaseClock.now : "NULL") WHERE container = ANY($1)",
      [.list(containers.map(\.bytes))])
    _ = try await home.run([statement])
  }

  /// Enters that nobody goes on with a deletion that hasn't been done, once that is certain.
  func giveUpDeletion(of container: ContainerID) async throws {
    let statement = PostgreSQLStatement(
      """
      UPDATE placement SET deleting = NULL
      WHERE container = $1 AND deleting < \(DatabaseClock.now) - \(Self.deletionMilliseconds)
      """, [.bytes(container.bytes)])
    _ = try await home.run([statement])
  }

  /// Forgets containers of which everything was deleted.
  func remove(_ containers: [ContainerID]) async throws {
    let statement = PostgreSQLStatement(
      "DELETE FROM placement WHERE container = ANY($1)", [.list(containers.map(\.bytes))])
    _ = try await home.run([statement])
    for container in containers { forget(container) }
  }
}
#endif
