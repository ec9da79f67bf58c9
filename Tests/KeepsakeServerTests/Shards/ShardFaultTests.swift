#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import ServiceLifecycle
import TestSupport
import Testing

@testable import KeepsakeServer

/// Players in several databases, of which servers know something old, who are deleted while they are moved, or whom
/// nobody can move.
@Suite(
  "Faults around players in several databases", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct ShardFaultTests: ShardScenes {
  private func other(than name: String) -> String { name == "two" ? ShardBinding.home : "two" }

  // MARK: Remembered places

  @Test(
    "codes, identities and ids lead to a player whom another process has moved away from where a server remembers",
    arguments: [ShardBinding.home, "two"])
  func movedSince(from: String) async throws {
    try await ShardLab.with { lab in
      let (one, server) = (try await lab.server(), try await lab.server())
      let (player, asking) = (device(1), device(2))
      try await record(player, in: one, at: from)
      try await record(asking, in: one, at: ShardBinding.home)
      let right = EntryRight(Self.app)
      let recovery = Recovery(
        code: ContentHash(of: Data("old".utf8)), next: ContentHash(of: Data("new".utf8)), right: right, name: "new")
      try await one.putRecovery(recovery.code, by: player, scope: Self.app, now: 5)
      let code = Data([1, 2])
      try await one.putPairing(
        Pairing(
          code: code, scope: Self.app, player: player.player, container: player.container,
          expiresMilliseconds: 100), for: player.device, now: 5)
      guard case .linked = try await one.link(identity("ada", proof: 1), to: player, now: 5) else {
        Issue.record("it leads to nobody else")
        return
      }
      // Moves the player away from where the server has just seen the player.
      func movedAway<Result>(_ body: () async throws -> Result) async throws -> Result {
        _ = try await one.mover.move(familyOf: player.container, to: from)
        server.directory.forget(player.container)
        #expect(try await server.directory.shard(of: player.container) == from)
        _ = try await one.mover.move(familyOf: player.container, to: self.other(than: from))
        return try await body()
      }
      let joined = try await movedAway {
        try await server.join(code, by: right, as: DeviceID(high: 6, low: 1), name: "new", now: 6)
      }
      #expect(joined?.container == player.container)
      let recovered = try await movedAway {
        try await server.recover(recovery, as: DeviceID(high: 6, low: 2), now: 6) { _ in true }
      }
      #expect(recovered?.container == player.container)
      for query in [.player(player.player), .device(player.device)] as [PlayerQuery] {
        #expect(try await movedAway { try await server.places(query) }.map(\.container) == [player.container])
      }
      let before = try await one.directory.placement(of: asking.container)
      let signIn = try await movedAway {
        try await server.signIn(
          with: identity("ada", proof: 2), by: asking, as: NewDevice(device: DeviceID(high: 6, low: 3), name: "new"),
          now: 6)
      }
      guard case .joined(let identity) = signIn else {
        Issue.record("\(signIn)")
        return
      }
      #expect(identity.container == player.container)
      // Who asks is moved to where the player is, and to no other place.
      let moves: Int64 = from == ShardBinding.home ? 1 : 0
      let after = try await one.directory.placement(of: asking.container)
      #expect(after?.generation == (before?.generation ?? 0) + moves)
    }
  }

  @Test("a shared container comes to live beside its player, also if another process has just moved the player")
  func sharedSince() async throws {
    try await ShardLab.with { lab in
      let (one, server) = (try await lab.server(), try await lab.server())
      let player = device(1)
      try await record(player, in: one, at: "two")
      #expect(try await server.directory.shard(of: player.container) == "two")
      _ = try await one.mover.move(familyOf: player.container, to: ShardBinding.home)
      let grant = SharedGrant(app: Self.app, share: AppID(word: 7), access: .readWrite)
      let shared = try await server.registerShared(
        device(11, grant.id), named: "", by: EntryRight(grant, of: player), now: 5)
      #expect(shared.container == device(11).container)
      #expect(try await one.directory.placement(of: shared.container)?.shard == ShardBinding.home)
      #expect(try await one.sharedContainers(of: player.container).map(\.container) == [shared.container])
    }
  }

  // MARK: Deletions

  @Test(
    "of a player who is deleted while a mover stands still nothing comes again when it goes on",
    arguments: [.fenced, .copied, .verified, .decided, .live] as [ShardMover.Step], [ShardBinding.home, "two"])
  func deleted(at step: ShardMover.Step, from: String) async throws {
    try await ShardLab.with { lab in
      let (one, other) = (try await lab.server(), try await lab.server())
      let player = device(1)
      try await record(player, in: one, at: from)
      try await one.addGem(to: player.container, mark: 1)
      let address = try #require(lab.addresses[ShardBinding.home])
      let isDeleted = Shared(false)
      var mover = one.mover
      mover.leasePause = .seconds(3_600)
      mover.reached = { reached in
        guard reached == step, !isDeleted.value else { return }
        isDeleted.value = true
        // Whoever comes undoes what isn't decided.
        let connection = try PostgreSQLConnection(TestDatabase.settings(address))
        _ = try connection.run([PostgreSQLStatement("UPDATE placement SET since = 0")])
        _ = try await other.delete(player.container, now: 6)
      }
      _ = try await mover.move(familyOf: player.container, to: self.other(than: from))
      #expect(isDeleted.value)
      try lab.abandonMoves()
      try await other.lookAfter()
      #expect(try lab.traces(of: player.container).isEmpty)
      for server in [one, other] {
        let error = await #expect(throws: APIError.self) { try await server.addGem(to: player.container, mark: 2) }
        #expect(error?.code == .retired)
      }
    }
  }

  // MARK: Moves by requests

  @Test("nobody is moved for a code that has expired or a proof that was used, nor by one request after the other")
  func requested() async throws {
    try await ShardLab.with { lab in
      let server = try await lab.server()
      let (far, near, asking) = (device(1), device(2), device(3))
      for device in [far, near, asking] { try await record(device, in: server, at: ShardBinding.home) }
      let grant = SharedGrant(app: Self.app, share: AppID(word: 7), access: .readWrite)
      let shared = try await server.registerShared(
        device(11, grant.id), named: "", by: EntryRight(grant, of: far), now: 5)
      for (subject, player) in [("ada", far), ("bob", near)] {
        guard case .linked = try await server.link(identity(subject, proof: player.device.low), to: player, now: 5)
        else {
          Issue.record("it leads to nobody else")
          return
        }
      }
      _ = try await server.mover.move(familyOf: far.container, to: "two")
      func whereabouts() async throws -> String? { try await server.directory.placement(of: asking.container)?.shard }
      let code = Data([7, 7])
      try await server.putPairing(
        Pairing(
          code: code, scope: grant.share, player: shared.player, container: shared.container,
          expiresMilliseconds: 6), for: shared.device, now: 5)
      let late = try await server.join(
        code, by: EntryRight(grant, of: asking), as: DeviceID(high: 6, low: 1), name: "", now: 7)
      #expect(late == nil)
      #expect(try await whereabouts() == ShardBinding.home)
      let new = NewDevice(device: DeviceID(high: 6, low: 2), name: "new")
      let used = try await server.signIn(
        with: identity("ada", proof: far.device.low), by: asking, as: new, now: 7)
      #expect(used == .used)
      #expect(try await whereabouts() == ShardBinding.home)
      guard case .joined = try await server.signIn(with: identity("ada", proof: 20), by: asking, as: new, now: 7)
      else {
        Issue.record("the asking player is moved once")
        return
      }
      #expect(try await whereabouts() == "two")
      let error = await #expect(throws: APIError.self) {
        _ = try await server.signIn(with: identity("bob", proof: 21), by: asking, as: new, now: 7)
      }
      #expect(error?.code == ShardMover.busy.code && error?.retryAfterSeconds == 60)
      #expect(try await whereabouts() == "two")
      // A command moves the player at any time.
      #expect(try await server.mover.move(familyOf: asking.container, to: ShardBinding.home) == [asking.container])
    }
  }

  // MARK: Recovery codes

  @Test("a recovery code that players in both databases put at the same time is one player's, and moves go on")
  func sameCode() async throws {
    try await ShardLab.with { lab in
      let (one, other) = (try await lab.server(), try await lab.server())
      let players = [device(1), device(2)]
      try await record(players[0], in: one, at: ShardBinding.home)
      try await record(players[1], in: one, at: "two")
      @Sendable func put(_ code: ContentHash, by device: DeviceIdentity, _ server: ShardedStorage) async throws -> Bool
      {
        do {
          try await server.putRecovery(code, by: device, scope: Self.app, now: 5)
          return true
        } catch let error as APIError where error.code == APIError.codeTaken.code {
          return false
        }
      }
      for number in 0..<20 {
        let code = ContentHash(of: Data("code \(number)".utf8))
        async let first = put(code, by: players[0], one)
        async let second = put(code, by: players[1], other)
        #expect(try await [first, second].filter(\.self).count == 1, "\(number)")
      }
      let move = CloudShards.Order(from: "two", to: ShardBinding.home, count: nil, perSecond: nil)
      let done = try await CloudShards(one).move(move) { _ in }
      #expect(done.moved == 1 && done.skipped == 0)
    }
  }

  // MARK: Commands

  @Test("a player who can't be moved is named, and keeps nobody else from it")
  func unmovable() async throws {
    try await ShardLab.with { lab in
      let server = try await lab.server()
      for number in 1...12 as ClosedRange<UInt64> { try await record(device(number), in: server, at: "two") }
      try await record(device(20), in: server, at: ShardBinding.home)
      // As of a time when two players could get the same code.
      for (number, name) in [(5, "two"), (20, ShardBinding.home)] as [(UInt64, String)] {
        let device = device(number)
        try lab.run(
          "INSERT INTO recovery (container, app, player, code, device, created) VALUES ($1, $2, $3, $4, $5, 5)",
          [
            .bytes(device.container.bytes), .bytes(Self.app.bytes), .bytes(device.player.bytes), .bytes(Data([1])),
            .bytes(device.device.bytes),
          ], in: name)
      }
      let drained = try await CloudShards(server).drain("two", perSecond: nil, pause: .zero) { _ in }
      #expect(drained.moved == 11 && drained.skipped == 1)
      #expect(drained.refused.map(\.container) == [device(5).container])
      #expect(try await server.directory.shard(of: device(5).container) == "two")
      #expect(try await server.devices(of: device(5).container).count == 1)
      #expect(try await CloudShards(server).list().map(\.players) == [12, 1])
    }
  }

  @Test("a drain goes on until nobody is left, also of those who came, or came back, behind it")
  func drain() async throws {
    try await ShardLab.with { lab in
      let server = try await lab.server()
      for number in 1...6 as ClosedRange<UInt64> { try await record(device(number), in: server, at: "two") }
      let (late, left) = (ContainerID(high: 0, low: 1), device(3))
      var mover = server.mover
      mover.reached = { if $0 == .fenced { throw ShardMover.Killed() } }
      let killed = mover
      await #expect(throws: ShardMover.Killed.self) {
        _ = try await killed.move(familyOf: left.container, to: ShardBinding.home)
      }
      try lab.abandonMoves()
      var hasCome = false
      let drained = try await CloudShards(server).drain("two", perSecond: nil, pause: .zero) { progress in
        guard !hasCome, progress.moved > 0 else { return }
        hasCome = true
        // At a server that hasn't heard of it, before those that were looked at.
        try lab.run(
          "INSERT INTO container (id, epoch, seq, mark, revision, used) VALUES ($1, 0, 0, 0, 1, 0)",
          [.bytes(late.bytes)], in: "two")
        try lab.run(
          "INSERT INTO placement (container, shard, generation, since) VALUES ($1, $2, 0, 0)",
          [.bytes(late.bytes), .name("two")], in: ShardBinding.home)
      }
      #expect(hasCome && drained.moved == 7 && drained.skipped == 0)
      #expect(try await CloudShards(server).list().map(\.players) == [7, 0])
    }
  }

  @Test("a player who has left a shard in the meantime isn't moved once more")
  func hasLeft() async throws {
    try await ShardLab.with { lab in
      let server = try await lab.server()
      try await record(device(1), in: server, at: ShardBinding.home)
      let moved = try await server.mover.move(
        familyOf: device(1).container, from: "three", to: "two")
      #expect(moved.isEmpty)
      #expect(try await server.directory.placement(of: device(1).container)?.shard == ShardBinding.home)
    }
  }

  @Test("a shard is closed and opened by home alone, and one that isn't of the cloud is refused")
  func closed() async throws {
    try await ShardLab.with { lab in
      let server = try await lab.server()
      let home = try #require(lab.addresses[ShardBinding.home])
      let logger = Logger(label: "keepsake.shard")
      try await CloudShards.setOpen(false, "two", database: home, logger: logger)
      #expect(try await server.directory.shards() == ["home": true, "two": false])
      for name in ["home", "three"] {
        let error = await #expect(throws: ServerError.self) {
          try await CloudShards.setOpen(false, name, database: home, logger: logger)
        }
        #expect(error?.code == .configuration)
      }
      try await CloudShards.setOpen(true, "two", database: home, logger: logger)
      #expect(try await server.directory.shards() == ["home": true, "two": true])
    }
  }

  // MARK: Databases that are down

  @Test("a database that can't be read keeps no server from knowing what is in the others")
  func down() async throws {
    try await ShardLab.with { lab in
      let (one, server) = (try await lab.server(), try await lab.server())
      let player = device(1)
      try await record(player, in: one, at: ShardBinding.home)
      #expect(server.directory.open == [ShardBinding.home, "two"])
      let events = EventHub()
      let watch = try #require(server.watching(events, heartbeatSeconds: 1) as? PostgreSQLWatch)
      let stream = try events.subscribe(player.device, to: player.container)
      // As good as down, for what is looked at each second.
      for name in ["ban", "container"] { try lab.run("ALTER TABLE \(name) RENAME TO away_\(name)", in: "two") }
      try await CloudShards.setOpen(
        false, "two", database: #require(lab.addresses[ShardBinding.home]), logger: Logger(label: "keepsake.shard"))
      let entry = AuditEntry(atMilliseconds: 5, key: "k", name: "ada", act: "player.ban", request: "r")
      try await one.setBan(Ban(reason: "x", sinceMilliseconds: 1), of: player.container, auditing: entry)
      try await one.addGem(to: player.container, mark: 1)
      let watching = Task { try await watch.run() }
      for await notice in stream.notices where notice.seq == 1 { break }
      while server.ban(of: player.container) == nil || server.directory.open.contains("two") {
        try await Task.sleep(for: .milliseconds(10))
      }
      watching.cancel()
      try await watching.value
      for name in ["ban", "container"] { try lab.run("ALTER TABLE away_\(name) RENAME TO \(name)", in: "two") }
    }
  }

  // MARK: Databases that were set back

  @Test("players who came after home's backup are found where they live, also beside whom they share something with")
  func newerThanHome() async throws {
    try await ShardLab.with { lab in
      let one = try await lab.server()
      let player = device(1)
      try await record(player, in: one, at: "two")
      let grant = SharedGrant(app: Self.app, share: AppID(word: 7), access: .readWrite)
      let shared = try await one.registerShared(
        device(11, grant.id), named: "", by: EntryRight(grant, of: player), now: 5)
      try await one.addGem(to: shared.container, mark: 1)
      try lab.run("DELETE FROM placement WHERE container = $1", [.bytes(shared.container.bytes)], in: "home")
      try await CloudShards(one).setOpen(false, "two")
      let other = try await lab.server()
      #expect(try await other.gems(of: shared.container) == 1)
      let family = [player.container, shared.container]
      #expect(try await other.mover.move(familyOf: shared.container, to: ShardBinding.home) == family)
      try await other.addGem(to: shared.container, mark: 2)
      #expect(try await other.gems(of: shared.container) == 2)
    }
  }

  @Test("players who came with a cloud of one database live on in home, also if they have nothing but a device there")
  func withoutContainer() async throws {
    try await ShardLab.with { lab in
      try await TestDatabase.storage(at: #require(lab.addresses[ShardBinding.home])).close()
      for number in 1...20 as ClosedRange<UInt64> {
        let device = device(number)
        try lab.run(
          "INSERT INTO device (container, id, player, app, created, seen) VALUES ($1, $2, $3, $4, 5, 5)",
          [
            .bytes(device.container.bytes), .bytes(device.device.bytes), .bytes(device.player.bytes),
            .bytes(device.app.bytes),
          ], in: ShardBinding.home)
      }
      let server = try await lab.server()
      for number in 1...20 as ClosedRange<UInt64> {
        #expect(try await server.devices(of: device(number).container).count == 1)
        try await server.addGem(to: device(number).container, mark: 1)
        #expect(try await server.directory.shard(of: device(number).container) == ShardBinding.home)
      }
    }
  }

  @Test("a player who was moved to a database that was set back since doesn't begin anew there")
  func shardSetBack() async throws {
    try await ShardLab.with { lab in
      let one = try await lab.server()
      let (player, newer) = (device(1), device(2))
      for device in [player, newer] { try await record(device, in: one, at: ShardBinding.home) }
      try await one.addGem(to: player.container, mark: 1)
      _ = try await one.mover.move(familyOf: player.container, to: "two")
      for (table, column) in [("container", "id"), ("fence", "container"), ("device", "container")] {
        try lab.run("DELETE FROM \(table) WHERE \(column) = $1", [.bytes(player.container.bytes)], in: "two")
      }
      let other = try await lab.server()
      let error = await #expect(throws: ServerError.self) { try await other.addGem(to: player.container, mark: 2) }
      #expect(error?.code == .damaged)
      try await other.addGem(to: newer.container, mark: 1)
      #expect(
        try lab.run("SELECT 1::bigint FROM container WHERE id = $1", [.bytes(player.container.bytes)], in: "two")
          .first == nil)
    }
  }

  // MARK: What is unfinished

  @Test("players of whom something is left that nobody can remove keep no other one from being mended")
  func starved() async throws {
    try await ShardLab.with { lab in
      let server = try await lab.server()
      // They live in both databases, as if home had been set back; each has waited longer than the one behind them.
      let connection = try lab.connect(ShardBinding.home)
      for number in 0..<100 as Range<UInt64> {
        let id = PostgreSQLValue.bytes(ContainerID(high: 8, low: number).bytes)
        let living = PostgreSQLStatement(
          "INSERT INTO container (id, epoch, seq, mark, revision, used) VALUES ($1, 0, 0, 0, 1, 0)", [id])
        _ = try connection.run([
          living,
          PostgreSQLStatement(
            """
            INSERT INTO placement (container, shard, generation, since, left_at)
            VALUES ($1, 'home'::text::bytea, 1, 0, 'two'::text::bytea)
            """, [id]),
        ])
        try lab.run(living.sql, living.values, in: "two")
        for name in ["home", "two"] {
          try lab.run("INSERT INTO fence (container, generation, whole) VALUES ($1, 9, 9)", [id], in: name)
        }
      }
      let player = device(1)
      try await record(player, in: server, at: ShardBinding.home)
      var mover = server.mover
      mover.reached = { if $0 == .live { throw ShardMover.Killed() } }
      let killed = mover
      await #expect(throws: ShardMover.Killed.self) {
        _ = try await killed.move(familyOf: player.container, to: "two")
      }
      try lab.run("UPDATE placement SET since = 1 WHERE container = $1", [.bytes(player.container.bytes)], in: "home")
      for _ in 0..<2 { try await server.lookAfter() }
      #expect(try await server.directory.placement(of: player.container)?.leftAt == nil)
      #expect(try await server.directory.placement(of: ContainerID(high: 8, low: 1))?.leftAt == "two")
    }
  }

  @Test("a deletion that takes long isn't taken for one that nobody goes on with")
  func slowDeletion() async throws {
    try await ShardLab.with { lab in
      let server = try await lab.server()
      let player = device(1)
      try await record(player, in: server, at: ShardBinding.home)
      try await server.directory.setDeleting(true, [player.container])
      for (age, isDeleting) in [(60_000, true), (3_600_000, false)] {
        try lab.run("UPDATE placement SET deleting = \(DatabaseClock.now) - \(age)", in: ShardBinding.home)
        try await server.lookAfter()
        #expect(try await server.directory.placement(of: player.container)?.isDeleting == isDeleting)
      }
      #expect(try await server.devices(of: player.container).count == 1)
    }
  }

  @Test("a server that ended before a new shard refused older programs has the next one see to that")
  func refusingOlder() async throws {
    try await ShardLab.with { lab in
      _ = try await lab.server()
      try lab.run("UPDATE schema_number SET oldest = 1", in: "two")
      _ = try await lab.server()
      let oldest = try lab.run("SELECT oldest FROM schema_number WHERE id = 1", in: "two").first?.int(0)
      #expect(oldest == PostgreSQLSchema.shardsNumber)
    }
  }
}
#endif
