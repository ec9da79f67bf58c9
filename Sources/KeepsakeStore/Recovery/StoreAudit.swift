import Foundation
import GRDB
import KeepsakeReplication

/// Checks a database for damage before its contents are trusted.
///
/// Finds altered rows by their checksums, damaged pages and indexes that disagree with their tables by SQLite's own
/// check, an altered schema by comparing it with the one that this release creates, and wrong derived tables by
/// deriving them again. Seals are verified later, on rows that are as they were written. An index matters as much as a
/// row: with a damaged one, a look-up silently misses the newest save. The bytes of contents aren't checked; they are
/// verified by their hash whenever they are read.
struct StoreAudit {
  struct Findings: Equatable {
    /// Only a recovery helps.
    var damage: [String] = []
    /// An index lacks entries; it can be rebuilt from its table.
    var indexes: [String] = []
    /// A derived table disagrees with the tables it derives from.
    var derived: [String] = []

    var isEmpty: Bool { damage.isEmpty && indexes.isEmpty && derived.isEmpty }
    var all: [String] { damage + indexes + derived }
  }

  /// Up to this size, the structure of the whole file is checked on each opening, which takes about a tenth of a
  /// second. In a larger one, the small tables and the index of contents are checked, but not the pages that only hold
  /// the bytes of contents.
  static let wholeCheckBytes = 64 << 20
  /// More findings than this help nobody.
  private static let maximumFindings = 20
  /// Tables that are small compared with the contents.
  private static let smallTables = [
    "fact", "cell", "preference", "version", "covered", "head", "content_use", "cloud_content", "outbox", "staged",
    "awaited", "ledger", "quarantine", "score", "performed",
  ]

  private let transaction: StoreTransaction
  private var database: Database { transaction.database }
  private(set) var findings = Findings()

  init(_ transaction: StoreTransaction) { self.transaction = transaction }

  /// Runs all checks. Costs one pass over the small tables, and for stores of up to 64 MiB one over the file.
  static func run(on transaction: StoreTransaction, whole: Bool? = nil) throws -> Findings {
    var audit = StoreAudit(transaction)
    do {
      try audit.checkSchema()
      if audit.findings.damage.isEmpty { try audit.checkStructure(whole: whole) }
      if audit.findings.damage.isEmpty { try audit.checkRows() }
      if audit.findings.damage.isEmpty { try audit.checkDerived() }
    } catch let error as DatabaseError where error.isDamage {
      audit.findings.damage.append("the database can't be read: \(error.message ?? "damaged")")
    }
    return audit.findings
  }

  // MARK: Schema

  private mutating func checkSchema() throws {
    let found = try Self.schema(of: database)
    if found != (try Self.expectedSchema.get()) { findings.damage.append("the schema of the tables was altered") }
  }

  /// Computed once per process.
  private static let expectedSchema = Result {
    try DatabaseQueue().write { database in
      try Schema.create(in: database)
      return try schema(of: database)
    }
  }

  /// The statements that created the tables, with one space for any white space, so that a release may break their
  /// lines elsewhere. Excludes SQLite's own tables, which statistics may add.
  private static func schema(of database: Database) throws -> [[String]] {
    let rows = try Row.fetchAll(
      database,
      sql: """
        SELECT type, name, tbl_name, COALESCE(sql, '') AS sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'
        ORDER BY name
        """)
    return try rows.map { row in
      let sql: String = try row.checked("sql")
      return [
        try row.checked("type"), try row.checked("name"), try row.checked("tbl_name"),
        sql.split(whereSeparator: \.isWhitespace).joined(separator: " "),
      ]
    }
  }

  // MARK: Structure

  private mutating func checkStructure(whole: Bool?) throws {
    let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
    let pageSize = try Int.fetchOne(database, sql: "PRAGMA page_size") ?? 0
    if whole ?? (pages.multipliedReportingOverflow(by: pageSize).partialValue <= Self.wholeCheckBytes) {
      try note(problemsIn: "integrity_check(\(Self.maximumFindings))")
    } else {
      for table in Self.smallTables { try note(problemsIn: "integrity_check(\(table))") }
      try checkWaysToContents()
    }
  }

  private mutating func note(problemsIn pragma: String) throws {
    for problem in try String.fetchAll(database, sql: "PRAGMA \(pragma)") where problem != "ok" {
      let isIndex = problem.contains("missing from index") || problem.hasPrefix("wrong # of entries in index")
      if isIndex { findings.indexes.append(problem) } else { findings.damage.append(problem) }
    }
  }

  /// Checks that each content is where its index says, and that the index has an entry for each. Reads no overflow
  /// pages.
  private mutating func checkWaysToContents() throws {
    let index = "sqlite_autoindex_content_1"
    let counts = try Row.fetchOne(
      database,
      sql: """
        SELECT (SELECT COUNT(*) FROM content NOT INDEXED) AS rows, COUNT(*) AS entries, COALESCE(SUM(a.hash = b.hash),
        0) AS agree
        FROM content a INDEXED BY \(index) JOIN content b NOT INDEXED ON b.position = a.position
        """)
    guard let counts else { return }
    let (rows, entries, agree): (Int, Int, Int) = (
      try counts.checked("rows"), try counts.checked("entries"), try counts.checked("agree")
    )
    if rows != entries || rows != agree { findings.indexes.append("wrong # of entries in index \(index)") }
    var last = Data()
    let cursor = try Data.fetchCursor(database, sql: "SELECT hash FROM content INDEXED BY \(index)")
    while let hash = try cursor.next() {
      if !last.isEmpty, !last.lexicographicallyPrecedes(hash) {
        findings.damage.append("the index of contents is out of order")
        return
      }
      last = hash
    }
  }

  // MARK: Rows

  private mutating func checkRows() throws {
    try check("version", "SELECT \(VersionRow.columns) FROM version") { row in
      let version = try VersionRow(row)
      try RowCodec.payload(of: version.body, place: version.place)
    }
    try check("cell", "SELECT collection, key, body FROM cell") { row in
      let key = CellKey(collection: try row.checked("collection"), key: try row.checked("key"))
      try RowCodec.payload(of: row.checked("body"), place: RowIdentity.cell(key))
    }
    try check("preference", "SELECT name, body FROM preference") { row in
      try RowCodec.payload(of: row.checked(at: 1, "body"), place: RowIdentity.preference(row.checked(at: 0, "name")))
    }
    try check("score", "SELECT \(ScoreRow.columns) FROM score") { row in
      let score = try ScoreRow(row)
      try RowCodec.payload(of: score.body, place: score.place)
    }
    let (codec, isSealed) = (transaction.codec, transaction.context.seal.kind != .none)
    try check("fact", "SELECT name, body FROM fact") { row in
      let (name, body): (String, Data) = (try row.checked("name"), try row.checked("body"))
      try RowCodec.payload(of: body, place: RowIdentity.fact(name))
      // The wallet is one row. If it is invalid despite a correct checksum, that must not prevent the rest from
      // opening. In a sealed store, the seal's audit checks it.
      if name == WalletBook.name, !isSealed { _ = try WalletBook.read(body, codec) }
    }
    try check("covered", "SELECT id, checksum FROM covered") { row in
      guard CoveredRow.isSound(id: try row.checked(at: 0, "id"), checksum: try row.checked(at: 1, "checksum")) else {
        throw StoreError(.damaged, "the id of a replaced version is damaged")
      }
    }
    try check("performed", "SELECT \(PerformedRow.columns) FROM performed") { _ = try PerformedRow($0) }
    try check("outbox", "SELECT id, body FROM outbox") { row in
      try RowCodec.payload(of: row.checked("body"), place: RowIdentity.outbox(row.checked("id")))
    }
    try check("staged", "SELECT body FROM staged") { row in
      try RowCodec.payload(of: row.checked("body"), place: RowIdentity.staged)
    }
    // Which contents the cloud has can be asked again; the columns of a content must at least have valid types and
    // lengths.
    let contents = try Int.fetchOne(
      database,
      sql: """
        SELECT COUNT(*) FROM content WHERE typeof(hash) != 'blob' OR LENGTH(hash) != 32 OR typeof(length) != 'integer'
        OR length < 0
          OR length > \(EncodedContent.maximumContentBytes) OR typeof(bytes) != 'blob' OR (base IS NOT NULL AND
          (typeof(base) != 'blob' OR LENGTH(base) != 32))
        """)
    if let contents, contents > 0 {
      findings.damage.append("values of the wrong type in \(CountText.of(contents, "content"))")
    }
  }

  private mutating func check(_ table: String, _ sql: String, _ body: (Row) throws -> Void) throws {
    var count = 0
    var first: String?
    let rows = try Row.fetchCursor(database, sql: sql)
    while let row = try rows.next() {
      do {
        try body(row)
      } catch let error as StoreError where error.code == .damaged {
        count += 1
        first = first ?? error.message
      }
    }
    if let first {
      findings.damage.append(count == 1 ? first : "\(first), and \(count - 1) more in the table \(table)")
    }
  }

  // MARK: What derives

  /// Checks that the rows of `content_use` are those that follow from the versions kept whole. Decodes versions only if
  /// there is a reason to.
  private mutating func checkDerived() throws {
    let suspects = try Int.fetchOne(
      database,
      sql: """
        SELECT EXISTS (SELECT 1 FROM content_use WHERE typeof(hash) != 'blob' OR typeof(version) != 'blob')
          OR EXISTS (SELECT 1 FROM content_use WHERE version NOT IN (SELECT id FROM version WHERE NOT thinned))
          OR EXISTS (SELECT 1 FROM content_use WHERE hash NOT IN (SELECT hash FROM content))
          OR EXISTS (SELECT 1 FROM version WHERE NOT thinned AND id NOT IN (SELECT version FROM content_use))
          OR EXISTS (SELECT 1 FROM content WHERE hash NOT IN (SELECT hash FROM content_use)
            AND hash NOT IN (SELECT base FROM content WHERE base IS NOT NULL))
        """)
    if suspects != 0, try !ContentUse.isAsImplied(in: transaction) {
      findings.derived.append("the record of which contents the saves need was wrong")
    }
    if try !Counters.areSound(in: database) { findings.derived.append("the store's counters were wrong") }
    if try !HeadTable.isAsImplied(in: database) {
      findings.derived.append("the record of which saves are the newest was wrong")
    }
    let clouds = try Int.fetchOne(
      database,
      sql: """
        SELECT COUNT(*) FROM cloud_content WHERE typeof(depth) != 'integer' OR depth NOT BETWEEN 0 AND 1000
          OR typeof(hash) != 'blob' OR LENGTH(hash) != 32
        """)
    if let clouds, clouds > 0 { findings.derived.append("the record of which contents the cloud has was wrong") }
  }
}

extension DatabaseError {
  /// Whether the file itself caused the error, and not the disk, a lack of space, or another process that has the file
  /// open.
  var isDamage: Bool {
    switch resultCode {
    case .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR, .SQLITE_FORMAT, .SQLITE_MISMATCH, .SQLITE_CONSTRAINT,
      .SQLITE_SCHEMA,
      .SQLITE_TOOBIG, .SQLITE_EMPTY, .SQLITE_INTERNAL, .SQLITE_RANGE:
      true
    default: false
    }
  }
}
