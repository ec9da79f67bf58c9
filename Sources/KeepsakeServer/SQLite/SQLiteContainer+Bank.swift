#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

// The bank: its state, what it has decided, which claims it has paid, the player's goods, and the closed chains.
//
// A decision is a row with the operation's details, or, for an old one without goods, an entry of `packedDecision`.
extension SQLiteContainer: PackedRuns {
  // MARK: State

  func bank() throws -> BankState {
    guard let found = try row("SELECT bank FROM container WHERE id = ?", [id]),
      let bytes = try found.decode(Data?.self, atIndex: 0)
    else {
      return BankState()
    }
    return try decode(BankState.self, bytes)
  }

  // MARK: Claims

  func isClaimPaid(_ key: String) throws -> Bool {
    try row("SELECT 1 FROM paidClaim WHERE container = ? AND key = ?", [id, bytes(key)]) != nil
  }

  mutating func markClaimPaid(_ key: String, _ payment: ClaimPayment?) throws {
    guard let payment else {
      return try run("INSERT OR IGNORE INTO paidClaim (container, key) VALUES (?, ?)", [id, bytes(key)])
    }
    try run(
      """
      INSERT OR IGNORE INTO paidClaim (container, key, currency, amount, number) VALUES (?1, ?2, ?3, ?4, 1 + ifnull(
        (SELECT number FROM paidClaim WHERE container = ?1 AND number IS NOT NULL ORDER BY number DESC LIMIT 1), 0))
      """, [id, bytes(key), bytes(payment.currency), payment.amount])
  }

  /// In the order in which they were paid, so that the claims of a voucher are the first so and so many of them.
  func payments(limit: Int) throws -> [WalletVoucher.Claim] {
    try rows(
      """
      SELECT key, currency, amount FROM paidClaim WHERE container = ? AND number IS NOT NULL ORDER BY number LIMIT ?
      """, [id, limit]
    ).map { row in
      WalletVoucher.Claim(
        key: String(decoding: try row.decode(Data.self, atIndex: 0), as: UTF8.self),
        currency: String(decoding: try row.decode(Data.self, atIndex: 1), as: UTF8.self),
        amount: try row.decode(atIndex: 2))
    }
  }

  /// Returns the keys of paid claims, sorted by their bytes.
  func paidClaims(after key: String?, limit: Int) throws -> [String] {
    // Keys have at least one byte.
    try rows(
      "SELECT key FROM paidClaim WHERE container = ? AND key > ? ORDER BY key LIMIT ?",
      [id, key.map(bytes) ?? Data(), limit]
    ).map { String(decoding: try $0.decode(Data.self, atIndex: 0), as: UTF8.self) }
  }

  // MARK: Vouchers

  func isVoucherPaid(_ chain: ChainID, of bank: ContainerID) throws -> Bool {
    try row("SELECT 1 FROM paidVoucher WHERE container = ? AND bank = ? AND chain = ?", [id, bank.bytes, chain.bytes])
      != nil
  }

  mutating func markVoucherPaid(_ chain: ChainID, of bank: ContainerID) throws {
    try run(
      "INSERT OR IGNORE INTO paidVoucher (container, bank, chain) VALUES (?, ?, ?)", [id, bank.bytes, chain.bytes])
  }

  func vouchedClaim(_ key: String, by bank: ContainerID) throws -> Int64? {
    try row(
      "SELECT unsubtracted FROM vouchedClaim WHERE container = ? AND bank = ? AND key = ?",
      [id, bank.bytes, bytes(key)]
    ).map { try $0.decode(Int64.self, atIndex: 0) }
  }

  mutating func setVouchedClaim(_ key: String, by bank: ContainerID, left: Int64) throws {
    try run(
      "INSERT OR REPLACE INTO vouchedClaim (container, bank, key, unsubtracted) VALUES (?, ?, ?, ?)",
      [id, bank.bytes, bytes(key), left])
  }

  // MARK: Goods

  func goods(changedAfter number: UInt64, limit: Int) throws -> [NumberedGood] {
    let last = try row(
      """
      SELECT number FROM (SELECT number FROM good WHERE container = ? AND number > ? ORDER BY number LIMIT ?)
      ORDER BY number DESC LIMIT 1
      """, [id, signed(number), limit])
    guard let last else { return [] }
    return try rows(
      "SELECT name, count, number FROM good WHERE container = ? AND number > ? AND number <= ? ORDER BY number, name",
      [id, signed(number), try last.decode(Int64.self, atIndex: 0)]
    ).map { row in
      NumberedGood(
        name: String(decoding: try row.decode(Data.self, atIndex: 0), as: UTF8.self),
        count: try row.decode(atIndex: 1), number: unsigned(try row.decode(atIndex: 2)))
    }
  }

  /// Sets how many of a good the player has.
  func setGood(_ good: NumberedGood) throws {
    try run(
      """
      INSERT INTO good (container, name, count, number) VALUES (?, ?, ?, ?)
      ON CONFLICT (container, name) DO UPDATE SET count = excluded.count, number = excluded.number
      """, [id, bytes(good.name), good.count, signed(good.number)])
  }

  mutating func addGood(_ name: String, _ count: Int64, number: UInt64) throws {
    try run(
      """
      INSERT INTO good (container, name, count, number) VALUES (?1, ?2, max(0, ?3), ?4)
      ON CONFLICT (container, name) DO UPDATE SET count = max(0, count + ?3), number = excluded.number
      """, [id, bytes(name), count, signed(number)])
  }

  // MARK: Closed chains

  func closedChain(_ chain: ChainID) throws -> BankState.ClosedChain? {
    let found = try row(
      "SELECT count, hash, follows FROM closedChain WHERE container = ? AND chain = ?", [id, chain.bytes])
    return try found.map(closedChain)
  }

  /// Reads a row that begins with count, hash and what the chain follows.
  func closedChain(_ found: Row) throws -> BankState.ClosedChain {
    guard let hash = ContentHash(bytes: try found.decode(atIndex: 1)) else {
      throw ServerError(.damaged, "A chain of a container's bank can't be read.")
    }
    return BankState.ClosedChain(
      head: ChainHead(count: unsigned(try found.decode(atIndex: 0)), hash: hash),
      follows: try found.decode(Data?.self, atIndex: 2).map { try identifier($0) })
  }

  mutating func recordClosedChain(_ closed: BankState.ClosedChain, _ chain: ChainID) throws {
    try run(
      "INSERT OR IGNORE INTO closedChain (container, chain, count, hash, follows) VALUES (?, ?, ?, ?, ?)",
      [id, chain.bytes, signed(closed.head.count), closed.head.hash.bytes, closed.follows?.bytes])
  }

  func voucher(of chain: ChainID) throws -> WalletVoucher? {
    let found = try row(
      """
      SELECT voucher, claims FROM closedChain WHERE container = ? AND chain = ? AND voucher IS NOT NULL
      """, [id, chain.bytes])
    guard let found else { return nil }
    var voucher = try decode(WalletVoucher.self, found.decode(atIndex: 0))
    let count = try found.decode(Int.self, atIndex: 1)
    if count > 0 { voucher.claims = try payments(limit: count) }
    guard voucher.claims.count == count else {
      throw ServerError(.damaged, "Claims of a container's bank are missing, which a voucher lists.")
    }
    return voucher
  }

  /// Keeps of the claims only how many they are: many chains may leave with the same 20,000.
  mutating func recordVoucher(_ voucher: WalletVoucher) throws {
    var kept = voucher
    kept.claims = []
    try run(
      "UPDATE closedChain SET voucher = ?, claims = ? WHERE container = ? AND chain = ?",
      [try encode(kept), voucher.claims.count, id, voucher.chain.bytes])
  }

  // MARK: Decisions

  func decision(on operation: OperationID) throws -> DecidedOperation? {
    let found = try row(
      "SELECT verdict, fingerprint, chain FROM decision WHERE container = ? AND operation = ?", [id, operation.bytes])
    guard let found else { return try packedDecision(on: operation) }
    return DecidedOperation(
      verdict: try verdict(found.decode(atIndex: 0)), fingerprint: unsigned(try found.decode(atIndex: 1)),
      chain: try identifier(found.decode(atIndex: 2)))
  }

  func decidedOperation(_ operation: OperationID) throws -> WalletOperation? {
    try row("SELECT details FROM decision WHERE container = ? AND operation = ?", [id, operation.bytes])
      .map { try decode(WalletOperation.self, $0.decode(atIndex: 0)) }
  }

  mutating func recordDecision(
    _ verdict: WalletDecision.Verdict, on operation: WalletOperation, of chain: ChainID
  ) throws {
    try recordDecision(verdict, on: operation, of: chain, details: encode(operation))
  }

  /// - Parameter details: The operation, encoded.
  mutating func recordDecision(
    _ verdict: WalletDecision.Verdict, on operation: WalletOperation, of chain: ChainID, details: Data
  ) throws {
    // Only what may be packed one day is numbered.
    let number = verdict.isFinal && operation.goods.isEmpty ? try (arrival(isNewest: true) ?? 0) + 1 : nil
    try run(
      """
      INSERT INTO decision (container, operation, chain, verdict, fingerprint, arrival, details)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (container, operation) DO UPDATE
      SET chain = excluded.chain, verdict = excluded.verdict, fingerprint = excluded.fingerprint,
        arrival = excluded.arrival, details = excluded.details
      """,
      [
        id, operation.id.bytes, chain.bytes, verdict.rawValue, signed(operation.fingerprint), number, details,
      ])
    if let number { try packOldest(upTo: number) }
  }

  func verdict(_ text: String) throws -> WalletDecision.Verdict {
    guard let verdict = WalletDecision.Verdict(rawValue: text) else {
      throw ServerError(.damaged, "A decision of a container's bank can't be read.")
    }
    return verdict
  }

  private func arrival(isNewest: Bool) throws -> Int64? {
    let found = try row(
      """
      SELECT arrival FROM decision WHERE container = ? AND arrival IS NOT NULL
      ORDER BY arrival \(isNewest ? "DESC" : "ASC") LIMIT 1
      """, [id])
    return try found?.decode(atIndex: 0)
  }

  // MARK: Orders

  func order(_ order: OperationID) throws -> BankOrder? {
    try row("SELECT details FROM bankOrder WHERE container = ? AND id = ?", [id, order.bytes])
      .map { try decode(BankOrder.self, $0.decode(atIndex: 0)) }
  }

  func orders(after number: UInt64, limit: Int) throws -> [NumberedOrder] {
    try rows(
      "SELECT number, details FROM bankOrder WHERE container = ? AND number > ? ORDER BY number LIMIT ?",
      [id, signed(number), limit]
    ).map { row in
      NumberedOrder(
        number: unsigned(try row.decode(atIndex: 0)), order: try decode(BankOrder.self, row.decode(atIndex: 1)))
    }
  }

  mutating func recordOrder(_ order: NumberedOrder) throws {
    try recordOrder(order, details: encode(order.order))
  }

  /// - Parameter details: The order, encoded.
  func recordOrder(_ order: NumberedOrder, details: Data) throws {
    try run(
      "INSERT INTO bankOrder (container, number, id, kind, details) VALUES (?, ?, ?, ?, ?)",
      [id, signed(order.number), order.order.id.bytes, order.order.kind.rawValue, details])
  }

  // MARK: Packing

  /// Packs the oldest decisions if enough of them are older than those whose details are kept.
  private mutating func packOldest(upTo newest: Int64) throws {
    guard let oldest = try arrival(isNewest: false),
      let end = PackedDecisions.packedBefore(oldest: oldest, newest: newest, keeping: detailedDecisions)
    else { return }
    let rows = try rows(
      """
      DELETE FROM decision WHERE container = ? AND arrival IS NOT NULL AND arrival < ?
      RETURNING operation, verdict, fingerprint
      """, [id, end])
    let entries = try rows.map { row in
      PackedDecisions.Entry(
        operation: try identifier(row.decode(atIndex: 0)),
        isAccepted: try verdict(row.decode(atIndex: 1)).counts,
        fingerprint: unsigned(try row.decode(atIndex: 2)))
    }
    try addRun(PackedDecisions.packed(entries))
  }

  func packedParts(ofLevel level: Int64, after first: OperationID?) throws -> [PackedDecisions] {
    try rows(
      """
      SELECT entries FROM packedDecision WHERE container = ? AND level = ? AND first > ?
      ORDER BY first LIMIT \(PackedDecisions.partsAtOnce)
      """, [id, level, first?.bytes ?? Data()]
    ).map { try PackedDecisions.stored($0.decode(atIndex: 0)) }
  }

  func insertPacked(_ parts: [PackedDecisions], level: Int64) throws {
    for part in parts {
      try run(
        "INSERT INTO packedDecision (container, level, first, entries) VALUES (?, ?, ?, ?)",
        [id, level, part.first.bytes, part.bytes])
    }
  }

  func removePacked(below level: Int64) throws {
    try run("DELETE FROM packedDecision WHERE container = ? AND level < ?", [id, level])
  }

  /// Returns the levels of the runs, sorted. Reads one entry of an index for each.
  func packedLevels() throws -> [Int64] {
    var levels: [Int64] = []
    while let found = try row(
      "SELECT level FROM packedDecision WHERE container = ? AND level > ? ORDER BY level LIMIT 1",
      [id, levels.last ?? -1])
    { levels.append(try found.decode(atIndex: 0)) }
    return levels
  }

  /// Reads one row of each run, the newest run first.
  private func packedDecision(on operation: OperationID) throws -> DecidedOperation? {
    for level in try packedLevels() {
      let found = try row(
        """
        SELECT entries FROM packedDecision WHERE container = ? AND level = ? AND first <= ?
        ORDER BY first DESC LIMIT 1
        """, [id, level, operation.bytes])
      guard let found else { continue }
      let packed = try PackedDecisions.stored(found.decode(atIndex: 0))
      if let entry = packed.entry(of: operation) { return entry.decided }
    }
    return nil
  }
}
#endif
