import GRDB
import GRDBSQLite

extension Database {
  /// Makes SQLite leave the write-ahead log in place when the last connection closes, instead of removing whatever is
  /// at its path then.
  func keepLog() throws {
    var isKept: CInt = 1
    let code = sqlite3_file_control(sqliteConnection, "main", SQLITE_FCNTL_PERSIST_WAL, &isKept)
    guard code == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
  }
}
