#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

/// What the studio does at several servers at the same time, and who changes the audit log in the database.
@Suite(
  "The studio's hand in PostgreSQL", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct PostgreSQLAdminTests {
  private struct Case {
    /// The storages of two servers.
    let one: PostgreSQLStorage
    let other: PostgreSQLStorage
    let settings: PostgreSQLSettings

    func connection() throws -> PostgreSQLConnection { try PostgreSQLConnection(settings) }

    func run(_ statements: [String]) throws {
      for statement in statements { _ = try connection().run([PostgreSQLStatement(statement)]) }
    }

    func verified(noted: ContentHash? = nil) throws -> AuditReader.Verification {
      try AuditReader(PostgreSQLAdminTables(settings)).verify(noted: noted)
    }

    /// The log, the oldest row first.
    func rows(of player: PlayerID? = nil) throws -> [AuditReader.Row] {
      var rows: [AuditReader.Row] = []
      try AuditReader(PostgreSQLAdminTables(settings)).rows(of: player, limit: 10_000) { rows.insert($0, at: 0) }
      return rows
    }
  }

  private func with(_ count: Int = 0, _ body: (Case) async throws -> Void) async throws {
    let name = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    let settings = TestDatabase.settings(try TestDatabase.address(ofSchema: name))
    let one = try await PostgreSQLStorage(settings, connections: 2, clock: { 5 })
    let other = try await PostgreSQLStorage(settings, connections: 2, clock: { 5 })
    do {
      for number in 0..<count { try await one.append(entry("\(number)")) }
      try await body(Case(one: one, other: other, settings: settings))
    } catch {
      try await one.close()
      try await other.close()
      throw error
    }
    try await one.close()
    try await other.close()
    try TestDatabase.drop(schema: name)
  }

  private func entry(_ request: String, act: String = "player.ban") -> AuditEntry {
    AuditEntry(atMilliseconds: 5, key: "k", name: "ada", act: act, request: request)
  }

  private func device(_ number: UInt64) -> DeviceIdentity {
    DeviceIdentity(
      device: DeviceID(high: 2, low: number), player: PlayerID(high: 3, low: number),
      container: ContainerID(high: 1, low: number), app: AppID(ofKey: "a game"))
  }

  private func record(_ device: DeviceIdentity, in storage: PostgreSQLStorage) async throws {
    try await storage.recordDevice(
      DeviceRecord(identity: device, name: "A", createdMilliseconds: 5, seenMilliseconds: 5))
  }

  // MARK: At the same time

  @Test("of acts at two servers at the same time each is done and has its row, and the chain has no fork or gap")
  func twoServers() async throws {
    try await with { studio in
      let players = 1...12 as ClosedRange<UInt64>
      for number in players { try await record(device(number), in: studio.one) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in players {
          let (storage, place) = (number % 2 == 0 ? studio.one : studio.other, device(number))
          let ban = Ban(reason: "\(number)", sinceMilliseconds: 5)
          group.addTask { try await storage.append(entry("look \(number)")) }
          group.addTask { try await storage.setBan(ban, of: place.container, auditing: entry("ban \(number)")) }
          // A decision, which is made anew if the ban comes between.
          group.addTask {
            let audited = AuditedStorage(storage, entry("remove \(number)", act: "device.remove"))
            _ = try await audited.retire(place.device, of: place.container, now: 6)
          }
        }
        try await group.waitForAll()
      }
      let found = try studio.verified()
      #expect(found.problem == nil && found.rows == 36)
      let requests = try studio.rows().map(\.request)
      #expect(Set(requests) == Set(players.flatMap { ["look \($0)", "ban \($0)", "remove \($0)"] }))
      for number in players {
        #expect(try await studio.one.isRetired(device(number)), "\(number)")
        #expect(try await studio.one.devices(of: device(number).container).isEmpty, "\(number)")
      }
      // Each server knows what was done at the other as soon as it looks.
      for storage in [studio.one, studio.other] {
        try await storage.refresh()
        for number in players { #expect(storage.ban(of: device(number).container)?.reason == "\(number)") }
      }
    }
  }

  /// Keeps a decision instead of committing it.
  private struct Kept: DecidingStorage {
    let base: PostgreSQLStorage
    let decision = Shared<(writes: WriteSet, revision: UInt64)?>(nil)

    var clock: @Sendable () -> Int64 { base.clock }

    func load(_ reads: ReadSet, of container: ContainerID) async throws -> Snapshot {
      try await base.load(reads, of: container)
    }

    func commit(
      _ writes: WriteSet, of container: ContainerID, ifAt revision: UInt64, leaving: DeviceID?
    ) async throws -> Bool {
      decision.value = (writes, revision)
      return true
    }
  }

  @Test(
    "who waits for the log hasn't to decide anew, and a decision that comes too late leaves no row", arguments: [1, 0])
  func conflicts(_ before: UInt64) async throws {
    try await with(1) { studio in
      let container = device(1).container
      if before > 0 { try await studio.one.addGem(to: container, mark: before) }
      let kept = Kept(base: studio.other)
      try await kept.addGem(to: container, mark: before + 1)
      let decision = try #require(kept.decision.value)
      let blocker = try studio.connection()
      _ = try blocker.run([PostgreSQLStatement("BEGIN")])
      _ = try blocker.run([PostgreSQLStatement("UPDATE number SET value = value WHERE name = 'auditRows'")])
      func commit(_ request: String) async throws -> Bool {
        try await studio.other.commit(
          decision.writes, of: container, ifAt: decision.revision, leaving: nil, auditing: entry(request))
      }
      async let first = commit("first")
      // Longer than it waits for a lock.
      try await Task.sleep(for: .milliseconds(600))
      _ = try blocker.run([PostgreSQLStatement("COMMIT")])
      #expect(try await first)
      #expect(try await !commit("late"))
      #expect(try studio.rows().map(\.request) == ["0", "first"])
      #expect(try studio.verified().problem == nil)
      #expect(try await studio.one.position(of: container).seq == before + 1)
    }
  }

  @Test("an act and its row are committed together: if the row can't be written, nothing was done")
  func together() async throws {
    try await with { studio in
      let (storage, place) = (studio.one, device(1))
      try await record(place, in: storage)
      let login = VerifiedIdentity(id: VerifiedIdentity.id(of: "ada", at: "", named: "login"), issuer: "login")
      _ = try await storage.link(login, to: place, now: 5)
      try studio.run(["ALTER TABLE audit ADD CONSTRAINT no_row CHECK (number = 0)"])
      let ban = Ban(reason: "x", sinceMilliseconds: 1)
      let acts: [(String, @Sendable () async throws -> Void)] = [
        ("ban", { try await storage.setBan(ban, of: place.container, auditing: entry("ban")) }),
        ("unlink", { try await storage.unlink(login.id, of: place.container, auditing: entry("unlink")) }),
        (
          "remove",
          { _ = try await AuditedStorage(storage, entry("remove")).retire(place.device, of: place.container, now: 6) }
        ),
        ("delete", { _ = try await storage.delete(place.container, now: 6, auditing: entry("delete")) }),
      ]
      for (name, act) in acts { await #expect(throws: (any Error).self, "\(name)") { try await act() } }
      #expect(storage.ban(of: place.container) == nil)
      #expect(try await storage.devices(of: place.container).count == 1)
      #expect(try await storage.identities(of: place.container).count == 1)
      #expect(try await !storage.isRetired(place))
      try studio.run(["ALTER TABLE audit DROP CONSTRAINT no_row"])
      for (_, act) in acts { try await act() }
      #expect(try studio.rows().map(\.request) == acts.map(\.0))
      #expect(try studio.verified().problem == nil)
      // Nor is there a row of what wasn't done.
      await #expect(throws: APIError.self) { try await acts[1].1() }
      #expect(try studio.verified().rows == 4)
    }
  }

  // MARK: Tampering

  @Test(
    "who changes the log in the database is noticed",
    arguments: [
      ["UPDATE audit SET name = 'eve' WHERE number = 2"], ["UPDATE audit SET at = 6 WHERE number = 1"],
      ["UPDATE audit SET player = '\\x00' WHERE number = 3"], ["UPDATE audit SET details = '[]' WHERE number = 3"],
      ["DELETE FROM audit WHERE number = 1"], ["DELETE FROM audit WHERE number = 2"],
      ["DELETE FROM audit WHERE number = 3"],
      ["DELETE FROM audit WHERE number = 2", "UPDATE audit SET number = 2 WHERE number = 3"], ["DELETE FROM audit"],
    ])
  func tampering(_ statements: [String]) async throws {
    try await with(3) { studio in
      #expect(try studio.verified().problem == nil)
      try studio.run(statements)
      #expect(try studio.verified().problem != nil)
    }
  }

  @Test("rows that were cut off are missed also after the next ones were written", arguments: [1, 3])
  func cutOff(_ left: Int) async throws {
    try await with(3) { studio in
      try studio.run(["DELETE FROM audit WHERE number >= \(left)"])
      for number in 0..<4 { try await studio.other.append(entry("later \(number)")) }
      #expect(try studio.verified().problem == "row \(left) is missing")
    }
  }

  @Test("a count of rows that was set back hinders no act")
  func setBackCount() async throws {
    for statement in ["UPDATE number SET value = 0", "DELETE FROM number"] {
      try await with(3) { studio in
        try studio.run([statement])
        try await studio.one.append(entry("later"))
        let found = try studio.verified()
        #expect(found.problem == nil && found.rows == 4, "\(statement)")
      }
    }
  }

  @Test("a long log is read page by page, forwards and backwards, and a noted hash is found in it")
  func pages() async throws {
    try await with(1) { studio in
      let first = try studio.verified().last
      // As many rows as a page has, and some more.
      try await studio.one.transaction { transaction in
        for number in 0..<1_005 {
          var entry = entry("\(number)")
          entry.player = number == 3 ? AuditEntry.hash(PlayerID(high: 3, low: 3)) : nil
          try transaction.append(entry)
        }
      }
      let found = try studio.verified(noted: first)
      #expect(found.problem == nil && found.rows == 1_006 && found.hasNoted == true)
      #expect(try studio.rows().map(\.number) == Array(1...1_006))
      #expect(try studio.rows(of: PlayerID(high: 3, low: 3)).map(\.request) == ["3"])
      #expect(try studio.verified(noted: ContentHash(of: Data())).problem != nil)
    }
  }

  // MARK: Keys

  @Test("of keys of one name that are made at the same time there is one, and a database without a cloud has none")
  func keys() async throws {
    try await with { studio in
      let folder = try TemporaryFolder()
      try Data().write(to: folder.url.appendingPathComponent(DataFolder.databaseName))
      let (address, data) = (studio.settings.address, folder.url)
      let made = await withTaskGroup(of: String?.self) { group in
        for _ in 0..<4 {
          group.addTask {
            do {
              return try AdminKeys(data: data, database: address).create("ada", scopes: [.read]).text
            } catch {
              #expect((error as? ServerError)?.code == .configuration, "\(error)")
              return nil
            }
          }
        }
        return await group.reduce(into: [String]()) { if let text = $1 { $0.append(text) } }
      }
      #expect(made.count == 1)
      let keys = try AdminKeys(data: data, database: address)
      #expect(try await studio.other.adminKey(try #require(made.first))?.name == "ada")
      try keys.revoke("ada")
      #expect(try await studio.other.adminKey(try #require(made.first)) == nil)
      #expect(try keys.list().map(\.name) == ["ada"] && studio.rows().map(\.act) == ["key.create", "key.revoke"])
      #expect(try studio.verified().problem == nil)
      let empty = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
      let elsewhere = try TestDatabase.address(ofSchema: empty)
      let error = #expect(throws: ServerError.self) { try AdminKeys(data: data, database: elsewhere) }
      #expect(error?.code == .missing)
      try TestDatabase.drop(schema: empty)
    }
  }
}
#endif
