public import Foundation
import GRDB
import KeepsakePlatform
import KeepsakeReplication

/// Why a store, or a file written beside it, could not do what was requested.
///
/// Damage, input and output, a full disk, a newer store and misuse have different codes, because a game reacts to each
/// differently: it warns, retries, asks for space, asks for an update, or is corrected.
public struct StoreError: LocalizedError, Sendable, CustomStringConvertible {
  /// The kind of failure, for programs to branch on.
  public enum Code: String, Sendable, Hashable, CaseIterable {
    /// The stored data is not what was written: a hash, a checksum or the database itself is wrong.
    case damaged
    /// The disk or the operating system failed.
    case io
    /// No space is left, or the file exceeds the size that the system allows.
    case diskFull
    /// The system doesn't allow this process to read or write here.
    case notPermitted
    /// The store was written by a newer release of Keepsake and was left unchanged.
    case newerFormat
    /// The store is already open, in another process or elsewhere in this one.
    case inUse
    /// The game's files were removed, moved or replaced while they were open (`GameData.rescue(to:)`). What threw this
    /// isn't stored, unless `mayBeCommitted` is true.
    case removed
    /// What was requested isn't stored here.
    case missing
    /// A limit was exceeded; nothing was written.
    case tooLarge
    /// The time limit was too short; what was begun continues.
    case timedOut
    /// The data is intact, but was written without the game's secret, or moved from elsewhere (`Seal`).
    case tampered
    /// The store is sealed with another secret, or for another game, profile or player; nothing was changed.
    case wrongSecret
    /// The store isn't sealed as requested; nothing was changed.
    case otherSeal
    /// The call itself is wrong: a closed store, a file that isn't a store.
    case misuse
  }

  /// The kind of failure.
  public var code: Code
  /// A sentence that a person can act on.
  public var message: String
  /// The underlying error, if there is one.
  public var cause: (any Error)?

  /// Whether a commit that threw `removed` may be stored all the same, where the files are now: they were found to be
  /// gone only after it was written. False if it isn't stored anywhere, and for all other codes.
  ///
  /// Both are rare moments of one commit; the commits after it aren't stored. Saving again is safe in either case.
  /// Repeat an operation on the wallet only with the same `id:`, which counts once.
  public private(set) var mayBeCommitted = false

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - code: The kind of failure.
  ///   - message: A sentence that a person can act on.
  ///   - cause: The underlying error, if there is one.
  public init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
    self.code = code
    self.message = message
    self.cause = cause
  }

  public var description: String { "\(code.rawValue): \(explanation)" }

  /// What happened, with its cause.
  package var explanation: String {
    let undecided =
      mayBeCommitted ? "; what was being saved at that moment may be stored where those files are now" : ""
    let reason = cause.map { " (\(ErrorReason.text($0)))" } ?? ""
    return "\(message)\(undecided)\(reason)"
  }

  public var errorDescription: String? { message }

  mutating func setMayBeCommitted(_ mayBe: Bool = true) { mayBeCommitted = mayBe }
}

extension StoreError {
  /// Runs `body` and converts errors of SQLite and GRDB to a `StoreError`; other errors are rethrown.
  static func translating<Value>(_ doing: String, _ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch let error as DatabaseError {
      throw StoreError(error, doing: doing)
    } catch let error as RowDecodingError {
      throw StoreError(.damaged, "a row of the store contains an unexpected value: \(doing) failed", cause: error)
    }
  }

  init(_ error: DatabaseError, doing: String) {
    let code: Code
    let message: String
    switch error.resultCode {
    case .SQLITE_CORRUPT, .SQLITE_NOTADB:
      (code, message) = (.damaged, "the store's database is damaged: \(doing) failed")
    // The index beside the log can't grow.
    case .SQLITE_FULL,
      .SQLITE_IOERR where error.extendedResultCode == .SQLITE_IOERR_SHMSIZE:
      (code, message) = (.diskFull, "the disk is full: \(doing) failed, nothing was changed")
    case .SQLITE_TOOBIG:
      (code, message) = (.tooLarge, "a value is larger than the database allows: \(doing) failed, nothing was changed")
    case .SQLITE_BUSY, .SQLITE_LOCKED:
      (code, message) = (.inUse, "another program has locked the store's database: \(doing) failed")
    case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH:
      (code, message) = (.notPermitted, "the store can't be written: \(doing) failed")
    case .SQLITE_IOERR, .SQLITE_CANTOPEN, .SQLITE_PROTOCOL, .SQLITE_NOLFS:
      (code, message) = (.io, "the disk failed: \(doing) failed")
    case .SQLITE_NOMEM:
      (code, message) = (.io, "there is not enough memory: \(doing) failed")
    case .SQLITE_MISUSE, .SQLITE_INTERRUPT, .SQLITE_ABORT:
      (code, message) = (.misuse, "the store is closed: \(doing) failed")
    default:
      (code, message) = (.io, "\(doing) failed")
    }
    self.init(code, message, cause: error)
  }

  /// Describes a failed system call by its error number.
  init(errorNumber: Int32, doing: String) {
    let code: Code
    switch errorNumber {
    case ENOSPC, SystemCall.overQuota, EFBIG: code = .diskFull
    case EACCES, EPERM, EROFS: code = .notPermitted
    case ENOENT, ENOTDIR: code = .missing
    default: code = .io
    }
    self.init(code, "\(doing) failed: \(String(cString: strerror(errorNumber)))")
  }
}
