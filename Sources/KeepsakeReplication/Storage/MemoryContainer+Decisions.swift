// Decides as a server does: loads what a decision reads, and commits what it changes.
extension MemoryContainer {
  /// Loads, decides and commits. If `body` throws, nothing has changed, and no random number is used up.
  ///
  /// - Parameters:
  ///   - reads: What the request shows of what `body` is going to read.
  ///   - random: Where random numbers come from.
  package mutating func decide<Result, Generator: RandomNumberGenerator>(
    reading reads: ReadSet, using random: inout Generator,
    _ body: (inout SnapshotContainer, inout Generator) throws -> Result
  ) throws -> Result {
    var needed = reads
    while true {
      var overlay = SnapshotContainer(snapshot(of: needed))
      var source = random
      do {
        let result = try body(&overlay, &source)
        random = source
        commit(overlay.writes)
        return result
      } catch let lacking as NotLoaded {
        needed.formUnion(lacking.reads)
      }
    }
  }

  // MARK: Loading

  /// Returns what is asked for.
  package func snapshot(of reads: ReadSet) -> Snapshot {
    var snapshot = Snapshot(revision: revision, position: thePosition, known: reads)
    snapshot.faults = faults
    if let device = reads.device {
      snapshot.device = Snapshot.Device()
      snapshot.device?.reached = reachedSeqs[device] ?? 0
      snapshot.device?.setBacks = setBacks(of: device)
    }
    snapshot.reached = reachedSeqs
    for seq in reads.marks { snapshot.marks[seq] = marks[seq] }
    for key in reads.cells { snapshot.cells[key] = cells[key] }
    for id in reads.versions { add(id, to: &snapshot) }
    for id in reads.slotsOfVersions { snapshot.slotsOfVersions[id] = versions[id]?.record.slot }
    for slot in reads.slots {
      snapshot.heads[slot] = heads(of: slot.text)
      for id in heads(of: slot.text) { add(id, to: &snapshot) }
    }
    if !reads.histories.isEmpty {
      for version in versions.values where reads.histories.contains(ExactText(version.record.slot)) {
        snapshot.add(version, isCovered: covered.contains(version.record.id))
      }
    }
    if let wanted = reads.slotNames {
      snapshot.slotNames = slots(after: wanted.after?.text, limit: wanted.limit).map(ExactText.init)
    }
    snapshot.visits = visits()
    snapshot.pastPositions = past
    snapshot.pruned = pruned
    for hash in reads.contents {
      snapshot.contents[hash] = contents[hash].map {
        Snapshot.Content(base: $0.base, size: Int64($0.bytes.count), isSuspect: suspect.contains(hash))
      }
    }
    for hash in reads.frames { snapshot.frames[hash] = contents[hash] }
    snapshot.suspects = suspectContents()
    for hash in reads.needing { snapshot.needing[hash] = heads(needing: hash) }
    snapshot.used = used
    snapshot.room = room(reads)
    snapshot.offers = heldOffers()
    for offer in reads.parts { snapshot.parts[offer] = items(of: offer) }
    if let wanted = reads.changes { load(wanted, into: &snapshot) }
    load(reads.bank, into: &snapshot)
    return snapshot
  }

  private func add(_ id: VersionID, to snapshot: inout Snapshot) {
    snapshot.coverage[id] = covered.contains(id)
    snapshot.known.versions.insert(id)
    snapshot.versions[id] = versions[id]
  }

  private func load(_ wanted: ReadSet.Changes, into snapshot: inout Snapshot) {
    var loaded = Snapshot.Changes(through: thePosition.seq)
    var bytes = 0
    for change in changes(after: wanted.after, limit: wanted.count + 1) {
      if loaded.list.count == wanted.count || !loaded.list.isEmpty && bytes > wanted.bytes {
        loaded.through = loaded.list.last?.seq ?? wanted.after
        break
      }
      bytes += change.size
      loaded.list.append(change)
      loaded.marks[change.seq] = marks[change.seq]
    }
    for case .version(let record) in loaded.list.map(\.item) {
      add(record.id, to: &snapshot)
      let slot = ExactText(record.slot)
      snapshot.known.slots.insert(slot)
      snapshot.heads[slot] = heads(of: record.slot)
      for id in heads(of: record.slot) { add(id, to: &snapshot) }
      var next = record.contents
      while let hash = next.popLast() {
        snapshot.known.frames.insert(hash)
        snapshot.frames[hash] = contents[hash]
        if let base = contents[hash]?.base, !snapshot.known.frames.contains(base) { next.append(base) }
      }
    }
    snapshot.changes = loaded
  }

  private func room(_ reads: ReadSet) -> Snapshot.Room {
    var room = Snapshot.Room()
    var open = Array(reads.wholeRoom ? Set(contents.keys) : reads.roomOfContents)
    for id in reads.wholeRoom || !reads.rooms.isEmpty ? holding : [] {
      guard let record = versions[id]?.record,
        reads.wholeRoom || reads.rooms.contains(ExactText(record.slot))
      else { continue }
      room.holders[id] = Snapshot.Room.Holder(slot: record.slot, contents: Set(record.contents))
      open += record.contents
    }
    while let hash = open.popLast() {
      guard room.contents[hash] == nil, let content = contents[hash] else { continue }
      // There is no clock, and nothing is old.
      room.contents[hash] = Snapshot.Room.Content(
        base: content.base, size: Int64(content.bytes.count), takenMilliseconds: .max,
        holders: holders[hash]?.count ?? 0, leaning: leaning[hash] ?? 0)
      if let base = content.base { open.append(base) }
    }
    return room
  }

  private func load(_ reads: BankReads, into snapshot: inout Snapshot) {
    snapshot.bank = theBank
    for id in reads.decisions { snapshot.decisions[id] = decision(on: id) }
    for id in reads.operations { snapshot.operations[id] = decidedOperation(id) }
    for key in reads.claims where isClaimPaid(key.text) { snapshot.paidClaims.insert(key) }
    if let limit = reads.payments { snapshot.payments = payments(limit: limit) }
    for voucher in reads.paidVouchers where isVoucherPaid(voucher.chain, of: voucher.bank) {
      snapshot.paidVouchers.insert(voucher)
    }
    for claim in reads.vouchedClaims {
      snapshot.vouchedClaims[claim] = vouchedClaim(claim.key.text, by: claim.bank)
    }
    for id in reads.orders { snapshot.orders[id] = order(id) }
    if let range = reads.ordersAfter { snapshot.ordersAfter = orders(after: range.after, limit: range.limit) }
    for (name, good) in theGoods where reads.allGoods || reads.goods.contains(ExactText(name)) {
      snapshot.goods[ExactText(name)] = good.count
    }
    if let range = reads.goodsAfter { snapshot.goodsAfter = goods(changedAfter: range.after, limit: range.limit) }
    for (id, chain) in closedChains where reads.allClosedChains || reads.closedChains.contains(id) {
      snapshot.closedChains[id] = chain
    }
    for id in reads.vouchers { snapshot.vouchers[id] = vouchers[id] }
  }

  // MARK: Committing

  /// Does what a decision has decided about the newest state.
  package mutating func commit(_ writes: WriteSet) {
    guard !writes.isEmpty else { return }
    revision += 1
    let used = used + writes.used
    if let position = writes.position { thePosition = position }
    for mark in writes.marks { marks[mark.seq] = mark.mark }
    for hash in writes.removedContents { removeContent(hash) }
    for content in writes.contents {
      guard case .inline(let bytes) = content.bytes else { continue }
      putContent(EncodedContent(hash: content.hash, length: content.length, base: content.base, bytes: bytes))
    }
    suspect.formUnion(writes.suspects)
    commitItems(writes)
    commitPruning(writes)
    self.used = used
    for offer in writes.droppedOffers { offers[offer] = nil }
    for part in writes.parts { hold(part.items, as: part.part, now: part.now) }
    if let device = writes.device {
      if let seq = device.reached { setReached(seq, by: device.id) }
      if let setBacks = device.setBacks { setSetBacks(setBacks, of: device.id) }
      if let visit = device.visit { recordVisit(of: device.id, now: visit.milliseconds) }
    }
    commitBank(writes)
  }

  private mutating func commitItems(_ writes: WriteSet) {
    for version in writes.versions.values where version.holds {
      holding.insert(version.version.record.id)
      for hash in version.version.record.contents { holders[hash, default: []].insert(version.version.record.id) }
    }
    for id in writes.released.keys {
      holding.remove(id)
      for hash in (writes.versions[id]?.version ?? versions[id])?.record.contents ?? [] {
        holders[hash]?.remove(id)
        if holders[hash]?.isEmpty == true { holders[hash] = nil }
      }
    }
    for id in writes.covered { markCovered(id) }
    var changed = writes.cells.values.map { (seq: $0.seq, name: Name.cell($0.update.key)) }
    for cell in writes.cells.values { cells[cell.update.key] = cell }
    for version in writes.versions.values {
      let record = version.version.record
      versions[record.id] = version.version
      if !covered.contains(record.id) { headsBySlot[record.slot, default: []].insert(record.id) }
      changed.append((version.version.seq, .version(record.id)))
    }
    log += changed.sorted { $0.seq < $1.seq }
  }

  private mutating func commitBank(_ writes: WriteSet) {
    if let bank = writes.bank { theBank = bank }
    for decision in writes.decisions {
      recordDecision(decision.verdict, on: decision.operation, of: decision.chain)
    }
    for claim in writes.claims { markClaimPaid(claim.key, claim.payment) }
    for voucher in writes.paidVouchers { markVoucherPaid(voucher.chain, of: voucher.bank) }
    for (claim, left) in writes.vouchedClaims { setVouchedClaim(claim.key.text, by: claim.bank, left: left) }
    for order in writes.orders { recordOrder(order) }
    for (name, good) in writes.goods { theGoods[name.text] = good }
    for closed in writes.closedChains { recordClosedChain(closed.chain, closed.id) }
    for voucher in writes.vouchers { recordVoucher(voucher) }
  }
}
