#if Cloud && PostgreSQL
// The tables of the studio's port. Rows of the audit log are numbered by the whole cloud's number `auditRows`.
extension PostgreSQLSchema {
  static let admin = [
    """
    CREATE TABLE admin_key (
      id bytea PRIMARY KEY, name bytea NOT NULL, digest bytea NOT NULL, scopes bytea NOT NULL, apps bytea NOT NULL,
      created bigint NOT NULL, revoked bigint
    )
    """,
    "CREATE UNIQUE INDEX admin_key_name ON admin_key (name)",
    "CREATE UNIQUE INDEX admin_key_digest ON admin_key (digest)",
    """
    CREATE TABLE audit (
      number bigint PRIMARY KEY, at bigint NOT NULL, key bytea NOT NULL, name bytea NOT NULL, act bytea NOT NULL,
      request bytea NOT NULL, details bytea NOT NULL, result bytea NOT NULL, player bytea, subject bytea,
      chain bytea NOT NULL
    )
    """,
    "CREATE INDEX audit_player ON audit (player, number) WHERE player IS NOT NULL",
    "CREATE INDEX device_id ON device (id)",
  ]
}
#endif
