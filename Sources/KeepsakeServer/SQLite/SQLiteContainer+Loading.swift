#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
// GRDB has a type of this name, too.
import struct KeepsakeReplication.Cursor

// Loading what a decision reads.
extension SQLiteContainer {
  /// Of the contents that go into a response, at most this many bytes are read to find those that fit.
  private static let framesRead = 4 * CloudAcceptance.inlineTotalBytes
  /// The most bases that are followed for one of them.
  private static let chainRead = 32

  func snapshot(of reads: ReadSet) throws -> Snapshot {
    var snapshot = Snapshot(revision: found?.revision ?? 0, position: found?.position ?? .start, known: reads)
    if let found { snapshot.used = found.used }
    let isAsked = reads.reached || reads.visits || reads.device != nil
    let reached = isAsked ? try found.map { try PackedReached(bytes: $0.reached) } : nil
    try loadDevices(reads, reached?.seqs ?? [:], into: &snapshot)
    try loadPruning(reads, reached?.seqs ?? [:], into: &snapshot)
    for seq in reads.marks where seq != snapshot.position.seq { snapshot.marks[seq] = try mark(of: seq) }
    for key in reads.cells { snapshot.cells[key] = try cell(key) }
    for version in reads.versions { try load(version, into: &snapshot) }
    for version in reads.slotsOfVersions { snapshot.slotsOfVersions[version] = try slot(of: version) }
    for slot in reads.slots { try load(slot, into: &snapshot) }
    if !reads.histories.isEmpty { try loadHistories(of: reads.histories, into: &snapshot) }
    for hash in reads.contents { snapshot.contents[hash] = try facts(hash) }
    if let changes = reads.changes { try load(changes, into: &snapshot) }
    for hash in reads.frames where snapshot.frames[hash] == nil { snapshot.frames[hash] = try smallContent(hash) }
    if reads.suspects { snapshot.suspects = try suspectContents() }
    for hash in reads.needing { snapshot.needing[hash] = try heads(needing: hash) }
    if reads.wholeRoom || !reads.rooms.isEmpty || !reads.roomOfContents.isEmpty { try loadRoom(reads, into: &snapshot) }
    if reads.offers { snapshot.offers = try heldOffers() }
    for offer in reads.parts { snapshot.parts[offer] = try items(of: offer) }
    try load(reads.bank, into: &snapshot)
    return snapshot
  }

  private func loadDevices(
    _ reads: ReadSet, _ reached: [DeviceID: UInt64], into snapshot: inout Snapshot
  ) throws {
    let asked = try row(
      """
      SELECT EXISTS (SELECT 1 FROM retired WHERE container = ?3 AND device = x''),
        EXISTS (SELECT 1 FROM retired WHERE container = ?1 AND device = ?2), device.seen, device.setBack
      FROM (SELECT 1) LEFT JOIN device ON device.container = ?1 AND device.id = ?2
      """, [id, reads.device?.bytes, deletedMark])
    snapshot.isDeleted = try asked?.decode(Bool.self, atIndex: 0) ?? false
    if reads.reached { snapshot.reached = reached }
    guard let device = reads.device else { return }
    var known = Snapshot.Device()
    known.isRetired = try asked?.decode(Bool.self, atIndex: 1) ?? false
    known.seenMilliseconds = try asked?.decode(atIndex: 2)
    known.reached = reached[device] ?? 0
    if let setBacks = try asked?.decode(Data?.self, atIndex: 3) {
      known.setBacks = try decode(DeviceSetBacks.self, setBacks)
    }
    if reads.allChains {
      let chains = try rows("SELECT chain FROM deviceChain WHERE container = ? AND device = ?", [id, device.bytes])
      known.chains = Set(try chains.map { try identifier($0.decode(atIndex: 0)) })
    } else if let chain = reads.chain {
      let found = try row(
        "SELECT 1 FROM deviceChain WHERE container = ? AND device = ? AND chain = ?", [id, device.bytes, chain.bytes])
      if found != nil { known.chains = [chain] }
    }
    snapshot.device = known
  }

  // MARK: Versions

  private func load(_ version: VersionID, into snapshot: inout Snapshot) throws {
    guard snapshot.coverage[version] == nil else { return }
    if let (found, isHead) = try versionAndHead(version) {
      snapshot.add(found, isCovered: !isHead)
    } else {
      snapshot.known.versions.insert(version)
      snapshot.coverage[version] = try isUnknownCovered(version)
    }
  }

  private func load(_ slot: ExactText, into snapshot: inout Snapshot) throws {
    guard snapshot.heads[slot] == nil else { return }
    let heads = try rows(
      """
      SELECT seq, id, version.slot, record FROM head JOIN version ON version.number = head.version
      WHERE head.container = ? AND head.slot = ? ORDER BY id
      """, [number, bytes(slot.text)]
    ).map(sequencedVersion)
    snapshot.known.slots.insert(slot)
    snapshot.heads[slot] = heads.map(\.record.id)
    for head in heads { snapshot.add(head, isCovered: false) }
  }

  private func loadHistories(of slots: Set<ExactText>, into snapshot: inout Snapshot) throws {
    try eachVersion(of: slots) { row in
      var version = try sequencedVersion(row)
      if let accepted = try row.decode(Int64?.self, atIndex: 5) { version.accepted = unsigned(accepted) }
      snapshot.add(version, isCovered: try !row.decode(Bool.self, atIndex: 4))
    }
  }

  /// Calls `body` with the rows of versions of these slots, of all slots if it is nil. Looks once at each version of
  /// the container.
  private func eachVersion(
    of slots: Set<ExactText>?, isHolding: Bool = false, _ body: (Row) throws -> Void
  ) throws {
    let rows = try Row.fetchCursor(
      db.cachedStatement(
        sql: """
          SELECT \(Self.versionColumns) FROM version WHERE container = ?\(isHolding ? " AND holds = 1" : "")
          """), arguments: [number])
    while let row = try rows.next() {
      if let slots, try !slots.contains(ExactText(String(decoding: row.decode(Data.self, atIndex: 2), as: UTF8.self))) {
        continue
      }
      try body(row)
    }
  }

  // MARK: Changes

  private func load(_ wanted: ReadSet.Changes, into snapshot: inout Snapshot) throws {
    var loaded = Snapshot.Changes(through: snapshot.position.seq)
    guard wanted.after < snapshot.position.seq else {
      snapshot.changes = loaded
      return
    }
    var records: [(record: VersionRecord, isHead: Bool)] = []
    var bytes = 0
    try eachChange(after: wanted.after) { change in
      if loaded.list.count == wanted.count || !loaded.list.isEmpty && bytes > wanted.bytes {
        loaded.through = loaded.list.last?.seq ?? wanted.after
        return false
      }
      bytes += change.bytes
      loaded.list.append(change.change)
      loaded.marks[change.change.seq] = change.mark
      if case .version(let record) = change.change.item { records.append((record, change.isHead)) }
      return true
    }
    snapshot.changes = loaded
    for (change, record) in zip(loaded.list.lazy.filter(\.isVersion), records) {
      snapshot.add(SequencedVersion(record: record.record, seq: change.seq), isCovered: !record.isHead)
    }
    // Those of history come without what people see of them, which their slot's heads decide.
    for record in records where !record.isHead && record.record.withoutLabels != record.record {
      try load(ExactText(record.record.slot), into: &snapshot)
    }
    try loadFrames(of: records, fromStart: wanted.after == 0, into: &snapshot)
  }

  /// Loads small contents of heads, with those of their bases that the device can't have.
  private func loadFrames(
    of records: [(record: VersionRecord, isHead: Bool)], fromStart: Bool, into snapshot: inout Snapshot
  ) throws {
    let replaced = Set(records.lazy.filter { !$0.isHead }.flatMap(\.record.contents))
    var left = Self.framesRead
    for record in records where record.isHead {
      for hash in record.record.contents {
        var next: ContentHash? = hash
        var chain = 0
        while let hash = next, snapshot.known.frames.insert(hash).inserted, chain < Self.chainRead, left > 0 {
          chain += 1
          let content = try smallContent(hash)
          snapshot.frames[hash] = content
          left -= content?.bytes.count ?? 0
          next = content?.base.flatMap { fromStart || replaced.contains($0) ? $0 : nil }
        }
      }
    }
  }

  // MARK: Contents

  private func facts(_ hash: ContentHash) throws -> Snapshot.Content? {
    let found = try row(
      "SELECT \(Self.base), size, suspect, file FROM content WHERE \(Self.isNamed)", [number, hash.bytes])
    guard let found else { return nil }
    return Snapshot.Content(
      base: try found.decode(Data?.self, atIndex: 0).map(contentHash), size: try found.decode(atIndex: 1),
      isSuspect: try found.decode(atIndex: 2),
      isLost: try found.decode(String?.self, atIndex: 3).map { try files.file(named: $0) == nil } ?? false)
  }

  /// Returns a content if it is small enough for a response.
  private func smallContent(_ hash: ContentHash) throws -> EncodedContent? {
    let found = try row(
      "SELECT length, \(Self.base), bytes FROM content WHERE \(Self.isNamed) AND size <= ?3 AND file IS NULL",
      [number, hash.bytes, CloudAcceptance.inlineContentBytes])
    guard let found else { return nil }
    return EncodedContent(
      hash: hash, length: try found.decode(atIndex: 0),
      base: try found.decode(Data?.self, atIndex: 1).map(contentHash),
      bytes: try found.decode(Data?.self, atIndex: 2) ?? Data())
  }

  private func loadRoom(_ reads: ReadSet, into snapshot: inout Snapshot) throws {
    var open = Array(reads.roomOfContents)
    if reads.wholeRoom {
      open = try rows("SELECT hash FROM content WHERE container = ?", [number]).map {
        try contentHash($0.decode(atIndex: 0))
      }
    }
    if reads.wholeRoom || !reads.rooms.isEmpty {
      try eachVersion(of: reads.wholeRoom ? nil : reads.rooms, isHolding: true) { row in
        let record = try sequencedVersion(row).record
        let contents = Set(record.contents)
        snapshot.room.holders[record.id] = Snapshot.Room.Holder(slot: record.slot, contents: contents)
        snapshot.coverage[record.id] = try !row.decode(Bool.self, atIndex: 4)
        open += contents
      }
    }
    while let hash = open.popLast() {
      guard snapshot.room.contents[hash] == nil, let content = try contentInRoom(hash) else { continue }
      snapshot.room.contents[hash] = content
      if let base = content.base { open.append(base) }
    }
  }

  private func contentInRoom(_ hash: ContentHash) throws -> Snapshot.Room.Content? {
    let found = try row(
      "SELECT \(Self.base), size, taken, holders, leaning FROM content WHERE \(Self.isNamed)",
      [number, hash.bytes])
    guard let found else { return nil }
    return Snapshot.Room.Content(
      base: try found.decode(Data?.self, atIndex: 0).map(contentHash), size: try found.decode(atIndex: 1),
      takenMilliseconds: try found.decode(atIndex: 2), holders: try found.decode(atIndex: 3),
      leaning: try found.decode(atIndex: 4))
  }

  // MARK: The bank

  private func load(_ reads: BankReads, into snapshot: inout Snapshot) throws {
    if reads.state { snapshot.bank = try bank() }
    for id in reads.decisions { snapshot.decisions[id] = try decision(on: id) }
    for id in reads.operations { snapshot.operations[id] = try decidedOperation(id) }
    for key in reads.claims where try isClaimPaid(key.text) { snapshot.paidClaims.insert(key) }
    if let limit = reads.payments { snapshot.payments = try payments(limit: limit) }
    for voucher in reads.paidVouchers where try isVoucherPaid(voucher.chain, of: voucher.bank) {
      snapshot.paidVouchers.insert(voucher)
    }
    for claim in reads.vouchedClaims {
      snapshot.vouchedClaims[claim] = try vouchedClaim(claim.key.text, by: claim.bank)
    }
    for id in reads.orders { snapshot.orders[id] = try order(id) }
    if let range = reads.ordersAfter {
      snapshot.ordersAfter = try orders(after: range.after, limit: range.limit)
    }
    try loadGoods(reads, into: &snapshot)
    for chain in reads.closedChains { snapshot.closedChains[chain] = try closedChain(chain) }
    if reads.allClosedChains {
      for row in try rows("SELECT count, hash, follows, chain FROM closedChain WHERE container = ?", [id]) {
        snapshot.closedChains[try identifier(row.decode(atIndex: 3))] = try closedChain(row)
      }
    }
    for chain in reads.vouchers { snapshot.vouchers[chain] = try voucher(of: chain) }
    if let receipt = reads.receipt {
      let holder = try row(
        "SELECT container FROM receipt WHERE app = ? AND receipt = ?", [receipt.app, receipt.hash.bytes])
      // A container without bytes is one that was deleted: nobody has this id.
      snapshot.receiptHolder = try holder.map {
        ContainerID(bytes: try $0.decode(atIndex: 0)) ?? ContainerID(high: 0, low: 0)
      }
    }
  }

  private func loadGoods(_ reads: BankReads, into snapshot: inout Snapshot) throws {
    for name in reads.goods where !reads.allGoods {
      let found = try row("SELECT count FROM good WHERE container = ? AND name = ?", [id, bytes(name.text)])
      snapshot.goods[name] = try found?.decode(Int64.self, atIndex: 0)
    }
    if reads.allGoods {
      for row in try rows("SELECT name, count FROM good WHERE container = ?", [id]) {
        let name = String(decoding: try row.decode(Data.self, atIndex: 0), as: UTF8.self)
        snapshot.goods[ExactText(name)] = try row.decode(Int64.self, atIndex: 1)
      }
    }
    if let range = reads.goodsAfter {
      snapshot.goodsAfter = try goods(changedAfter: range.after, limit: range.limit)
    }
  }
}

extension CloudChange {
  fileprivate var isVersion: Bool {
    if case .version = item { true } else { false }
  }
}
#endif
