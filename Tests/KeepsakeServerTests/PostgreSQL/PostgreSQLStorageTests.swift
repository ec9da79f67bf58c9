#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// What can only happen where several servers use a database, and connections to it break.
@Suite(
  "A cloud in PostgreSQL", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct PostgreSQLStorageTests {
  private static let day: Int64 = 24 * 3_600_000
  private let container = ContainerID(high: 1, low: 1)

  /// Runs `body` with the storage of each of two servers, and a connection beside them.
  private func with(
    now: Int64 = 5, _ body: (PostgreSQLStorage, PostgreSQLStorage, PostgreSQLConnection) async throws -> Void
  ) async throws {
    let name = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    let address = try TestDatabase.address(ofSchema: name)
    let one = try await TestDatabase.storage(at: address, clock: { now })
    let other = try await TestDatabase.storage(at: address, clock: { now })
    do {
      try await body(one, other, try PostgreSQLConnection(TestDatabase.settings(address)))
    } catch {
      try await one.close()
      try await other.close()
      throw error
    }
    try await one.close()
    try await other.close()
    try TestDatabase.drop(schema: name)
  }

  private func device(_ number: UInt64) -> DeviceIdentity {
    DeviceIdentity(
      device: DeviceID(high: 2, low: number), player: PlayerID(high: 3, low: 3), container: container,
      app: AppID(ofKey: "a game"))
  }

  private func record(_ number: UInt64, in storage: PostgreSQLStorage) async throws {
    try await storage.recordDevice(
      DeviceRecord(identity: device(number), name: "A", createdMilliseconds: 5, seenMilliseconds: 5))
  }

  // MARK: Sweeping

  @Test("an offer is swept as a whole, a day after its newest part, and expired codes and proofs are")
  func sweptOffers() async throws {
    try await with { one, other, connection in
      @Sendable func send(_ number: Int, at now: Int64) async throws -> ExchangeOutcome? {
        try await one.decide(on: container) { storage in
          let cell = CellUpdate(
            key: CellKey(collection: "progress", key: "\(number)"), state: CellState(value: .max(.int(5))))
          var random = SystemRandomNumberGenerator()
          let request = ExchangeRequest(
            cursor: .start, cells: [cell], limit: 10,
            part: OfferPart(offer: OfferID(high: 7, low: 7), number: number, isLast: false))
          return try CloudAcceptance.exchange(request, now: now, in: &storage, using: &random).outcome
        }
      }
      #expect(try await send(0, at: 5) == .held(parts: 1))
      #expect(try await send(1, at: Self.day) == .held(parts: 2))
      try await record(1, in: one)
      try await one.putPairing(
        Pairing(
          code: Data([1]), scope: AppID(ofKey: "a game"), player: device(1).player, container: container,
          expiresMilliseconds: Self.day),
        for: device(1).device, now: 5)
      try await other.sweep(now: Self.day + 10)
      #expect(try await one.look(at: container) { try $0.heldOffers() }.map(\.parts) == [2])
      #expect(try connection.run([PostgreSQLStatement("SELECT 1::bigint FROM pairing")])[0].first == nil)
      try await other.sweep(now: 2 * Self.day + 10)
      #expect(try await one.look(at: container) { try $0.heldOffers() }.isEmpty)
    }
  }

  @Test("of several servers one looks for what to prune, and another one if that one doesn't come again")
  func pruningTurn() async throws {
    try await with { one, other, connection in
      #expect(try await one.claimPruning(seconds: 900))
      #expect(try await !other.claimPruning(seconds: 900))
      #expect(try await !one.claimPruning(seconds: 900))
      _ = try connection.run([PostgreSQLStatement("UPDATE number SET value = value - 900000 WHERE name = 'pruning'")])
      #expect(try await other.claimPruning(seconds: 900))
      #expect(try await !one.claimPruning(seconds: 900))
    }
  }

  @Test("a page of what to prune, or of banks, is of rows that were looked at, also where few of them are wanted")
  func pages() async throws {
    try await with { one, _, connection in
      // Players who live elsewhere, and players without a bank.
      _ = try connection.run([
        PostgreSQLStatement(
          """
          INSERT INTO container (id, epoch, seq, mark, revision, used)
          SELECT decode(lpad(to_hex(number), 32, '0'), 'hex'), 0, 1, 0, CASE WHEN number <= 300 THEN -1 ELSE 1 END, 0
          FROM generate_series(1, 600) AS number
          """)
      ])
      var place: PrunablePage.Place?
      var (sizes, found): ([Int], Int) = ([], 0)
      repeat {
        let page = try await one.containersToPrune(after: place, now: 1_000_000_000, limit: 150)
        (place, found) = (page.next, found + page.containers.count)
        sizes.append(page.containers.count)
      } while place != nil
      #expect(sizes == [0, 0, 150, 150, 0] && found == 300)
      var (bank, pages): (ContainerID?, Int) = (nil, 0)
      repeat {
        bank = try await one.frozenBanks(after: bank, epoch: 5).next
        pages += 1
      } while bank != nil
      #expect(pages == 600 / BankPage.size + 1)
    }
  }

  // MARK: Epochs

  @Test("a database that is set back under a running server still begins a new epoch, once, and later than all before")
  func setBack() async throws {
    try await with(now: 1_000) { one, other, connection in
      let first = try #require(try await one.beginEpoch(after: 0, now: 1_000_000))
      try await other.refresh()
      #expect(other.bankEpoch == first)
      // The backup is of before.
      _ = try connection.run([
        PostgreSQLStatement("DELETE FROM number WHERE name = $1", [.bytes(Data("bankEpoch".utf8))])
      ])
      let second = try #require(try await one.beginEpoch(after: first, now: 5))
      #expect(second > first)
      #expect(try await other.beginEpoch(after: first, now: 5) == nil)
      #expect(other.bankEpoch == second)
    }
  }

  // MARK: Streams

  @Test("who hears nothing looks: streams learn of changes, and end with their devices and players")
  func looking() async throws {
    try await with { one, other, _ in
      for number in 1...2 as ClosedRange<UInt64> { try await record(number, in: one) }
      let events = EventHub()
      let watch = PostgreSQLWatch(other, events, heartbeatSeconds: 15)
      let removed = try events.subscribe(device(1).device, to: container)
      let kept = try events.subscribe(device(2).device, to: container)
      try await one.addGem(to: container, mark: 1)
      try await watch.look(1)
      for stream in [removed, kept] {
        var notices = stream.notices.makeAsyncIterator()
        #expect(await notices.next()?.seq == 1)
      }
      _ = try await one.retire(device(1).device, of: container, now: 6)
      try await watch.look(2)
      try #require(events.count == 1)
      for await notice in removed.notices where notice.seq > 1 { Issue.record("\(notice.seq)") }
      try await one.delete(container, now: 7)
      try await watch.look(3)
      try #require(events.count == 0)
      for await _ in kept.notices {}
    }
  }

  // MARK: Conflicts

  private func save(_ number: UInt64, to storage: PostgreSQLStorage) async throws -> APIError.Code? {
    do {
      try await storage.addGem(to: container, mark: number)
      return nil
    } catch let error as APIError {
      return error.code
    }
  }

  @Test(
    "nothing of a deleted player comes back, whatever arrives at the other server meanwhile", arguments: [false, true])
  func deletedMeanwhile(hasPlayed: Bool) async throws {
    try await with { one, other, connection in
      for round in 0..<20 as Range<UInt64> {
        if hasPlayed { try await one.addGem(to: container, mark: round) }
        async let deleted = one.delete(container, now: 5)
        async let recorded: Void = record(round, in: other)
        async let token: Void = other.recordToken(issuedMilliseconds: 5, of: device(round))
        async let saved = save(round, to: other)
        _ = try await (deleted, recorded, token)
        #expect([nil, .retired].contains(try await saved))
        for table in ["container WHERE id", "device WHERE container", "token_use WHERE container"] {
          let left = try connection.run([
            PostgreSQLStatement("SELECT 1::bigint FROM \(table) = $1", [.bytes(container.bytes)])
          ])[0]
          #expect(left.first == nil, "\(table) in round \(round)")
        }
        _ = try connection.run([PostgreSQLStatement("DELETE FROM retired")])
      }
    }
  }

  @Test("who waits for a player's other transaction keeps nobody else waiting")
  func waiting() async throws {
    try await with { one, _, connection in
      try await one.addGem(to: container, mark: 1)
      _ = try connection.run([PostgreSQLStatement("BEGIN")])
      _ = try connection.run([
        PostgreSQLStatement("SELECT 1::bigint FROM container WHERE id = $1 FOR UPDATE", [.bytes(container.bytes)])
      ])
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 2..<10 as Range<UInt64> {
          group.addTask { try await one.addGem(to: container, mark: number) }
        }
        // Comes back only while the others still wait.
        for number in 2..<6 as Range<UInt64> { try await one.addGem(to: ContainerID(high: 1, low: number), mark: 1) }
        _ = try connection.run([PostgreSQLStatement("ROLLBACK")])
        try await group.waitForAll()
      }
      #expect(try await one.position(of: container).seq == 9)
    }
  }

  @Test("a device of a game that is being removed at one server gets nothing in shared containers at the other")
  func leaving() async throws {
    try await with { one, other, connection in
      let grant = SharedGrant(app: AppID(ofKey: "a game"), share: AppID(word: 7), access: .readWrite)
      for number in 1...2 as ClosedRange<UInt64> { try await record(number, in: one) }
      @Sendable func register(_ number: UInt64) async throws -> APIError.Code? {
        let new = DeviceIdentity(
          device: DeviceID(high: 9, low: number), player: PlayerID(high: 9, low: 8),
          container: ContainerID(high: 9, low: 9), app: grant.id)
        do {
          _ = try await other.registerShared(new, named: "", by: EntryRight(grant, of: device(number)), now: 6)
          return nil
        } catch let error as APIError {
          return error.code
        }
      }
      try await one.beginLeaving(container, device(1).device, now: 5)
      #expect(try await register(1) == .retired)
      #expect(try await register(2) == nil)
      try await one.beginLeaving(container, nil, now: 5)
      #expect(try await register(2) == .retired)
      try await one.sweep(now: 5)
      #expect(try await register(2) == .retired)
      // The removal failed. A minute later by the database's clock:
      _ = try connection.run([PostgreSQLStatement("UPDATE leaving SET until = until - 60000")])
      #expect(try await register(1) == nil)
      try await one.sweep(now: 5)
      #expect(try connection.run([PostgreSQLStatement("SELECT 1::bigint FROM leaving")])[0].first == nil)
    }
  }

  @Test("a code that is used at two servers at the same time lets one device in", arguments: [false, true])
  func oneCode(ofRecovery: Bool) async throws {
    try await with { one, other, connection in
      try await record(1, in: one)
      let app = AppID(ofKey: "a game")
      let code = ContentHash(of: Data("code".utf8))
      if ofRecovery {
        try await one.putRecovery(code, by: device(1), scope: app, now: 5)
      } else {
        let pairing = Pairing(
          code: code.bytes, scope: app, player: device(1).player, container: container, expiresMilliseconds: Self.day)
        try await one.putPairing(pairing, for: device(1).device, now: 5)
      }
      @Sendable func enter(_ number: UInt64, by storage: PostgreSQLStorage) async throws -> DeviceIdentity? {
        let (right, new) = (EntryRight(app), device(number).device)
        guard ofRecovery else { return try await storage.join(code.bytes, by: right, as: new, name: "", now: 5) }
        let next = ContentHash(of: Data("\(number)".utf8))
        return try await storage.recover(
          Recovery(code: code, next: next, right: right, name: ""), as: new, now: 5, mayRecover: { _ in true })
      }
      _ = try connection.run([PostgreSQLStatement("BEGIN")])
      let holder = try connection.run([
        PostgreSQLStatement(
          "SELECT pg_backend_pid()::bigint FROM container WHERE id = $1 FOR UPDATE", [.bytes(container.bytes)])
      ])[0].first?.int(0)
      async let first = enter(2, by: one)
      async let second = enter(3, by: other)
      // Both have found the code, and wait for the player's row.
      try await Self.wait(until: 2, waitFor: try #require(holder))
      _ = try connection.run([PostgreSQLStatement("ROLLBACK")])
      let entered = try await [first, second].compactMap(\.self)
      #expect(entered.count == 1)
      #expect(try await one.devices(of: container).map(\.identity.device).count == 2)
      #expect(try await other.devices(of: container).contains { $0.identity == entered.first })
    }
  }

  /// Returns when so many sessions wait for one, or for each other behind it.
  private static func wait(until count: Int64, waitFor session: Int64) async throws {
    let settings = TestDatabase.settings(TestDatabase.address ?? "")
    try await onThread {
      let watcher = try PostgreSQLConnection(settings)
      let waiting = PostgreSQLStatement(
        """
        WITH RECURSIVE waiting (session) AS (
          SELECT $1::integer UNION
          SELECT pid FROM pg_stat_activity JOIN waiting ON waiting.session = ANY (pg_blocking_pids(pid))
        ) SELECT count(*) - 1 FROM waiting
        """, [.int(session)])
      while try watcher.run([waiting])[0].first?.int(0) != count { sched_yield() }
    }
  }
}
#endif
