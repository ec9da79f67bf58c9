#if PostgreSQL
import CPostgreSQL
import Foundation

/// How a database is reached, and how long anything there may take.
package struct PostgreSQLSettings: Hashable, Sendable {
  /// As libpq takes it: `postgres://user@host:5432,other:5432/keepsake?sslmode=verify-full`. Of several hosts the first
  /// one that takes changes is used.
  package var address: String
  /// For each host.
  package var connectSeconds = 5
  /// After this time the server gives up a statement.
  package var statementSeconds = 10
  /// After this time a transaction gives up waiting for another one, which counts as a conflict.
  package var lockMilliseconds = 300
  /// After this time a connection that doesn't answer counts as broken; more than `statementSeconds`.
  package var answerSeconds = 20
  /// After this time the server ends a transaction for which nothing comes; nil for `statementSeconds`.
  package var idleSeconds: Int?
  /// After this time without a sign of life the connection counts as broken; nil for `answerSeconds`.
  package var lostSeconds: Int?
  /// Shown in the server's list of sessions.
  package var name = "keepsake"
  /// Set by tests.
  package var standIn: PostgreSQLStandIn?

  package init(_ address: String) { self.address = address }

  /// What libpq is told. What the address says counts more, except of how transactions are kept apart.
  var words: [(name: String, value: String)] {
    // A snapshot of a transaction is of one moment, and two that change the same row don't both succeed.
    let options = [
      "statement_timeout=\(statementSeconds * 1_000)",
      "idle_in_transaction_session_timeout=\((idleSeconds ?? statementSeconds) * 1_000)",
      #"default_transaction_isolation=repeatable\ read"#,
      // Who waits for another transaction keeps a connection, and what else was sent over it, waiting.
      "lock_timeout=\(lockMilliseconds)",
      // A server that goes away in the middle of a transaction must not keep what it has locked.
      "tcp_keepalives_idle=10", "tcp_keepalives_interval=5", "tcp_keepalives_count=3",
      "tcp_user_timeout=\((lostSeconds ?? answerSeconds) * 1_000)",
    ]
    return [
      ("connect_timeout", "\(connectSeconds)"), ("application_name", name), ("client_encoding", "UTF8"),
      ("target_session_attrs", "read-write"), ("keepalives_idle", "10"), ("keepalives_interval", "5"),
      ("keepalives_count", "3"), ("tcp_user_timeout", "\((lostSeconds ?? answerSeconds) * 1_000)"),
      ("dbname", address),
      (
        "options",
        standIn?.losesOptions == true ? "" : (ownOptions + options.map { "-c \($0)" }).joined(separator: " ")
      ),
    ]
  }

  /// The options in the address, before which ours would be lost. An address that can't be read has none; connecting
  /// says what is wrong with it.
  private var ownOptions: [String] {
    guard let parsed = PQconninfoParse(address, nil) else { return [] }
    defer { PQconninfoFree(parsed) }
    var option = parsed
    while let keyword = option.pointee.keyword {
      if String(cString: keyword) == "options", let value = option.pointee.val { return [String(cString: value)] }
      option += 1
    }
    return []
  }
}
#endif
