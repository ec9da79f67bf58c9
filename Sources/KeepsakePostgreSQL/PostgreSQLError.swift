#if PostgreSQL
/// What can go wrong with a database, by what the caller can do about it.
package enum PostgreSQLError: Error, Hashable, Sendable {
  /// The server refused a statement; nothing of its transaction was done.
  case refused(State, message: String)
  /// The connection broke, or took too long, before the transaction was sent: nothing was done.
  case unreachable(String)
  /// The connection broke, or took too long, after the transaction was sent: it may have been done.
  case unknownOutcome(String)
  /// The server answered something that no correct one does.
  case unexpected(String)
  /// The address can't be used. Nothing of it is told: any part of it may be part of a password.
  case invalidAddress

  /// The five letters by which SQL names an error.
  package struct State: Hashable, Sendable, ExpressibleByStringLiteral {
    package var code: String

    package init(_ code: String) { self.code = code }
    package init(stringLiteral code: String) { self.code = code }

    package static let serializationFailure: State = "40001"
    package static let deadlock: State = "40P01"
    package static let lockNotAvailable: State = "55P03"
    package static let divisionByZero: State = "22012"
    package static let uniqueViolation: State = "23505"
    package static let readOnlyTransaction: State = "25006"
    package static let queryCanceled: State = "57014"
    package static let adminShutdown: State = "57P01"
    package static let diskFull: State = "53100"
    package static let undefinedTable: State = "42P01"
    package static let duplicateTable: State = "42P07"
    /// Also of a table's type, if two make the same table at a time.
    package static let duplicateObject: State = "42710"
    package static let unknownStatement: State = "26000"
    package static let featureNotSupported: State = "0A000"
  }

  package var state: State? {
    if case .refused(let state, _) = self { state } else { nil }
  }

  /// Whether the same may succeed a moment later: another server takes over, or others are in the way. After
  /// `unknownOutcome` it may have been done.
  package var isPassing: Bool {
    switch self {
    case .unreachable, .unknownOutcome: true
    case .refused(let state, _):
      // Of the operator: shutting down, starting, too many connections; and a server that became one that only reads.
      isConflict || state.code.hasPrefix("57") || state.code.hasPrefix("53") || state == .readOnlyTransaction
    case .unexpected, .invalidAddress: false
    }
  }

  /// Whether the database doesn't have what was asked for: it isn't supported, or not even understood.
  package var isMissing: Bool { state.map { ["0A000", "42601", "42704", "42883"].contains($0.code) } ?? false }

  /// Whether the same transaction can succeed if it is begun anew: another one was in its way.
  package var isConflict: Bool {
    state == .serializationFailure || state == .deadlock || state == .lockNotAvailable
  }
}

extension PostgreSQLError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .refused(let state, let message): "\(message) (\(state.code))"
    case .unreachable(let message): "The database can't be reached: \(message)"
    case .unknownOutcome(let message):
      "The connection to the database broke, and what became of the change is unknown: \(message)"
    case .unexpected(let message): "The database answered in a way that isn't understood: \(message)"
    case .invalidAddress:
      """
      The address of the database can't be read. It looks like postgres://user:password@host:5432/database; what isn't \
      a letter or a digit in a password is written as % with two hexadecimal digits, such as %40 for @.
      """
    }
  }
}
#endif
