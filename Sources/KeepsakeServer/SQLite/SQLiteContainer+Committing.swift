#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

// Writing what a decision has decided.
extension SQLiteContainer {
  /// Writes everything, unless the container isn't at this revision any more, or what the decision takes as given isn't
  /// so. Of the position that it takes as given, the revision says enough: no other database can have taken over.
  ///
  /// - Returns: Whether everything was written; if not, what was has to be undone.
  /// - Parameters:
  ///   - encoded: The same values, encoded.
  ///   - events: What a studio's backends are told of it.
  mutating func commit(
    _ writes: WriteSet, _ encoded: EncodedRows, _ events: WebhookEvents? = nil, ifAt revision: UInt64
  ) throws -> Bool {
    guard try move(writes, encoded.bank, ifAt: revision) else { return false }
    if let receipt = writes.receipt, try !take(receipt) { return false }
    guard try stillHasContents(of: writes), try commitContents(writes),
      let arrived = try commitItems(writes, encoded)
    else { return false }
    for covered in writes.covered where writes.versions[covered] == nil { try markCovered(covered) }
    try commitReleases(writes)
    try commitPruning(writes, encoded)
    for offer in writes.droppedOffers { try dropOffer(offer) }
    for (part, items) in zip(writes.parts, encoded.parts) { try hold(part, encoded: items) }
    if let events { try report(writes, events, arrived: arrived) }
    if let device = writes.device { try put(device) }
    if let retired = writes.retired { try retire(retired.device, isLeaving: retired.isLeaving, now: retired.now) }
    try commitBank(writes, encoded)
    return true
  }

  /// Moves the container to its next revision, from this one.
  private mutating func move(_ writes: WriteSet, _ bank: Data?, ifAt revision: UInt64) throws -> Bool {
    let (epoch, seq, mark) =
      writes.position.map { (signed($0.epoch), signed($0.seq), signed($0.mark)) } ?? (nil, nil, nil)
    let reached = try reached(after: writes)?.bytes
    if revision == 0 {
      // Of a deleted player, no row with a later revision is left.
      try run(
        """
        INSERT INTO container (id, epoch, seq, mark, bank, revision, used, reached)
        SELECT ?1, ifnull(?2, 0), ifnull(?3, 0), ifnull(?4, 0), ?5, 1, ?6, ifnull(?7, x'')
        WHERE NOT EXISTS (SELECT 1 FROM retired WHERE container = ?8 AND device = x'')
        ON CONFLICT (id) DO UPDATE SET epoch = ifnull(?2, epoch), seq = ifnull(?3, seq), mark = ifnull(?4, mark),
          bank = ifnull(?5, bank), revision = 1, used = used + ?6, reached = ifnull(?7, reached)
        WHERE revision = 0
        """, [id, epoch, seq, mark, bank, writes.used, reached, deletedMark])
    } else {
      try run(
        """
        UPDATE container SET epoch = ifnull(?2, epoch), seq = ifnull(?3, seq), mark = ifnull(?4, mark),
          bank = ifnull(?5, bank), revision = ?8 + 1, used = used + ?6, reached = ifnull(?7, reached)
        WHERE number = ?1 AND revision = ?8
        """, [number, epoch, seq, mark, bank, writes.used, reached, signed(revision)])
    }
    guard db.changesCount == 1 else { return false }
    if number == 0 { try findRow() }
    return true
  }

  /// Returns what devices have reached once this is written; nil if that stays as it is.
  private func reached(after writes: WriteSet) throws -> PackedReached? {
    guard writes.device?.reached != nil || writes.retired != nil else { return nil }
    var reached = try found.map { try PackedReached(bytes: $0.reached) } ?? PackedReached([:])
    if let device = writes.device, let seq = device.reached { reached[device.id] = seq }
    if let retired = writes.retired { reached[retired.device] = nil }
    return reached
  }

  // MARK: Items

  /// Writes cells and versions, each with the mark of its change. The marks of other changes are kept by themselves:
  /// those of the bank, and those of which the item has changed again.
  ///
  /// - Returns: The versions that weren't here; nil if one was that the decision takes for new.
  private func commitItems(_ writes: WriteSet, _ encoded: EncodedRows) throws -> [VersionID]? {
    var marks = Dictionary(writes.marks.map { ($0.seq, $0.mark) }) { $1 }
    for (key, cell) in writes.cells {
      try put(cell, encoded.cells[key], mark: marks.removeValue(forKey: cell.seq) ?? 0)
    }
    var arrived: [VersionID] = []
    for (id, version) in writes.versions {
      let mark = marks.removeValue(forKey: version.version.seq) ?? 0
      let mustBeNew = writes.assumption?.newVersions.contains(id) == true
      let isNew = try put(
        version, encoded.records[id], mark: mark, isReplaced: writes.covered, mustBeNew: mustBeNew)
      if isNew { arrived.append(id) } else if mustBeNew { return nil }
    }
    for (seq, mark) in marks { try keep(mark: signed(mark), of: signed(seq)) }
    return arrived
  }

  func keep(mark: Int64, of seq: Int64) throws {
    try run("INSERT INTO mark (container, seq, mark) VALUES (?, ?, ?)", [number, seq, mark])
  }

  private func put(_ cell: SequencedCell, _ state: Data?, mark: UInt64) throws {
    let (collection, key) = (bytes(cell.update.key.collection), bytes(cell.update.key.key))
    let old = try row(
      "SELECT number, seq, mark FROM cell WHERE container = ? AND collection = ? AND key = ?",
      [number, collection, key])
    if let old {
      try keep(mark: old.decode(atIndex: 2), of: old.decode(atIndex: 1))
      try run(
        "UPDATE cell SET seq = ?, mark = ?, state = ? WHERE number = ?",
        [signed(cell.seq), signed(mark), state, try old.decode(Int64.self, atIndex: 0)])
    } else {
      try run(
        "INSERT INTO cell (container, seq, mark, collection, key, state) VALUES (?, ?, ?, ?, ?, ?)",
        [number, signed(cell.seq), signed(mark), collection, key, state])
    }
  }

  /// Returns whether the version is new here. One that must be and isn't, not even as a covered one, stays as it is.
  private func put(
    _ written: WriteSet.Version, _ packed: Data?, mark: UInt64, isReplaced covered: Set<VersionID>, mustBeNew: Bool
  ) throws -> Bool {
    let record = written.version.record
    let (seq, mark, slot) = (signed(written.version.seq), signed(mark), bytes(record.slot))
    var (version, isHolding): (Int64, Bool) = (0, false)
    try run(
      """
      INSERT INTO version (container, seq, mark, holds, id, slot, record) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7
      WHERE NOT (?8 AND EXISTS (SELECT 1 FROM covered WHERE container = ?1 AND id = ?5))
      ON CONFLICT (container, id) DO NOTHING
      """, [number, seq, mark, written.holds, record.id.bytes, slot, packed, mustBeNew])
    let isNew = db.changesCount == 1
    if mustBeNew, !isNew { return false }
    if isNew {
      version = db.lastInsertedRowID
    } else if let old = try row(
      "SELECT number, holds, seq, mark, slot FROM version WHERE container = ? AND id = ?", [number, record.id.bytes])
    {
      version = try old.decode(atIndex: 0)
      isHolding = try old.decode(atIndex: 1)
      try keep(mark: old.decode(atIndex: 3), of: old.decode(atIndex: 2))
      try removeHead(version, of: old.decode(atIndex: 4))
      try run(
        """
        UPDATE version SET accepted = ifnull(accepted, seq), seq = ?, mark = ?, holds = ?, slot = ?, record = ?
        WHERE number = ?
        """,
        [seq, mark, isHolding || written.holds, slot, packed, version])
    }
    if written.isHead && !covered.contains(record.id) {
      try run("INSERT INTO head (container, slot, version) VALUES (?, ?, ?)", [number, slot, version])
    } else if isNew {
      // From now on its row says so.
      try run("DELETE FROM covered WHERE container = ? AND id = ?", [number, record.id.bytes])
    }
    if written.holds, !isHolding {
      for hash in Set(record.contents) { try count(hash, holders: 1) }
    }
    return isNew
  }

  private func removeHead(_ version: Int64, of slot: Data) throws {
    try run("DELETE FROM head WHERE container = ? AND slot = ? AND version = ?", [number, slot, version])
  }

  /// Marks a version as covered: it is no head any more, or is marked by itself if it isn't here.
  private func markCovered(_ version: VersionID) throws {
    try run(
      """
      DELETE FROM head WHERE container = ?1 AND (slot, version) =
        (SELECT slot, number FROM version WHERE container = ?1 AND id = ?2)
      """, [number, version.bytes])
    if db.changesCount == 1 { return }
    try run(
      """
      INSERT OR IGNORE INTO covered (container, id)
      SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM version WHERE container = ?1 AND id = ?2)
      """, [number, version.bytes])
  }

  // MARK: Contents

  /// Whether the contents on which a decision builds are still here, if it was made over what is remembered: a file can
  /// be lost without anything being written.
  private func stillHasContents(of writes: WriteSet) throws -> Bool {
    guard writes.assumption != nil else { return true }
    let used = Set(writes.contents.compactMap(\.base) + writes.versions.values.flatMap(\.version.record.contents))
    for hash in used.subtracting(writes.contents.map(\.hash)) {
      guard let found = try row("SELECT file FROM content WHERE \(Self.isNamed)", [number, hash.bytes]) else {
        return false
      }
      if let name = try found.decode(String?.self, atIndex: 0), try files.file(named: name) == nil { return false }
    }
    return true
  }

  /// Returns false if a content was here that the decision takes for new.
  private mutating func commitContents(_ writes: WriteSet) throws -> Bool {
    let new = Set(writes.contents.map(\.hash))
    for hash in writes.removedContents.sorted() { try removeContent(hash, isReplaced: new.contains(hash)) }
    for content in writes.contents {
      let mustBeNew = writes.assumption?.newContents.contains(content.hash) == true
      guard try put(content, mustBeNew: mustBeNew) else { return false }
    }
    for hash in writes.suspects {
      try run("UPDATE content SET suspect = 1 WHERE \(Self.isNamed)", [number, hash.bytes])
    }
    return true
  }

  private func count(_ hash: ContentHash, holders: Int) throws {
    try run("UPDATE content SET holders = holders + ?3 WHERE \(Self.isNamed)", [number, hash.bytes, holders])
  }

  /// Puts a content, in place of one that is damaged or lost if there is one, whatever holds that.
  ///
  /// - Returns: False if it must be new and isn't.
  private func put(_ content: WriteSet.Content, mustBeNew: Bool) throws -> Bool {
    let found = try contentNumber(content.hash)
    if mustBeNew, found != nil { return false }
    var (frame, name): (Data?, String?)
    switch content.bytes {
    case .inline(let bytes): frame = bytes
    case .stored(let stored, _): name = stored
    }
    // The hash of a base that isn't here: its content can't be used.
    var base: DatabaseValue = (content.base?.bytes).databaseValue
    if let hash = content.base, let number = try contentNumber(hash) {
      base = number.databaseValue
      try run("UPDATE content SET leaning = leaning + 1 WHERE number = ?", [number])
    }
    let values: StatementArguments = [content.length, base, name, content.bytes.count, now, frame]
    if let found {
      try run(
        """
        UPDATE content SET length = ?, base = ?, file = ?, size = ?, taken = ?, bytes = ?, suspect = 0
        WHERE number = ?
        """, values + [found])
    } else {
      try run(
        """
        INSERT INTO content (length, base, file, size, taken, bytes, container, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """, values + [number, content.hash.bytes])
    }
    return true
  }

  private func contentNumber(_ hash: ContentHash) throws -> Int64? {
    try row("SELECT number FROM content WHERE \(Self.isNamed)", [number, hash.bytes])?.decode(atIndex: 0)
  }

  /// - Parameter isReplaced: Whether the content is put again by the same commit: its row stays.
  mutating func removeContent(_ hash: ContentHash, isReplaced: Bool) throws {
    let found = try row(
      "SELECT number, file, base, leaning FROM content WHERE \(Self.isNamed)", [number, hash.bytes])
    guard let found else { return }
    if let name = try found.decode(String?.self, atIndex: 1) { removedFiles.append(name) }
    if case .int64(let base) = (found[2] as DatabaseValue).storage {
      try run("UPDATE content SET leaning = leaning - 1 WHERE number = ?", [base])
    }
    if isReplaced { return }
    let content = try found.decode(Int64.self, atIndex: 0)
    if try found.decode(Int.self, atIndex: 3) > 0 {
      // Its number may be given to another one.
      try run(
        "UPDATE content SET base = ? WHERE container = ? AND typeof(base) = 'integer' AND base = ?",
        [hash.bytes, number, content])
    }
    try run("DELETE FROM content WHERE number = ?", [content])
  }

  private func commitReleases(_ writes: WriteSet) throws {
    for (version, holder) in writes.released {
      try run("UPDATE version SET holds = 0 WHERE container = ? AND id = ? AND holds = 1", [number, version.bytes])
      guard db.changesCount == 1 else { continue }
      for hash in holder.contents { try count(hash, holders: -1) }
    }
  }

  // MARK: Devices

  private func put(_ device: WriteSet.Device) throws {
    if let visit = device.visit {
      try run(
        """
        INSERT INTO device (container, id, player, app, created, seen) VALUES (?1, ?2, ?3, ?4, ?5, ?5)
        ON CONFLICT (container, id) DO UPDATE SET seen = excluded.seen
        """, [id, device.id.bytes, visit.player.bytes, visit.app, visit.milliseconds])
    }
    if let setBacks = device.setBacks {
      try run(
        "UPDATE device SET setBack = ?3 WHERE container = ?1 AND id = ?2",
        [id, device.id.bytes, setBacks.isEmpty ? nil : try encode(setBacks)])
    }
    if let chain = device.chain {
      try run(
        "INSERT OR IGNORE INTO deviceChain (container, device, chain) VALUES (?, ?, ?)",
        [id, device.id.bytes, chain.bytes])
    }
  }

  private func retire(_ device: DeviceID, isLeaving: Bool, now: Int64) throws {
    // Those in shared containers would be admitted for ever.
    if let parent = ContainerID(bytes: id), try !SQLiteCloudStorage.sharedDevices(of: parent, device, in: db).isEmpty {
      throw SharedLeft()
    }
    try run("INSERT OR IGNORE INTO retired (container, device, at) VALUES (?, ?, ?)", [id, device.bytes, now])
    try run("DELETE FROM deviceChain WHERE container = ? AND device = ?", [id, device.bytes])
    try run("DELETE FROM device WHERE container = ? AND id = ?", [id, device.bytes])
    try run("DELETE FROM sharedDevice WHERE container = ? AND device = ?", [id, device.bytes])
    // The removed device may have requested these, to come back with them. One that leaves by itself is signed out: its
    // player may have nothing but the recovery code, or an identity.
    try run("DELETE FROM pairing WHERE container = ?", [id])
    if !isLeaving {
      try run("DELETE FROM recovery WHERE container = ? AND device = ?", [id, device.bytes])
      try run("DELETE FROM identity WHERE container = ? AND device = ?", [id, device.bytes])
    }
  }

  // MARK: The bank

  private mutating func commitBank(_ writes: WriteSet, _ encoded: EncodedRows) throws {
    for (decision, details) in zip(writes.decisions, encoded.decisions) {
      try recordDecision(decision.verdict, on: decision.operation, of: decision.chain, details: details)
    }
    for claim in writes.claims { try markClaimPaid(claim.key, claim.payment) }
    for voucher in writes.paidVouchers { try markVoucherPaid(voucher.chain, of: voucher.bank) }
    for (claim, left) in writes.vouchedClaims {
      try setVouchedClaim(claim.key.text, by: claim.bank, left: left)
    }
    for (order, details) in zip(writes.orders, encoded.orders) { try recordOrder(order, details: details) }
    for good in writes.goods.values { try setGood(good) }
    for closed in writes.closedChains { try recordClosedChain(closed.chain, closed.id) }
    for voucher in writes.vouchers { try recordVoucher(voucher) }
  }

  /// Marks a receipt as paid to this container's player; false if another one's decision about it was committed first.
  private func take(_ receipt: Receipt) throws -> Bool {
    try run(
      "INSERT OR IGNORE INTO receipt (app, receipt, container, operation) VALUES (?, ?, ?, ?)",
      [receipt.app, receipt.hash.bytes, id, receipt.operation.bytes])
    return db.changesCount == 1
  }
}
#endif
