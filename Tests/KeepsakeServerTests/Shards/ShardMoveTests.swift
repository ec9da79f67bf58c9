#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// Players that are moved between two databases while they play, by movers that end at any line.
@Suite(
  "Moves of players between databases", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct ShardMoveTests {
  private static func container(_ number: UInt64) -> ContainerID { ContainerID(high: 7, low: number) }
  private let container = Self.container(1)

  /// Where a container's rows are, of all tables that a move knows.
  private func rows(
    of container: ContainerID, in storage: PostgreSQLStorage
  ) async throws -> [String: [[Data?]]] {
    var all: [String: [[Data?]]] = [:]
    for table in ShardTable.all {
      var rows: [[Data?]] = []
      var after: [PostgreSQLValue]?
      repeat {
        let page = try await storage.read([table.page(of: container.bytes, after: after)])[0]
        rows += page.rows
        after = try table.end(of: page)
      } while after != nil
      if !rows.isEmpty { all[table.name] = rows }
    }
    return all
  }

  private func other(than name: String) -> String { name == "two" ? ShardBinding.home : "two" }

  // MARK: Rows

  /// Puts rows into each table, more than are read at a time.
  private func fill(_ container: ContainerID, in name: String, _ lab: ShardLab) throws {
    let connection = try lab.connect(name)
    for table in ShardTable.all {
      let count = table.key.isEmpty ? 1 : 2 * table.pageRows + 3
      var statements: [PostgreSQLStatement] = []
      for number in 0..<count {
        let columns = table.columns.map { column -> (String, PostgreSQLValue) in
          switch (table.name, column.name) {
          case ("content_object", "taken"): (column.name, .int(.max))
          case ("content_object", "place"): (column.name, .name(number % 2 == 0 ? "rows" : "folder:one"))
          case ("content_part", "name"): (column.name, .name(TestNumber.text(2 * (number % 4))))
          // The others of a family would be looked for.
          case ("shared", "container"), ("shared_device", "parent"): (column.name, .bytes(container.bytes))
          case (_, "expires"), (_, "touched"): (column.name, .int(.max))
          // Some pages end for their bytes.
          case (_, table.bulk) where number % 100 == 7: (column.name, .bytes(Data(repeating: 7, count: 1_500_000)))
          case ("content", "base") where number % 3 == 0: (column.name, .bytes(nil))
          case ("version", "accepted") where number % 3 == 0: (column.name, .int(nil))
          case _ where column.isNumber: (column.name, .int(Int64(number) - 3))
          case _: (column.name, .name(TestNumber.text(number)))
          }
        }
        let names = ([table.owner] + columns.map(\.0)).joined(separator: ", ")
        let parameters = (1...columns.count + 1).map { "$\($0)" }.joined(separator: ", ")
        statements.append(
          PostgreSQLStatement(
            "INSERT INTO \(table.name) (\(names)) VALUES (\(parameters)) ON CONFLICT DO NOTHING",
            [.bytes(container.bytes)] + columns.map(\.1)))
      }
      _ = try connection.run(statements)
    }
  }

  private enum TestNumber {
    static func text(_ number: Int) -> String { "row \(number)" }
  }

  @Test("all rows of all tables are moved there and back, and nothing stays but that the player has left")
  func rows() async throws {
    try await ShardLab.with { lab in
      let server = try await lab.server()
      try await server.addGem(to: container, mark: 1)
      let first = try await server.directory.shard(of: container)
      try fill(container, in: first, lab)
      var mover = server.mover
      mover.banPause = .zero
      let before = try await rows(of: container, in: #require(server.shards[first]))
      #expect(Set(before.keys) == Set(ShardTable.all.map(\.name)))
      for name in ["bank_decision", "content_part", "content"] { #expect(before[name]?.count == 515, "\(name)") }
      for (from, to) in [(first, other(than: first)), (other(than: first), first)] {
        #expect(try await mover.move(familyOf: container, to: to) == [container])
        #expect(try await rows(of: container, in: #require(server.shards[to])) == before, "to \(to)")
        let left = try await rows(of: container, in: #require(server.shards[from]))
        // Home keeps what others mustn't have, too.
        #expect(Set(left.keys) == (from == ShardBinding.home ? ["identity", "receipt"] : []), "from \(from)")
        #expect(try await server.gems(of: container) == 1)
      }
      let traces = try lab.traces(of: container)
      let left = traces[other(than: first)]?.subtracting(["placement", "identity", "receipt"])
      #expect(left == ["container", "fence"])
    }
  }

  @Test("a move knows each table and column that is of players")
  func tables() async throws {
    // Those of the directory and of the whole cloud, and of what is by the proof or the player.
    let others: Set<String> = [
      "container", "placement", "fence", "shard", "shard_self", "schema_number", "number", "admin_key", "audit",
      "content_place", "identity_use", "cloud_move", "webhook_event", "webhook_endpoint", "webhook_conflict",
    ]
    try await ShardLab.with { lab in
      let server = try await lab.server()
      var found: [String: Set<String>] = [:]
      let columns = try lab.run(
        """
        SELECT table_name::text::bytea, column_name::text::bytea FROM information_schema.columns
        WHERE table_schema = current_schema()
        """, in: "two")
      for row in columns { found[try row.text(0), default: []].insert(try row.text(1)) }
      #expect(found.count > 20)
      for table in ShardTable.all {
        let columns = Set([table.owner] + table.columns.map(\.name))
        #expect(found.removeValue(forKey: table.name) == columns, "\(table.name)")
      }
      #expect(Set(found.keys) == others)
      #expect(found["container"] == ["id", "epoch", "seq", "mark", "revision", "used", "bank"])
      _ = server
    }
  }

  // MARK: Movers that end

  @Test("a mover that is killed at any step leaves a player who goes on playing", arguments: ShardMover.Step.allCases)
  func killed(at step: ShardMover.Step) async throws {
    try await ShardLab.with { lab in
      let (one, other) = (try await lab.server(), try await lab.server())
      try await one.addGem(to: container, mark: 1)
      try await one.recordDevice(device(1))
      let from = try await one.directory.shard(of: container)
      let to = self.other(than: from)
      // It has seen the player there.
      #expect(try await other.gems(of: container) == 1)
      var mover = one.mover
      mover.reached = { if $0 == step { throw ShardMover.Killed() } }
      let killed = mover
      await #expect(throws: ShardMover.Killed.self) { _ = try await killed.move(familyOf: container, to: to) }
      try lab.abandonMoves()
      try await other.addGem(to: container, mark: 2)
      try await one.addGem(to: container, mark: 3)
      #expect(try await one.gems(of: container) == 3)
      try lab.abandonMoves()
      try await other.lookAfter()
      #expect(try await other.directory.unfinished(limit: 10).isEmpty)
      let placement = try #require(try await other.directory.placement(of: container))
      let isDecided = [.decided, .live, .removed].contains(step)
      #expect(placement.shard == (isDecided ? to : from))
      #expect(placement.movingTo == nil && placement.leftAt == nil)
      let gone = try #require(one.shards[isDecided ? from : to])
      #expect(try await rows(of: container, in: gone).isEmpty)
      // And it can be moved again, there or back.
      _ = try await other.mover.move(familyOf: container, to: self.other(than: placement.shard))
      try await one.addGem(to: container, mark: 4)
      #expect(try await other.gems(of: container) == 4)
      #expect(try await one.devices(of: container).map(\.identity.device) == [device(1).identity.device])
    }
  }

  private func device(_ number: UInt64) -> DeviceRecord {
    DeviceRecord(
      identity: DeviceIdentity(
        device: DeviceID(high: 2, low: number), player: PlayerID(high: 3, low: 3), container: container,
        app: AppID(ofKey: "a game")),
      name: "A", createdMilliseconds: 5, seenMilliseconds: 5)
  }

  @Test(
    "a mover that stood still while its move was undone and others played changes nothing when it goes on",
    arguments: [.begun, .fenced, .copied, .verified] as [ShardMover.Step])
  func late(at step: ShardMover.Step) async throws {
    try await ShardLab.with { lab in
      let container = self.container
      let (one, other) = (try await lab.server(), try await lab.server())
      try await one.addGem(to: container, mark: 1)
      let from = try await one.directory.shard(of: container)
      let isFirst = Shared(true)
      var mover = one.mover
      mover.leasePause = .seconds(3_600)
      let address = try #require(lab.addresses[ShardBinding.home])
      mover.reached = { reached in
        guard reached == step, isFirst.value else { return }
        isFirst.value = false
        let connection = try PostgreSQLConnection(TestDatabase.settings(address))
        _ = try connection.run([PostgreSQLStatement("UPDATE placement SET since = 0")])
        // Whoever comes undoes it, plays, and moves the player there and back.
        try await other.mover.settle(container, cleans: true)
        try await other.addGem(to: container, mark: 2)
        _ = try await other.mover.move(familyOf: container, to: from == "two" ? ShardBinding.home : "two")
        try await other.addGem(to: container, mark: 3)
        _ = try await other.mover.move(familyOf: container, to: from)
        try await other.addGem(to: container, mark: 4)
      }
      // Having been overtaken, it begins anew.
      #expect(try await mover.move(familyOf: container, to: self.other(than: from)) == [container])
      #expect(!isFirst.value)
      for server in [one, other] { #expect(try await server.gems(of: container) == 4) }
      try lab.abandonMoves()
      try await one.lookAfter()
      #expect(try await rows(of: container, in: #require(one.shards[from])).isEmpty)
    }
  }

  /// Moves a player by a mover that says each 10 ms that it is alive, and does something once the player is fenced for
  /// the first time.
  ///
  /// - Parameter count: How often the player has to be fenced.
  private func move(
    fencing count: Int, _ body: @escaping @Sendable (_ other: ShardedStorage) async throws -> Void
  ) async throws {
    try await ShardLab.with { lab in
      let container = self.container
      let (one, other) = (try await lab.server(), try await lab.server())
      try await one.addGem(to: container, mark: 1)
      let from = try await one.directory.shard(of: container)
      var mover = one.mover
      mover.leasePause = .milliseconds(10)
      let tries = Shared(0)
      mover.reached = { (reached: ShardMover.Step) async throws -> Void in
        guard reached == .fenced else { return }
        tries.value += 1
        if tries.value == 1 { try await body(other) }
      }
      #expect(try await mover.move(familyOf: container, to: self.other(than: from)) == [container])
      #expect(tries.value == count)
      #expect(try await other.gems(of: container) == 1)
    }
  }

  @Test("a move isn't undone as long as its mover is alive, however long it takes for a step")
  func slow() async throws {
    let container = self.container
    try await move(fencing: 1) { other in
      // As if it had taken long; the mover says again that it is alive.
      _ = try await other.home.run([PostgreSQLStatement("UPDATE placement SET since = 0")])
      for _ in 0..<2_000 where try await other.directory.placement(of: container)?.isAbandoned == true {
        try await Task.sleep(for: .milliseconds(5))
      }
      let error = await #expect(throws: APIError.self) { try await other.mover.settle(container, cleans: true) }
      #expect(error?.code == .busy)
    }
  }

  @Test("a mover whose move is undone hears of it while it works, and begins anew")
  func undone() async throws {
    let container = self.container
    try await move(fencing: 2) { other in
      let placement = try #require(try await other.directory.placement(of: container))
      #expect(try await other.directory.undo(container, placement.generation))
      for _ in 0..<2_000 where !Task.isCancelled { try? await Task.sleep(for: .milliseconds(5)) }
      #expect(Task.isCancelled)
    }
  }

  @Test("a container that comes to be shared with a player while a move begins is moved, too")
  func newMember() async throws {
    try await ShardLab.with { lab in
      let (container, joining) = (self.container, Self.container(2))
      let server = try await lab.server()
      for one in [container, joining] {
        try await server.addGem(to: one, mark: 1)
        _ = try await server.mover.move(familyOf: one, to: ShardBinding.home)
      }
      let address = try #require(lab.addresses[ShardBinding.home])
      let tries = Shared(0)
      var mover = server.mover
      mover.reached = { reached in
        guard reached == .begun else { return }
        tries.value += 1
        guard tries.value == 1 else { return }
        let connection = try PostgreSQLConnection(TestDatabase.settings(address))
        _ = try connection.run([
          PostgreSQLStatement(
            "INSERT INTO shared (parent, container, share, player, current) VALUES ($1, $2, $2, $2, 1)",
            [.bytes(container.bytes), .bytes(joining.bytes)])
        ])
      }
      #expect(try await mover.move(familyOf: container, to: "two") == [container, joining])
      #expect(tries.value == 2)
      for one in [container, joining] { #expect(try await server.directory.shard(of: one) == "two") }
    }
  }

  @Test("whoever has seen a player where the player was finds the fence, and the player, and nothing is lost")
  func stale() async throws {
    try await ShardLab.with { lab in
      let (one, other) = (try await lab.server(), try await lab.server())
      let identity = device(1).identity
      try await other.recordDevice(device(1))
      try await other.addGem(to: container, mark: 1)
      let from = try await other.directory.shard(of: container)
      let snapshot = try await other.load(ReadSet(), of: container)
      _ = try await one.mover.move(familyOf: container, to: self.other(than: from))
      // Each of these goes to where the player was, first.
      func forgetting<Result>(_ body: () async throws -> Result) async throws -> Result {
        _ = try await one.mover.move(familyOf: container, to: from)
        _ = try await other.devices(of: container)
        _ = try await one.mover.move(familyOf: container, to: self.other(than: from))
        return try await body()
      }
      var decided = SnapshotContainer(snapshot)
      decided.advance(to: Cursor(epoch: 0, seq: 9, mark: 9))
      #expect(try await !other.commit(decided.writes, of: container, ifAt: snapshot.revision))
      #expect(try await forgetting { try await other.devices(of: container).count } == 1)
      #expect(try await forgetting { try await other.gems(of: container) } == 1)
      #expect(try await forgetting { try await other.newestSeq(of: container) } == 1)
      try await forgetting { try await other.recordToken(issuedMilliseconds: 7, of: identity) }
      #expect(try await forgetting { try await other.newestToken(of: identity) } == 7)
      _ = try await forgetting { try await other.retire(identity.device, of: container, now: 6) }
      #expect(try await forgetting { try await other.isRetired(identity) })
      #expect(try await rows(of: container, in: #require(one.shards[from])).isEmpty)
    }
  }

  @Test("players who are moved back and forth while two servers write to them lose nothing, and get nothing twice")
  func load() async throws {
    try await ShardLab.with { lab in
      let (one, other) = (try await lab.server(), try await lab.server())
      let players = (1...4 as ClosedRange<UInt64>).map(Self.container)
      let isOver = Shared(false)
      let written = try await withThrowingTaskGroup(of: [ContainerID: Int64].self) { group in
        for (number, server) in [one, other, one, other].enumerated() {
          group.addTask {
            var written: [ContainerID: Int64] = [:]
            var mark: UInt64 = 0
            while !isOver.value {
              mark += 1
              let player = players[Int(mark) % players.count]
              try await server.addGem(to: player, mark: UInt64(number) << 32 + mark)
              written[player, default: 0] += 1
            }
            return written
          }
        }
        group.addTask {
          for round in 0..<6 {
            for player in players {
              _ = try await one.mover.move(familyOf: player, to: round % 2 == 0 ? "two" : ShardBinding.home)
            }
          }
          isOver.value = true
          return [:]
        }
        do {
          return try await group.reduce(into: [ContainerID: Int64]()) { $0.merge($1, uniquingKeysWith: +) }
        } catch {
          isOver.value = true
          throw error
        }
      }
      for player in players {
        #expect(try await one.gems(of: player) == written[player])
        #expect(try await other.position(of: player).seq == written[player].map { UInt64($0) })
      }
    }
  }

  // MARK: What is beside the rows

  @Test("a ban counts on each server during and after a move, and is lifted where the player is")
  func bans() async throws {
    try await ShardLab.with { lab in
      let container = self.container
      let (one, other) = (try await lab.server(), try await lab.server())
      let entry = AuditEntry(atMilliseconds: 5, key: "k", name: "ada", act: "player.ban", request: "r")
      let ban = Ban(reason: "x", sinceMilliseconds: 1)
      try await one.setBan(ban, of: container, auditing: entry)
      let from = try await one.directory.shard(of: container)
      func isBanned(by server: ShardedStorage) async throws -> Bool {
        for storage in server.all { try await storage.refresh() }
        return server.ban(of: container) == ban
      }
      #expect(try await isBanned(by: other))
      var mover = one.mover
      mover.banPause = .zero
      let seen = Shared<[Bool]>([])
      mover.reached = { _ in
        // As who has lifted an earlier one does, however late.
        try await other.removeLeftBan(of: container)
        for storage in other.all { try await storage.refresh() }
        seen.value.append(other.ban(of: container) == ban)
      }
      #expect(try await mover.move(familyOf: container, to: self.other(than: from)).count == 1)
      #expect(seen.value.count == ShardMover.Step.allCases.count && !seen.value.contains(false))
      // One that is lifted counts nowhere any more, though its copy is still where the player was.
      let isLifted = Shared(false)
      mover.reached = { step in
        guard step == .live else { return }
        try await other.setBan(nil, of: container, auditing: entry)
        for storage in one.all { try await storage.refresh() }
        isLifted.value = one.ban(of: container) == nil && other.ban(of: container) == nil
      }
      #expect(try await mover.move(familyOf: container, to: from).count == 1)
      #expect(isLifted.value)
      for server in [one, other] { #expect(try await !isBanned(by: server)) }
    }
  }

  @Test("of a deleted player nothing is left in any database, and each refuses the player, also if the server ended")
  func deleted() async throws {
    try await ShardLab.with { lab in
      let (one, other) = (try await lab.server(), try await lab.server())
      for (number, isCut) in [(1, false), (2, true)] as [(UInt64, Bool)] {
        let player = Self.container(number)
        try await one.addGem(to: player, mark: 1)
        let from = try await one.directory.shard(of: player)
        _ = try await one.mover.move(familyOf: player, to: self.other(than: from))
        #expect(try lab.traces(of: player)[from]?.contains("fence") == true)
        if isCut {
          // As far as a server comes that ends after the player's own database has done it.
          try await one.directory.setDeleting(true, [player])
          _ = try await #require(one.shards[self.other(than: from)]).delete(player, now: 5)
          try lab.run("UPDATE placement SET deleting = 0 WHERE deleting IS NOT NULL", in: "home")
          try await other.lookAfter()
        } else {
          try await one.delete(player, now: 5)
        }
        #expect(try lab.traces(of: player).isEmpty)
        for server in [one, other] {
          server.directory.forget(player)
          for storage in server.all {
            #expect(try await storage.load(ReadSet(), of: player).isDeleted)
          }
          let error = await #expect(throws: APIError.self) { try await server.addGem(to: player, mark: 2) }
          #expect(error?.code == .retired)
        }
        #expect(try lab.traces(of: player).isEmpty)
      }
    }
  }
}
#endif
