public import Foundation

/// Why a `ReferenceDatabase` can't be used.
public struct ReferenceError: LocalizedError, Sendable, CustomStringConvertible {
  /// The kind of failure, for a program to branch on.
  public enum Code: String, Sendable, Hashable, CaseIterable {
    /// There is no such file.
    case missing
    /// The system doesn't allow reading the file, or the disk failed.
    case unreadable
    /// The file doesn't have the expected hash: it was altered or truncated, or belongs to another release of the game.
    case otherHash
    /// The file has the expected hash, but isn't a SQLite database.
    case notADatabase
    /// The file has the expected hash, but SQLite can't interpret its contents.
    case damaged
    /// The call is invalid: the text isn't a hash, or there is a log beside the database.
    case misuse
  }

  /// The kind of failure.
  public var code: Code
  /// A sentence for people that explains what they can do.
  public var message: String
  /// The underlying error, if there is one.
  public var cause: (any Error)?

  /// Makes an error.
  ///
  /// - Parameters:
  ///   - code: The kind of failure.
  ///   - message: A sentence that a person can act on.
  ///   - cause: The underlying error, if there is one.
  public init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
    (self.code, self.message, self.cause) = (code, message, cause)
  }

  public var description: String {
    let reason = cause.map { " (\($0))" } ?? ""
    return "\(message) [\(code.rawValue)]\(reason)"
  }

  public var errorDescription: String? { message }
}
