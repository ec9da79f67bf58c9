#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

/// Copies the rows of a container, which is fenced in both databases, from one to the other, and compares them.
///
/// Each page takes the place of what is between its keys. So all of it may be repeated, and what an earlier move has
/// left doesn't stay.
struct ShardCopy: Sendable {
  /// About how many bytes a transaction writes.
  private static let bytesAtOnce = 2 << 20
  private static let statementsAtOnce = 500
  private static let empty = ContentHash(of: Data())

  let source: PostgreSQLStorage
  let target: PostgreSQLStorage
  let container: ContainerID
  let generation: Int64

  private var id: PostgreSQLValue { .bytes(container.bytes) }

  // MARK: Fences

  /// Takes a container's fence in a database. Fails with a division by zero if somebody has a newer generation, or if
  /// everything of the player was deleted: a deletion leaves no fence, and nothing of the player may come again.
  static func taking(_ container: ContainerID, _ generation: Int64) -> PostgreSQLStatement {
    PostgreSQLStatement(
      """
      WITH held AS (
        INSERT INTO fence (container, generation)
        SELECT $1::bytea, $2::bigint WHERE NOT EXISTS (SELECT 1 FROM retired WHERE container = $3 AND device = '')
        ON CONFLICT (container) DO UPDATE SET generation = excluded.generation
        WHERE fence.generation <= excluded.generation RETURNING 1
      ) SELECT 1 / count(*) FROM held
      """, [.bytes(container.bytes), .int(generation), .bytes(container.deletedMark)])
  }

  /// Sees in a transaction that the fence is still held. Fails with a division by zero otherwise.
  static func holding(_ container: ContainerID, _ generation: Int64) -> PostgreSQLStatement {
    PostgreSQLStatement(
      """
      WITH held AS (
        UPDATE fence SET generation = generation WHERE container = $1 AND generation = $2 RETURNING 1
      ) SELECT 1 / count(*) FROM held
      """, [.bytes(container.bytes), .int(generation)])
  }

  /// Says that a container isn't whole in a database, so that nobody makes it live there.
  private static func breaking(_ container: ContainerID) -> PostgreSQLStatement {
    PostgreSQLStatement("UPDATE fence SET whole = -1 WHERE container = $1", [.bytes(container.bytes)])
  }

  /// Takes a container's fence in a database, and does more in the same transaction. It may be repeated.
  ///
  /// - Throws: `Overtaken` if somebody has a newer generation, or everything of the player was deleted.
  static func take(
    _ container: ContainerID, _ generation: Int64, and statements: [PostgreSQLStatement],
    in storage: PostgreSQLStorage
  ) async throws {
    // Also if the player was deleted since the transaction began.
    let all =
      [taking(container, generation)] + statements
      + PostgreSQLTransaction.refusingDeleted(container.deletedMark)
    do {
      try await run(all, in: storage)
    } catch let error as PostgreSQLError where error.state == .uniqueViolation {
      throw ShardMover.Overtaken()
    }
  }

  /// Runs a transaction that begins with one of these. All of them may be repeated.
  ///
  /// - Throws: `Overtaken` if the fence isn't held.
  @discardableResult
  static func run(_ statements: [PostgreSQLStatement], in storage: PostgreSQLStorage) async throws -> [PostgreSQLRows] {
    do {
      return try await storage.read(statements)
    } catch let error as PostgreSQLError where error.state == .divisionByZero {
      throw ShardMover.Overtaken()
    }
  }

  /// Says that all containers of a family have been copied. Of a database that has forgotten some of it, as one that
  /// takes over may, all of them are missing or none.
  static func complete(_ family: [ContainerID], _ generation: Int64, in storage: PostgreSQLStorage) async throws {
    let whole = PostgreSQLStatement(
      "UPDATE fence SET whole = generation WHERE container = ANY($1)", [.list(family.map(\.bytes))])
    try await run(family.map { holding($0, generation) } + [whole], in: storage)
  }

  /// What there is of a container in a database.
  struct Rest: Hashable, Sendable {
    enum Kind: Sendable {
      case nothing
      /// It lives there.
      case living
      /// All of it, fenced.
      case whole
      /// Some of it, or only that it lives elsewhere.
      case remainder
    }
    var kind: Kind
    /// Its fence's; -1 without one.
    var generation: Int64

    /// Whether all of it is there.
    var isAll: Bool { kind == .living || kind == .whole }
  }

  static func rest(of container: ContainerID, in storage: PostgreSQLStorage) async throws -> Rest {
    let id: [PostgreSQLValue] = [.bytes(container.bytes)]
    let answers = try await storage.read([
      PostgreSQLStatement("SELECT revision FROM container WHERE id = $1", id),
      PostgreSQLStatement("SELECT generation, whole FROM fence WHERE container = $1", id),
    ])
    let (revision, fence) = (try answers[0].first?.int(0), answers[1].first)
    let isWhole = try fence?.optionalInt(1) != -1
    let kind: Rest.Kind = revision.map { $0 >= 0 ? .living : isWhole ? .whole : .remainder } ?? .nothing
    return Rest(kind: kind, generation: try fence?.int(0) ?? -1)
  }

  // MARK: Copying

  /// Copies everything.
  ///
  /// - Returns: The digests of what was read, by table.
  func copy() async throws -> [String: ContentHash] {
    try await copyContainer()
    var digests: [String: ContentHash] = [:]
    var batch: [PostgreSQLStatement] = []
    var bytes = 0
    try await read(ShardTable.all.reversed(), from: source) { table, page in
      digests[table.name, default: Self.empty].add(page.rows)
      batch.append(table.removal(of: container.bytes, after: page.lower, through: page.upper))
      if !page.rows.rows.isEmpty { batch.append(try table.insertion(of: page.rows, container.bytes)) }
      bytes += page.rows.rows.reduce(0) { $0 + $1.reduce(0) { $0 + ($1?.count ?? 0) } }
      guard bytes > Self.bytesAtOnce || batch.count > Self.statementsAtOnce else { return }
      try await write(batch)
      (batch, bytes) = ([], 0)
    }
    try await write(batch + copiedPlaces() + copiedProofs())
    return digests
  }

  /// Some rows of a table.
  private struct Page {
    var rows: PostgreSQLRows
    /// The key behind which it begins; nil for the first one.
    var lower: [PostgreSQLValue]?
    /// The key with which it ends; nil for the last one.
    var upper: [PostgreSQLValue]?
  }

  /// Reads all rows, of each table a page at a time, those of all tables together: most players have no second page.
  /// Parts of contents come last, since only their objects say which ones count.
  private func read(
    _ tables: [ShardTable], from storage: PostgreSQLStorage, _ body: (ShardTable, Page) async throws -> Void
  ) async throws {
    for together in [tables.filter { $0.name != "content_part" }, tables.filter { $0.name == "content_part" }] {
      var open = together.map { (table: $0, lower: [PostgreSQLValue]?.none) }
      while !open.isEmpty {
        let answers = try await storage.read(open.map { $0.table.page(of: container.bytes, after: $0.lower) })
        var further: [(table: ShardTable, lower: [PostgreSQLValue]?)] = []
        for (now, rows) in zip(open, answers) {
          let page = Page(rows: rows, lower: now.lower, upper: try now.table.end(of: rows))
          try await body(now.table, page)
          if let upper = page.upper { further.append((now.table, upper)) }
        }
        open = further
      }
    }
  }

  private func write(_ statements: [PostgreSQLStatement]) async throws {
    // The move may have been undone.
    try Task.checkCancellation()
    do {
      try await Self.run([Self.holding(container, generation)] + statements, in: target)
    } catch let error as PostgreSQLError where error.state == .uniqueViolation {
      throw ServerError(
        .damaged, "Another player has something there that only one may have, such as a recovery code.", cause: error)
    }
  }

  private static let columns = "epoch, seq, mark, revision, used, bank"

  private func copyContainer() async throws {
    let read = PostgreSQLStatement("SELECT \(Self.columns) FROM container WHERE id = $1 AND revision < 0", [id])
    guard let row = try await source.read([read])[0].first else { throw ShardMover.Overtaken() }
    let numbers = try (0..<5).map { PostgreSQLValue.int(try row.int($0)) }
    // One that is live there is no copy.
    let write = PostgreSQLStatement(
      """
      WITH written AS (
        INSERT INTO container (id, \(Self.columns)) VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, seq = excluded.seq, mark = excluded.mark,
          revision = excluded.revision, used = excluded.used, bank = excluded.bank
        WHERE container.revision < 0 RETURNING 1
      ) SELECT 1 / count(*) FROM written
      """, [id] + numbers + [.bytes(try row.optionalBytes(5))])
    try await Self.take(container, generation, and: [Self.breaking(container), write], in: target)
  }

  /// The places of large contents, which a server looks for when it starts.
  private func copiedPlaces() async throws -> [PostgreSQLStatement] {
    let read = PostgreSQLStatement(
      "SELECT DISTINCT place FROM content_object WHERE container = $1 AND taken = $2", [id, .int(.max)])
    return try await source.read([read])[0].map {
      PostgreSQLStatement(
        "INSERT INTO content_place (name) VALUES ($1) ON CONFLICT DO NOTHING", [.bytes(try $0.bytes(0))])
    }
  }

  /// Which proofs the devices have used lately. They are known by the proof, and not by the player.
  private func copiedProofs() async throws -> [PostgreSQLStatement] {
    let read = PostgreSQLStatement(
      """
      SELECT key, device, expires FROM identity_use
      WHERE device IN (SELECT id FROM device WHERE container = $1) ORDER BY expires DESC LIMIT 1000
      """, [id])
    return try await source.read([read])[0].map {
      PostgreSQLStatement(
        "INSERT INTO identity_use (key, device, expires) VALUES ($1, $2, $3) ON CONFLICT (key) DO NOTHING",
        [.bytes(try $0.bytes(0)), .bytes(try $0.bytes(1)), .int(try $0.int(2))])
    }
  }

  // MARK: Comparing

  /// Reads everything in the target, and compares it.
  ///
  /// - Throws: `ServerError` with `damaged` if a table isn't as it was read.
  func verify(_ digests: [String: ContentHash]) async throws {
    let container = PostgreSQLStatement("SELECT \(Self.columns) FROM container WHERE id = $1", [id])
    guard try await source.read([container])[0].rows == target.read([container])[0].rows else {
      throw Self.different("container")
    }
    var found: [String: ContentHash] = [:]
    try await read(ShardTable.all, from: target) { table, page in
      try Task.checkCancellation()
      found[table.name, default: Self.empty].add(page.rows)
    }
    for table in ShardTable.all where found[table.name] != digests[table.name] { throw Self.different(table.name) }
  }

  private static func different(_ table: String) -> ServerError {
    ServerError(.damaged, "A player's rows of the table \(table) aren't the same after copying: nothing was moved.")
  }

  // MARK: Removing

  /// Removes the rows of a container that lives elsewhere: all but the row that says so.
  ///
  /// - Parameter generation: The directory's.
  /// - Throws: `Overtaken` if the container has been moved on, or everything of the player was deleted.
  static func remove(_ container: ContainerID, from storage: PostgreSQLStorage, _ generation: Int64) async throws {
    let id = PostgreSQLValue.bytes(container.bytes)
    // One that is live isn't touched, whatever the directory says.
    let emptied = PostgreSQLStatement(
      """
      WITH emptied AS (
        INSERT INTO container (id, epoch, seq, mark, revision, used) VALUES ($1, 0, 0, 0, -1, 0)
        ON CONFLICT (id) DO UPDATE SET epoch = 0, seq = 0, mark = 0, used = 0, bank = NULL
        WHERE container.revision < 0 RETURNING 1
      ) SELECT 1 / count(*) FROM emptied
      """, [id])
    try await take(container, generation, and: [breaking(container), emptied], in: storage)
    // Home keeps what others mustn't have, too.
    var tables = ShardTable.all.filter { !($0.isClaimed && storage.isHome) }
    while !tables.isEmpty {
      // As long as a table has rows, those behind it may be needed to find them.
      let together = tables.first?.filter.isEmpty == false ? Array(tables.prefix(1)) : tables
      let answers = try await run(
        [holding(container, generation)] + together.map { $0.removal(of: container.bytes) }, in: storage)
      let done = zip(together, answers.dropFirst()).filter { $0.isWhole(removed: $1.count) }.map(\.0.name)
      tables.removeAll { done.contains($0.name) }
    }
  }
}

/// The SHA-256 of rows, in their order.
extension ContentHash {
  fileprivate mutating func add(_ rows: PostgreSQLRows) {
    guard !rows.rows.isEmpty else { return }
    var bytes = bytes
    for row in rows.rows {
      for column in row {
        let count = Int64(column?.count ?? -1)
        withUnsafeBytes(of: count.bigEndian) { bytes.append(contentsOf: $0) }
        if let column { bytes.append(column) }
      }
    }
    self = ContentHash(of: bytes)
  }
}
#endif
