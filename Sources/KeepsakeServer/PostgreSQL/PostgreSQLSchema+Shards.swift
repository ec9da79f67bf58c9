#if Cloud && PostgreSQL
// The tables of a cloud whose players are spread over several databases. Each database has them; of the directory, only
// home's is used.
extension PostgreSQLSchema {
  static let shards = [
    // What this database is: one row.
    "CREATE TABLE shard_self (id bigint PRIMARY KEY, cloud bytea NOT NULL, name bytea NOT NULL)",
    "CREATE TABLE shard (name bytea PRIMARY KEY, is_open bigint NOT NULL)",
    // Where each container lives. The generation grows with each move that is begun or undone; `since` is when its
    // mover was last heard; `left_at` is a shard that may still have rows of it.
    """
    CREATE TABLE placement (
      container bytea PRIMARY KEY, shard bytea NOT NULL, generation bigint NOT NULL, since bigint NOT NULL,
      moving_to bytea, left_at bytea, deleting bigint
    )
    """,
    "CREATE INDEX placement_moving ON placement (since) WHERE moving_to IS NOT NULL",
    "CREATE INDEX placement_left ON placement (since) WHERE left_at IS NOT NULL",
    "CREATE INDEX placement_deleting ON placement (deleting) WHERE deleting IS NOT NULL",
    // The newest generation of a container that has come through this database: who has an older one changes nothing.
    "CREATE TABLE fence (container bytea PRIMARY KEY, generation bigint NOT NULL)",
  ]

  /// Beside each fence the generation with which all rows of the container came to be here; -1 if only some of them
  /// are, or none; null if nobody has said so, as before there was this. Servers that don't know it would have copies
  /// live of which half is lost.
  static let whole = "ALTER TABLE fence ADD COLUMN whole bigint"
}
#endif
