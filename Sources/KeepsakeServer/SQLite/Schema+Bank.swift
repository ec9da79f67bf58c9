#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

// The migration to a bank that packs old decisions.
extension Schema {
  /// A bank as older databases have it.
  private struct OldBank: Decodable {
    struct Chain: Decodable {
      var head: ChainHead
      var follows: ChainID?
      var fenced: Bool
      var totals: [String: WalletTotals]
      /// Nil on a chain that a device has offered again after the bank had begun it.
      var begun: UInt64?
    }
    var pool: [String: Int64]
    var chains: [ChainID: Chain]
    var paidClaims: [String]
  }

  /// Numbers decisions in the order in which devices made the operations, adds their fingerprints, counts the goods
  /// that they granted, and moves the keys of paid claims and closed chains into tables. Nothing is packed yet: that
  /// happens as a container gets new decisions.
  static func renewBanks(in db: Database) throws {
    try db.execute(
      sql: """
        ALTER TABLE decision RENAME TO oldDecision;
        CREATE TABLE decision (
          container BLOB NOT NULL, operation BLOB NOT NULL, chain BLOB NOT NULL, verdict TEXT NOT NULL,
          fingerprint INTEGER NOT NULL, arrival INTEGER, details BLOB NOT NULL, PRIMARY KEY (container, operation)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE packedDecision (
          container BLOB NOT NULL, level INTEGER NOT NULL, first BLOB NOT NULL, entries BLOB NOT NULL,
          UNIQUE (container, level, first)
        ) STRICT;
        CREATE TABLE paidClaim (
          container BLOB NOT NULL, key BLOB NOT NULL, PRIMARY KEY (container, key)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE good (
          container BLOB NOT NULL, name BLOB NOT NULL, count INTEGER NOT NULL, number INTEGER NOT NULL,
          PRIMARY KEY (container, name)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX goodNumber ON good (container, number, name);
        CREATE TABLE closedChain (
          container BLOB NOT NULL, chain BLOB NOT NULL, count INTEGER NOT NULL, hash BLOB NOT NULL, follows BLOB,
          PRIMARY KEY (container, chain)
        ) STRICT, WITHOUT ROWID;
        """)
    let containers = try Data.fetchCursor(db, sql: "SELECT DISTINCT container FROM oldDecision")
    while let container = try containers.next() { try renewDecisions(of: container, in: db) }
    try db.execute(
      sql: """
        DROP TABLE oldDecision;
        DROP TABLE chainHead;
        CREATE INDEX decisionArrival ON decision (container, arrival) WHERE arrival IS NOT NULL;
        """)
    // Only the ids, since all banks together may not fit into memory.
    let owners = try Data.fetchAll(db, sql: "SELECT id FROM container WHERE bank IS NOT NULL")
    for owner in owners { try renewBank(of: owner, in: db) }
  }

  private static func renewDecisions(of container: Data, in db: Database) throws {
    // Only what may be packed one day gets a number.
    var numbered: [(madeAt: Int64, operation: OperationID)] = []
    var goods: [String: Int64] = [:]
    let rows = try Row.fetchCursor(
      db, sql: "SELECT operation, chain, verdict, details FROM oldDecision WHERE container = ?", arguments: [container])
    while let row = try rows.next() {
      let details = try row.decode(Data.self, atIndex: 3)
      let operation = try decoded(WalletOperation.self, details)
      try db.cachedStatement(
        sql: """
          INSERT INTO decision (container, operation, chain, verdict, fingerprint, details) VALUES (?, ?, ?, ?, ?, ?)
          """
      ).execute(
        arguments: [
          container, try row.decode(Data.self, atIndex: 0), try row.decode(Data.self, atIndex: 1),
          try row.decode(String.self, atIndex: 2), Int64(bitPattern: operation.fingerprint), details,
        ])
      if operation.goods.isEmpty { numbered.append((operation.madeAtMilliseconds, operation.id)) }
      if try row.decode(String.self, atIndex: 2) == WalletDecision.Verdict.accepted.rawValue {
        for good in operation.goods { goods[good, default: 0] += 1 }
      }
    }
    for (name, count) in goods {
      try db.cachedStatement(sql: "INSERT INTO good (container, name, count, number) VALUES (?, ?, ?, 1)").execute(
        arguments: [container, Data(name.utf8), count])
    }
    numbered.sort { ($0.madeAt, $0.operation) < ($1.madeAt, $1.operation) }
    for (index, item) in numbered.enumerated() {
      try db.cachedStatement(sql: "UPDATE decision SET arrival = ? WHERE container = ? AND operation = ?").execute(
        arguments: [index + 1, container, item.operation.bytes])
    }
  }

  private static func renewBank(of container: Data, in db: Database) throws {
    let bytes = try Data.fetchOne(db, sql: "SELECT bank FROM container WHERE id = ?", arguments: [container])
    guard let bytes else { return }
    let old = try decoded(OldBank.self, bytes)
    var bank = BankState()
    bank.pool = old.pool
    let hasGoods = try Row.fetchOne(db, sql: "SELECT 1 FROM good WHERE container = ?", arguments: [container]) != nil
    bank.goodsNumber = hasGoods ? 1 : 0
    for (id, known) in old.chains where known.fenced {
      bank.closedChains += 1
      try db.execute(
        sql: "INSERT INTO closedChain (container, chain, count, hash, follows) VALUES (?, ?, ?, ?, ?)",
        arguments: [
          container, id.bytes, Int64(bitPattern: known.head.count), known.head.hash.bytes, known.follows?.bytes,
        ])
    }
    for (id, known) in old.chains where !known.fenced {
      var chain = BankState.Chain(head: known.head, follows: known.follows)
      chain.totals = known.totals
      chain.isShown = known.begun == nil
      // The shares of the player's devices stay as they are if it is known when they were here.
      let owner = try Row.fetchOne(
        db,
        sql: """
          SELECT device.id, device.seen FROM deviceChain JOIN device
          ON device.container = deviceChain.container AND device.id = deviceChain.device
          WHERE deviceChain.container = ? AND deviceChain.chain = ? ORDER BY device.seen DESC LIMIT 1
          """, arguments: [container, id.bytes])
      if let owner {
        chain.device = try DeviceID(bytes: owner.decode(atIndex: 0))
        let seen: Int64 = try owner.decode(atIndex: 1)
        chain.seenMilliseconds = seen - seen % 3_600_000
      }
      bank.chains[id] = chain
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    try db.execute(sql: "UPDATE container SET bank = ? WHERE id = ?", arguments: [encoder.encode(bank), container])
    for key in old.paidClaims {
      try db.execute(
        sql: "INSERT OR IGNORE INTO paidClaim (container, key) VALUES (?, ?)", arguments: [container, Data(key.utf8)])
    }
  }

  /// Reads JSON of a row.
  static func decoded<Value: Decodable>(_ type: Value.Type, _ bytes: Data) throws -> Value {
    do {
      return try JSONDecoder().decode(type, from: bytes)
    } catch {
      throw ServerError(.damaged, "A row of the database can't be read.", cause: error)
    }
  }
}
#endif
