#if Cloud
import Foundation
import GRDB

/// Notes in a cloud's SQLite database which players have changed since they were copied, whatever process changes them.
///
///     moveState     where the cloud goes, and how far its players were listed
///     moveChanged   what is still to be copied, and how often it has changed since it was listed
///
/// A player's entry goes when its rows were copied as they are at this count: whenever the copying ends, what is to be
/// copied again is known.
struct ChangeCapture: Sendable {
  /// What is copied by itself.
  enum Kind: Int64, Sendable {
    /// All rows of a container.
    case container = 0
    /// A proof of identity.
    case use = 1

    var tables: [MovedTable] { self == .container ? MovedTable.ofPlayer : [MovedTable.uses] }
  }
  struct Entry: Hashable, Sendable {
    var kind: Kind
    var id: Data
  }
  struct State: Sendable {
    /// Told apart from any other cloud.
    var source: Data
    /// Where it goes: a host and a database.
    var target: String
    var isListed: Bool
  }
  private static let pageSize = 1_000

  // MARK: Installing

  /// Begins to note changes, unless that has begun. If triggers are missing, as after a newer version has made tables
  /// anew, everything counts as changed.
  static func install(in db: Database, target: String) throws -> State {
    if let state = try state(in: db) {
      guard state.target == target else {
        throw ServerError(
          .configuration,
          "This cloud is being moved to \(state.target), and not to \(target): go on there, or use --abandon first.")
      }
      let expected = triggers
      let found = try Set(
        String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name GLOB 'moveNote_*'"))
      if found == Set(expected.map(\.name)) { return state }
      for name in found { try db.execute(sql: "DROP TRIGGER \"\(name)\"") }
      for trigger in expected { try db.execute(sql: trigger.sql) }
      try forgetCopied(in: db)
      return State(source: state.source, target: target, isListed: false)
    }
    try db.execute(
      sql: """
        CREATE TABLE moveState (
          id INTEGER PRIMARY KEY CHECK (id = 1), source BLOB NOT NULL, target TEXT NOT NULL, listed TEXT, place BLOB,
          fenced INTEGER, ending INTEGER
        ) STRICT;
        CREATE TABLE moveChanged (
          kind INTEGER NOT NULL, id BLOB NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (kind, id)
        ) STRICT, WITHOUT ROWID;
        """)
    let source = randomID()
    try db.execute(
      sql: "INSERT INTO moveState (id, source, target, listed) VALUES (1, ?, ?, '')", arguments: [source, target])
    for trigger in triggers { try db.execute(sql: trigger.sql) }
    return State(source: source, target: target, isListed: false)
  }

  static func state(in db: Database) throws -> State? {
    guard try db.tableExists("moveState") else { return nil }
    return try Row.fetchOne(db, sql: "SELECT source, target, listed FROM moveState").map { row in
      State(
        source: try row.decode(atIndex: 0), target: try row.decode(atIndex: 1),
        isListed: try row.decode(String?.self, atIndex: 2) == nil)
    }
  }

  /// When the fence was built, in milliseconds since 1970; nil without one.
  static func fenced(in db: Database) throws -> Int64? {
    try Int64.fetchOne(db, sql: "SELECT fenced FROM moveState WHERE fenced IS NOT NULL")
  }

  static func setFenced(_ milliseconds: Int64, in db: Database) throws {
    try db.execute(sql: "UPDATE moveState SET fenced = ?", arguments: [milliseconds])
  }

  /// Whether the other database may have been told that the cloud is there: what it says counts, and nothing else.
  static func mayHaveEnded(in db: Database) throws -> Bool {
    try Row.fetchOne(db, sql: "SELECT 1 FROM moveState WHERE ending IS NOT NULL") != nil
  }

  /// Notes that the other database is about to be told that the cloud is there.
  static func setEnding(in db: Database) throws { try db.execute(sql: "UPDATE moveState SET ending = 1") }

  /// Notes that the fence is removed.
  static func setOpen(in db: Database) throws {
    try db.execute(sql: "UPDATE moveState SET fenced = NULL, ending = NULL")
  }

  /// Begins anew with a database that knows nothing of this move: one that does can't be finished any more.
  ///
  /// - Returns: What tells the cloud apart from now on.
  static func renew(in db: Database) throws -> Data {
    try forgetCopied(in: db)
    let source = randomID()
    try db.execute(sql: "UPDATE moveState SET source = ?", arguments: [source])
    return source
  }

  static func randomID() -> Data {
    withUnsafeBytes(of: (UInt64.random(in: .min ... .max), UInt64.random(in: .min ... .max))) { Data($0) }
  }

  /// Whether nothing can have changed without being noted.
  static func isWhole(in db: Database) throws -> Bool {
    let found = try Set(
      String.fetchAll(db, sql: "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name GLOB 'moveNote_*'"))
    return found == Set(triggers.map(\.name))
  }

  /// Has everything listed and copied anew, as after the database was set back to a backup.
  static func forgetCopied(in db: Database) throws {
    guard try db.tableExists("moveState") else { return }
    try db.execute(sql: "UPDATE moveState SET listed = '', place = NULL")
  }

  /// Stops noting changes.
  static func remove(in db: Database) throws {
    let names = try String.fetchAll(
      db, sql: "SELECT name FROM sqlite_master WHERE type = 'trigger' AND name GLOB 'moveNote_*'")
    for name in names { try db.execute(sql: "DROP TRIGGER \"\(name)\"") }
    try db.execute(sql: "DROP TABLE IF EXISTS moveChanged; DROP TABLE IF EXISTS moveState")
  }

  // MARK: Triggers

  static var triggers: [(name: String, sql: String)] {
    var all: [(name: String, sql: String)] = []
    func add(_ table: String, _ event: String, _ kind: Kind, _ owner: (String) -> String) {
      let rows = event == "INSERT" ? ["new"] : event == "DELETE" ? ["old"] : ["old", "new"]
      let name = "moveNote_\(table)_\(event)"
      let body = rows.map { note(kind, owner($0)) }.joined(separator: "\n")
      all.append((name, "CREATE TRIGGER \(name) AFTER \(event) ON \"\(table)\" BEGIN\n\(body)\nEND"))
    }
    for event in ["INSERT", "UPDATE", "DELETE"] {
      for table in MovedTable.ofPlayer where table.layout != .reached {
        add(table.local, event, .container) { row in
          table.isNumbered ? numbered(row) : "SELECT \(row).\(table.localOwner), 1"
        }
      }
      add("head", event, .container, numbered)
      add(MovedTable.uses.local, event, .use) { "SELECT \($0).key, 1" }
    }
    // What REPLACE removes is noted nowhere else.
    for table in MovedTable.ofPlayer where !table.unique.isEmpty {
      let name = "moveNote_\(table.local)_REPLACE"
      let same = table.unique.map { "\(MovedTable.local($0)) = new.\(MovedTable.local($0))" }
      let owner = """
        SELECT \(table.localOwner), 1 FROM \(table.local)
        WHERE \(same.joined(separator: " AND ")) AND \(table.localOwner) <> new.\(table.localOwner)
        """
      all.append(
        (name, "CREATE TRIGGER \(name) BEFORE INSERT ON \"\(table.local)\" BEGIN\n\(note(.container, owner))\nEND"))
    }
    return all
  }

  private static func numbered(_ row: String) -> String {
    "SELECT id, 1 FROM container WHERE number = \(row).container"
  }

  private static func note(_ kind: Kind, _ owner: String) -> String {
    """
    INSERT INTO moveChanged (kind, id, count) SELECT \(kind.rawValue), * FROM (\(owner)) WHERE true
    ON CONFLICT (kind, id) DO UPDATE SET count = count + 1;
    """
  }

  // MARK: Listing

  /// Lists some of what was here before changes were noted, beginning where the last call ended.
  ///
  /// - Returns: Whether anything is left to list.
  static func listMore(in database: any DatabaseWriter) throws -> Bool {
    let tables = MovedTable.ofPlayer.filter { $0.layout == .plain || $0.layout == .containers } + [MovedTable.uses]
    let found = try database.read { db -> (name: String, next: String?, ids: [Data])? in
      let row = try Row.fetchOne(db, sql: "SELECT listed, place FROM moveState")
      guard let row, let listed = try row.decode(String?.self, atIndex: 0) else { return nil }
      let index = tables.firstIndex { $0.name == listed } ?? 0
      let table = tables[index]
      var ids: [Data] = []
      var last = try row.decode(Data?.self, atIndex: 1)
      while ids.count < pageSize {
        let next = try Data.fetchOne(
          db.cachedStatement(
            sql: """
              SELECT \(table.localOwner) FROM \(table.local) WHERE ?1 IS NULL OR \(table.localOwner) > ?1
              ORDER BY \(table.localOwner) LIMIT 1
              """), arguments: [last])
        guard let next else { break }
        ids.append(next)
        last = next
      }
      let isOver = ids.count < pageSize
      return (table.name, isOver ? (index + 1 < tables.count ? tables[index + 1].name : nil) : table.name, ids)
    }
    guard let found else { return false }
    try database.write { db in
      for id in found.ids {
        try db.cachedStatement(
          sql: """
            INSERT INTO moveChanged (kind, id, count) VALUES (?, ?, 1) ON CONFLICT (kind, id) DO UPDATE
            SET count = count + 1
            """
        ).execute(
          arguments: [(found.name == MovedTable.uses.name ? Kind.use : Kind.container).rawValue, id])
      }
      try db.execute(
        sql: "UPDATE moveState SET listed = ?, place = ?",
        arguments: [found.next, found.next == found.name ? found.ids.last : nil])
    }
    return found.next != nil
  }

  // MARK: What is to be copied

  static func waiting(in db: Database) throws -> Int {
    try Int.fetchOne(db, sql: "SELECT count(*) FROM moveChanged") ?? 0
  }

  /// Returns some of what is to be copied, in the order of their ids.
  static func entries(after last: Entry?, limit: Int, in db: Database) throws -> [Entry] {
    try Row.fetchAll(
      db.cachedStatement(
        sql: "SELECT kind, id FROM moveChanged WHERE (kind, id) > (?, ?) ORDER BY kind, id LIMIT ?"),
      arguments: [last?.kind.rawValue ?? -1, last?.id ?? Data(), limit]
    ).map { row in
      guard let kind = Kind(rawValue: try row.decode(atIndex: 0)) else {
        throw ServerError(.damaged, "What is to be moved can't be read.")
      }
      return Entry(kind: kind, id: try row.decode(atIndex: 1))
    }
  }

  /// How often an entry has changed; nil if it was copied.
  static func count(of entry: Entry, in db: Database) throws -> Int64? {
    try Int64.fetchOne(
      db.cachedStatement(sql: "SELECT count FROM moveChanged WHERE kind = ? AND id = ?"),
      arguments: [entry.kind.rawValue, entry.id])
  }

  /// Removes entries that were copied as they are at these counts.
  static func remove(_ copied: [(entry: Entry, count: Int64)], in db: Database) throws {
    for (entry, count) in copied {
      try db.cachedStatement(sql: "DELETE FROM moveChanged WHERE kind = ? AND id = ? AND count = ?").execute(
        arguments: [entry.kind.rawValue, entry.id, count])
    }
  }

  /// Has containers copied again.
  static func note(_ containers: [Data], in db: Database) throws {
    for container in containers {
      try db.cachedStatement(
        sql: """
          INSERT INTO moveChanged (kind, id, count) VALUES (0, ?, 1) ON CONFLICT (kind, id) DO UPDATE
          SET count = count + 1
          """
      ).execute(arguments: [container])
    }
  }
}
#endif
