import GRDB

extension StoreError {
  /// Converts an error caused by the file or the disk; nil for an error in the statement itself, which SQLite's own
  /// error describes best.
  init?(ofFile error: DatabaseError, doing: String) {
    switch error.resultCode {
    case .SQLITE_CORRUPT, .SQLITE_NOTADB:
      self.init(
        .damaged, "the records are damaged: \(doing) failed; close and reopen the game's data to repair them",
        cause: error)
    case .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_CANTOPEN, .SQLITE_PROTOCOL, .SQLITE_NOLFS, .SQLITE_NOMEM,
      .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_PERM, .SQLITE_READONLY:
      self.init(error, doing: doing)
    default: return nil
    }
  }

  /// Returns whether the error means that no space is left, in whatever form.
  static func isFull(_ error: any Error) -> Bool {
    switch error {
    case let error as StoreError: error.code == .diskFull
    case let error as DatabaseError: StoreError(error, doing: "").code == .diskFull
    default: false
    }
  }
}
