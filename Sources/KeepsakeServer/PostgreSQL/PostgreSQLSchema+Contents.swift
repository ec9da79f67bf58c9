#if Cloud && PostgreSQL
// Where large contents are, and those whose place is the database itself. The row comes before the bytes and goes after
// them, so that nothing is forgotten anywhere.
extension PostgreSQLSchema {
  static let contents = [
    // Taken is when the bytes came; `named` as long as a content's row names them; below 0 if they are given up, and
    // then the negative of when their removal is tried.
    """
    CREATE TABLE content_object (
      container bytea NOT NULL, name bytea NOT NULL, place bytea NOT NULL, size bigint NOT NULL, taken bigint NOT NULL,
      PRIMARY KEY (container, name)
    )
    """,
    "CREATE INDEX content_object_taken ON content_object (taken) WHERE taken < 9223372036854775807",
    // All places that contents were ever put in.
    "CREATE TABLE content_place (name bytea PRIMARY KEY)",
    """
    CREATE TABLE content_part (
      container bytea NOT NULL, name bytea NOT NULL, number bigint NOT NULL, stored bigint NOT NULL,
      bytes bytea NOT NULL, PRIMARY KEY (container, name, number)
    )
    """,
  ]

  /// By which each start finds out whether a place is still used, and what has expired is found.
  static let found = [
    "CREATE INDEX content_object_place ON content_object (place)", "CREATE INDEX leaving_until ON leaving (until)",
  ]
}
#endif
