import Foundation
import GRDB
import GRDBSQLite

/// The columns of a statement's current row, by their indexes.
///
/// For queries that take about as long as GRDB needs for a `Row`, which looks up the names of all columns first: those
/// for a few rows by a key, which a commit and an exchange make for each version.
struct Columns {
  fileprivate let statement: SQLiteStatement

  /// - Throws: `damaged` for NULL or another type, as all of these.
  func data(_ index: Int32, _ column: String) throws -> Data {
    try check(index, column, SQLITE_BLOB)
    let count = Int(sqlite3_column_bytes(statement, index))
    // SQLite has no address for a blob without bytes.
    guard count > 0, let bytes = sqlite3_column_blob(statement, index) else { return Data() }
    return Data(bytes: bytes, count: count)
  }

  func text(_ index: Int32, _ column: String) throws -> String {
    try check(index, column, SQLITE_TEXT)
    guard let bytes = sqlite3_column_text(statement, index) else { return "" }
    return String(cString: bytes)
  }

  func integer(_ index: Int32, _ column: String) throws -> Int64 {
    try check(index, column, SQLITE_INTEGER)
    return sqlite3_column_int64(statement, index)
  }

  func flag(_ index: Int32, _ column: String) throws -> Bool { try integer(index, column) != 0 }

  private func check(_ index: Int32, _ column: String, _ type: Int32) throws {
    switch sqlite3_column_type(statement, index) {
    case type: return
    case SQLITE_NULL: throw StoreError(.damaged, "a row of the store lacks its \(column)")
    default: throw StoreError(.damaged, "a row of the store has a \(column) of the wrong type")
    }
  }
}

extension Database {
  /// Returns the first row of a query with one argument, as `read` makes it; nil if there is none.
  func first<Value>(_ sql: String, _ key: Data, _ read: (Columns) throws -> Value) throws -> Value? {
    try key.withUnsafeBytes { bytes in
      // SQLite takes a blob without an address for NULL.
      try rows(sql) {
        bytes.isEmpty ? sqlite3_bind_zeroblob($0, 1, 0) : $0.bind(bytes)
      } read: { statement in
        try next(statement) ? read(Columns(statement: statement)) : nil
      }
    }
  }

  /// Returns whether a query with one argument has a row.
  func exists(_ sql: String, _ key: Data) throws -> Bool { try first(sql, key) { _ in true } ?? false }

  /// Returns all rows of a query with one argument, as `read` makes them.
  func all<Value>(_ sql: String, _ key: String, _ read: (Columns) throws -> Value) throws -> [Value] {
    var key = key
    return try key.withUTF8 { text in
      try rows(sql) {
        $0.bind(text)
      } read: { statement in
        var values: [Value] = []
        while try next(statement) { values.append(try read(Columns(statement: statement))) }
        return values
      }
    }
  }

  /// Calls `body` with each row of a query without arguments.
  func each(_ sql: String, _ body: (Columns) throws -> Void) throws {
    try rows(sql) { _ in
      SQLITE_OK
    } read: { statement in
      while try next(statement) { try body(Columns(statement: statement)) }
    }
  }

  /// Runs a query. What `bind` binds has to stay where it is until this returns.
  private func rows<Value>(
    _ sql: String, _ bind: (SQLiteStatement) -> Int32, read: (SQLiteStatement) throws -> Value
  ) throws -> Value {
    let cached = try cachedStatement(sql: sql)
    let statement = cached.sqliteStatement
    defer {
      // It would hold the database's state until its next use, and the argument for longer than that is there.
      withExtendedLifetime(cached) {
        sqlite3_reset(statement)
        sqlite3_clear_bindings(statement)
      }
    }
    let code = bind(statement)
    guard code == SQLITE_OK else { throw failure(code) }
    return try read(statement)
  }

  private func next(_ statement: SQLiteStatement) throws -> Bool {
    switch sqlite3_step(statement) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let code: throw failure(code)
    }
  }

  private func failure(_ code: Int32) -> DatabaseError {
    DatabaseError(resultCode: ResultCode(rawValue: code), message: lastErrorMessage)
  }
}

extension SQLiteStatement {
  fileprivate func bind(_ blob: UnsafeRawBufferPointer) -> Int32 {
    sqlite3_bind_blob(self, 1, blob.baseAddress, Int32(clamping: blob.count), nil)
  }

  fileprivate func bind(_ text: UnsafeBufferPointer<UInt8>) -> Int32 {
    text.withMemoryRebound(to: CChar.self) { characters in
      // An empty text has an address, too: without one it would be NULL.
      characters.isEmpty
        ? sqlite3_bind_text(self, 1, "", 0, unsafeBitCast(-1, to: sqlite3_destructor_type.self))
        : sqlite3_bind_text(self, 1, characters.baseAddress, Int32(clamping: characters.count), nil)
    }
  }
}
