#if Cloud && PostgreSQL
// Whether the cloud in this database comes from another one, or has gone to another one.
extension PostgreSQLSchema {
  static let moving = [
    """
    CREATE TABLE cloud_move (
      id bigint PRIMARY KEY, source bytea NOT NULL, state bigint NOT NULL, place bytea NOT NULL, oldest bigint NOT NULL
    )
    """
  ]
}
#endif
