#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// Databases of a cloud that have forgotten something: they were set back to a backup, or a standby without the newest
/// commits has taken over.
@Suite(
  "Several databases of which one has forgotten something", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct ShardSetBackTests: ShardScenes {
  private static let all = ["container", "fence", "device", "past_position", "version", "cell"]

  /// Has a database forget a container.
  private static func forget(_ container: ContainerID, at address: String?) throws {
    let connection = try PostgreSQLConnection(TestDatabase.settings(#require(address)))
    for table in all {
      let column = table == "container" ? "id" : "container"
      _ = try connection.run([
        PostgreSQLStatement("DELETE FROM \(table) WHERE \(column) = $1", [.bytes(container.bytes)])
      ])
    }
  }

  /// Opens a server at which a player of home has saved.
  private func start(_ lab: ShardLab) async throws -> (ShardedStorage, DeviceIdentity) {
    let (server, player) = (try await lab.server(), device(1))
    try await record(player, in: server, at: ShardBinding.home)
    try await server.addGem(to: player.container, mark: 1)
    return (server, player)
  }

  private func refused(_ body: () async throws -> Void) async {
    let error = await #expect(throws: ServerError.self) { try await body() }
    #expect(error?.code == .damaged)
  }

  // MARK: Moves

  enum Forgotten: CaseIterable { case all, rows, sinceBefore }

  @Test(
    "a player whom the database has forgotten to which a move had just brought them goes on where they were",
    arguments: Forgotten.allCases, [true, false])
  func forgottenMove(forgotten: Forgotten, hasPlayed: Bool) async throws {
    try await ShardLab.with { lab in
      let (one, other) = (try await lab.server(), try await lab.server())
      let player = device(1)
      try await record(player, in: one, at: ShardBinding.home)
      try await one.addGem(to: player.container, mark: 1)
      if hasPlayed { #expect(try await other.gems(of: player.container) == 1) }
      var mover = one.mover
      mover.reached = { if $0 == .decided { throw ShardMover.Killed() } }
      await #expect(throws: ShardMover.Killed.self) {
        _ = try await mover.move(familyOf: player.container, to: "two")
      }
      switch forgotten {
      case .all: try Self.forget(player.container, at: lab.addresses["two"])
      case .rows:
        try lab.run("UPDATE fence SET whole = -1 WHERE container = $1", [.bytes(player.container.bytes)], in: "two")
        try lab.run("DELETE FROM device WHERE container = $1", [.bytes(player.container.bytes)], in: "two")
      case .sinceBefore:
        // A backup of when the player lived there.
        let id: [PostgreSQLValue] = [.bytes(player.container.bytes)]
        try lab.run("UPDATE container SET revision = 1, seq = 0, bank = NULL WHERE id = $1", id, in: "two")
        try lab.run("UPDATE fence SET generation = 0, whole = NULL WHERE container = $1", id, in: "two")
      }
      #expect(try await other.gems(of: player.container) == 1)
      try await other.addGem(to: player.container, mark: 2)
      #expect(try await other.directory.placement(of: player.container)?.shard == ShardBinding.home)
      #expect(try await other.devices(of: player.container).map(\.identity) == [player])
      // What is left of the move is removed, and the player can be moved.
      try await other.mover.settle(player.container, cleans: true)
      #expect(try await other.mover.move(familyOf: player.container, to: "two") == [player.container])
      #expect(try await one.gems(of: player.container) == 2)
    }
  }

  @Test("of a family that is moved a database knows everybody or nobody, and all of it goes on where it was")
  func family() async throws {
    try await ShardLab.with { lab in
      let one = try await lab.server()
      let player = device(1)
      try await record(player, in: one, at: ShardBinding.home)
      let grant = SharedGrant(app: Self.app, share: AppID(word: 7), access: .readWrite)
      let shared = try await one.registerShared(
        device(11), named: "", by: EntryRight(grant, of: player), now: 5)
      for container in [player.container, shared.container] { try await one.addGem(to: container, mark: 1) }
      var mover = one.mover
      let two = try #require(lab.addresses["two"])
      // Before the last of them is whole, none is.
      mover.reached = { step in
        if step == .copied {
          let whole = PostgreSQLStatement("SELECT 1::bigint FROM fence WHERE whole > 0")
          let found = try PostgreSQLConnection(TestDatabase.settings(two)).run([whole])[0].first
          #expect(found == nil)
        }
        if step == .decided { throw ShardMover.Killed() }
      }
      await #expect(throws: ShardMover.Killed.self) {
        _ = try await mover.move(familyOf: player.container, to: "two")
      }
      try lab.run("UPDATE fence SET whole = -1", in: "two")
      for container in [player.container, shared.container] {
        #expect(try await one.gems(of: container) == 1)
        try await one.mover.settle(container, cleans: true)
        #expect(try await one.directory.placement(of: container)?.shard == ShardBinding.home)
      }
      let family = [player.container, shared.container].sorted()
      #expect(try await one.mover.move(familyOf: player.container, to: "two") == family)
    }
  }

  @Test("a player who has a place and nothing there plays, and is moved, after a move that was given up")
  func nothingThere() async throws {
    try await ShardLab.with { lab in
      let (one, other) = (try await lab.server(), try await lab.server())
      for number in 1...4 as ClosedRange<UInt64> {
        let container = device(number).container
        _ = try await one.directory.place(container, at: ShardBinding.home)
        var mover = one.mover
        mover.reached = { if $0 == .begun { throw ShardMover.Killed() } }
        await #expect(throws: ShardMover.Killed.self) { _ = try await mover.move(familyOf: container, to: "two") }
        try lab.abandonMoves()
        if number < 3 { try await other.mover.settle(container, cleans: number == 1) }
        if number != 4 { try await other.addGem(to: container, mark: 1) }
        #expect(try await other.mover.move(familyOf: container, to: "two") == [container])
        #expect(try await one.gems(of: container) == (number == 4 ? 0 : 1))
      }
    }
  }

  @Test(
    "a server makes nobody anew of whom it knows that they were moved, whatever the database has forgotten",
    arguments: ["a save", "a code"])
  func unnoticed(what: String) async throws {
    try await ShardLab.with { lab in
      let (one, player) = try await start(lab)
      _ = try await one.mover.move(familyOf: player.container, to: "two")
      try await one.addGem(to: player.container, mark: 2)
      // A standby takes over within this very request.
      try Self.forget(player.container, at: lab.addresses["two"])
      await refused {
        if what == "a save" {
          try await one.addGem(to: player.container, mark: 3)
        } else {
          try await one.putRecovery(ContentHash(of: Data([1])), by: player, scope: player.app, now: 5)
        }
      }
      #expect(
        try lab.run("SELECT 1::bigint FROM container WHERE id = $1", [.bytes(player.container.bytes)], in: "two")
          .first == nil)
    }
  }

  @Test("nothing is removed where a player was as long as the player isn't where the directory says")
  func lastCopy() async throws {
    try await ShardLab.with { lab in
      let (one, player) = try await start(lab)
      var mover = one.mover
      let two = lab.addresses["two"]
      mover.reached = { if $0 == .decided { try Self.forget(player.container, at: two) } }
      await refused { _ = try await mover.move(familyOf: player.container, to: "two") }
      let old = try lab.run("UPDATE placement SET since = 0", in: "home")
      #expect(old.count == 1)
      try await one.lookAfter()
      #expect(try await one.gems(of: player.container) == 1)
      #expect(try await one.directory.placement(of: player.container)?.shard == ShardBinding.home)
    }
  }

  @Test(
    "what a database has of a player who has left it isn't taken for the player who has come back since",
    arguments: ["was there", "had left"])
  func leftBefore(then: String) async throws {
    try await ShardLab.with { lab in
      let one = try await lab.server()
      let player = device(1)
      try await record(player, in: one, at: "two")
      try await one.addGem(to: player.container, mark: 1)
      _ = try await one.mover.move(familyOf: player.container, to: ShardBinding.home)
      let isLiving = then == "was there"
      let before = try lab.run(
        "SELECT generation FROM fence WHERE container = $1", [.bytes(player.container.bytes)], in: "two")
      _ = try await one.mover.move(familyOf: player.container, to: "two")
      try await one.addGem(to: player.container, mark: 2)
      // As it was before the last move.
      try Self.forget(player.container, at: lab.addresses["two"])
      let values: [PostgreSQLValue] = [.bytes(player.container.bytes)]
      try lab.run(
        "INSERT INTO container (id, epoch, seq, mark, revision, used) VALUES ($1, 0, 0, 0, $2, 0)",
        values + [.int(isLiving ? 1 : -1)], in: "two")
      try lab.run(
        "INSERT INTO fence (container, generation, whole) VALUES ($1, $2, $3)",
        values + [.int(try #require(before.first).int(0) - (isLiving ? 1 : 0)), .int(isLiving ? nil : -1)], in: "two")
      for server in [try await lab.server()] + (isLiving ? [] : [one]) {
        await refused { try await server.addGem(to: player.container, mark: 3) }
      }
    }
  }

  @Test("a server that has been connected anew looks again for whom was moved to a database")
  func failover() async throws {
    try await ShardLab.with { lab in
      let (one, player) = try await start(lab)
      _ = try await one.mover.move(familyOf: player.container, to: "two")
      try await one.addGem(to: player.container, mark: 2)
      // The standby is of when the player lived there before.
      let id: [PostgreSQLValue] = [.bytes(player.container.bytes)]
      try lab.run("UPDATE fence SET generation = 0 WHERE container = $1", id, in: "two")
      let pool = try #require(one.shards["two"]).pool
      let made = pool.connectionsMade
      while pool.connectionsMade == made {
        _ = try? await pool.run([PostgreSQLStatement("SELECT pg_terminate_backend(pg_backend_pid())")])
      }
      await refused { try await one.addGem(to: player.container, mark: 3) }
    }
  }

  @Test("an empty database isn't taken for a shard in which there are players, nor for a cloud by a command")
  func empty() async throws {
    try await ShardLab.with { lab in
      _ = try await lab.server()
      try await ShardLab.with { empty in
        let address = try #require(empty.addresses["two"])
        let error = await #expect(throws: ServerError.self) {
          _ = try await lab.open(["two"], at: ["two": address])
        }
        #expect(error?.code == .configuration && error?.message.contains("nothing of it") == true)
        let logger = Logger(label: "keepsake.shard")
        let shards = try ShardAddress.all(["two=\(#require(lab.addresses["two"]))"])
        // As it is, and with all tables.
        for hasTables in [false, true] {
          if hasTables { try await TestDatabase.storage(at: address).close() }
          await #expect(throws: ServerError.self) {
            _ = try await CloudDatabase.openBeside(database: address, shards, logger: logger)
          }
        }
        #expect(try empty.run("SELECT name FROM shard_self", in: "two").first == nil)
      }
    }
  }

  @Test("a command beside servers leaves tables as they are")
  func tables() async throws {
    try await ShardLab.with { lab in
      _ = try await lab.server()
      try lab.run("UPDATE schema_number SET number = number - 1", in: "two")
      let logger = Logger(label: "keepsake.shard")
      let home = try #require(lab.addresses[ShardBinding.home])
      let shards = try ShardAddress.all(["two=\(#require(lab.addresses["two"]))"])
      let error = await #expect(throws: ServerError.self) {
        _ = try await CloudDatabase.openBeside(database: home, shards, logger: logger)
      }
      #expect(error?.code == .missing)
      try lab.run("UPDATE schema_number SET number = number - 1", in: "home")
      let closing = await #expect(throws: ServerError.self) {
        try await CloudShards.setOpen(false, "two", database: home, logger: logger)
      }
      #expect(closing?.code == .missing)
      for name in ["home", "two"] {
        #expect(
          try lab.run("SELECT number FROM schema_number", in: name).first?.int(0) == PostgreSQLSchema.number - 1)
      }
    }
  }

  // MARK: Home

  @Test("a receipt and an identity that home has forgotten are still their player's, also where home is asked alone")
  func home() async throws {
    try await ShardLab.with { lab in
      let one = try await lab.server()
      let (paid, atHome, atTwo) = (device(1), device(2), device(3))
      try await record(paid, in: one, at: "two")
      try await record(atHome, in: one, at: ShardBinding.home)
      try await record(atTwo, in: one, at: "two")
      #expect(try await pay(1, to: paid.container, by: one))
      guard case .linked = try await one.link(identity("ada", proof: 1), to: paid, now: 5) else {
        Issue.record("it leads to nobody else")
        return
      }
      for table in ["receipt", "identity", "identity_use"] { try lab.run("DELETE FROM \(table)", in: "home") }
      for other in [atHome, atTwo] {
        #expect(try await !pay(1, to: other.container, by: one))
        #expect(try await one.link(identity("ada", proof: 2 + other.device.low), to: other, now: 6) == .taken)
      }
      let asking = device(4)
      try await record(asking, in: one, at: ShardBinding.home)
      let new = NewDevice(device: DeviceID(high: 5, low: 1), name: "new")
      let signIn = try await one.signIn(with: identity("ada", proof: 9), by: asking, as: new, now: 7)
      guard case .joined(let joined) = signIn else {
        Issue.record("\(signIn)")
        return
      }
      #expect(joined.container == paid.container)
    }
  }

  @Test("what was paid in a database was paid, also if home says that the player isn't there")
  func paidElsewhere() async throws {
    try await ShardLab.with { lab in
      let one = try await lab.server()
      let (paid, asking) = (device(1), device(2))
      try await record(paid, in: one, at: "two")
      try await record(asking, in: one, at: ShardBinding.home)
      #expect(try await pay(1, to: paid.container, by: one))
      try lab.run("DELETE FROM receipt", in: "home")
      let old = "UPDATE placement SET shard = $1, generation = 0 WHERE container = $2"
      try lab.run(old, [.name(ShardBinding.home), .bytes(paid.container.bytes)], in: "home")
      let other = try await lab.server()
      #expect(try await !pay(1, to: asking.container, by: other))
      #expect(try await pay(2, to: asking.container, by: other))
    }
  }

  @Test("an identity that a deleted player was about to link can be linked by others")
  func deletedHolder() async throws {
    try await ShardLab.with { lab in
      let one = try await lab.server()
      let (deleted, other) = (device(1), device(2))
      try await record(deleted, in: one, at: "two")
      try await record(other, in: one, at: ShardBinding.home)
      _ = try await one.delete(deleted.container, now: 6, auditing: nil)
      let ada = identity("ada", proof: 2)
      try lab.run(
        "INSERT INTO identity (id, container, app, player, issuer, device, created) VALUES ($1, $2, $3, $4, '', $5, 5)",
        [
          .bytes(ada.id.bytes), .bytes(deleted.container.bytes), .bytes(deleted.app.bytes),
          .bytes(deleted.player.bytes), .bytes(deleted.device.bytes),
        ], in: "home")
      guard case .linked = try await one.link(ada, to: other, now: 7) else {
        Issue.record("it leads to nobody")
        return
      }
    }
  }

  @Test("bytes that only another database names are needed, wherever home says that the player is")
  func bytes() async throws {
    try await ShardLab.with { lab in
      let one = try await lab.server()
      let player = device(1)
      try await record(player, in: one, at: "two")
      try lab.run("UPDATE placement SET since = 0", in: "home")
      let known = try ContentKey("\(player.container)-known", of: player.container)
      let unknown = try ContentKey("\(player.container)-unknown", of: player.container)
      try lab.run(
        "INSERT INTO content_object (container, name, place, size, taken) VALUES ($1, $2, $2, 1, 1)",
        [.bytes(player.container.bytes), .bytes(Data(known.name.utf8))], in: "two")
      #expect(try await one.needed([known, unknown]) == [known])
      // Who is being moved may be in neither for a moment.
      try lab.run("UPDATE placement SET moving_to = shard", in: "home")
      #expect(try await one.needed([known, unknown]) == [known, unknown])
      try lab.run("DELETE FROM placement", in: "home")
      #expect(try await one.needed([known, unknown]) == [known])
    }
  }

  @Test("a server is ready as long as one of its databases answers")
  func ready() async throws {
    try await ShardLab.with { lab in
      let one = try await lab.server()
      try await one.probe()
      await one.home.pool.finish()
      try await one.probe()
      await one.shards["two"]?.pool.finish()
      await #expect(throws: (any Error).self) { try await one.probe() }
    }
  }

  // MARK: Backups

  @Test("while the databases are backed up nobody is moved, by a command or for a request")
  func held() async throws {
    try await ShardLab.with { lab in
      let one = try await lab.server()
      let (first, second) = (device(1), device(2))
      try await record(first, in: one, at: ShardBinding.home)
      try await record(second, in: one, at: "two")
      let home = try #require(lab.addresses[ShardBinding.home])
      let logger = Logger(label: "keepsake.shard")
      try await CloudShards.hold(minutes: 5, database: home, logger: logger)
      let shards = CloudShards(one)
      let drained = await #expect(throws: ServerError.self) {
        _ = try await shards.move(.init(from: "two", to: "home", count: nil, perSecond: nil)) { _ in }
      }
      #expect(drained?.code == .overloaded && drained?.message.contains("backed up") == true)
      let asked = await #expect(throws: APIError.self) {
        try await one.at(first.container, with: [second.container]) { _ in }
      }
      #expect(asked?.message == ShardMover.held.message)
      #expect(try await one.directory.placement(of: second.container)?.shard == "two")
      try await one.addGem(to: second.container, mark: 1)
      try await CloudShards.hold(minutes: 0, database: home, logger: logger)
      #expect(try await one.mover.move(familyOf: second.container, to: ShardBinding.home) == [second.container])
    }
  }
}
#endif
