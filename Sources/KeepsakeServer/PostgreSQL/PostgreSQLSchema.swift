#if Cloud && PostgreSQL
import KeepsakePostgreSQL

/// The tables of a cloud in PostgreSQL.
///
/// Each key begins with the container, so that tables can be split by it, and no statement touches two containers. Keys
/// and names from outside are bytes: the database's text refuses a NUL. Unsigned 64-bit numbers are stored as their bit
/// patterns; what is true or false is 1 or 0.
enum PostgreSQLSchema {
  /// What makes each state of the tables of the one before, the first one of none. None that a release has had changes.
  static let migrations =
    [
      PostgreSQLMigration(tables), PostgreSQLMigration(admin, oldest: 1), PostgreSQLMigration(webhooks, oldest: 1),
      // While a cloud comes or goes, the row in this table keeps all servers away, those of former steps, too.
      PostgreSQLMigration(moving, oldest: 1), PostgreSQLMigration(shards, oldest: 1),
    ] + packed + [PostgreSQLMigration([whole]), PostgreSQLMigration(found, oldest: 1)]

  /// The first state that has tables for several databases.
  static let shardsNumber = Int64(1 + (migrations.firstIndex { $0.statements == shards } ?? migrations.count - 1))

  private static let tables =
    [
      """
      CREATE TABLE container (
        id bytea PRIMARY KEY, epoch bigint NOT NULL, seq bigint NOT NULL, mark bigint NOT NULL,
        revision bigint NOT NULL, used bigint NOT NULL, bank bytea
      )
      """,
      """
      CREATE TABLE cell (
        container bytea NOT NULL, collection bytea NOT NULL, key bytea NOT NULL, seq bigint NOT NULL,
        mark bigint NOT NULL, state bytea NOT NULL, PRIMARY KEY (container, collection, key)
      )
      """,
      "CREATE INDEX cell_seq ON cell (container, seq)",
      """
      CREATE TABLE version (
        container bytea NOT NULL, id bytea NOT NULL, seq bigint NOT NULL, mark bigint NOT NULL, accepted bigint,
        holds bigint NOT NULL, head bigint NOT NULL, slot bytea NOT NULL, record bytea NOT NULL,
        PRIMARY KEY (container, id)
      )
      """,
      "CREATE INDEX version_seq ON version (container, seq)",
      "CREATE INDEX version_head ON version (container, slot) WHERE head = 1",
      """
      CREATE TABLE covered (
        container bytea NOT NULL, id bytea NOT NULL, pruned bigint NOT NULL, PRIMARY KEY (container, id)
      )
      """,
      """
      CREATE TABLE mark (
        container bytea NOT NULL, seq bigint NOT NULL, mark bigint NOT NULL, PRIMARY KEY (container, seq)
      )
      """,
      """
      CREATE TABLE past_position (
        container bytea NOT NULL, milliseconds bigint NOT NULL, seq bigint NOT NULL, devices bytea NOT NULL,
        PRIMARY KEY (container, milliseconds)
      )
      """,
      // The base of a content is its hash, whether it is here or not. Only what was here when the content was put
      // counts it among those that lean on it.
      """
      CREATE TABLE content (
        container bytea NOT NULL, hash bytea NOT NULL, length bigint NOT NULL, base bytea, leans bigint NOT NULL,
        file bytea, size bigint NOT NULL, taken bigint NOT NULL, suspect bigint NOT NULL, holders bigint NOT NULL,
        leaning bigint NOT NULL, bytes bytea, PRIMARY KEY (container, hash)
      )
      """,
      "CREATE INDEX content_suspect ON content (container, hash) WHERE suspect = 1",
      "CREATE INDEX content_base ON content (container, base) WHERE base IS NOT NULL",
      """
      CREATE TABLE offer_part (
        container bytea NOT NULL, offer bytea NOT NULL, number bigint NOT NULL, size bigint NOT NULL,
        touched bigint NOT NULL, items bytea NOT NULL, PRIMARY KEY (container, offer, number)
      )
      """,
      """
      CREATE TABLE device (
        container bytea NOT NULL, id bytea NOT NULL, player bytea NOT NULL, app bytea NOT NULL, name bytea,
        created bigint NOT NULL, seen bigint NOT NULL, set_back bytea, PRIMARY KEY (container, id)
      )
      """,
      """
      CREATE TABLE reached (
        container bytea NOT NULL, device bytea NOT NULL, seq bigint NOT NULL, PRIMARY KEY (container, device)
      )
      """,
      """
      CREATE TABLE device_chain (
        container bytea NOT NULL, device bytea NOT NULL, chain bytea NOT NULL, PRIMARY KEY (container, device, chain)
      )
      """,
      """
      CREATE TABLE retired (
        container bytea NOT NULL, device bytea NOT NULL, at bigint NOT NULL, PRIMARY KEY (container, device)
      )
      """,
    ] + bank + accounts + contents

  private static let bank = [
    """
    CREATE TABLE decision (
      container bytea NOT NULL, operation bytea NOT NULL, chain bytea NOT NULL, verdict bytea NOT NULL,
      fingerprint bigint NOT NULL, details bytea NOT NULL, PRIMARY KEY (container, operation)
    )
    """,
    """
    CREATE TABLE paid_claim (
      container bytea NOT NULL, key bytea NOT NULL, currency bytea, amount bigint, number bigint,
      PRIMARY KEY (container, key)
    )
    """,
    "CREATE UNIQUE INDEX paid_claim_number ON paid_claim (container, number) WHERE number IS NOT NULL",
    """
    CREATE TABLE paid_voucher (
      container bytea NOT NULL, bank bytea NOT NULL, chain bytea NOT NULL, PRIMARY KEY (container, bank, chain)
    )
    """,
    """
    CREATE TABLE vouched_claim (
      container bytea NOT NULL, bank bytea NOT NULL, key bytea NOT NULL, unsubtracted bigint NOT NULL,
      PRIMARY KEY (container, bank, key)
    )
    """,
    """
    CREATE TABLE bank_order (
      container bytea NOT NULL, number bigint NOT NULL, id bytea NOT NULL, kind bytea NOT NULL,
      details bytea NOT NULL, PRIMARY KEY (container, number)
    )
    """,
    "CREATE UNIQUE INDEX bank_order_id ON bank_order (container, id)",
    """
    CREATE TABLE good (
      container bytea NOT NULL, name bytea NOT NULL, count bigint NOT NULL, number bigint NOT NULL,
      PRIMARY KEY (container, name)
    )
    """,
    "CREATE INDEX good_number ON good (container, number, name)",
    """
    CREATE TABLE closed_chain (
      container bytea NOT NULL, chain bytea NOT NULL, count bigint NOT NULL, hash bytea NOT NULL, follows bytea,
      voucher bytea, claims bigint, PRIMARY KEY (container, chain)
    )
    """,
    // A receipt is paid once in the whole cloud, so that this table is found by the app and not by the container.
    """
    CREATE TABLE receipt (
      app bytea NOT NULL, receipt bytea NOT NULL, container bytea NOT NULL, operation bytea NOT NULL,
      PRIMARY KEY (app, receipt)
    )
    """,
    "CREATE INDEX receipt_container ON receipt (container)",
  ]
}
#endif
