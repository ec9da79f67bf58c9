import Foundation
import GRDB
import KeepsakeReplication

/// Verifies every row of a sealed store when it is opened, and handles those that don't verify by the game's policy, in
/// the given transaction.
///
/// Contents are verified when they are loaded: their hashes are in the rows.
struct SealAudit {
  /// The maximum number of rows in quarantine; the oldest are removed. Enough for every row of a usual store, several
  /// times over.
  static let maximumQuarantined = 10_000

  let database: Database
  /// The seal of the existing rows.
  let seal: StoreSeal

  private struct Failure {
    var row: SealedTable.SealedRow
    var finding: SealFinding
  }

  /// Returns the findings. Costs a pass over the rows, with a checksum and an HMAC or a decryption for each.
  ///
  /// - Parameter isWhole: Whether the rows match the ledger.
  func run(isWhole: Bool) throws -> [SealFinding] {
    var failures: [Failure] = []
    let codec = RowCodec(seal: seal)
    try SealedTable.forEach(in: database) { row in
      if let finding = try finding(on: row, codec) { failures.append(Failure(row: row, finding: finding)) }
    }
    guard !failures.isEmpty else {
      return try (isWhole ? [] : rolledBack()) + (seal.policy == .flag ? usedBefore() : [])
    }
    if seal.policy == .reject, let first = failures.first(where: { !$0.finding.isDamage }) ?? failures.first {
      throw first.finding.error
    }
    try keepAside(failures)
    var findings = failures.map(\.finding)
    let lost = failures.filter { $0.finding.outcome == .setAside }.map(\.row)
    if !lost.isEmpty { try settle(lost, &findings) }
    guard seal.policy == .flag else { return findings }
    let places = Set(findings.map(\.place))
    return try findings + usedBefore().filter { !places.contains($0.place) }
  }

  /// Which rows are affected is unknown. The cloud restores what it has in a newer state.
  private func rolledBack() throws -> [SealFinding] {
    let finding = SealFinding.rollback
    if seal.policy == .reject { throw finding.error }
    try database.execute(
      sql: "INSERT INTO quarantine (place, outcome) VALUES (?, ?)",
      arguments: [finding.place, finding.outcome.rawValue])
    var findings = [finding]
    if seal.policy == .quarantine { try settle([], &findings) }
    return findings
  }

  /// Returns findings for rows that were used earlier although they didn't verify. Rows written since then verify, but
  /// still derive from them.
  private func usedBefore() throws -> [SealFinding] {
    let places = try String.fetchAll(
      database, sql: "SELECT DISTINCT place FROM quarantine WHERE outcome = ? ORDER BY place",
      arguments: [SealFinding.Outcome.used.rawValue])
    return places.map { $0 == SealFinding.rollback.place ? .rollback : SealFinding(place: $0, outcome: .used) }
  }

  /// Returns nil if the row verifies.
  private func finding(on row: SealedTable.SealedRow, _ codec: RowCodec) throws -> SealFinding? {
    guard let place = row.place, let body = row.body else {
      return SealFinding(place: "a row of the table \(row.table.rawValue)", outcome: .setAside, isDamage: true)
    }
    var finding = SealFinding(place: place, outcome: .setAside)
    do {
      _ = try codec.json(in: body, place: place, strictly: true)
      return nil
    } catch let error as StoreError where error.code == .tampered {
      if seal.policy == .flag, try canBeRead(body, place) { finding.outcome = .used }
    } catch let error as StoreError where error.code == .damaged {
      finding.isDamage = true
    }
    (finding.version, finding.slot) = (row.version, row.slot)
    return finding
  }

  private func canBeRead(_ body: Data, _ place: String) throws -> Bool {
    // With findings of its own: what is found here is reported with more details.
    let lenient = RowCodec(seal: StoreSeal(kind: seal.kind, policy: .flag, keys: seal.keys))
    do {
      // An invalid wallet couldn't be used anywhere, and would prevent the store from opening.
      if place == RowIdentity.fact(WalletBook.name) {
        _ = try WalletBook.read(body, lenient)
      } else {
        _ = try lenient.json(in: body, place: place)
      }
      return true
    } catch let error as StoreError where error.code == .tampered || error.code == .damaged {
      return false
    }
  }

  /// Keeps the rows unchanged in quarantine, and removes them from their tables unless they are used. Costs time in
  /// proportion to these rows and those in quarantine.
  private func keepAside(_ failures: [Failure]) throws {
    struct Kept: Hashable {
      var place: String
      var outcome: String
      var body: ContentHash?
    }
    var kept: Set<Kept> = []
    let rows = try Row.fetchCursor(database, sql: "SELECT place, outcome, body FROM quarantine")
    while let row = try rows.next() {
      // A row that is damaged itself can't be a duplicate, and must not keep the store from opening.
      guard let place = String.fromDatabaseValue(row[0]), let outcome = String.fromDatabaseValue(row[1]) else {
        continue
      }
      let body = Data.fromDatabaseValue(row[2]).map { ContentHash(of: $0) }
      kept.insert(Kept(place: place, outcome: outcome, body: body))
    }
    for failure in failures {
      let (row, finding) = (failure.row, failure.finding)
      let body = row.body.map { ContentHash(of: $0) }
      if kept.insert(Kept(place: finding.place, outcome: finding.outcome.rawValue, body: body)).inserted {
        try database.execute(
          sql: "INSERT INTO quarantine (place, outcome, body) VALUES (?, ?, ?)",
          arguments: [finding.place, finding.outcome.rawValue, row.body])
      }
      if finding.outcome == .setAside { try row.table.delete(row, in: database) }
    }
    try database.execute(
      sql: """
        DELETE FROM quarantine WHERE id <= (SELECT id FROM quarantine ORDER BY id DESC
        LIMIT 1 OFFSET \(Self.maximumQuarantined))
        """)
  }

  // MARK: Going on without

  /// Completes what remains: determines heads for slots whose head was set aside, and fetches everything from the cloud
  /// once more.
  private func settle(_ lost: [SealedTable.SealedRow], _ findings: inout [SealFinding]) throws {
    var transaction = StoreTransaction(database, in: StoreContext(seal: seal))
    try HeadTable.rebuild(in: database)
    for slot in try transaction.slots() where try transaction.heads(of: slot).isEmpty {
      try uncoverNewest(of: slot, in: transaction)
    }
    for index in findings.indices {
      guard findings[index].outcome == .setAside, let slot = findings[index].slot else { continue }
      findings[index].usedInstead = try Resolution.view(of: slot, in: transaction).winner?.id
    }
    try transaction.mendWallet()
    try transaction.fillPerformed()
    let tables = Set(lost.map(\.table))
    if tables.contains(.outbox) { try offerAgain(in: &transaction) }
    // What the cloud has is fetched again: joins restore what was lost here.
    try transaction.clearStaged()
    var facts = try transaction.facts()
    if facts.cursor != .start {
      facts.cursor = Cursor(epoch: facts.cursor.epoch, seq: 0, mark: 0)
      try transaction.setFacts(facts)
    }
  }

  /// Makes those versions of a slot heads again that no other version here covers: what covered them was set aside.
  private func uncoverNewest(of slot: String, in transaction: StoreTransaction) throws {
    let ids = try transaction.identifiers("SELECT id FROM version WHERE slot = ? ORDER BY id", [slot])
    var covered: Set<VersionID> = []
    for id in ids { covered.formUnion(try transaction.version(id)?.record.covers ?? []) }
    for id in ids where !covered.contains(id) {
      try transaction.run("DELETE FROM covered WHERE id = ?", [id.bytes])
    }
    try HeadTable.rebuild(in: database)
  }

  /// Appends everything that the cloud may lack, in place of the groups that the outbox has lost.
  private func offerAgain(in transaction: inout StoreTransaction) throws {
    let waiting = Set(try transaction.outbox(limit: transaction.outboxCount()).flatMap(\.versions))
    let unsent = try transaction.versions(
      "SELECT \(VersionRow.columns) FROM version WHERE acknowledged = 0 ORDER BY position DESC", [])
    try transaction.offerAgain(
      unsent.map(\.record).filter { !waiting.contains($0.id) }, transaction.cells(in: nil))
  }
}
