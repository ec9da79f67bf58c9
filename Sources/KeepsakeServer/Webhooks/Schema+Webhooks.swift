#if Cloud
import GRDB

// The migration to webhooks.
extension Schema {
  /// Adds events that wait for a studio's backends, with dead letters among them; how many of these were dropped; and
  /// slots with several current versions, of which backends may have to be told.
  ///
  /// A lane is a player's events in their order, named by what remains of the container's id when the player is
  /// deleted. An event is as old as what it tells of (`created`), but waits since it was put there or last sent again
  /// (`queued`). Ids are never used again, or an event could be taken for one that was delivered. The indexes of what
  /// waits and of dead letters have all that is counted, with what says that a row is in them, so that no row is read
  /// for it.
  static func addWebhooks(to db: Database) throws {
    try db.execute(
      sql: """
        CREATE TABLE webhookEvent (
          id INTEGER PRIMARY KEY AUTOINCREMENT, endpoint TEXT NOT NULL, lane BLOB NOT NULL, key BLOB NOT NULL,
          player BLOB, kind TEXT NOT NULL, created INTEGER NOT NULL, queued INTEGER NOT NULL, data BLOB NOT NULL,
          dead INTEGER, reason TEXT
        ) STRICT;
        CREATE INDEX webhookLane ON webhookEvent (lane, endpoint, id);
        CREATE INDEX webhookWaiting ON webhookEvent (endpoint, id, queued, dead) WHERE dead IS NULL;
        CREATE INDEX webhookDead ON webhookEvent (endpoint, id, dead) WHERE dead IS NOT NULL;
        CREATE TABLE webhookDropped (endpoint TEXT PRIMARY KEY, count INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE webhookConflict (
          container INTEGER NOT NULL, slot BLOB NOT NULL, since INTEGER NOT NULL, told INTEGER NOT NULL DEFAULT 0,
          PRIMARY KEY (container, slot)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX webhookConflictSince ON webhookConflict (since) WHERE told = 0;
        """)
  }
}
#endif
