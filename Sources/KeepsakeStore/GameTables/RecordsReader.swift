package import Foundation
import GRDB

/// The game's own tables, opened only for reading; the game may have them open.
package final class RecordsReader: Sendable {
  package struct Table: Sendable, Hashable, Codable {
    package var name: String
    /// Nil if they can't be read: full-text search whose own tables are damaged, or that this SQLite doesn't support.
    package var rows: Int?
  }

  private let queue: DatabaseQueue

  /// Opens the tables in the folder of a game's data; nil if there are none.
  ///
  /// SQLite may create its own empty files beside a database that isn't open anywhere, so if they don't exist, the
  /// folder must be writable.
  ///
  /// - Throws: `StoreError`: `damaged` if they can't be opened.
  package static func open(in folder: URL) throws -> RecordsReader? {
    let files = RecordsFiles(folder: folder)
    guard StoreFiles.exists(files.database) else {
      if StoreFiles.exists(files.workshop) {
        throw StoreError(.damaged, "a recovery of the records was interrupted; opening the game's data finishes it")
      }
      guard !files.isPresent else { throw StoreError(.damaged, "the database of the records is missing") }
      return nil
    }
    return try StoreError.translating("opening the records for reading") {
      var configuration = RecordsAudit.configuration("keepsake.records.reader")
      configuration.busyMode = .timeout(RecordsDatabase.busySeconds)
      return RecordsReader(try DatabaseQueue(path: files.database.path, configuration: configuration))
    }
  }

  private init(_ queue: DatabaseQueue) { self.queue = queue }

  /// Returns what is wrong with the file and its indexes; empty if nothing is. Reads all of it.
  package func problems() throws -> [String] {
    try StoreError.translating("checking the records") {
      try queue.readAround { try RecordsAudit.run(on: $0, .everything).all }
    }
  }

  /// Returns the game's tables, sorted by name, with their row counts. Costs a pass over each.
  package func tables() throws -> [Table] {
    try StoreError.translating("reading the records") { try queue.readAround { try Self.tables(in: $0) } }
  }

  /// Excludes the tables of SQLite, of GRDB, and those that full-text search keeps besides its own.
  static func tables(in database: Database) throws -> [Table] {
    let names = try String.fetchAll(
      database,
      sql: """
        SELECT name FROM sqlite_master AS item WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
        AND name NOT LIKE 'grdb\\_%' ESCAPE '\\'
          AND NOT EXISTS (SELECT 1 FROM sqlite_master AS owner WHERE owner.sql LIKE 'CREATE VIRTUAL%'
            AND substr(item.name, 1, length(owner.name) + 1) = owner.name || '_')
        ORDER BY name
        """)
    return try names.map { name in
      do {
        return Table(name: name, rows: try Int.fetchOne(database, sql: "SELECT COUNT(*) FROM \(name.quotedIdentifier)"))
      } catch let error as DatabaseError where error.isDamage {
        return Table(name: name, rows: nil)
      }
    }
  }
}

extension DatabaseQueue {
  /// Reads what can be read around a lost page, although SQLite then ends the transaction with an error.
  func readAround<Value>(_ body: (Database) throws -> Value) throws -> Value {
    var value: Value?
    do {
      return try read { database in
        let read = try body(database)
        value = read
        return read
      }
    } catch let error as DatabaseError where error.isBrokenFile {
      guard let value else { throw error }
      return value
    }
  }
}
