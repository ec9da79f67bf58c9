#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

/// What a decision reads of a container, as statements that travel together and are answered as of one moment.
struct PostgreSQLLoad {
  typealias Reader = (PostgreSQLRows, inout Snapshot) throws -> Void

  let container: Data
  private(set) var statements: [PostgreSQLStatement] = []
  private var readers: [Reader] = []

  init(_ container: ContainerID) { self.container = container.bytes }

  /// Adds a statement whose first value is the container.
  ///
  /// - Parameter joining: `apart` for one that reads of another container, which may be in another part of a database
  ///   that is spread over several machines.
  mutating func add(
    _ sql: String, _ values: [PostgreSQLValue] = [], joining: PostgreSQLStatement.Joining = .read,
    _ reader: @escaping Reader
  ) {
    statements.append(PostgreSQLStatement(sql, [.bytes(container)] + values, joining: joining))
    readers.append(reader)
  }

  func read(_ answers: [PostgreSQLRows], into snapshot: inout Snapshot) throws {
    for (rows, reader) in zip(answers, readers) { try reader(rows, &snapshot) }
  }

  // MARK: All

  /// Adds everything that is asked for, except what follows from the answers (`addFollowing`).
  mutating func add(_ reads: ReadSet) {
    addContainer(reads)
    if !reads.marks.isEmpty { addMarks(reads.marks) }
    if !reads.cells.isEmpty { addCells(reads.cells) }
    if !reads.versions.isEmpty { addVersions(reads.versions) }
    if !reads.slotsOfVersions.isEmpty { addSlots(of: reads.slotsOfVersions) }
    if !reads.slots.isEmpty { addHeads(of: reads.slots) }
    if !reads.histories.isEmpty { addHistories(of: reads.histories) }
    if let changes = reads.changes { addChanges(changes) }
    if !reads.contents.isEmpty { addContents(reads.contents) }
    if !reads.frames.isEmpty { addFrames(reads.frames) }
    if reads.suspects { addSuspects() }
    for hash in reads.needing.sorted() { addHeads(needing: hash) }
    if reads.offers { addOffers() }
    if !reads.parts.isEmpty { addParts(reads.parts) }
    addPruning(reads)
    add(reads.bank)
    if reads.wholeRoom || !reads.rooms.isEmpty { addHolders(of: reads.wholeRoom ? nil : reads.rooms) }
    if reads.wholeRoom {
      addRoom(of: nil)
    } else if reads.rooms.isEmpty, !reads.roomOfContents.isEmpty {
      addRoom(of: reads.roomOfContents)
    }
  }

  /// Adds what follows from what was read: what a response says of the changes, and the contents that versions hold; of
  /// a container without a row, whether everything of it was deleted. Begins with the revision, since all of it has to
  /// be as of one moment.
  mutating func addFollowing(_ reads: ReadSet, _ snapshot: Snapshot, deletedMark: Data) {
    add("SELECT revision FROM container WHERE id = $1") { rows, snapshot in
      snapshot.revision = try rows.first?.unsigned(0) ?? 0
    }
    if snapshot.revision == 0 {
      add(
        "SELECT 1::bigint FROM retired WHERE $1::bytea IS NOT NULL AND container = $2 AND device = ''",
        [.bytes(deletedMark)], joining: .apart
      ) { $1.isDeleted = $0.first != nil }
    }
    if let changes = reads.changes, let loaded = snapshot.changes {
      var (heads, replaced): ([ContentHash], Set<ContentHash>) = ([], [])
      var seen: Set<ContentHash> = []
      var slots: Set<ExactText> = []
      for case .version(let record) in loaded.list.map(\.item) {
        if snapshot.coverage[record.id] == false {
          heads += record.contents.filter { seen.insert($0).inserted }
        } else {
          replaced.formUnion(record.contents)
          // Those of history come without what people see of them, which their slot's heads decide.
          if record.withoutLabels != record { slots.insert(ExactText(record.slot)) }
        }
      }
      slots = slots.filter { snapshot.heads[$0] == nil }
      if !slots.isEmpty { addHeads(of: slots) }
      if !heads.isEmpty { addFrames(ofHeads: heads, over: replaced, fromStart: changes.after == 0) }
    }
    if !reads.wholeRoom, !reads.rooms.isEmpty {
      addRoom(of: reads.roomOfContents.union(snapshot.room.holders.values.flatMap(\.contents)))
    }
  }

  // MARK: The container and its devices

  private mutating func addContainer(_ reads: ReadSet) {
    let id = ContainerID(bytes: container)
    // First: what others read depends on where the container is.
    add("SELECT epoch, seq, mark, revision, used FROM container WHERE id = $1") { rows, snapshot in
      guard let row = rows.first else { return }
      snapshot.position = Cursor(
        epoch: try row.unsigned(0), seq: try row.unsigned(1), mark: try row.unsigned(2))
      // Another database has it, or will have it in a moment.
      if try row.int(3) < 0 { throw NotHere(id) }
      snapshot.revision = try row.unsigned(3)
      snapshot.used = try row.int(4)
    }
    if reads.reached || reads.visits || reads.device != nil { addReached(reads) }
    if reads.visits {
      add("SELECT id, created, seen FROM device WHERE container = $1") { rows, snapshot in
        for row in rows {
          let device: DeviceID = try row.identifier(0)
          // A visit is recorded once in a while, so that the last one may be later.
          snapshot.visits[device] = DeviceVisits(
            reached: snapshot.visits[device]?.reached ?? 0, firstMilliseconds: try row.int(1),
            lastMilliseconds: try row.int(2).addingClamped(ServerLimits.visitMilliseconds))
        }
      }
    }
    if let device = reads.device { addDevice(device, reads) }
  }

  private mutating func addReached(_ reads: ReadSet) {
    add("SELECT device, seq FROM reached WHERE container = $1") { rows, snapshot in
      var reached: [DeviceID: UInt64] = [:]
      for row in rows { reached[try row.identifier(0)] = try row.unsigned(1) }
      if reads.reached { snapshot.reached = reached }
      if reads.visits { snapshot.visits = reached.mapValues { DeviceVisits(reached: $0) } }
      guard let device = reads.device else { return }
      var known = Snapshot.Device()
      known.reached = reached[device] ?? 0
      snapshot.device = known
    }
  }

  private mutating func addDevice(_ device: DeviceID, _ reads: ReadSet) {
    add("SELECT seen, set_back FROM device WHERE container = $1 AND id = $2", [.bytes(device.bytes)]) {
      rows, snapshot in
      var known = snapshot.device ?? Snapshot.Device()
      if let row = rows.first {
        known.seenMilliseconds = try row.int(0)
        if let setBacks = try row.optionalBytes(1) { known.setBacks = try decoded(DeviceSetBacks.self, setBacks) }
      }
      snapshot.device = known
    }
    add("SELECT 1::bigint FROM retired WHERE container = $1 AND device = $2", [.bytes(device.bytes)]) {
      $1.device?.isRetired = $0.first != nil
    }
    guard reads.allChains || reads.chain != nil else { return }
    let chain = PostgreSQLValue.bytes(reads.allChains ? nil : reads.chain?.bytes)
    add(
      """
      SELECT chain FROM device_chain WHERE container = $1 AND device = $2 AND ($3::bytea IS NULL OR chain = $3::bytea)
      """, [.bytes(device.bytes), chain]
    ) { rows, snapshot in
      snapshot.device?.chains = Set(try rows.map { try $0.identifier(0) })
    }
  }

  private mutating func addMarks(_ marks: Set<UInt64>) {
    add(
      """
      SELECT seq, mark FROM version WHERE container = $1 AND seq = ANY($2)
      UNION ALL SELECT seq, mark FROM cell WHERE container = $1 AND seq = ANY($2)
      UNION ALL SELECT seq, mark FROM mark WHERE container = $1 AND seq = ANY($2)
      """, [.numbers(marks.map { Int64(bitPattern: $0) }.sorted())]
    ) { rows, snapshot in
      for row in rows { snapshot.marks[try row.unsigned(0)] = try row.unsigned(1) }
      if marks.contains(0) { snapshot.marks[0] = 0 }
      snapshot.marks[snapshot.position.seq] = nil
    }
  }

  // MARK: Cells and versions

  private mutating func addCells(_ keys: Set<CellKey>) {
    let sorted = keys.sorted()
    add(
      """
      SELECT collection, key, seq, state FROM cell
      WHERE container = $1 AND (collection, key) IN (SELECT * FROM unnest($2::bytea[], $3::bytea[]))
      """, [.list(sorted.map { Data($0.collection.utf8) }), .list(sorted.map { Data($0.key.utf8) })]
    ) { rows, snapshot in
      for row in rows {
        let key = CellKey(collection: try row.text(0), key: try row.text(1))
        snapshot.cells[key] = SequencedCell(
          update: CellUpdate(key: key, state: try decoded(CellState.self, row.bytes(3))), seq: try row.unsigned(2))
      }
    }
  }

  private mutating func addVersions(_ versions: Set<VersionID>) {
    let ids = PostgreSQLValue.list(versions.map(\.bytes).sorted(by: { $0.lexicographicallyPrecedes($1) }))
    add("SELECT id, seq, slot, record, head, accepted FROM version WHERE container = $1 AND id = ANY($2)", [ids]) {
      rows, snapshot in
      for row in rows { snapshot.add(try row.version(hasAccepted: false), isCovered: try row.int(4) == 0) }
    }
    add("SELECT id FROM covered WHERE container = $1 AND id = ANY($2)", [ids]) { rows, snapshot in
      for id in versions where snapshot.coverage[id] == nil {
        snapshot.known.versions.insert(id)
        snapshot.coverage[id] = false
      }
      for row in rows where snapshot.versions[try row.identifier(0)] == nil {
        snapshot.coverage[try row.identifier(0)] = true
      }
    }
  }

  private mutating func addSlots(of versions: Set<VersionID>) {
    add("SELECT id, slot FROM version WHERE container = $1 AND id = ANY($2)", [.list(versions.map(\.bytes))]) {
      rows, snapshot in
      for row in rows { snapshot.slotsOfVersions[try row.identifier(0)] = try row.text(1) }
    }
  }

  mutating func addHeads(of slots: Set<ExactText>) {
    add(
      """
      SELECT id, seq, slot, record FROM version WHERE container = $1 AND head = 1 AND slot = ANY($2) ORDER BY id
      """, [.list(slots.map { Data($0.text.utf8) })]
    ) { rows, snapshot in
      for slot in slots where snapshot.heads[slot] == nil {
        snapshot.known.slots.insert(slot)
        snapshot.heads[slot] = []
      }
      for row in rows {
        let version = try row.version(hasAccepted: false)
        snapshot.heads[ExactText(version.record.slot), default: []].append(version.record.id)
        snapshot.add(version, isCovered: false)
      }
    }
  }

  private mutating func addHistories(of slots: Set<ExactText>) {
    add(
      "SELECT id, seq, slot, record, head, accepted FROM version WHERE container = $1 AND slot = ANY($2)",
      [.list(slots.map { Data($0.text.utf8) })]
    ) { rows, snapshot in
      for row in rows { snapshot.add(try row.version(hasAccepted: true), isCovered: try row.int(4) == 0) }
    }
  }

  // MARK: Changes

  /// As many as are wanted, and one more, which shows that there are more. They are cut off where those before are as
  /// large as wanted.
  private mutating func addChanges(_ wanted: ReadSet.Changes) {
    add(
      """
      SELECT seq, mark, head, first, second, value FROM (
        SELECT *, sum(octet_length(value)) OVER (ORDER BY seq) - octet_length(value) AS before FROM (
          SELECT seq, mark, -1::bigint AS head, collection AS first, key AS second, state AS value
          FROM cell WHERE container = $1 AND seq > $2
          UNION ALL
          SELECT seq, mark, head, id, slot, record FROM version WHERE container = $1 AND seq > $2
          ORDER BY seq LIMIT $3
        ) AS change
      ) AS measured WHERE before <= $4 ORDER BY seq
      """,
      [.int(Int64(bitPattern: wanted.after)), .int(Int64(wanted.count) + 1), .int(Int64(wanted.bytes))]
    ) { rows, snapshot in
      var loaded = Snapshot.Changes(through: snapshot.position.seq)
      var bytes = 0
      for row in rows {
        if loaded.list.count == wanted.count {
          loaded.through = loaded.list.last?.seq ?? wanted.after
          break
        }
        let change = try row.change()
        bytes += try row.bytes(5).count
        loaded.list.append(change)
        loaded.marks[change.seq] = try row.unsigned(1)
        if case .version(let record) = change.item {
          snapshot.add(SequencedVersion(record: record, seq: change.seq), isCovered: try row.int(2) == 0)
        }
      }
      // Whatever follows what is as large as wanted wasn't read.
      if bytes > wanted.bytes { loaded.through = loaded.list.last?.seq ?? wanted.after }
      snapshot.changes = loaded
    }
  }

  // MARK: Offers and pruning

  private mutating func addOffers() {
    add(
      """
      SELECT offer, count(*), sum(size)::bigint, max(touched) FROM offer_part WHERE container = $1 GROUP BY offer
      ORDER BY offer
      """
    ) { rows, snapshot in
      snapshot.offers = try rows.map {
        HeldOffer(
          id: try $0.identifier(0), parts: Int(try $0.int(1)), bytes: Int(try $0.int(2)),
          touchedMilliseconds: try $0.int(3))
      }
    }
  }

  private mutating func addParts(_ offers: Set<OfferID>) {
    add(
      "SELECT offer, items FROM offer_part WHERE container = $1 AND offer = ANY($2) ORDER BY offer, number",
      [.list(offers.map(\.bytes))]
    ) { rows, snapshot in
      for offer in offers { snapshot.parts[offer] = [] }
      for row in rows {
        snapshot.parts[try row.identifier(0), default: []].append(try decoded(OfferItems.self, row.bytes(1)))
      }
    }
  }

  private mutating func addPruning(_ reads: ReadSet) {
    if let wanted = reads.slotNames {
      add(
        """
        SELECT DISTINCT slot FROM version WHERE container = $1 AND ($2::bytea IS NULL OR slot > $2::bytea)
        ORDER BY slot LIMIT $3
        """, [.bytes(wanted.after.map { Data($0.text.utf8) }), .int(Int64(wanted.limit))]
      ) { rows, snapshot in snapshot.slotNames = try rows.map { ExactText(try $0.text(0)) } }
    }
    guard reads.pastPositions else { return }
    add("SELECT id FROM covered WHERE container = $1 AND pruned = 1") { rows, snapshot in
      snapshot.pruned = Set(try rows.map { try $0.identifier(0) })
    }
    add("SELECT milliseconds, seq, devices FROM past_position WHERE container = $1 ORDER BY milliseconds") {
      rows, snapshot in
      snapshot.pastPositions = try rows.map {
        PastPosition(
          milliseconds: try $0.int(0), seq: try $0.unsigned(1), devices: try PackedRanges(bytes: $0.bytes(2)).ranges)
      }
    }
  }
}

/// Reads JSON of a row.
func decoded<Value: Decodable>(_ type: Value.Type, _ bytes: Data) throws -> Value {
  try Schema.decoded(type, bytes)
}
#endif
