#if Cloud && PostgreSQL
import Foundation
import HTTPTypes
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging

/// Moves players between the databases of a cloud, a family at a time: a container of a game, and those that it shares
/// with others. Any number of movers may do so at a time, and each may end at any line.
///
/// A move is a row of home's directory with a generation. In a database a container is moved only by who has its newest
/// generation there, so that a mover that stood still does nothing when it goes on; and nobody else changes it as long
/// as it is fenced, which its revision says by being negative.
struct ShardMover: Sendable {
  /// What has been done when a move comes to a line.
  enum Step: CaseIterable, Sendable {
    case begun, fenced, copied, verified, decided, live, removed
  }
  /// Somebody else has undone a move, or has taken it over, or the family has another member by now.
  struct Overtaken: Error {}
  /// Ends a move as if its process had been killed. Thrown by tests.
  struct Killed: Error {}

  private static let attempts = 20
  /// More players than this don't share containers with each other.
  private static let largestFamily = 1_000
  let directory: ShardDirectory
  let shards: [String: PostgreSQLStorage]
  /// After this time every server knows the bans of the database to which a player was moved. Shorter in tests.
  var banPause = Duration.milliseconds(2_500)
  /// How often it says that it is alive. Longer in tests of one that stands still.
  var leasePause = Duration.milliseconds(Placement.leaseMilliseconds / 4)
  /// Called after each step.
  var reached: @Sendable (Step) async throws -> Void = { _ in }

  func storage(_ name: String) throws -> PostgreSQLStorage {
    if let storage = shards[name] { return storage }
    throw ServerError(
      .configuration, "A player is in the shard \(name): name it with --shard \(name)=postgres://...")
  }

  // MARK: Moving

  /// Moves a container and its family to a shard.
  ///
  /// - Parameter only: Moves it from there only: a family that has left since it was looked for stays where it is.
  /// - Returns: Which containers were moved; none if they are there already, or everything of the player was deleted.
  /// - Throws: `APIError` with `busy` while others move it, or change what it is shared with; `ServerError`;
  ///   `PostgreSQLError`. Nothing was moved, unless the move was decided: it is then finished by anybody.
  func move(
    familyOf container: ContainerID, from only: String? = nil, to name: String
  ) async throws -> [ContainerID] {
    let target = try storage(name)
    for attempt in 0..<Self.attempts {
      let from = try await present(container)
      guard from != name, only == nil || from == only else { return [] }
      guard try await directory.placement(of: container) != nil else { return [] }
      let source = try storage(from)
      do {
        let family = try await family(of: container, at: source)
        for one in family {
          // Also those that have been here since there was only one database.
          _ = try await present(one)
          try await settle(one, cleans: true)
        }
        guard let generation = try await directory.begin(family, from: from, to: name) else { continue }
        let moved = Move(family: family, from: source, to: target, names: (from, name), generation: generation)
        try await run(moved)
        return family
      } catch is ShardDirectory.Unready {
      } catch is Overtaken {
      } catch is NotHere {
      }
      try await PostgreSQLPool.pause(after: attempt)
    }
    throw Self.busy
  }

  /// Returns where a container lives, by what the directory says now.
  private func present(_ container: ContainerID) async throws -> String {
    directory.forget(container)
    do {
      return try await directory.shard(of: container)
    } catch is NotHere {
      try await settle(container, cleans: false)
      return try await directory.shard(of: container)
    }
  }

  static let busy = APIError(
    .serviceUnavailable, .busy, "This player is being moved to another database.", retryAfterSeconds: 1)

  static let held = APIError(
    .serviceUnavailable, .busy, "No player is moved to another database now, since the databases are backed up.",
    retryAfterSeconds: 60)

  static func isHeld(_ error: APIError) -> Bool { error.message == held.message }

  private struct Move: Sendable {
    var family: [ContainerID]
    var from: PostgreSQLStorage
    var to: PostgreSQLStorage
    var names: (from: String, to: String)
    var generation: Int64
  }

  private func run(_ move: Move) async throws {
    do {
      try await reached(.begun)
      try await whileLeased(move) {
        try await fence(move)
        try await reached(.fenced)
        try await copy(move)
      }
      try await decide(move)
    } catch let error where !(error is Killed) {
      await giveUp(move)
      throw error
    }
    try await reached(.decided)
    try await finish(move)
    try await reached(.removed)
  }

  private func finish(_ move: Move) async throws {
    var living: [ContainerID] = []
    for container in move.family {
      // Of one that isn't made live here, what is left is needed by who does, or is nobody's any more.
      try await unlessOvertaken {
        try await enliven(container, at: move.to, move.generation, isCopied: true)
        living.append(container)
      }
    }
    try await reached(.live)
    // As long as not every server has read them where they are now, they must be found where they were.
    if try await hasBan(move) { try await Task.sleep(for: banPause) }
    for container in living {
      try await unlessOvertaken {
        try await ShardCopy.remove(container, from: move.from, move.generation)
        try await directory.cleaned(container, at: move.names.from, move.generation)
      }
    }
  }

  /// Does something about one of a family, unless somebody else has done so, or has deleted the player: the others
  /// still need it.
  private func unlessOvertaken(_ body: () async throws -> Void) async throws {
    do { try await body() } catch is Overtaken {}
  }

  /// What is of a move that failed before it was decided. Whatever this can't do, others do when its lease is over.
  private func giveUp(_ move: Move) async {
    for container in move.family {
      do {
        guard try await directory.undo(container, move.generation) else { continue }
        try await unlessOvertaken { try await settle(container, cleans: true) }
      } catch {
        directory.home.logger.failure("A move that failed is undone later", error)
      }
    }
  }

  /// Fences a family in the database that it leaves, as long as it is as it was. Together with what follows until it is
  /// live again, this is how long its players wait: each round trip counts.
  private func fence(_ move: Move) async throws {
    let statements = move.family.flatMap { Self.fencing($0, move.generation) } + [Self.closing(move.family)]
    do {
      _ = try await move.from.run(statements)
    } catch let error as PostgreSQLError where error.state == .divisionByZero {
      throw Overtaken()
    }
  }

  /// Fails with a division by zero if somebody else shares something with one of a family by now.
  private static func closing(_ family: [ContainerID]) -> PostgreSQLStatement {
    let others = ["shared", "shared_device"].map {
      """
      EXISTS (SELECT 1 FROM \($0) WHERE (parent = ANY($1) OR container = ANY($1))
      AND NOT (parent = ANY($1) AND container = ANY($1)))
      """
    }
    return PostgreSQLStatement(
      "SELECT 1 / (CASE WHEN \(others.joined(separator: " OR ")) THEN 0 ELSE 1 END)",
      [.list(family.map(\.bytes))])
  }

  private static func fencing(_ container: ContainerID, _ generation: Int64) -> [PostgreSQLStatement] {
    let id: [PostgreSQLValue] = [.bytes(container.bytes)]
    return [
      // First, so that every other change of the container is before this or after it.
      ShardCopy.taking(container, generation),
      // One that lives here is whole.
      PostgreSQLStatement(
        """
        UPDATE fence SET whole = generation
        WHERE container = $1 AND NOT EXISTS (SELECT 1 FROM container WHERE id = $1 AND revision < 0)
        """, id),
      fencingLiving(container),
      // Else it has a place, and nothing there yet; or was fenced by a move that ended.
      PostgreSQLStatement(
        """
        INSERT INTO container (id, epoch, seq, mark, revision, used) VALUES ($1, 0, 0, 0, -1, 0)
        ON CONFLICT (id) DO NOTHING
        """, id),
    ] + PostgreSQLTransaction.refusingDeleted(container.deletedMark)
  }

  private static func fencingLiving(_ container: ContainerID) -> PostgreSQLStatement {
    PostgreSQLStatement(
      "UPDATE container SET revision = -revision - 1 WHERE id = $1 AND revision >= 0", [.bytes(container.bytes)])
  }

  /// Does `body`, and says all the time that its mover is alive.
  ///
  /// - Throws: `Overtaken` if others have undone the move, which didn't hear of this one for too long.
  private func whileLeased(_ move: Move, _ body: @escaping @Sendable () async throws -> Void) async throws {
    try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask {
        while true {
          try await Task.sleep(for: leasePause)
          try await renew(move)
        }
      }
      group.addTask {
        try await body()
        return true
      }
      defer { group.cancelAll() }
      _ = try await group.next()
    }
  }

  private func renew(_ move: Move) async throws {
    do {
      try await directory.renew(move.family, move.generation)
    } catch let error as PostgreSQLError {
      // The next one may come in time. Whether the move is still this one's is seen again when it is decided.
      directory.home.logger.failure("A move's lease can't be renewed now", error)
    }
  }

  private func copy(_ move: Move) async throws {
    for container in move.family {
      let copy = ShardCopy(
        source: move.from, target: move.to, container: container, generation: move.generation)
      var digests = try await copy.copy()
      try await reached(.copied)
      do {
        try await copy.verify(digests)
      } catch let error as ServerError where error.code == .damaged {
        // What has expired may have been swept in one of the two in the meantime.
        digests = try await copy.copy()
        try await copy.verify(digests)
      }
    }
    try await ShardCopy.complete(move.family, move.generation, in: move.to)
    try await reached(.verified)
  }

  private func decide(_ move: Move) async throws {
    do {
      try await directory.decide(move.family, from: move.names.from, to: move.names.to, move.generation)
    } catch let error as PostgreSQLError {
      guard case .unknownOutcome = error else { throw error }
      for container in move.family {
        let found = try await directory.placement(of: container)
        guard found?.shard == move.names.to, found?.generation == move.generation else { throw Overtaken() }
      }
    }
  }

  private func hasBan(_ move: Move) async throws -> Bool {
    let statement = PostgreSQLStatement(
      "SELECT 1::bigint FROM ban WHERE container = ANY($1) LIMIT 1", [.list(move.family.map(\.bytes))])
    return try await move.to.read([statement])[0].first != nil
  }

  // MARK: Families

  /// Returns all containers that have to be in one database with a container.
  func family(of container: ContainerID, at storage: PostgreSQLStorage) async throws -> [ContainerID] {
    let found = try await storage.transaction { transaction in
      try Self.family(of: [container], limit: Self.largestFamily) { try transaction.run([$0])[0] }
    }
    return found.sorted()
  }

  private static func family(
    of containers: [ContainerID], limit: Int, _ run: (PostgreSQLStatement) throws -> PostgreSQLRows
  ) throws -> Set<ContainerID> {
    var (all, new) = (Set(containers), Set(containers))
    while !new.isEmpty {
      let ids = PostgreSQLValue.list(new.map(\.bytes))
      var found: Set<ContainerID> = []
      for table in ["shared", "shared_device"] {
        let statement = PostgreSQLStatement(
          "SELECT DISTINCT parent, container FROM \(table) WHERE parent = ANY($1) OR container = ANY($1)", [ids])
        for row in try run(statement) { found.formUnion([try row.identifier(0), try row.identifier(1)]) }
      }
      new = found.subtracting(all)
      all.formUnion(new)
      guard all.count <= limit else {
        throw ServerError(
          .overloaded, "More than \(limit) players share containers with each other: they can't be moved.")
      }
    }
    return all
  }

  // MARK: Mending

  /// Makes a container live where the directory says that it lives, and undoes a move that nobody goes on with.
  ///
  /// - Parameter cleans: Whether to remove rows that an earlier move has left, too.
  /// - Throws: `APIError` with `busy` while a move is under way; `Overtaken`.
  func settle(_ container: ContainerID, cleans: Bool) async throws {
    directory.forget(container)
    guard var found = try await directory.placement(of: container) else { return }
    if found.movingTo != nil {
      guard found.isAbandoned else { throw Self.busy }
      guard try await directory.undo(container, nil), let undone = try await directory.placement(of: container) else {
        throw Self.busy
      }
      directory.home.logger.notice("A move that nobody went on with is undone")
      found = undone
    }
    // First what is left: if others make it live and clean up meanwhile, the fence where it lives is the newer one.
    var left: ShardCopy.Rest?
    if let name = found.leftAt { left = try await ShardCopy.rest(of: container, in: storage(name)) }
    let rest = try await ShardCopy.rest(of: container, in: storage(found.shard))
    // A player who has been moved once always has a row.
    var isThere = rest.kind != .nothing || (found.leftAt == nil && found.generation > 0)
    if let left {
      // When the move was decided all of it was here. As long as nothing has been removed there, nothing is lost.
      let isForgotten =
        rest.generation < left.generation || (rest.kind == .remainder && rest.generation == left.generation)
      isThere = isThere || isForgotten
      if isForgotten, left.isAll, left.generation <= found.generation {
        guard try await directory.turnBack(container, found), let now = try await directory.placement(of: container)
        else { throw Self.busy }
        directory.home.logger.warning("A database has forgotten a player who was moved there: the move is undone")
        found = now
      } else if isForgotten {
        try await refuseForgotten(container, found)
      }
    }
    try await enliven(container, at: storage(found.shard), found.generation, isThere: isThere)
    guard cleans, let left = found.leftAt else { return }
    // One that lives there, by an older fence, is of a backup from before it had left.
    let former = try await ShardCopy.rest(of: container, in: storage(left))
    if former.kind == .living, former.generation < found.generation {
      try await ShardCopy.take(
        container, found.generation, and: [Self.fencingLiving(container)], in: storage(left))
    }
    try await ShardCopy.remove(container, from: storage(left), found.generation)
    try await directory.cleaned(container, at: left, found.generation)
  }

  /// - Throws: `ServerError` with `damaged`, unless the container has been moved, or is being deleted, by now.
  private func refuseForgotten(_ container: ContainerID, _ placement: Placement) async throws {
    guard let now = try await directory.placement(of: container), !now.isDeleting,
      now.shard == placement.shard, now.generation == placement.generation, now.leftAt == placement.leftAt
    else { throw Self.busy }
    throw ShardDirectory.setBack
  }

  /// Makes a container live in the database in which the directory says that it lives, if all of it is there.
  ///
  /// - Parameters:
  ///   - isThere: Whether there must be something of it. A player who has a place may have nothing there yet.
  ///   - isCopied: Whether it must have come by this move.
  /// - Throws: `ServerError` with `damaged` if the database is older than the directory, and has not all of it, or the
  ///   directory is older than the database; `Overtaken`.
  func enliven(
    _ container: ContainerID, at storage: PostgreSQLStorage, _ generation: Int64, isThere: Bool = true,
    isCopied: Bool = false
  ) async throws {
    let id: [PostgreSQLValue] = [.bytes(container.bytes)]
    var statements = [
      PostgreSQLStatement(
        """
        UPDATE container SET revision = -revision WHERE id = $1 AND revision < 0
        AND NOT EXISTS (SELECT 1 FROM fence WHERE container = $1 AND whole = -1)
        """, id),
      // Undoes all of it otherwise.
      PostgreSQLStatement("SELECT 1 / count(*) FROM container WHERE id = $1 AND revision >= 0", id),
    ]
    if isCopied {
      statements.append(
        PostgreSQLStatement(
          "SELECT 1 / count(*) FROM fence WHERE container = $1 AND whole = $2", id + [.int(generation)]))
    }
    if !isThere {
      // From now on something must be.
      statements = [
        PostgreSQLStatement(
          """
          INSERT INTO container (id, epoch, seq, mark, revision, used) VALUES ($1, 0, 0, 0, 1, 0)
          ON CONFLICT (id) DO NOTHING
          """, id)
      ]
    }
    do {
      try await ShardCopy.take(container, generation, and: statements, in: storage)
    } catch let overtaken as Overtaken {
      let rest = try await ShardCopy.rest(of: container, in: storage)
      guard let now = try await directory.placement(of: container), !now.isDeleting else { throw overtaken }
      if rest.generation > generation, now.generation < rest.generation {
        throw ServerError(
          .damaged, "The directory of home is older than a shard: it was set back to a backup. A player can't be found."
        )
      }
      guard now.generation == generation, !rest.isAll else { throw overtaken }
      throw ShardDirectory.setBack
    }
  }
}
#endif
