#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

/// What a decision changes, as statements that travel together and are committed together. None depends on another's
/// answer.
struct PostgreSQLCommit {
  let container: Data
  let deletedMark: Data
  let now: Int64
  private(set) var statements: [PostgreSQLStatement] = []
  /// Which of them reads whether it is time to pack old decisions; nil if there are no new ones.
  private(set) var spanIndex: Int?
  /// Whether backends may be told of something.
  private(set) var hasEvents = false

  /// How the database refuses a content whose bytes were swept: by an overflow.
  static let swept: PostgreSQLError.State = "22003"
  /// How the database refuses to remove a device that has others in shared containers: by a text that is no number.
  static let sharedLeft: PostgreSQLError.State = "22P02"

  /// - Parameters:
  ///   - leaving: As for `CloudStorage.commit`.
  ///   - telling: What backends are told.
  init(
    _ writes: WriteSet, of container: ContainerID, ifAt revision: UInt64, leaving: DeviceID? = nil, now: Int64,
    telling: Telling? = nil
  ) throws {
    (self.container, deletedMark, self.now) = (container.bytes, container.deletedMark, now)
    let encoded = try EncodedRows(writes)
    move(writes, encoded.bank, from: revision)
    // While the device is still known to be its player's.
    if let leaving { leaveShared(leaving) }
    if let telling { report(writes, telling, revision: revision + 1) }
    addContents(writes)
    addItems(writes, encoded)
    addCovered(writes)
    if telling?.outbox.wants(.conflictOpen) == true { noteConflicts(writes) }
    addReleases(writes)
    addPruning(writes, encoded)
    addOffers(writes, encoded)
    try addDevice(writes)
    if let retired = writes.retired { retire(retired.device, isLeaving: retired.isLeaving, now: retired.now) }
    try addBank(writes, encoded)
  }

  /// Adds a statement whose first value is the container.
  ///
  /// - Parameter joining: That of one which may be joined with others: those of the same kind in one commit are of
  ///   different tables, or of different rows.
  mutating func add(
    _ sql: String, _ values: [PostgreSQLValue] = [], joining: PostgreSQLStatement.Joining = .apart,
    changesOne: Bool = false
  ) {
    statements.append(
      PostgreSQLStatement(sql, [.bytes(container)] + values, joining: joining, changesOne: changesOne))
  }

  mutating func addSpan() {
    spanIndex = statements.count
    add(PostgreSQLPacking.span)
  }

  /// Adds a statement that writes an event.
  mutating func add(event statement: PostgreSQLStatement) {
    statements.append(statement)
    hasEvents = true
  }

  /// Moves the container to its next revision. Fails with a division by zero if it isn't at this one any more, or not
  /// where the decision takes it to be; or a unique violation.
  private mutating func move(_ writes: WriteSet, _ bank: Data?, from revision: UInt64) {
    let position = writes.position
    let values: [PostgreSQLValue] = [
      .signed(position?.epoch), .signed(position?.seq), .signed(position?.mark), .bytes(bank), .int(writes.used),
    ]
    if revision == 0 {
      // Fails with a unique violation if somebody was first.
      add(
        """
        INSERT INTO container (id, epoch, seq, mark, bank, revision, used)
        VALUES ($1, coalesce($2, 0), coalesce($3, 0), coalesce($4, 0), $5, 1, $6)
        """, values)
      statements += PostgreSQLTransaction.refusingDeleted(deletedMark)
    } else {
      let given = writes.assumption?.position
      add(
        """
        UPDATE container SET revision = $7 + 1, epoch = coalesce($2, epoch), seq = coalesce($3, seq),
          mark = coalesce($4, mark), bank = coalesce($5, bank), used = used + $6
        WHERE id = $1 AND revision = $7\(given == nil ? "" : " AND epoch = $8 AND seq = $9 AND mark = $10")
        """,
        values + [.signed(revision)] + (given.map { [.signed($0.epoch), .signed($0.seq), .signed($0.mark)] } ?? []),
        joining: .change, changesOne: true)
    }
  }

  // MARK: Contents

  private mutating func addContents(_ writes: WriteSet) {
    let new = Set(writes.contents.map(\.hash))
    for hash in writes.removedContents.sorted() { remove(hash, isReplaced: new.contains(hash)) }
    let holders = writes.versions.values.filter(\.holds).flatMap { Set($0.version.record.contents) }
    let counts = Dictionary(holders.map { ($0, Int64(1)) }, uniquingKeysWith: +)
    // Of several, one may lean on another one, whose row it touches, too.
    let joining: PostgreSQLStatement.Joining = writes.contents.count == 1 ? .change : .apart
    for content in writes.contents {
      put(
        content, holders: counts[content.hash] ?? 0,
        isNew: writes.assumption?.newContents.contains(content.hash) == true, joining: joining)
    }
    let held = counts.filter { !new.contains($0.key) }.sorted { $0.key < $1.key }
    if !held.isEmpty {
      add(
        """
        UPDATE content SET holders = holders + given.count FROM unnest($2, $3) AS given (hash, count)
        WHERE container = $1 AND content.hash = given.hash
        """, [.list(held.map(\.key.bytes)), .numbers(held.map(\.value))])
    }
    if !writes.suspects.isEmpty {
      add("UPDATE content SET suspect = 1 WHERE container = $1 AND hash = ANY($2)", [.hashes(writes.suspects)])
    }
  }

  /// Puts a content, in place of one that is damaged or lost if there is one, whatever holds that.
  ///
  /// - Parameters:
  ///   - holders: How many more versions hold it.
  ///   - isNew: Whether the decision takes as given that it isn't here. Fails with a unique violation if it is.
  private mutating func put(
    _ content: WriteSet.Content, holders: Int64, isNew: Bool, joining: PostgreSQLStatement.Joining
  ) {
    var (frame, name): (Data?, Data?)
    switch content.bytes {
    case .inline(let bytes): frame = bytes
    case .stored(let stored, _):
      name = Data(stored.utf8)
      use(stored, of: content.bytes.count)
    }
    let base = PostgreSQLValue.bytes(content.base?.bytes)
    if content.base != nil {
      add("UPDATE content SET leaning = leaning + 1 WHERE container = $1 AND hash = $2", [base], joining: joining)
    }
    let replacing = """
      ON CONFLICT (container, hash) DO UPDATE SET length = excluded.length, base = excluded.base,
        leans = excluded.leans, file = excluded.file, size = excluded.size, taken = excluded.taken, suspect = 0,
        holders = content.holders + excluded.holders, bytes = excluded.bytes
      """
    add(
      """
      INSERT INTO content (
        container, hash, length, base, leans, file, size, taken, suspect, holders, leaning, bytes
      ) SELECT $1, $2, $3, $4, (SELECT count(*) FROM content WHERE container = $1 AND hash = $4),
        $5, $6, $7, 0, $9, 0, $8
      \(isNew ? "" : replacing)
      """,
      [
        .bytes(content.hash.bytes), .int(Int64(content.length)), base, .bytes(name), .int(Int64(content.bytes.count)),
        .int(now), .bytes(frame), .int(holders),
      ], joining: joining)
  }

  /// - Parameter isReplaced: Whether the content is put again by the same commit: its row stays.
  private mutating func remove(_ hash: ContentHash, isReplaced: Bool) {
    giveUpBytes(of: hash)
    let hash = PostgreSQLValue.bytes(hash.bytes)
    add(
      """
      UPDATE content SET leaning = leaning - 1
      WHERE container = $1 AND hash = (SELECT base FROM content WHERE container = $1 AND hash = $2 AND leans = 1)
      """, [hash])
    if isReplaced { return }
    add("UPDATE content SET leans = 0 WHERE container = $1 AND base = $2 AND leans = 1", [hash])
    add("DELETE FROM content WHERE container = $1 AND hash = $2", [hash])
  }

  /// Keeps the bytes of a content from being swept. Fails by an overflow if they have been, or are given up.
  private mutating func use(_ name: String, of count: Int) {
    add(
      """
      WITH used AS (
        UPDATE content_object SET taken = $3 WHERE container = $1 AND name = $2 AND taken >= 0 AND size = $4 RETURNING 1
      ) SELECT $3 + (CASE WHEN count(*) = 1 THEN 0 ELSE 1 END) FROM used
      """,
      [.bytes(Data(name.utf8)), .int(.max), .int(Int64(count))])
  }

  /// Gives up the bytes of a content that its row names until now. They are removed later (`PostgreSQLStorage.sweep`).
  private mutating func giveUpBytes(of hash: ContentHash) {
    add(
      """
      UPDATE content_object SET taken = -1 WHERE container = $1 AND name = (
        SELECT file FROM content WHERE container = $1 AND hash = $2 AND file IS NOT NULL
      )
      """, [.bytes(hash.bytes)])
  }

  // MARK: Items

  /// Writes cells and versions, each with the mark of its change. The marks of other changes are kept by themselves:
  /// those of the bank, and those of which the item has changed again.
  private mutating func addItems(_ writes: WriteSet, _ encoded: EncodedRows) {
    var marks = Dictionary(writes.marks.map { ($0.seq, $0.mark) }) { $1 }
    for (key, cell) in writes.cells {
      put(cell, encoded.cells[key], mark: marks.removeValue(forKey: cell.seq) ?? 0)
    }
    for (id, version) in writes.versions {
      let mark = marks.removeValue(forKey: version.version.seq) ?? 0
      put(
        version, encoded.records[id], mark: mark, isReplaced: writes.covered.contains(id),
        isNew: writes.assumption?.newVersions.contains(id) == true)
    }
    guard !marks.isEmpty else { return }
    let sorted = marks.sorted { $0.key < $1.key }
    add(
      "INSERT INTO mark (container, seq, mark) SELECT $1, * FROM unnest($2, $3)",
      [
        .numbers(sorted.map { Int64(bitPattern: $0.key) }), .numbers(sorted.map { Int64(bitPattern: $0.value) }),
      ])
  }

  private mutating func put(_ cell: SequencedCell, _ state: Data?, mark: UInt64) {
    let key: [PostgreSQLValue] = [
      .bytes(Data(cell.update.key.collection.utf8)), .bytes(Data(cell.update.key.key.utf8)),
    ]
    add(
      """
      INSERT INTO mark (container, seq, mark)
      SELECT container, seq, mark FROM cell WHERE container = $1 AND collection = $2 AND key = $3
      """, key)
    add(
      """
      INSERT INTO cell (container, collection, key, seq, mark, state) VALUES ($1, $2, $3, $4, $5, $6)
      ON CONFLICT (container, collection, key) DO UPDATE
      SET seq = excluded.seq, mark = excluded.mark, state = excluded.state
      """, key + [.signed(cell.seq), .signed(mark), .bytes(state)])
  }

  /// - Parameter isNew: Whether the decision takes as given that the container doesn't know it. Fails with a unique
  ///   violation or a division by zero if it does.
  private mutating func put(
    _ written: WriteSet.Version, _ packed: Data?, mark: UInt64, isReplaced: Bool, isNew: Bool
  ) {
    let record = written.version.record
    let id = PostgreSQLValue.bytes(record.id.bytes)
    if written.isStored {
      add(
        """
        INSERT INTO mark (container, seq, mark)
        SELECT container, seq, mark FROM version WHERE container = $1 AND id = $2
        """, [id])
    }
    let rest =
      isNew
      ? "WHERE NOT EXISTS (SELECT 1 FROM covered WHERE container = $1 AND id = $2)"
      : """
      ON CONFLICT (container, id) DO UPDATE SET accepted = coalesce(version.accepted, version.seq), seq = excluded.seq,
        mark = excluded.mark, holds = greatest(version.holds, excluded.holds), head = excluded.head,
        slot = excluded.slot, record = excluded.record
      """
    add(
      """
      INSERT INTO version (container, id, seq, mark, holds, head, slot, record) SELECT $1, $2, $3, $4, $5, $6, $7, $8
      \(rest)
      """,
      [
        id, .signed(written.version.seq), .signed(mark), .flag(written.holds), .flag(written.isHead && !isReplaced),
        .bytes(Data(record.slot.utf8)), .bytes(packed),
      ], joining: written.isStored ? .apart : .change, changesOne: isNew)
    // From now on its row says so.
    if written.wasCovered { add("DELETE FROM covered WHERE container = $1 AND id = $2", [id]) }
  }

  /// Marks versions as covered: they are no heads any more, or are marked by themselves if they aren't here.
  private mutating func addCovered(_ writes: WriteSet) {
    let ids = writes.covered.filter { writes.versions[$0] == nil }.map(\.bytes)
    guard !ids.isEmpty else { return }
    add(
      "UPDATE version SET head = 0 WHERE container = $1 AND head = 1 AND id = ANY($2)", [.list(ids)], joining: .change)
    let apart = writes.coveredApart.filter { writes.versions[$0] == nil }.map(\.bytes)
    if apart.isEmpty { return }
    add(
      """
      INSERT INTO covered (container, id, pruned) SELECT $1, given.id, 0 FROM unnest($2) AS given (id)
      WHERE NOT EXISTS (SELECT 1 FROM version WHERE version.container = $1 AND version.id = given.id)
      ON CONFLICT (container, id) DO NOTHING
      """, [.list(apart)])
  }

  private mutating func addReleases(_ writes: WriteSet) {
    for (version, holder) in writes.released.sorted(by: { $0.key < $1.key }) {
      let id = PostgreSQLValue.bytes(version.bytes)
      add(
        """
        UPDATE content SET holders = holders - 1 WHERE container = $1 AND hash = ANY($3)
        AND EXISTS (SELECT 1 FROM version WHERE container = $1 AND id = $2 AND holds = 1)
        """, [id, .hashes(holder.contents)])
      add("UPDATE version SET holds = 0 WHERE container = $1 AND id = $2", [id])
    }
  }

  // MARK: Offers and devices

  private mutating func addOffers(_ writes: WriteSet, _ encoded: EncodedRows) {
    if !writes.droppedOffers.isEmpty {
      add(
        "DELETE FROM offer_part WHERE container = $1 AND offer = ANY($2)",
        [.list(writes.droppedOffers.map(\.bytes))])
    }
    for (part, items) in zip(writes.parts, encoded.parts) {
      add(
        """
        INSERT INTO offer_part (container, offer, number, size, touched, items) VALUES ($1, $2, $3, $4, $5, $6)
        """,
        [
          .bytes(part.part.offer.bytes), .int(Int64(part.part.number)), .int(Int64(part.items.size)), .int(part.now),
          .bytes(items),
        ])
    }
  }

  private mutating func addDevice(_ writes: WriteSet) throws {
    guard let device = writes.device else { return }
    let id = PostgreSQLValue.bytes(device.id.bytes)
    if let visit = device.visit {
      add(
        """
        INSERT INTO device (container, id, player, app, created, seen) VALUES ($1, $2, $3, $4, $5, $5)
        ON CONFLICT (container, id) DO UPDATE SET seen = excluded.seen
        """, [id, .bytes(visit.player.bytes), .bytes(visit.app), .int(visit.milliseconds)], joining: .change)
    }
    if let seq = device.reached {
      add(
        """
        INSERT INTO reached (container, device, seq) VALUES ($1, $2, $3)
        ON CONFLICT (container, device) DO UPDATE SET seq = excluded.seq
        """, [id, .signed(seq)], joining: .change)
    }
    if let setBacks = device.setBacks {
      add(
        "UPDATE device SET set_back = $3 WHERE container = $1 AND id = $2",
        [id, .bytes(setBacks.isEmpty ? nil : try EncodedRows.encode(setBacks))])
    }
    if let chain = device.chain {
      add(
        "INSERT INTO device_chain (container, device, chain) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        [id, .bytes(chain.bytes)], joining: .change)
    }
  }
}

extension PostgreSQLCommit {
  fileprivate mutating func retire(_ device: DeviceID, isLeaving: Bool, now: Int64) {
    let id = PostgreSQLValue.bytes(device.bytes)
    // Those in shared containers would be admitted for ever.
    add(
      """
      SELECT (CASE WHEN EXISTS (SELECT 1 FROM shared_device WHERE parent = $1 AND parent_device = $2)
        THEN 'shared' ELSE '1' END)::bigint
      """, [id])
    add(
      "INSERT INTO retired (container, device, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", [id, .int(now)])
    for table in ["device_chain", "reached", "shared_device"] {
      add("DELETE FROM \(table) WHERE container = $1 AND device = $2", [id])
    }
    add("DELETE FROM device WHERE container = $1 AND id = $2", [id])
    // The removed device may have requested these, to come back with them. One that leaves by itself is signed out: its
    // player may have nothing but the recovery code, or an identity.
    add("DELETE FROM pairing WHERE container = $1")
    if isLeaving { return }
    for table in ["recovery", "identity"] { add("DELETE FROM \(table) WHERE container = $1 AND device = $2", [id]) }
  }

  /// Gives up a shared container for the player of a game whose only device there this is. In the commit that removes
  /// the device: of two that are removed together, each would take the other for one that stays.
  fileprivate mutating func leaveShared(_ device: DeviceID) {
    add(
      """
      UPDATE shared SET current = 0
      WHERE container = $1 AND parent = (SELECT parent FROM shared_device WHERE container = $1 AND device = $2)
      AND NOT EXISTS (
        SELECT 1 FROM shared_device AS other
        WHERE other.container = $1 AND other.parent = shared.parent AND other.device <> $2)
      """, [.bytes(device.bytes)])
  }
}

extension PostgreSQLValue {
  static func signed(_ value: UInt64?) -> Self { .int(value.map { Int64(bitPattern: $0) }) }
  static func flag(_ value: Bool) -> Self { .int(value ? 1 : 0) }
  fileprivate static func hashes(_ hashes: some Sequence<ContentHash>) -> Self {
    .list(Set(hashes).map(\.bytes))
  }
}
#endif
