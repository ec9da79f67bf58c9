#if Cloud
import Foundation
import GRDB
import KeepsakeReplication

// Writing what a decision has decided.
extension SQLiteContainer {
  /// Writes everything, or nothing if the container isn't at this revision any more.
  ///
  /// - Returns: Whether it was written.
  mutating func commit(_ writes: WriteSet, ifAt revision: UInt64) throws -> Bool {
    guard try move(writes, ifAt: revision) else { return false }
    if let receipt = writes.receipt, try !take(receipt) { return false }
    for mark in writes.marks {
      try run(
        "INSERT INTO mark (container, seq, mark) VALUES (?, ?, ?)", [id, signed(mark.seq), signed(mark.mark)])
    }
    for hash in writes.removedContents.sorted() { try removeContent(hash) }
    for content in writes.contents { try insert(content) }
    for hash in writes.suspects {
      try run("UPDATE content SET suspect = 1 WHERE container = ? AND hash = ?", [id, hash.bytes])
    }
    for cell in writes.cells.values { try put(cell) }
    for version in writes.versions.values { try put(version, isReplaced: writes.covered) }
    for covered in writes.covered { try markCovered(covered, isNew: writes.versions[covered] != nil) }
    for (version, slot) in writes.released {
      try run(
        "DELETE FROM holder WHERE container = ? AND slot = ? AND version = ?", [id, bytes(slot), version.bytes])
    }
    for offer in writes.droppedOffers { try dropOffer(offer) }
    for part in writes.parts { try hold(part.items, as: part.part, now: part.now) }
    if let device = writes.device { try put(device) }
    if let retired = writes.retired { try retire(retired.device, now: retired.now) }
    try commitBank(writes)
    return true
  }

  /// Moves the container to its next revision, from this one.
  private func move(_ writes: WriteSet, ifAt revision: UInt64) throws -> Bool {
    let (epoch, seq, mark) =
      writes.position.map { (signed($0.epoch), signed($0.seq), signed($0.mark)) } ?? (nil, nil, nil)
    let bank = try writes.bank.map(encode)
    if revision == 0 {
      // Of a deleted player, no row with a later revision is left.
      try run(
        """
        INSERT INTO container (id, epoch, seq, mark, bank, revision, used)
        SELECT ?1, ifnull(?2, 0), ifnull(?3, 0), ifnull(?4, 0), ?5, 1, ?6
        WHERE NOT EXISTS (SELECT 1 FROM retired WHERE container = ?1 AND device = x'')
        ON CONFLICT (id) DO UPDATE SET epoch = ifnull(?2, epoch), seq = ifnull(?3, seq), mark = ifnull(?4, mark),
          bank = ifnull(?5, bank), revision = 1, used = used + ?6
        WHERE revision = 0
        """, [id, epoch, seq, mark, bank, writes.used])
    } else {
      try run(
        """
        UPDATE container SET epoch = ifnull(?2, epoch), seq = ifnull(?3, seq), mark = ifnull(?4, mark),
          bank = ifnull(?5, bank), revision = ?7 + 1, used = used + ?6
        WHERE id = ?1 AND revision = ?7
        """, [id, epoch, seq, mark, bank, writes.used, signed(revision)])
    }
    return db.changesCount == 1
  }

  // MARK: Items

  private func put(_ cell: SequencedCell) throws {
    try run(
      """
      INSERT INTO cell (container, collection, key, seq, state) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (container, collection, key) DO UPDATE SET seq = excluded.seq, state = excluded.state
      """,
      [
        id, bytes(cell.update.key.collection), bytes(cell.update.key.key), signed(cell.seq),
        try encode(cell.update.state),
      ])
  }

  private func put(_ written: WriteSet.Version, isReplaced covered: Set<VersionID>) throws {
    let record = written.version.record
    for hash in written.holds ? Set(record.contents) : [] {
      try run(
        "INSERT INTO holder (container, hash, version, slot) VALUES (?, ?, ?, ?)",
        [id, hash.bytes, record.id.bytes, bytes(record.slot)])
    }
    try run(
      """
      INSERT INTO version (container, id, slot, seq, head, record) VALUES (?, ?, ?, ?, ?, ?)
      ON CONFLICT (container, id) DO UPDATE
      SET slot = excluded.slot, seq = excluded.seq, head = excluded.head, record = excluded.record
      """,
      [
        id, record.id.bytes, bytes(record.slot), signed(written.version.seq),
        written.isHead && !covered.contains(record.id), try encode(record),
      ])
  }

  /// - Parameter isNew: Whether the version's row is written by the same commit.
  private func markCovered(_ version: VersionID, isNew: Bool) throws {
    try run("INSERT OR IGNORE INTO covered (container, id) VALUES (?, ?)", [id, version.bytes])
    if !isNew {
      try run("UPDATE version SET head = 0 WHERE container = ? AND id = ? AND head = 1", [id, version.bytes])
    }
  }

  // MARK: Contents

  private func insert(_ content: WriteSet.Content) throws {
    var (frame, name): (Data?, String?)
    switch content.bytes {
    case .inline(let bytes): frame = bytes
    case .stored(let stored, _): name = stored
    }
    try run(
      """
      INSERT INTO content (container, hash, length, base, bytes, file, size, taken) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [id, content.hash.bytes, content.length, content.base?.bytes, frame, name, content.bytes.count, now])
  }

  private mutating func removeContent(_ hash: ContentHash) throws {
    let found = try row("DELETE FROM content WHERE container = ? AND hash = ? RETURNING file", [id, hash.bytes])
    if let name = try found?.decode(String?.self, atIndex: 0) ?? nil { removedFiles.append(name) }
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
    if let seq = device.reached {
      try run(
        "UPDATE device SET reached = ? WHERE container = ? AND id = ?", [signed(seq), id, device.id.bytes])
    }
    if let chain = device.chain {
      try run(
        "INSERT OR IGNORE INTO deviceChain (container, device, chain) VALUES (?, ?, ?)",
        [id, device.id.bytes, chain.bytes])
    }
  }

  private func retire(_ device: DeviceID, now: Int64) throws {
    try run("INSERT OR IGNORE INTO retired (container, device, at) VALUES (?, ?, ?)", [id, device.bytes, now])
    try run("DELETE FROM deviceChain WHERE container = ? AND device = ?", [id, device.bytes])
    try run("DELETE FROM device WHERE container = ? AND id = ?", [id, device.bytes])
    // The removed device may have requested it, to come back with it.
    try run("DELETE FROM pairing WHERE container = ?", [id])
  }

  // MARK: The bank

  private mutating func commitBank(_ writes: WriteSet) throws {
    for decision in writes.decisions {
      try recordDecision(decision.verdict, on: decision.operation, of: decision.chain)
    }
    for claim in writes.claims { try markClaimPaid(claim.key, claim.payment) }
    for voucher in writes.paidVouchers { try markVoucherPaid(voucher.chain, of: voucher.bank) }
    for (claim, left) in writes.vouchedClaims {
      try setVouchedClaim(claim.key.text, by: claim.bank, left: left)
    }
    for order in writes.orders { try recordOrder(order) }
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
