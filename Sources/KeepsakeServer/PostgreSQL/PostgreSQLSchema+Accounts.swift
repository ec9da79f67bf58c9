#if Cloud && PostgreSQL
// The tables by which players are found, and those that are of the whole cloud. What a device shows, a code or an
// identity, has to be found without knowing the container.
extension PostgreSQLSchema {
  static let accounts = [
    "CREATE INDEX offer_part_touched ON offer_part (touched)",
    "CREATE TABLE number (name bytea PRIMARY KEY, value bigint NOT NULL)",
    "CREATE INDEX device_player ON device (player)",
    """
    CREATE TABLE token_use (
      container bytea NOT NULL, device bytea NOT NULL, issued bigint NOT NULL, PRIMARY KEY (container, device)
    )
    """,
    "CREATE TABLE ban (container bytea PRIMARY KEY, reason bytea NOT NULL, at bigint NOT NULL)",
    """
    CREATE TABLE pairing (
      app bytea NOT NULL, code bytea NOT NULL, container bytea NOT NULL, player bytea NOT NULL,
      expires bigint NOT NULL, PRIMARY KEY (app, code)
    )
    """,
    "CREATE INDEX pairing_container ON pairing (container)",
    "CREATE INDEX pairing_expires ON pairing (expires)",
    // With the code that was used last, and the device that got the current one.
    """
    CREATE TABLE recovery (
      container bytea PRIMARY KEY, app bytea NOT NULL, player bytea NOT NULL, code bytea NOT NULL, used bytea,
      device bytea NOT NULL, created bigint NOT NULL
    )
    """,
    "CREATE UNIQUE INDEX recovery_code ON recovery (code)",
    "CREATE INDEX recovery_used ON recovery (used) WHERE used IS NOT NULL",
    "CREATE INDEX recovery_player ON recovery (player)",
    // With the device that has shown it last; and of the last one that signed in with it, what it was and became.
    """
    CREATE TABLE identity (
      id bytea PRIMARY KEY, container bytea NOT NULL, app bytea NOT NULL, player bytea NOT NULL, issuer bytea NOT NULL,
      device bytea NOT NULL, created bigint NOT NULL, joiner bytea, joined bytea
    )
    """,
    "CREATE INDEX identity_container ON identity (container)",
    "CREATE INDEX identity_player ON identity (player)",
    "CREATE INDEX identity_joiner ON identity (joiner) WHERE joiner IS NOT NULL",
    "CREATE TABLE identity_use (key bytea PRIMARY KEY, device bytea NOT NULL, expires bigint NOT NULL)",
    "CREATE INDEX identity_use_expires ON identity_use (expires)",
    "CREATE INDEX identity_use_device ON identity_use (device)",
    // Of each share, a player of a game has one container currently, and those that the player has left for it.
    """
    CREATE TABLE shared (
      parent bytea NOT NULL, container bytea NOT NULL, share bytea NOT NULL, player bytea NOT NULL,
      current bigint NOT NULL, PRIMARY KEY (parent, container)
    )
    """,
    "CREATE INDEX shared_container ON shared (container)",
    """
    CREATE TABLE shared_device (
      container bytea NOT NULL, device bytea NOT NULL, share bytea NOT NULL, parent bytea NOT NULL,
      parent_device bytea NOT NULL, PRIMARY KEY (container, device)
    )
    """,
    // Devices of games, or all of a player's (no bytes), that are being removed: they get nothing in shared containers.
    """
    CREATE TABLE leaving (
      container bytea NOT NULL, device bytea NOT NULL, until bigint NOT NULL, PRIMARY KEY (container, device)
    )
    """,
    "CREATE INDEX shared_device_parent ON shared_device (parent, parent_device)",
  ]
}
#endif
