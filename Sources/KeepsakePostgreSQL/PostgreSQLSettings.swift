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
  /// Whether a server that takes no changes will do.
  var mayOnlyRead = false
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
    ] + (mayOnlyRead ? [("target_session_attrs", "any")] : [])
  }

  /// The options in the address, before which ours would be lost.
  private var ownOptions: [String] { (parts?["options"]).map { [$0] } ?? [] }

  /// Whether an address can be read. One whose password isn't encoded is taken apart at the wrong places: a part of the
  /// password becomes the port, or stands before an `@` in a name.
  var isAddressValid: Bool {
    guard let parts else { return false }
    let hasPorts = (parts["port"] ?? "").utf8.allSatisfy { $0 == UInt8(ascii: ",") || (48...57).contains($0) }
    // The name of a socket may begin with one.
    let hosts = (parts["host"] ?? "").split(separator: ",").map { $0.dropFirst() }
    return hasPorts && hosts.allSatisfy { !$0.contains("@") } && parts["dbname"]?.contains("@") != true
  }

  /// What the address says, by the keywords of libpq; nil if it can't be read.
  private var parts: [String: String]? {
    guard let parsed = PQconninfoParse(address, nil) else { return nil }
    defer { PQconninfoFree(parsed) }
    var parts: [String: String] = [:]
    var option = parsed
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val { parts[String(cString: keyword)] = String(cString: value) }
      option += 1
    }
    return parts
  }
}
#endif
