#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// A cloud whose players are spread over two databases: who lives where, and what is once in the whole cloud.
@Suite(
  "Players in several databases", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct ShardTests: ShardScenes {
  /// Records devices of two players, one in each database.
  private func pair(in storage: ShardedStorage) async throws -> (home: DeviceIdentity, two: DeviceIdentity) {
    let (first, second) = (device(1), device(2))
    try await record(first, in: storage, at: ShardBinding.home)
    try await record(second, in: storage, at: "two")
    return (first, second)
  }

  // MARK: Places

  @Test("new players are spread evenly, and live on in home if they were there before there were shards")
  func places() async throws {
    try await ShardLab.with { lab in
      let old = try await TestDatabase.storage(at: #require(lab.addresses["home"]))
      for number in 0..<20 as Range<UInt64> {
        try await old.addGem(to: ContainerID(high: 8, low: number), mark: 1)
      }
      try await old.close()
      let server = try await lab.server()
      for number in 0..<20 as Range<UInt64> {
        let container = ContainerID(high: 8, low: number)
        #expect(try await server.gems(of: container) == 1)
        #expect(try await server.directory.shard(of: container) == ShardBinding.home)
      }
      var random = SystemRandomNumberGenerator()
      for _ in 0..<200 { try await server.addGem(to: ContainerID(using: &random), mark: 1) }
      let counts = try await CloudShards(server).list()
      #expect(counts.map(\.name) == ["home", "two"] && counts.map(\.players).reduce(0, +) == 220)
      // Some 100 of the new ones each.
      #expect(counts.allSatisfy { $0.players > 60 && $0.isOpen })
    }
  }

  @Test("a drained shard gets no new players, and the players who were there play on")
  func drained() async throws {
    try await ShardLab.with { lab in
      let (one, other) = (try await lab.server(), try await lab.server())
      let players = (0..<40 as Range<UInt64>).map { ContainerID(high: 9, low: $0) }
      for player in players { try await one.addGem(to: player, mark: 1) }
      let shards = CloudShards(one)
      try await shards.setOpen(false, "two")
      let moved = try await shards.move(.init(from: "two", to: nil, count: nil, perSecond: nil)) { _ in }
      #expect(moved.skipped == 0 && moved.moved > 0)
      for player in players { try await other.addGem(to: player, mark: 2) }
      for number in 0..<20 as Range<UInt64> { try await one.addGem(to: ContainerID(high: 10, low: number), mark: 1) }
      #expect(try await shards.list().map(\.players) == [60, 0])
      for player in players { #expect(try await one.gems(of: player) == 2) }
      let last = await #expect(throws: ServerError.self) { try await shards.setOpen(false, "home") }
      #expect(last?.code == .configuration)
      try await shards.setOpen(true, "two")
      #expect(try await shards.list().map(\.isOpen) == [true, true])
    }
  }

  // MARK: Databases

  @Test("a database under another name, of another cloud, or alone is refused, and so is a cloud that lacks one")
  func refused() async throws {
    try await ShardLab.with { lab in
      // A server of before, which doesn't know any shard.
      let old = try await TestDatabase.storage(at: #require(lab.addresses["home"]))
      try await TestDatabase.storage(at: #require(lab.addresses["two"])).close()
      // Later steps of the tables have kept out more than that.
      for name in ["home", "two"] { try lab.run("UPDATE schema_number SET oldest = 1", in: name) }
      let server = try await lab.server()
      for name in ["home", "two"] {
        // Programs of before don't start any more.
        let oldest = try lab.run("SELECT oldest FROM schema_number WHERE id = 1", in: name).first?.int(0)
        #expect(oldest == PostgreSQLSchema.shardsNumber)
      }
      let missing = await #expect(throws: ServerError.self) { _ = try await lab.open([]) }
      #expect(missing?.code == .configuration && missing?.message.contains("--shard two=") == true)
      let alone = await #expect(throws: ServerError.self) {
        _ = try await TestDatabase.storage(at: #require(lab.addresses["two"]))
      }
      #expect(alone?.message.contains("shard two") == true)
      let misnamed = await #expect(throws: ServerError.self) {
        _ = try await lab.open(["two", "three"], at: ["three": "two", "two": "two"])
      }
      #expect(misnamed?.message.contains("is the shard two") == true)
      let swapped = await #expect(throws: ServerError.self) {
        _ = try await lab.open(["two"], at: [ShardBinding.home: "two", "two": "home"])
      }
      #expect(swapped?.code == .configuration)
      try await ShardLab.with { second in
        _ = try await second.server()
        try second.run("UPDATE shard_self SET cloud = '\\x01' WHERE id = 1", in: "two")
        let foreign = await #expect(throws: ServerError.self) { _ = try await second.open(["two"]) }
        #expect(foreign?.message.contains("another cloud") == true)
      }
      // The old one finds out when it looks the next time.
      try await old.refresh()
      let late = await #expect(throws: ServerError.self) {
        try await old.addGem(to: ContainerID(high: 1, low: 1), mark: 1)
      }
      #expect(late?.message.contains("shard two") == true)
      try await old.close()
      try await server.addGem(to: ContainerID(high: 1, low: 1), mark: 1)
    }
  }

  @Test("a directory that was set back to a backup makes no empty player of one who was moved since")
  func setBack() async throws {
    try await ShardLab.with { lab in
      let (one, other) = (try await lab.server(), try await lab.server())
      let container = device(1).container
      try await one.addGem(to: container, mark: 1)
      let from = try await one.directory.shard(of: container)
      let before = try #require(try await one.directory.placement(of: container))
      _ = try await one.mover.move(familyOf: container, to: from == "two" ? ShardBinding.home : "two")
      try lab.run(
        "UPDATE placement SET shard = $1, generation = $2, left_at = NULL", [.name(from), .int(before.generation)],
        in: "home")
      let error = await #expect(throws: ServerError.self) { _ = try await other.gems(of: container) }
      #expect(error?.code == .damaged)
    }
  }

  // MARK: Once in the whole cloud

  @Test("a receipt that is posted for players in both databases at the same time is paid to one of them")
  func receipts() async throws {
    try await ShardLab.with { lab in
      let (one, other) = (try await lab.server(), try await lab.server())
      let players = try await pair(in: one)
      for number in 0..<20 as Range<UInt64> {
        async let home = pay(number, to: players.home.container, by: one)
        async let two = pay(number, to: players.two.container, by: other)
        let paid = try await [home, two]
        #expect(paid.filter(\.self).count == 1, "\(number): \(paid)")
      }
      let gems = try await [one.gems(of: players.home.container), one.gems(of: players.two.container)]
      #expect(gems.reduce(0, +) == 20)
      // A claim that a server has left which ended before it paid doesn't keep the player from it.
      try lab.run(
        "INSERT INTO receipt (app, receipt, container, operation) VALUES ($1, $2, $3, $4)",
        [
          .bytes(Data("app".utf8)), .bytes(ContentHash(of: Data("99".utf8)).bytes),
          .bytes(players.two.container.bytes), .bytes(Data([1])),
        ], in: "home")
      #expect(try await pay(99, to: players.two.container, by: one))
      #expect(try await !pay(99, to: players.home.container, by: other))
      #expect(try await one.gems(of: players.two.container) == gems[1] + 1)
    }
  }

  @Test("an identity that is linked to players in both databases at the same time leads to one of them")
  func identities() async throws {
    try await ShardLab.with { lab in
      let (one, other) = (try await lab.server(), try await lab.server())
      let players = try await pair(in: one)
      for number in 0..<3 as Range<UInt64> {
        let subject = "ada \(number)"
        _ = try await one.mover.move(familyOf: players.home.container, to: ShardBinding.home)
        _ = try await one.mover.move(familyOf: players.two.container, to: "two")
        async let home = one.link(identity(subject, proof: 10 * number), to: players.home, now: 5)
        async let two = other.link(identity(subject, proof: 10 * number + 1), to: players.two, now: 5)
        let links = try await [home, two]
        #expect(links.filter { $0 == .taken }.count == 1, "\(links)")
        let winner = links[0] == .taken ? players.two : players.home
        let loser = links[0] == .taken ? players.home : players.two
        // Whoever signs in comes to the one, from wherever.
        let asking = device(100 + number)
        try await record(asking, in: other)
        let new = NewDevice(device: DeviceID(high: 5, low: number), name: "new")
        let signIn = try await other.signIn(
          with: identity(subject, proof: 10 * number + 2), by: asking, as: new, now: 6)
        #expect(
          signIn
            == .joined(
              DeviceIdentity(
                device: new.device, player: winner.player, container: winner.container, app: Self.app)))
        // A proof is good for one device in the whole cloud.
        #expect(
          try await one.signIn(
            with: identity(subject, proof: 10 * number + 2), by: loser, as: new, now: 6) == .used)
        #expect(try await one.unlink(identity(subject, proof: 0).id, by: winner))
        #expect(
          try await one.signIn(with: identity(subject, proof: 10 * number + 3), by: loser, as: new, now: 6) == .unknown)
        guard case .linked = try await one.link(identity(subject, proof: 10 * number + 4), to: loser, now: 7) else {
          Issue.record("it doesn't lead anywhere else")
          return
        }
        #expect(try await one.unlink(identity(subject, proof: 0).id, by: loser))
      }
    }
  }

  @Test("a link that ended half-way, or went with its device, keeps nobody else from the identity")
  func halfLinked() async throws {
    try await ShardLab.with { lab in
      let one = try await lab.server()
      let players = try await pair(in: one)
      let ada = identity("ada", proof: 1)
      let values: [PostgreSQLValue] = [
        .bytes(ada.id.bytes), .bytes(players.two.container.bytes), .bytes(Self.app.bytes),
        .bytes(players.two.player.bytes), .bytes(Data("login".utf8)), .bytes(players.two.device.bytes), .int(5),
      ]
      try lab.run(
        "INSERT INTO identity (id, container, app, player, issuer, device, created) VALUES ($1,$2,$3,$4,$5,$6,$7)",
        values, in: "home")
      let new = NewDevice(device: DeviceID(high: 5, low: 1), name: "new")
      #expect(try await one.signIn(with: identity("ada", proof: 2), by: players.home, as: new, now: 6) == .unknown)
      // Nobody is moved for an identity that leads nowhere.
      #expect(try await one.directory.placement(of: players.home.container)?.shard == ShardBinding.home)
      guard case .linked = try await one.link(ada, to: players.home, now: 7) else {
        Issue.record("a link that ended half-way keeps others from the identity")
        return
      }
      #expect(try await one.link(identity("ada", proof: 3), to: players.two, now: 8) == .taken)
      #expect(try await one.identities(of: players.home.container).map(\.id) == [ada.id])
    }
  }

  @Test("a proof that a removed device shows is still good for another one", arguments: [ShardBinding.home, "two"])
  func shownByRemoved(at shard: String) async throws {
    try await ShardLab.with { lab in
      let server = try await lab.server()
      let players = try await pair(in: server)
      let player = shard == ShardBinding.home ? players.home : players.two
      var removed = player
      removed.device = DeviceID(high: 6, low: 1)
      try await record(removed, in: server)
      guard case .linked = try await server.link(identity("ada", proof: 1), to: player, now: 6) else {
        Issue.record("the identity leads to nobody else")
        return
      }
      #expect(try await server.retire(removed.device, of: player.container, now: 7) != nil)
      let new = NewDevice(device: DeviceID(high: 5, low: 1), name: "new")
      let asking = device(100)
      try await record(asking, in: server)
      let signedIn = await #expect(throws: APIError.self) {
        try await server.signIn(with: identity("ada", proof: 2), by: removed, as: new, now: 8)
      }
      #expect(signedIn?.code == APIError.retired.code)
      guard case .joined = try await server.signIn(with: identity("ada", proof: 2), by: asking, as: new, now: 8) else {
        Issue.record("the removed device has used the proof")
        return
      }
      let linked = await #expect(throws: APIError.self) {
        try await server.link(identity("ada", proof: 3), to: removed, now: 9)
      }
      #expect(linked?.code == APIError.retired.code)
      guard case .linked = try await server.link(identity("ada", proof: 3), to: player, now: 9) else {
        Issue.record("the removed device has used the proof")
        return
      }
      // What has come of a proof before the removal counts.
      #expect(try await server.signIn(with: identity("ada", proof: 1), by: asking, as: new, now: 9) == .used)
    }
  }

  @Test("of two devices that use a code at the same time at different servers one is let in, wherever its player is")
  func codes() async throws {
    try await ShardLab.with { lab in
      let (one, other) = (try await lab.server(), try await lab.server())
      let players = try await pair(in: one)
      for (number, owner) in [players.home, players.two].enumerated() {
        let code = Data([UInt8(number), 7])
        try await one.putPairing(
          Pairing(
            code: code, scope: Self.app, player: owner.player, container: owner.container, expiresMilliseconds: 100),
          for: owner.device, now: 5)
        let right = EntryRight(Self.app)
        async let first = one.join(code, by: right, as: DeviceID(high: 6, low: 1), name: "new", now: 6)
        async let second = other.join(code, by: right, as: DeviceID(high: 6, low: 2), name: "new", now: 6)
        let joined = try await [first, second].compactMap(\.self)
        #expect(joined.map(\.container) == [owner.container])
        let recovery = Recovery(
          code: ContentHash(of: Data("old \(number)".utf8)), next: ContentHash(of: Data("new \(number)".utf8)),
          right: right, name: "new")
        try await one.putRecovery(recovery.code, by: owner, scope: Self.app, now: 5)
        await #expect(throws: APIError.self) {
          try await other.putRecovery(recovery.code, by: device(number == 0 ? 2 : 1), scope: Self.app, now: 5)
        }
        let recovered = try await other.recover(recovery, as: DeviceID(high: 6, low: 3), now: 6) { _ in true }
        let repeated = try await one.recover(recovery, as: DeviceID(high: 6, low: 4), now: 6) { _ in true }
        #expect(recovered?.container == owner.container && repeated == recovered)
        #expect(try await one.devices(of: owner.container).count == 3)
      }
      let nobody = try await one.join(
        Data([9]), by: EntryRight(Self.app), as: DeviceID(high: 6, low: 9), name: "", now: 6)
      #expect(nobody == nil)
    }
  }

  // MARK: Families

  @Test("players who share a container come to live in one database, and are moved together")
  func families() async throws {
    try await ShardLab.with { lab in
      let (one, other) = (try await lab.server(), try await lab.server())
      let players = try await pair(in: one)
      let grant = SharedGrant(app: Self.app, share: AppID(word: 7), access: .readWrite)
      let right = EntryRight(grant, of: players.two)
      let shared = try await one.registerShared(device(11, grant.id), named: "", by: right, now: 5)
      #expect(try await one.directory.shard(of: shared.container) == "two")
      try await one.addGem(to: shared.container, mark: 1)
      let code = Data([7, 7])
      try await one.putPairing(
        Pairing(
          code: code, scope: grant.share, player: shared.player, container: shared.container,
          expiresMilliseconds: 100), for: shared.device, now: 5)
      let joined = try await other.join(
        code, by: EntryRight(grant, of: players.home), as: DeviceID(high: 6, low: 1), name: "", now: 6)
      #expect(joined?.container == shared.container)
      let family = [players.home.container, players.two.container, shared.container].sorted()
      for container in family {
        one.directory.forget(container)
        #expect(try await one.directory.shard(of: container) == "two")
      }
      #expect(try await one.mover.move(familyOf: players.home.container, to: ShardBinding.home) == family)
      #expect(try await other.gems(of: shared.container) == 1)
      #expect(try await other.sharedContainers(of: players.two.container).map(\.container) == [shared.container])
      for container in family { #expect(try await one.directory.placement(of: container)?.shard == ShardBinding.home) }
    }
  }
}
#endif
