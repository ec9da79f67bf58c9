/// Why a database that ships with the game can't be used.
public struct ReferenceError: Error, Sendable, CustomStringConvertible {
  /// What kind of failure it is: what a program branches on.
  public enum Code: String, Sendable, Hashable, CaseIterable {
    /// There is no such file.
    case missing
    /// The system doesn't let it be read, or the disk failed.
    case unreadable
    /// The file isn't the one that the hash was taken of: altered, cut off, or of another release of the game.
    case otherHash
    /// The file has the hash, and is no SQLite database.
    case notADatabase
    /// The file has the hash, and what SQLite reads in it makes no sense.
    case damaged
    /// The call is wrong: text that is no hash, a database that still has a log beside it.
    case misuse
  }

  /// What kind of failure it is.
  public var code: Code
  /// A sentence that a person can act on.
  public var message: String
  /// What reported the failure below, if anything did.
  public var cause: (any Error)?

  /// Makes an error.
  ///
  /// - Parameters:
  ///   - code: What kind of failure it is.
  ///   - message: A sentence that a person can act on.
  ///   - cause: What reported the failure below, if anything did.
  public init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
    (self.code, self.message, self.cause) = (code, message, cause)
  }

  public var description: String {
    let reason = cause.map { " (\($0))" } ?? ""
    return "\(message) [\(code.rawValue)]\(reason)"
  }
}
