#if Cloud
package import KeepsakeReplication
package import Logging

#if PostgreSQL
import KeepsakePostgreSQL
#endif

/// The databases over which a cloud's players are spread, for commands beside its servers.
package final class CloudShards: Sendable {
  /// One of them.
  package struct Shard: Sendable {
    package var name: String
    /// Whether new players get it.
    package var isOpen: Bool
    package var players: Int
    /// What the players have stored: contents, and records of versions and values.
    package var bytes: Int64
  }
  /// How far moving has come.
  package struct Progress: Sendable {
    /// Containers: each of a player of a game, or one that players share.
    package var moved = 0
    /// Those that couldn't be moved, since others were changing them.
    package var skipped = 0
  }
  /// What to move.
  package struct Order: Sendable {
    package var from: String
    /// Nil for the shards that new players get.
    package var to: String?
    /// At most as many; nil for all.
    package var count: Int?
    package var perSecond: Int?

    package init(from: String, to: String?, count: Int?, perSecond: Int?) {
      (self.from, self.to, self.count, self.perSecond) = (from, to, count, perSecond)
    }
  }

  #if PostgreSQL
  let storage: ShardedStorage

  init(_ storage: ShardedStorage) { self.storage = storage }

  /// Opens the databases. Servers must have been started with all of them before.
  ///
  /// - Throws: `ServerError`.
  package convenience init(database: String, shards: [String], logger: Logger) async throws {
    let addresses = try ShardAddress.all(shards)
    guard !addresses.isEmpty else {
      throw ServerError(.configuration, "Name the shards as for keepsake serve, with --shard NAME=postgres://...")
    }
    self.init(
      try await CloudDatabase.openBeside(database: database, addresses, logger: logger))
  }

  package func close() async throws { try await storage.close() }

  package func list() async throws -> [Shard] {
    let isOpen = try await describing { try await storage.directory.shards() }
    let counting = PostgreSQLStatement(
      "SELECT count(*), coalesce(sum(used), 0)::bigint FROM container WHERE revision >= 0")
    return try await describing {
      try await storage.ask { storage in
        let row = try await storage.read([counting])[0].first
        return (Int(try row?.int(0) ?? 0), try row?.int(1) ?? 0)
      }.map { Shard(name: $0.shard, isOpen: isOpen[$0.shard] == true, players: $0.answer.0, bytes: $0.answer.1) }
    }
  }

  /// Has new players get a shard, or not. Servers know it a second later.
  package func setOpen(_ isOpen: Bool, _ name: String) async throws {
    _ = try storage.mover.storage(name)
    try await describing {
      try await storage.directory.setOpen(isOpen, name)
      try await storage.directory.refresh()
    }
  }

  /// Moves one player, with all who share containers with it.
  ///
  /// - Returns: How many containers were moved; none if they were there already.
  package func move(_ player: PlayerID, to name: String) async throws -> Int {
    try await describing {
      guard let place = try await storage.place(of: player) else {
        throw ServerError(.missing, "There is no such player, or none of the player's devices is left.")
      }
      return try await storage.mover.move(familyOf: place.container, to: name).count
    }
  }

  /// Moves players, several at a time. What is stopped, in whatever way, leaves each of them in one place or the other.
  ///
  /// - Parameter progress: Called now and then. Ends the move by throwing.
  package func move(_ order: Order, progress: (Progress) throws -> Void) async throws -> Progress {
    try await describing { try await moveAll(order, progress) }
  }

  /// What goes wrong, in words for who runs a command.
  private func describing<Result>(_ body: () async throws -> Result) async throws -> Result {
    do {
      return try await body()
    } catch let error as PostgreSQLError {
      throw ServerError(.inputOutput, "A database can't be used.", cause: error)
    } catch let error as APIError where error.code == ShardMover.busy.code {
      throw ServerError(.overloaded, error.message)
    }
  }

  private func moveAll(_ order: Order, _ progress: (Progress) throws -> Void) async throws -> Progress {
    let source = try storage.mover.storage(order.from)
    let targets = try await targets(of: order)
    let start = ContinuousClock.now
    var done = Progress()
    var after: ContainerID?
    while order.count.map({ done.moved < $0 }) ?? true {
      try progress(done)
      try Task.checkCancellation()
      let limit = min(Self.together, order.count.map { $0 - done.moved } ?? .max)
      let page = try await containers(in: source, after: after, limit: limit)
      guard let last = page.last else { break }
      after = last
      let counts = try await withThrowingTaskGroup(of: Int?.self) { group in
        for container in page {
          let target = targets[Int(container.low % UInt64(targets.count))]
          group.addTask { try await self.moveIfPossible(container, to: target) }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      done.moved += counts.reduce(0) { $0 + ($1 ?? 0) }
      done.skipped += counts.count { $0 == nil }
      if let pace = order.perSecond {
        try await Task.sleep(until: start + .seconds(Double(done.moved) / Double(pace)))
      }
    }
    try progress(done)
    return done
  }

  private static let together = 4

  private func targets(of order: Order) async throws -> [String] {
    if let to = order.to {
      _ = try storage.mover.storage(to)
      guard to != order.from else {
        throw ServerError(.configuration, "The players of \(to) can't be moved to \(to).")
      }
      return [to]
    }
    let open = try await storage.directory.shards().filter { $0.value && $0.key != order.from }.keys.sorted()
    guard !open.isEmpty else {
      throw ServerError(.configuration, "No other shard is open for new players: name one to move to.")
    }
    return open
  }

  private func containers(
    in storage: PostgreSQLStorage, after container: ContainerID?, limit: Int
  ) async throws -> [ContainerID] {
    let statement = PostgreSQLStatement(
      "SELECT id FROM container WHERE id > $1 AND revision >= 0 ORDER BY id LIMIT $2",
      [.bytes(container?.bytes), .int(Int64(limit))])
    let first = PostgreSQLStatement(
      "SELECT id FROM container WHERE revision >= 0 ORDER BY id LIMIT $1", [.int(Int64(limit))])
    return try await storage.read([container == nil ? first : statement])[0].map { try $0.identifier(0) }
  }

  /// - Returns: How many containers were moved; nil if others were in the way.
  private func moveIfPossible(_ container: ContainerID, to target: String) async throws -> Int? {
    do {
      return try await storage.mover.move(familyOf: container, to: target).count
    } catch let error as APIError where error.code == ShardMover.busy.code {
      return nil
    }
  }
  #else
  package init(database: String, shards: [String], logger: Logger) async throws { throw CloudDatabase.missing }
  package func close() async throws {}
  package func list() async throws -> [Shard] { [] }
  package func setOpen(_ isOpen: Bool, _ name: String) async throws {}
  package func move(_ player: PlayerID, to name: String) async throws -> Int { 0 }
  package func move(_ order: Order, progress: (Progress) throws -> Void) async throws -> Progress { Progress() }
  #endif
}
#endif
