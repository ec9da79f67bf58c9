#if Cloud
package import KeepsakeReplication
package import Logging

#if PostgreSQL
import Foundation
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
    /// Those that couldn't be moved, since others were changing them, or for what is said of the refused ones.
    package var skipped = 0
    /// The first ones that can't be moved as they are.
    package var refused: [Refusal] = []
    private static let shown = 20

    package init() {}

    mutating func add(_ other: Progress) {
      (moved, skipped) = (moved + other.moved, skipped + other.skipped)
      refused += other.refused.prefix(max(0, Self.shown - refused.count))
    }
  }
  /// Why a container can't be moved, however often that is tried.
  package struct Refusal: Hashable, Sendable {
    package var container: ContainerID
    package var reason: String
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

  /// Sees that the names and addresses of shards can be read.
  ///
  /// - Throws: `ServerError` with `configuration`.
  package static func check(_ shards: [String]) throws { _ = try ShardAddress.all(shards) }

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
    let isOpen = try await Self.describing { try await storage.directory.shards() }
    return try await Self.describing {
      try await storage.ask { try await Self.count(in: $0) }.map {
        Shard(name: $0.shard, isOpen: isOpen[$0.shard] == true, players: $0.answer.0, bytes: $0.answer.1)
      }
    }
  }

  /// However many players there are, no statement looks at all of them.
  private static func count(in storage: PostgreSQLStorage) async throws -> (players: Int, bytes: Int64) {
    var (count, bytes): (Int, Int64) = (0, 0)
    var after = Data()
    while true {
      // Those that have left count among the rows that are looked at.
      let page = PostgreSQLStatement(
        """
        WITH page AS (SELECT id, used, revision FROM container WHERE id > $1 ORDER BY id LIMIT $2)
        SELECT count(CASE WHEN revision >= 0 THEN 1 END),
          coalesce(sum(CASE WHEN revision >= 0 THEN used END), 0)::bigint,
          (SELECT id FROM page ORDER BY id DESC LIMIT 1)
        FROM page
        """, [.bytes(after), .int(countedAtOnce)])
      guard let row = try await storage.read([page])[0].first, let last = try row.optionalBytes(2) else {
        return (count, bytes)
      }
      (count, bytes, after) = (count + Int(try row.int(0)), bytes + (try row.int(1)), last)
    }
  }

  private static let countedAtOnce: Int64 = 20_000

  /// Has new players get a shard, or not. Servers know it a second later.
  package func setOpen(_ isOpen: Bool, _ name: String) async throws {
    try await Self.describing {
      try await storage.directory.setOpen(isOpen, name)
      try await storage.directory.refresh()
    }
  }

  /// Does the same with nothing but the cloud's first database, so that it can be done while a shard is down.
  package static func setOpen(_ isOpen: Bool, _ name: String, database: String, logger: Logger) async throws {
    try await withDirectory(database, logger: logger) { try await $0.setOpen(isOpen, name) }
  }

  /// Has nobody moved for some time, or again at once; with nothing but the cloud's first database. When this returns,
  /// moves that had begun are over.
  ///
  /// - Parameter minutes: 0 to have players moved again.
  /// - Throws: `ServerError` with `overloaded` if a move takes more than three minutes: nobody else is moved.
  package static func hold(minutes: Int, database: String, logger: Logger) async throws {
    try await withDirectory(database, logger: logger) { directory in
      try await directory.hold(seconds: Int64(minutes) * 60)
      let end = ContinuousClock.now + .seconds(180)
      while minutes > 0, try await directory.isMoving() {
        guard ContinuousClock.now < end else {
          throw ServerError(.overloaded, "A player is still being moved; nobody else is from now on.")
        }
        try await Task.sleep(for: .milliseconds(200))
      }
    }
  }

  private static func withDirectory(
    _ database: String, logger: Logger, _ body: (ShardDirectory) async throws -> Void
  ) async throws {
    try await describing {
      let settings = PostgreSQLSettings(database)
      try PostgreSQLSchema.requireCurrent(PostgreSQLConnection(settings))
      let home = try await PostgreSQLStorage(settings, connections: 1, contents: nil, shards: nil, logger: logger)
      do {
        try await body(ShardDirectory(home: home))
      } catch {
        try await home.close()
        throw error
      }
      try await home.close()
    }
  }

  /// Moves one player, with all who share containers with it.
  ///
  /// - Returns: How many containers were moved; none if they were there already.
  package func move(_ player: PlayerID, to name: String) async throws -> Int {
    try await Self.describing {
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
    try await Self.describing { try await moveAll(order, progress) }
  }

  /// Has new players get other shards, and moves all players away until none is left but those that can't be moved.
  ///
  /// - Parameters:
  ///   - pause: After this time all servers know. Shorter in tests.
  ///   - progress: As of a move.
  package func drain(
    _ name: String, perSecond: Int?, pause: Duration = .seconds(2), progress: (Progress) throws -> Void
  ) async throws -> Progress {
    try await setOpen(false, name)
    try await Task.sleep(for: pause)
    let order = Order(from: name, to: nil, count: nil, perSecond: perSecond)
    var moved = 0
    while true {
      // Behind a pass that has come further, a player may have come, or come back from a move that ended.
      var pass = try await move(order) { now in
        var all = now
        all.moved += moved
        try progress(all)
      }
      let isLast = pass.moved == 0
      moved += pass.moved
      pass.moved = moved
      if isLast { return pass }
    }
  }

  /// What goes wrong, in words for who runs a command.
  private static func describing<Result>(_ body: () async throws -> Result) async throws -> Result {
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
    var place: Place? = Place()
    var found: ArraySlice<ContainerID> = []
    while order.count.map({ done.moved < $0 }) ?? true {
      try progress(done)
      try Task.checkCancellation()
      while found.isEmpty, let now = place { (found, place) = try await containers(of: order, in: source, at: now) }
      if found.isEmpty { break }
      let together = found.prefix(min(Self.together, order.count.map { $0 - done.moved } ?? .max))
      found = found.dropFirst(together.count)
      let moves = try await withThrowingTaskGroup(of: Progress.self) { group in
        for container in together {
          let target = targets[Int(container.low % UInt64(targets.count))]
          group.addTask { try await self.moveIfPossible(container, from: order.from, to: target) }
        }
        return try await group.reduce(into: Progress()) { $0.add($1) }
      }
      done.add(moves)
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

  /// How far the containers of a shard have been listed.
  private struct Place {
    var after = Data()
    /// Whether only those follow that somebody is moving away.
    var isLast = false
  }

  private static let listedAtOnce = 1_000

  /// Lists containers that live in a shard.
  ///
  /// - Returns: Where to go on; nil if those were all.
  private func containers(
    of order: Order, in source: PostgreSQLStorage, at place: Place
  ) async throws -> (ArraySlice<ContainerID>, Place?) {
    if place.isLast { return (try await storage.directory.moving(from: order.from)[...], nil) }
    // Those that have left count among the rows that are looked at: there may be millions of them.
    let statement = PostgreSQLStatement(
      "SELECT id, revision FROM container WHERE id > $1 ORDER BY id LIMIT $2",
      [.bytes(place.after), .int(Int64(Self.listedAtOnce))])
    let rows = try await source.read([statement])[0]
    let living: [ContainerID] = try rows.compactMap { try $0.int(1) >= 0 ? $0.identifier(0) : nil }
    guard rows.rows.count == Self.listedAtOnce, let last = rows.last else { return (living[...], Place(isLast: true)) }
    return (living[...], Place(after: try last.bytes(0)))
  }

  /// Moves a container, unless others are in the way or it can't be moved: the players behind it can.
  private func moveIfPossible(
    _ container: ContainerID, from source: String, to target: String
  ) async throws -> Progress {
    var progress = Progress()
    do {
      progress.moved = try await storage.mover.move(familyOf: container, from: source, to: target).count
    } catch let error as APIError where error.code == .busy && !ShardMover.isHeld(error) {
      progress.skipped = 1
    } catch let error where Self.isOfOne(error) {
      storage.logger.warning(
        "A player can't be moved", metadata: ["container": "\(container)", "error": "\(ErrorReason.text(error))"])
      progress.skipped = 1
      progress.refused = [Refusal(container: container, reason: "\(ErrorReason.text(error))")]
    }
    return progress
  }

  /// Whether an error says something of one player, and nothing of the others.
  private static func isOfOne(_ error: any Error) -> Bool {
    switch error {
    case let error as ServerError: error.code == .overloaded || error.code == .damaged
    // A statement that takes too long: about a player who has so much.
    case let error as PostgreSQLError: error.state == .queryCanceled
    default: false
    }
  }
  #else
  package init(database: String, shards: [String], logger: Logger) async throws { throw CloudDatabase.missing }
  package func close() async throws {}
  package func list() async throws -> [Shard] { [] }
  package func setOpen(_ isOpen: Bool, _ name: String) async throws {}
  package static func setOpen(_ isOpen: Bool, _ name: String, database: String, logger: Logger) async throws {
    throw CloudDatabase.missing
  }
  package static func hold(minutes: Int, database: String, logger: Logger) async throws {
    throw CloudDatabase.missing
  }
  package func drain(
    _ name: String, perSecond: Int?, pause: Duration = .zero, progress: (Progress) throws -> Void
  ) async throws -> Progress { Progress() }
  package func move(_ player: PlayerID, to name: String) async throws -> Int { 0 }
  package func move(_ order: Order, progress: (Progress) throws -> Void) async throws -> Progress { Progress() }
  #endif
}
#endif
