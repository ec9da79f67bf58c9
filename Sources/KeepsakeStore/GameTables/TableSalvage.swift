import Foundation
import GRDB
import KeepsakeReplication

/// Copies what can be read of a damaged database with arbitrary tables into a new one, row by row.
///
/// SQLite copies the rows itself, so that they stay as they are. Where it encounters damage, later rows are searched
/// for by their row ids. The schema's SQL is run as single statements only, since it comes from a damaged file.
struct TableSalvage {
  /// The maximum number of unreadable places in one table. A file with more can't be read in the time that a player
  /// waits.
  private static let maximumHoles = 1_000
  /// How many rows are copied at a time, as long as all of them can be read.
  private static let batch: Int64 = 1_024
  /// Rows that refer to lost ones may themselves be referred to by others, so they are dropped in rounds.
  private static let maximumRounds = 100
  private static let migrations = "grdb_migrations"

  private let database: Database
  private var losses: [String] = []

  private init(_ database: Database) { self.database = database }

  /// Returns what is lost, in sentences; nil if nothing can be made of the file.
  static func run(from damaged: URL, to url: URL) throws -> [String]? {
    guard StoreFiles.exists(damaged) else { return nil }
    var configuration = Configuration()
    configuration.label = "keepsake.records.recovery"
    // Rows come in any order, and some are missing.
    configuration.foreignKeysEnabled = false
    configuration.prepareDatabase { database in
      // A failing row rolls back only itself. The file isn't used before it is synced as a whole.
      try database.execute(sql: "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA writable_schema = ON")
      // Rows that violate the game's own constraints were in the damaged tables, too. And the schema may come from
      // anybody.
      try database.execute(sql: "PRAGMA ignore_check_constraints = ON; PRAGMA trusted_schema = OFF")
    }
    let queue = try DatabaseQueue(path: url.path, configuration: configuration)
    do {
      let losses = try queue.writeWithoutTransaction { database -> [String]? in
        try database.execute(sql: "ATTACH DATABASE ? AS damaged", arguments: [damaged.path])
        var salvage = TableSalvage(database)
        return try salvage.run() ? salvage.losses : nil
      }
      try queue.close()
      return losses
    } catch {
      try queue.close()
      // The file isn't a database at all.
      guard let error = error as? DatabaseError,
        error.isDamage || error.isBrokenFile || error.resultCode == .SQLITE_CANTOPEN
      else {
        throw error
      }
      return nil
    }
  }

  private mutating func run() throws -> Bool {
    let items = try items().filter { item in
      guard !item.isMade else { return true }
      losses.append("the \(item.type) \(item.name) (its definition defines something else)")
      return false
    }
    let tables = items.filter { $0.type == "table" && !$0.isVirtual }
    guard !tables.isEmpty else { return false }
    try copySettings()
    for table in tables {
      guard try attempt("the table \(table.name)", { try $0.makeStatement(sql: table.sql).execute() }) else { continue }
      let isWhole = try copyRows(of: table.name)
      // The applied migrations must be known completely, or the next migration would fail forever.
      if table.name == Self.migrations, !isWhole {
        let index = "sqlite_autoindex_\(Self.migrations)_1"
        let sql =
          """
          INSERT OR IGNORE INTO main.\(Self.migrations) SELECT identifier FROM damaged.\(Self.migrations)
          INDEXED BY \(index)
          """
        guard try runs(sql) else { return false }
      }
    }
    _ = try runs("DELETE FROM main.sqlite_sequence")
    _ = try runs("INSERT INTO main.sqlite_sequence SELECT name, seq FROM damaged.sqlite_sequence")
    try database.execute(sql: "DETACH DATABASE damaged")
    for table in items where table.type == "table" && table.isVirtual {
      // Its data is in tables of its own, which are copied already. Created in the usual way, it would begin with empty
      // ones.
      try attempt("the table \(table.name)") {
        try $0.execute(
          sql: "INSERT INTO main.sqlite_master (type, name, tbl_name, rootpage, sql) VALUES ('table', ?, ?, 0, ?)",
          arguments: [table.name, table.name, table.sql])
      }
    }
    for kind in ["index", "view", "trigger"] {
      for item in items where item.type == kind {
        try attempt("the \(kind) \(item.name)") { try $0.makeStatement(sql: item.sql).execute() }
      }
    }
    try dropOrphans()
    return true
  }

  /// Returns the schema's entries except SQLite's own, in the order in which they were created.
  private func items() throws -> [SchemaItem] {
    try Row.fetchAll(
      database,
      sql:
        """
        SELECT type, name, sql FROM damaged.sqlite_master WHERE typeof(sql) = 'text'
        AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid
        """
    ).compactMap { row in
      guard let type = String.fromDatabaseValue(row["type"]), let name = String.fromDatabaseValue(row["name"]),
        let sql = String.fromDatabaseValue(row["sql"])
      else { return nil }
      return SchemaItem(type: type, name: name, sql: sql)
    }
  }

  /// Copies the numbers in the header that belong to the game.
  private func copySettings() throws {
    for name in ["user_version", "application_id"] {
      let value = try Int32.fetchOne(database, sql: "PRAGMA damaged.\(name)") ?? 0
      try database.execute(sql: "PRAGMA main.\(name) = \(value)")
    }
  }

  // MARK: Rows

  /// Copies the rows of a table. Returns false if some are lost.
  private mutating func copyRows(of table: String) throws -> Bool {
    let columns = try Row.fetchAll(
      database, sql: "SELECT name, type, pk, hidden FROM pragma_table_xinfo(?, 'main')", arguments: [table])
    let names = columns.filter { $0["hidden"] == 0 }.compactMap { String.fromDatabaseValue($0["name"]) }
    let keys = columns.filter { $0["pk"] != 0 }
    // An INTEGER primary key is the row id itself.
    let isKeyRowID = keys.count == 1 && String.fromDatabaseValue(keys[0]["type"])?.lowercased() == "integer"
    let taken = Set(columns.compactMap { String.fromDatabaseValue($0["name"])?.lowercased() })
    let rowID = ["rowid", "_rowid_", "oid"].first { !taken.contains($0) }
    let quoted = table.quotedIdentifier
    let list = names.map(\.quotedIdentifier).joined(separator: ", ")
    if let rowID, try database.isReadable("SELECT \(rowID) FROM main.\(quoted)") {
      let target = isKeyRowID ? list : "\(rowID), \(list)"
      return try copy(
        table, rowID: rowID,
        insert: "INSERT OR IGNORE INTO main.\(quoted) (\(target)) SELECT \(target) FROM damaged.\(quoted) NOT INDEXED")
    }
    let source = "SELECT \(list) FROM damaged.\(quoted)"
    if try runs("INSERT OR IGNORE INTO main.\(quoted) (\(list)) \(source)") {
      let copied = database.changesCount
      recordRefused(
        (try Int.fetchOne(database, sql: "SELECT COUNT(*) FROM damaged.\(quoted)") ?? 0) - copied, of: table)
      return true
    }
    // Without row ids, rows after a damaged place can't be found.
    let marks = names.map { _ in "?" }.joined(separator: ", ")
    var refused = 0
    defer { recordRefused(refused, of: table) }
    do {
      let insert = try database.makeStatement(sql: "INSERT OR IGNORE INTO main.\(quoted) (\(list)) VALUES (\(marks))")
      let rows = try Row.fetchCursor(database, sql: source)
      while let row = try rows.next() {
        try insert.execute(arguments: StatementArguments(row.databaseValues))
        if database.changesCount == 0 { refused += 1 }
      }
      return true
    } catch let error as DatabaseError where error.isDamage {
      losses.append("rows of \(table) from one point on")
      return false
    }
  }

  /// Copies the rows between the places that can't be read. Returns false if there are such places.
  private mutating func copy(_ table: String, rowID: String, insert: String) throws -> Bool {
    let source = "FROM damaged.\(table.quotedIdentifier) NOT INDEXED WHERE \(rowID)"
    let end =
      "SELECT MAX(id) AS last, COUNT(*) AS count FROM (SELECT \(rowID) AS id \(source) >= ? ORDER BY \(rowID) LIMIT ?)"
    var (next, count, holes, refused) = (Int64.min, Self.batch, 0, 0)
    while holes <= Self.maximumHoles {
      do {
        guard let row = try Row.fetchOne(database, sql: end, arguments: [next, count]),
          let last = Int64.fromDatabaseValue(row["last"]),
          let found = Int.fromDatabaseValue(row["count"])
        else { break }
        try database.execute(sql: "\(insert) WHERE \(rowID) BETWEEN ? AND ?", arguments: [next, last])
        refused += max(found - database.changesCount, 0)
        guard last < .max else { break }
        (next, count) = (last + 1, min(count * 2, Self.batch))
      } catch let error as DatabaseError where error.isDamage {
        if count > 1 {
          count = max(count / 8, 1)
          continue
        }
        holes += 1
        guard let found = try firstReadable(after: next, "SELECT \(rowID) \(source) >= ? ORDER BY \(rowID) LIMIT 1")
        else { break }
        (next, count) = (found, 1)
      }
    }
    recordRefused(refused, of: table)
    if holes > 0 { losses.append("rows of \(table) in \(CountText.of(holes, "place"))") }
    return holes == 0
  }

  /// Records rows that conflict with another one, which an index prevented until it was damaged.
  private mutating func recordRefused(_ count: Int, of table: String) {
    guard count > 0 else { return }
    losses.append("\(CountText.of(count, "row")) of \(table), against a rule of the table")
  }

  /// Returns the first row id after `start` that can be reached; nil if there is none. The row itself may be lost, too.
  private func firstReadable(after start: Int64, _ probe: String) throws -> Int64? {
    // Returns whether a row at or after `id` can be looked up, and its id, or nil after the last one.
    func row(from id: Int64) throws -> (isReadable: Bool, id: Int64?) {
      do {
        return (true, try Int64.fetchOne(database, sql: probe, arguments: [id]))
      } catch let error as DatabaseError where error.isDamage {
        return (false, nil)
      }
    }
    // A lost leaf at the beginning hides where the ids begin: usually at one.
    var (bad, step) = (try row(from: start).id ?? (start == .min ? 0 : start), Int64(1))
    while true {
      let (candidate, overflows) = bad.addingReportingOverflow(step)
      guard !overflows else { return nil }
      let found = try row(from: candidate)
      if found.isReadable {
        var (low, high) = (candidate - step, candidate)
        while high - low > 1 {
          let middle = low + (high - low) / 2
          if try row(from: middle).isReadable { high = middle } else { low = middle }
        }
        return try row(from: high).id
      }
      bad = candidate
      guard step <= .max / 2 else { return nil }
      step *= 2
    }
  }

  /// Drops rows whose parents are lost, which the game's next migration would otherwise refuse forever.
  private mutating func dropOrphans() throws {
    var dropped = 0
    for _ in 0..<Self.maximumRounds {
      let rows: [Row]
      do {
        rows = try Row.fetchAll(
          database, sql: "SELECT DISTINCT \"table\" AS name, rowid AS id FROM pragma_foreign_key_check")
      } catch let error as DatabaseError where error.isDamage || error.resultCode == .SQLITE_ERROR {
        // Invalid foreign keys can't be checked, and no row can violate them.
        losses.append("the check of foreign keys (\(error.message ?? "damaged"))")
        break
      }
      guard !rows.isEmpty else { break }
      for row in rows {
        guard let table = String.fromDatabaseValue(row["name"]), let id = Int64.fromDatabaseValue(row["id"]) else {
          continue
        }
        try database.execute(sql: "DELETE FROM \(table.quotedIdentifier) WHERE rowid = ?", arguments: [id])
        dropped += database.changesCount
      }
    }
    if dropped > 0 { losses.append("\(CountText.of(dropped, "row")) with references to lost ones") }
  }

  // MARK: Steps

  /// Returns whether a statement succeeds; a failure isn't recorded.
  private func runs(_ sql: String) throws -> Bool {
    do {
      try database.execute(sql: sql)
      return true
    } catch let error as DatabaseError where error.isDamage {
      return false
    }
  }

  /// Runs a step, and records the loss if it fails.
  @discardableResult
  private mutating func attempt(_ what: String, _ body: (Database) throws -> Void) throws -> Bool {
    do {
      try body(database)
      return true
    } catch let error as DatabaseError where error.isDamage {
      losses.append("\(what) (\(error.message ?? "damaged"))")
      return false
    }
  }
}

extension Database {
  /// Returns whether the statement is valid here.
  fileprivate func isReadable(_ sql: String) throws -> Bool {
    do {
      _ = try makeStatement(sql: sql)
      return true
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      return false
    }
  }
}

extension String {
  /// The string quoted as a name in a statement, whatever it contains; GRDB's own quoting doesn't escape quotation
  /// marks within it.
  var quotedIdentifier: String { "\"" + replacing("\"", with: "\"\"") + "\"" }
}
