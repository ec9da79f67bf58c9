#if Cloud
// All tables of a cloud. A table or column that is added to both databases is added here, too: a test compares this
// with what the databases have.
extension MovedTable {
  /// Those of a player, in the order in which they are moved. Each row belongs to one container.
  static let ofPlayer: [MovedTable] =
    [
      MovedTable(
        name: "container", layout: .containers, owner: "id",
        columns: [
          .number("epoch"), .number("seq"), .number("mark"), .number("revision"), .number("used"), .bytes("bank"),
        ], keys: 0),
      MovedTable(
        name: "reached", layout: .reached, columns: [.bytes("device"), .number("seq")], keys: 1),
      MovedTable(
        name: "cell", layout: .numbered,
        columns: [.bytes("collection"), .bytes("key"), .number("seq"), .number("mark"), .bytes("state")], keys: 2),
      MovedTable(
        name: "version", layout: .versions,
        columns: [
          .bytes("id"), .number("seq"), .number("mark"), .number("accepted"), .number("holds"), .number("head"),
          .bytes("slot"), .bytes("record"),
        ], keys: 1, page: 100),
      MovedTable(name: "covered", layout: .numbered, columns: [.bytes("id"), .number("pruned")], keys: 1),
      MovedTable(name: "mark", layout: .numbered, columns: [.number("seq"), .number("mark")], keys: 1),
      MovedTable(
        name: "past_position", layout: .numbered,
        columns: [.number("milliseconds"), .number("seq"), .bytes("devices")], keys: 1),
      MovedTable(
        name: "content", layout: .contents,
        columns: [
          .bytes("hash"), .number("length"), .bytes("base"), .number("leans"), .text("file"), .number("size"),
          .number("taken"), .number("suspect"), .number("holders"), .number("leaning"), .bytes("bytes"),
        ], keys: 1, page: 16),
      MovedTable(
        name: "offer_part",
        columns: [.bytes("offer"), .number("number"), .number("size"), .number("touched"), .bytes("items")], keys: 2,
        page: 8),
      MovedTable(
        name: "device",
        columns: [
          .bytes("id"), .bytes("player"), .bytes("app"), .bytes("name"), .number("created"), .number("seen"),
          .bytes("set_back"),
        ], keys: 1),
      MovedTable(name: "device_chain", columns: [.bytes("device"), .bytes("chain")], keys: 2),
      MovedTable(name: "retired", columns: [.bytes("device"), .number("at")], keys: 1),
      MovedTable(name: "token_use", columns: [.bytes("device"), .number("issued")], keys: 1),
      MovedTable(name: "ban", columns: [.text("reason"), .number("at")], keys: 0),
    ] + bank + found

  private static let bank: [MovedTable] = [
    MovedTable(
      name: "bank_decision", local: "decision",
      columns: [
        .bytes("operation"), .bytes("chain"), .text("verdict"), .number("fingerprint"), .bytes("details"),
        .number("arrival"),
      ], keys: 1),
    MovedTable(
      name: "packed_decision", columns: [.number("level"), .bytes("first"), .bytes("entries")], keys: 2),
    MovedTable(
      name: "paid_claim",
      columns: [.bytes("key"), .bytes("currency"), .number("amount"), .number("number")], keys: 1),
    MovedTable(name: "paid_voucher", columns: [.bytes("bank"), .bytes("chain")], keys: 2),
    MovedTable(name: "vouched_claim", columns: [.bytes("bank"), .bytes("key"), .number("unsubtracted")], keys: 2),
    MovedTable(
      name: "bank_order", columns: [.number("number"), .bytes("id"), .text("kind"), .bytes("details")], keys: 1),
    MovedTable(name: "good", columns: [.bytes("name"), .number("count"), .number("number")], keys: 1),
    MovedTable(
      name: "closed_chain",
      columns: [
        .bytes("chain"), .number("count"), .bytes("hash"), .bytes("follows"), .bytes("voucher"), .number("claims"),
      ], keys: 1),
  ]

  /// Those by which players are found. A code or an identity can go from one player to another.
  private static let found: [MovedTable] = [
    MovedTable(
      name: "pairing", columns: [.bytes("app"), .bytes("code"), .bytes("player"), .number("expires")], keys: 2,
      unique: ["app", "code"]),
    MovedTable(
      name: "recovery",
      columns: [
        .bytes("app"), .bytes("player"), .bytes("code"), .bytes("used"), .bytes("device"), .number("created"),
      ], keys: 0, unique: ["code"]),
    MovedTable(
      name: "identity",
      columns: [
        .bytes("id"), .bytes("app"), .bytes("player"), .bytes("issuer"), .bytes("device"), .number("created"),
        .bytes("joiner"), .bytes("joined"),
      ], keys: 1, unique: ["id"]),
    MovedTable(
      name: "receipt", columns: [.bytes("app"), .bytes("receipt"), .bytes("operation")], keys: 2,
      unique: ["app", "receipt"]),
    MovedTable(
      name: "shared", owner: "parent",
      columns: [.bytes("container"), .bytes("share"), .bytes("player"), .number("current")], keys: 1),
    MovedTable(
      name: "shared_device",
      columns: [.bytes("device"), .bytes("share"), .bytes("parent"), .bytes("parent_device")], keys: 1),
  ]

  // MARK: The whole cloud's

  /// Proofs of identity that were used: each is moved by itself.
  static let uses = MovedTable(
    name: "identity_use", owner: "key", columns: [.bytes("device"), .number("expires")], keys: 0)
  static let adminKeys = MovedTable(
    name: "admin_key", owner: "",
    columns: [
      .text("id"), .text("name"), .bytes("digest"), .text("scopes"), .bytes("apps"), .number("created"),
      .number("revoked"),
    ], keys: 1)
  static let audit = MovedTable(
    name: "audit", owner: "",
    columns: [
      .number("number"), .number("at"), .text("key"), .text("name"), .text("act"), .text("request"), .text("details"),
      .text("result"), .bytes("player"), .bytes("subject"), .bytes("chain"),
    ], keys: 1)
  static let numbers = MovedTable(
    name: "number", owner: "", columns: [.text("name"), .number("value")], keys: 1)
  /// The numbers that mean the same in both databases. Others are of the file, or of the places of contents.
  static let movedNumbers: [CloudNumber] = [.bankEpoch, .auditRows]

  static let ofCloud = [uses, adminKeys, audit, numbers]

  // MARK: What isn't moved

  /// In SQLite: which versions are heads (a column elsewhere), and what is still to be told to backends.
  static let localOnly: Set<String> = [
    "head", "webhookEvent", "webhookConflict", "webhookDropped", "grdb_migrations", "sqlite_sequence", "moveState",
    "moveChanged",
  ]
  /// In PostgreSQL: the state of the tables and of moving, devices that are being removed in this minute, where the
  /// bytes of large contents are, what is still to be told to backends, and over which databases players are spread.
  static let remoteOnly: Set<String> = [
    "schema_number", "cloud_move", "leaving", "content_object", "content_place", "content_part",
    "webhook_event", "webhook_endpoint", "webhook_conflict", "shard_self", "shard", "placement", "fence",
  ]
}
#endif
