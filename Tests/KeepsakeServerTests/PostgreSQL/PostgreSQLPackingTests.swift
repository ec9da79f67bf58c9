#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication
import Logging
import TestSupport
import Testing

@testable import KeepsakeServer

/// Packing where several servers use a database, and where it fails.
@Suite(
  "Packing old decisions in PostgreSQL", .hangLimit,
  .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
struct PostgreSQLPackingTests {
  private typealias Lab = PackedStorageTests

  /// Runs `body` with the storage of each of two servers, and a connection beside them.
  private func with(
    detailed: Int64, _ body: (PostgreSQLStorage, PostgreSQLStorage, PostgreSQLConnection) async throws -> Void
  ) async throws {
    let name = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    let address = try TestDatabase.address(ofSchema: name)
    let one = try await TestDatabase.storage(at: address, detailedDecisions: detailed)
    let other = try await TestDatabase.storage(at: address, detailedDecisions: detailed)
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

  private func numbers(_ sql: String, _ connection: PostgreSQLConnection) throws -> [Int64] {
    try connection.run([PostgreSQLStatement(sql)])[0].map { try $0.int(0) }
  }

  /// How many entries are packed.
  private func packed(_ connection: PostgreSQLConnection) throws -> Int64 {
    try numbers(
      "SELECT coalesce(sum(octet_length(entries)) / \(PackedDecisions.entryBytes), 0)::bigint FROM packed_decision",
      connection)[0]
  }

  @Test("packed decisions are in one run for each bit of their batches, and cost at most 24 bytes each")
  func rows() async throws {
    try await with(detailed: 0) { storage, _, connection in
      let count = 5 * Lab.batch
      try await Lab.record(0..<count, in: storage)
      #expect(
        try numbers("SELECT level FROM packed_decision GROUP BY level ORDER BY level", connection) == [0, 2])
      #expect(try packed(connection) == Int64(count))
      let bytes = try numbers(
        """
        SELECT sum(octet_length(entries) + octet_length(container) + octet_length(first) + 8)::bigint
        FROM packed_decision
        """, connection)[0]
      #expect(bytes <= Int64(24 * count))
      #expect(try numbers("SELECT count(*) FROM bank_decision", connection) == [0])
    }
  }

  @Test("what two servers decide about one player at the same time is packed once each, and known at both")
  func together() async throws {
    try await with(detailed: 50) { one, other, connection in
      let count = 4 * Lab.batch
      try await withThrowingTaskGroup(of: Void.self) { group in
        // Each operation is offered at both: whoever is second must find that it is decided.
        for storage in [one, other] {
          group.addTask {
            for start in stride(from: 0, to: count, by: 200) {
              let some = (start..<min(start + 200, count)).map { Lab.earn($0) }
              try await decide(some, in: storage)
            }
          }
        }
        try await group.waitForAll()
      }
      let detailed = try numbers("SELECT count(*) FROM bank_decision", connection)[0]
      #expect(try packed(connection) + detailed == Int64(count), "each is there once")
      #expect(detailed < Int64(50 + Lab.batch))
      #expect(
        try await one.look(at: Lab.player) { try $0.bank().pool } == ["gems": Int64(count)], "each was counted once")
      for storage in [one, other] {
        let decided = try await Lab.decided((0..<count).map { Lab.earn($0).id }, in: storage)
        #expect(decided.count == count)
      }
    }
  }

  /// Decides operations, and counts those that nobody has decided before.
  private func decide(_ operations: [WalletOperation], in storage: PostgreSQLStorage) async throws {
    var reads = ReadSet()
    reads.bank.decisions = Set(operations.map(\.id))
    reads.bank.state = true
    // Another server may be first again and again, but not for ever.
    while true {
      do {
        return try await storage.decide(on: Lab.player, reading: reads) { container in
          var bank = try container.bank()
          for operation in operations where try container.decision(on: operation.id) == nil {
            try container.recordDecision(.accepted, on: operation, of: Lab.chain)
            bank.pool["gems", default: 0] += 1
          }
          container.setBank(bank)
        }
      } catch let error as ServerError where error.code == .overloaded {
        continue
      }
    }
  }

  @Test("decisions that can't be packed stay in detail, and are packed once they can be")
  func failing() async throws {
    try await with(detailed: 0) { storage, other, connection in
      // A run that can't be read: nothing may be merged into it, and nothing be lost for it.
      _ = try connection.run([
        PostgreSQLStatement(
          "INSERT INTO packed_decision (container, level, first, entries) VALUES ($1, 0, $2, $3)",
          [.bytes(Lab.player.bytes), .bytes(Data(count: 16)), .bytes(Data(count: 5))])
      ])
      try await Lab.record(0..<(Lab.batch + 300), in: storage)
      #expect(try numbers("SELECT count(*) FROM bank_decision", connection) == [Int64(Lab.batch + 300)])
      let error = await #expect(throws: ServerError.self) {
        try await storage.transaction { try PostgreSQLPacking(Lab.player, in: $0).packOldest(keeping: 0) }
      }
      #expect(error?.code == .damaged)
      _ = try connection.run([PostgreSQLStatement("DELETE FROM packed_decision")])
      // The next decision packs, at whatever server.
      try await Lab.record((Lab.batch + 300)..<(Lab.batch + 301), in: other)
      #expect(try packed(connection) == Int64(Lab.batch))
      let decided = try await Lab.decided((0..<(Lab.batch + 301)).map { Lab.earn($0).id }, in: storage)
      #expect(decided.count == Lab.batch + 301)
    }
  }

  @Test("who packs decisions of a player of whom everything was deleted meanwhile makes nothing of the player again")
  func deleted() async throws {
    try await with(detailed: 0) { storage, _, connection in
      try await Lab.record(0..<300, in: storage)
      try await storage.delete(Lab.player, now: 5)
      try await storage.transaction { try PostgreSQLPacking(Lab.player, in: $0).packOldest(keeping: 0) }
      for table in ["container", "bank_decision", "packed_decision"] {
        #expect(try numbers("SELECT count(*) FROM \(table)", connection) == [0], "\(table)")
      }
    }
  }

  @Test("servers that don't know packed decisions decide nothing beside those that do, and what they decided stays")
  func formerServers() async throws {
    let name = "s\(UUID().uuidString.lowercased().filter { $0 != "-" })"
    let address = try TestDatabase.address(ofSchema: name)
    let pool = PostgreSQLPool(TestDatabase.settings(address), connections: 1)
    let old = Lab.earn(7)
    let deciding = [
      PostgreSQLStatement(
        """
        INSERT INTO decision (container, operation, chain, verdict, fingerprint, details)
        VALUES ($1, $2, $3, $4, $5, $6)
        """,
        [
          .bytes(Lab.player.bytes), .bytes(old.id.bytes), .bytes(Lab.chain.bytes), .bytes(Data("accepted".utf8)),
          .signed(old.fingerprint), .bytes(try EncodedRows.encode(old)),
        ])
    ]
    do {
      let steps = PostgreSQLSchema.migrations
      let packing = steps.firstIndex { $0.statements == PostgreSQLSchema.packed[0].statements }
      let former = Array(steps.prefix(try #require(packing)))
      try await PostgreSQLSchema.prepare(pool, former, logger: Logger(label: "keepsake.test"))
      _ = try await pool.run(deciding)
      let storage = try await TestDatabase.storage(at: address, detailedDecisions: 0)
      let decided = try await Lab.decided([old.id], in: storage)
      #expect(decided[old.id] == DecidedOperation(verdict: .accepted, fingerprint: old.fingerprint, chain: Lab.chain))
      // It hasn't noticed yet that the tables are too new for it.
      let refused = await #expect(throws: PostgreSQLError.self) { _ = try await pool.run(deciding) }
      #expect(refused?.state == .undefinedTable)
      let tooNew = await #expect(throws: ServerError.self) {
        try await PostgreSQLSchema.prepare(pool, former, logger: Logger(label: "keepsake.test"))
      }
      #expect(tooNew?.code == .newerData)
      // Without an arrival it is never packed, and in nobody's way.
      try await Lab.record(100..<(100 + Lab.batch), in: storage)
      #expect(
        try await Lab.decided([old.id, Lab.earn(100).id], in: storage).mapValues(\.chain) == [
          old.id: Lab.chain, Lab.earn(100).id: nil,
        ])
      try await storage.close()
    } catch {
      await pool.finish()
      throw error
    }
    await pool.finish()
    try TestDatabase.drop(schema: name)
  }
}
#endif
