#if Cloud && PostgreSQL
import KeepsakePostgreSQL

// The tables of webhooks.
extension PostgreSQLSchema {
  /// Events that wait for a studio's backends, with dead letters among them; of each endpoint, who delivers its events;
  /// and slots with several current versions, of which backends may have to be told.
  ///
  /// A lane is a player's events in their order, named by what remains of the container's id when the player is deleted
  /// (`deletedMark`, as in `retired`). There they are ordered by the revision to which the commit has brought the
  /// container, and by their place within the commit: no number is shared by several players. An event has no number
  /// until the server that delivers the endpoint's events has seen it: so those that were committed later have higher
  /// ones, which a number of the commit itself wouldn't promise.
  static let webhooks = [
    """
    CREATE TABLE webhook_event (
      lane bytea NOT NULL, endpoint bytea NOT NULL, revision bigint NOT NULL, item bigint NOT NULL, number bigint,
      id bytea NOT NULL, player bytea, kind bytea NOT NULL, created bigint NOT NULL, queued bigint NOT NULL,
      data bytea NOT NULL, dead bigint, reason bytea, PRIMARY KEY (lane, endpoint, revision, item)
    )
    """,
    "CREATE INDEX webhook_fresh ON webhook_event (endpoint, lane, revision, item, queued) WHERE number IS NULL",
    """
    CREATE INDEX webhook_waiting ON webhook_event (endpoint, number, queued)
    WHERE number IS NOT NULL AND dead IS NULL
    """,
    "CREATE INDEX webhook_lane ON webhook_event (lane, endpoint, number) WHERE number IS NOT NULL AND dead IS NULL",
    "CREATE INDEX webhook_dead ON webhook_event (endpoint, number, dead) WHERE dead IS NOT NULL",
    """
    CREATE TABLE webhook_endpoint (
      name bytea PRIMARY KEY, holder bytea NOT NULL, beat bigint NOT NULL, retries bigint NOT NULL, report bytea,
      numbered bigint NOT NULL, dropped bigint NOT NULL
    )
    """,
    """
    CREATE TABLE webhook_conflict (
      container bytea NOT NULL, slot bytea NOT NULL, since bigint NOT NULL, told bigint NOT NULL,
      PRIMARY KEY (container, slot)
    )
    """,
    "CREATE INDEX webhook_conflict_since ON webhook_conflict (since) WHERE told = 0",
  ]

  /// The first state of the tables that has them.
  private static let webhooksNumber = Int64(1 + (migrations.firstIndex { $0.statements == webhooks } ?? 0))

  /// Keeps servers of earlier versions away: they would write no events, and leave those of deleted players. They go on
  /// as long as nobody has webhooks.
  static let requiringWebhooks = PostgreSQLStatement(
    "UPDATE schema_number SET oldest = $1 WHERE id = 1 AND oldest < $1", [.int(webhooksNumber)])
}
#endif
