import Foundation
import KeepsakeReplication

// What players do, and what happens to their devices.
extension World {
  static func progress(_ key: String) -> CellKey { CellKey(collection: "progress", key: key) }
  /// Contains the ids of versions whose commits also wrote here: a checkpoint shows both or neither.
  static let elements = progress("elements")

  /// Lets one thing happen on one device.
  func act() {
    let index = Int.random(in: devices.indices, using: &random)
    if random.may(swarm.cloudRestoreOdds) { restoreCloud() }
    if random.may(swarm.cloudFillOdds) { fillCloud() }
    switch swarm.act(using: &random) {
    case .load: load(index)
    case .save: save(index)
    case .delete: delete(index)
    case .writeCell: writeCell(index)
    case .wallet: useWallet(index)
    case .network: toggleOnline(index)
    case .reopen:
      report.statistics.reopened += 1
      trace(20, UInt64(index), words: "device \(index) is closed")
      open(index)
    case .copy: copyStore(of: index)
    case .rollBack: rollBack(index)
    case .backUp: devices[index].backup = (devices[index].storage, devices[index].journal.count, now)
    case .turnClock: devices[index].skew += Int64.random(in: -90_000...90_000, using: &random)
    case .collect: collectContents()
    case .remove: removeDevice(index)
    case .ghost: if random.once(in: 3) { spendEverythingTwice() } else { reportFromCopy(of: index) }
    case .sync:
      trace(21, UInt64(index), words: "device \(index) syncs")
      step(index, .sync)
    }
    orderSomething()
    playAsGuest()
    pruneCloud()
  }

  // MARK: Saves

  /// The game applies what was received and held back.
  private func deliver(_ index: Int) {
    let crash = drawCrash()
    let before = devices[index].storage
    do {
      let notification = try DeviceEngine.deliver(in: &devices[index].storage)
      guard !notification.isEmpty else { return }
      try prune(index)
      report.statistics.deliveries += 1
      trace(23, UInt64(index), words: "device \(index) applies what it received")
      check(index, after: notification.map { .notify($0) })
    } catch {
      return violation("device \(index) can't apply what it received: \(error)")
    }
    if crash == .beforeCommit { devices[index].storage = before }
    if crash != nil { return open(index) }
    step(index, .committed)
  }

  private func load(_ index: Int) {
    if holdsArrivals, deliveries.once(in: 2) { deliver(index) }
    if swarm.hasDocuments, random.once(in: swarm.isAboutDocuments ? 2 : 4) {
      loadGarden(index)
      return
    }
    let slot = Self.slots.randomElement(using: &random) ?? Self.slots[0]
    let policy = [SavePolicy.mostProgress, .longestPlayed, .newest].randomElement(using: &random) ?? .newest
    if isFrugal, isNotDownloaded(slot, on: index) { return }
    do {
      let view = try Resolution.view(of: slot, in: devices[index].storage, policy: policy)
      if view.isConflict { report.statistics.conflicts += 1 }
      checkView(view, of: slot, policy, on: index)
      // A player who is asked first sees only one of them.
      let asks = view.isConflict && random.once(in: 3)
      devices[index].loaded[slot] = asks ? view.winner.map { [$0.id] } ?? [] : view.parents
      for head in view.heads {
        for hash in head.contents
        where !devices[index].storage.hasContent(hash) && !devices[index].storage.isNotDownloaded(head) {
          violation("device \(index) shows \(short(head.id)) without its contents")
        }
      }
      trace(
        22, UInt64(index), UInt64(view.heads.count),
        words: "device \(index) loads \(slot): \(view.parents.map { short($0) })")
    } catch {
      violation("device \(index) can't load: \(error)")
    }
  }

  /// Whether a save can't be loaded because it was left in the cloud; the player may then ask for it. A save that is
  /// here may be evicted.
  func isNotDownloaded(_ slot: String, on index: Int) -> Bool {
    let storage = devices[index].storage
    let heads = storage.heads(of: slot).compactMap(storage.version).filter { !$0.record.tombstone }
    let away = heads.filter { storage.isNotDownloaded($0.record) && !$0.record.contents.allSatisfy(storage.hasContent) }
    guard away.isEmpty else {
      report.statistics.leftInTheCloud += 1
      let isAsked = deliveries.once(in: 2)
      trace(
        24, UInt64(index), isAsked ? 1 : 0,
        words: "device \(index) finds \(slot) only in the cloud\(isAsked ? ", and downloads it" : "")")
      if isAsked {
        devices[index].asked.insert(slot)
        step(index, .committed)
      }
      return true
    }
    let isDownloaded = devices[index].asked.remove(slot) != nil
    if isDownloaded { report.statistics.askedFor += 1 }
    guard index % 2 == 1, heads.count == 1, heads[0].record.length > 20, deliveries.once(in: 3) else { return false }
    let isThere = heads[0].acknowledged && heads[0].offered
    guard
      isThere && !storage.outbox(limit: .max).contains(where: { $0.versions.contains(heads[0].record.id) })
        || options.faults.evictsUnsent
    else { return false }
    report.statistics.evicted += 1
    trace(25, UInt64(index), words: "device \(index) removes the download of \(slot)")
    devices[index].storage.evict(heads[0].record.id)
    step(index, .committed)
    return true
  }

  private func save(_ index: Int) {
    if swarm.hasDocuments, swarm.isAboutDocuments || random.once(in: 3) {
      saveGarden(index)
      return
    }
    let slot = Self.slots.randomElement(using: &random) ?? Self.slots[0]
    var saves = [saveDraft(index, slot, tombstone: false)]
    var cells: [CellDraft] = []
    let paired = random.once(in: 2)
    if paired { cells.append(CellDraft(Self.elements, .insert([.string(saves[0].id.description)]))) }
    if random.once(in: 6) {
      saves.append(saveDraft(index, slot == Self.slots[0] ? Self.slots[1] : Self.slots[0], tombstone: false))
    }
    if random.once(in: 3) { cells += cellDrafts(index) }
    var wallet: [WalletOperation] = []
    if random.once(in: 6) { wallet.append(operation(.earn)) }
    commit(index, CommitDraft(saves: saves, cells: cells, wallet: wallet), paired: paired ? saves[0].id : nil)
  }

  private func delete(_ index: Int) {
    let slot = Self.slots.randomElement(using: &random) ?? Self.slots[0]
    guard !devices[index].storage.heads(of: slot).isEmpty else { return }
    report.statistics.deletes += 1
    commit(index, CommitDraft(saves: [saveDraft(index, slot, tombstone: true)]), paired: nil)
  }

  func saveDraft(_ index: Int, _ slot: String, tombstone: Bool, document: Data? = nil) -> SaveDraft {
    var bytes = document ?? Data()
    if document == nil {
      for _ in 0..<Int.random(in: 1...8, using: &random) {
        withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0) }
      }
      // Now and then, two devices arrive at exactly the same game.
      if random.once(in: 12) { bytes = Data("the beginning".utf8) }
    }
    let parents: SaveParents
    if tombstone || options.faults.coversUnloaded {
      parents = .everyHead
    } else {
      parents = devices[index].loaded[slot].map { .versions($0) } ?? .everyHead
    }
    var contents: [ContentHash] = []
    if !tombstone {
      // Large saves are split into several contents.
      let cut = random.once(in: 5) ? bytes.count / 2 : bytes.count
      contents = [bytes.prefix(cut), bytes.dropFirst(cut)].filter { !$0.isEmpty }.map {
        devices[index].storage.addContent(Data($0))
      }
    }
    return SaveDraft(
      id: VersionID(using: &random), slot: slot, parents: parents, contents: contents,
      length: tombstone ? 0 : bytes.count,
      metadata: SaveMetadata(
        playtime: Double(Int.random(in: 0...3, using: &random)), progress: Double(Int.random(in: 0...3, using: &random))
      ),
      savedAtMilliseconds: clock(of: index), tombstone: tombstone)
  }

  // MARK: Cells

  private func cellDrafts(_ index: Int) -> [CellDraft] { random.once(in: 3) ? gatheredDrafts(index) : [cellDraft()] }

  private func cellDraft() -> CellDraft {
    let number = Scalar.int(Int64.random(in: 0...1_000, using: &random))
    switch Int.random(in: 0..<12, using: &random) {
    case 0..<2: return CellDraft(Self.progress("level"), .max(number))
    case 2..<4: return CellDraft(Self.progress("time"), .min(number))
    case 4: return CellDraft(Self.progress("name"), .set(number))
    case 5:
      let entry = BestScore.Entry(score: number, dateMilliseconds: 0, payload: Data())
      return CellDraft(Self.progress("best"), .best(BestScore(order: .descending, entry: entry)))
    case 6..<8: return CellDraft(Self.progress("found"), .insert([number]))
    case 8..<11:
      return CellDraft(
        Self.progress("jumps"),
        .add(plus: UInt64.random(in: 1...9, using: &random), minus: UInt64.random(in: 0...2, using: &random)))
    default:
      if random.once(in: 3) { return CellDraft(Self.progress("season"), .reset(.max(number))) }
      return CellDraft(Self.progress("season"), .max(number))
    }
  }

  private func writeCell(_ index: Int) {
    commit(index, CommitDraft(cells: cellDrafts(index)), paired: nil)
  }

  // MARK: Commits

  /// Commits for the game. The model records what the game may rely on from then on.
  func commit(_ index: Int, _ draft: CommitDraft, paired: VersionID?) {
    let crash = drawCrash()
    let before = devices[index].storage
    var seen: [VersionID: Set<VersionID>] = [:]
    for save in draft.saves {
      let known = save.isTombstone ? nil : devices[index].loaded[save.slot]
      seen[save.id] = Set(known ?? before.heads(of: save.slot))
    }
    let isReused = draft.wallet.contains { operation in
      before.performedOperation(operation.id).map { $0 != operation.fingerprint } ?? false
    }
    do {
      let records = try DeviceCommit.apply(
        draft, now: clock(of: index), writer: devices[index].writer, in: &devices[index].storage, using: &random)
      if isReused { violation("device \(index) took another operation under a known id") }
      report.statistics.saves += records.count
      report.statistics.provisional += records.count { $0.provisional }
      try prune(index)
      checkCommitted(records, draft.cells, before, seen, on: index)
    } catch is WalletError {
      report.statistics.spendsRefused += 1
      devices[index].storage = before
      return
    } catch CellError.resetBeforeCatchUp {
      devices[index].storage = before
      return
    } catch {
      violation("device \(index) can't commit: \(error)")
      return
    }
    trace(
      23, UInt64(index), UInt64(draft.saves.count), UInt64(draft.cells.count), UInt64(draft.wallet.count),
      draft.saves.first?.id.low ?? 0,
      words:
        """
        device \(index) commits saves \
        \(draft.saves.map { "\(short($0.id)) in \($0.slot) over \((seen[$0.id] ?? []).sorted().map { short($0) })" }) \
        cells \(draft.cells.map { "\($0.key.key) \($0.change)" }) wallet \
        \(draft.wallet.map { "\(short($0.id)) \($0.kind) \($0.amount) \($0.currency)" })
        """)
    if crash == .beforeCommit {
      report.statistics.crashesBeforeCommit += 1
      let after = devices[index].storage
      devices[index].storage = before
      trace(24, UInt64(index), words: "device \(index) crashes before that is committed")
      if options.faults.acknowledgesBeforeCommit { note(draft, index, seen, paired, performed(draft, in: after)) }
      return open(index)
    }
    note(draft, index, seen, paired, performed(draft, in: devices[index].storage))
    checkRetreats(index)
    if crash == .afterCommit {
      report.statistics.crashesAfterCommit += 1
      trace(25, UInt64(index), words: "device \(index) crashes after that is committed")
      return open(index)
    }
    step(index, .committed)
  }

  private func performed(_ draft: CommitDraft, in storage: SimulatedDevice) -> Set<OperationID> {
    Set(draft.wallet.map(\.id).filter { storage.performedOperation($0) != nil })
  }

  private func note(
    _ draft: CommitDraft, _ index: Int, _ seen: [VersionID: Set<VersionID>], _ paired: VersionID?,
    _ performed: Set<OperationID>
  ) {
    func write(_ write: Model.Write) {
      devices[index].journal.append(model.writes.count)
      model.writes.append((write, false))
    }
    for save in draft.saves {
      let parents = seen[save.id] ?? []
      model.versions[save.id] = Model.Made(slot: save.slot, device: index, seen: parents, paired: save.id == paired)
      for parent in parents.sorted() { model.successors[parent, default: []].append(save.id) }
      devices[index].loaded[save.slot] = [save.id]
      write(.version(save.id))
    }
    for cell in draft.cells {
      if case .reset = cell.change { report.statistics.resets += 1 }
      noteFavourite(cell, of: draft.cells, index, model.writes.count)
      noteSeason(cell, index, model.writes.count)
      write(.cell(cell.key, cell.change))
    }
    // A claim that was made here before changes nothing.
    let ids = draft.wallet.map(\.id).filter(performed.contains)
    if ids.count > 1 { model.groups.append(ids) }
    for operation in draft.wallet where performed.contains(operation.id) {
      model.operations[operation.id] = operation
      write(.operation(operation.id))
    }
  }

  // MARK: Fates

  private func toggleOnline(_ index: Int) {
    devices[index].online.toggle()
    if !devices[index].online { report.statistics.partitions += 1 }
    trace(26, UInt64(index), words: "device \(index) is \(devices[index].online ? "online" : "offline")")
    guard devices[index].online else { return }
    let isNew = devices[index].storage.facts().container == nil
    devices[index].storage.connect()
    if isNew || random.once(in: 2) { step(index, .started) }
  }

  /// Copies the store to a second machine, as the player's backup tool or a synced folder does.
  private func copyStore(of index: Int) {
    guard devices.count < swarm.maximumDevices else { return }
    report.statistics.copies += 1
    trace(27, UInt64(index), words: "device \(index) is copied as device \(devices.count)")
    // A copy is known as the device that it is a copy of.
    cloud.copyVisits(of: Device.id(index), to: Device.id(devices.count))
    addDevice(
      devices[index].storage, writer: options.faults.reusesWriters ? devices[index].writer : nil)
    devices[devices.count - 1].wasSetBack = devices[index].wasSetBack
  }

  /// Rolls the store back to its backup: what was written since is gone unless it was sent in time.
  func rollBack(_ index: Int) {
    guard let backup = devices[index].backup, maySetBack(to: backup.time) else { return }
    report.statistics.rollbacks += 1
    trace(28, UInt64(index), words: "device \(index) is restored from a backup")
    for number in devices[index].journal.dropFirst(backup.writes) {
      // What the cloud has comes back from there.
      if case .version(let id) = model.writes[number].write, cloud.version(id) != nil || cloud.isCovered(id) {
        model.leftToCloud.append(number)
        continue
      }
      mayBeGone(number)
    }
    noteLosses(of: index, goingBackTo: backup.storage)
    devices[index].storage = backup.storage
    devices[index].era += 1
    // What it was told is gone with the rest.
    (devices[index].wasSetBack, devices[index].awaitsMark) = (true, false)
    (devices[index].arrivedCursor, devices[index].wasAnswered) = (0, false)
    devices[index].journal.removeLast(devices[index].journal.count - min(backup.writes, devices[index].journal.count))
    devices[index].checkedElements = []
    devices[index].backup = nil
    reportSetBack(index)
    open(index)
  }

  private func mayBeGone(_ number: Int) {
    model.writes[number].mayBeGone = true
    switch model.writes[number].write {
    case .version(let id): model.versions[id]?.mayBeGone = true
    case .operation(let id): model.operationMayBeGone.insert(id)
    case .cell: break
    }
  }

  private func fillCloud() {
    isFull.toggle()
    trace(31, isFull ? 1 : 0, words: "the cloud \(isFull ? "has no room for saves" : "has room again")")
  }

  private func restoreCloud() {
    guard let backup = cloudBackup else {
      cloudBackup = (cloud, words)
      return
    }
    report.statistics.serverRestores += 1
    cloudWasRestored = true
    trace(
      30, backup.cloud.position().seq,
      words: "the cloud is restored from \(cloud.position().seq) to \(backup.cloud.position().seq)")
    (cloud, words) = backup
    // It has forgotten which devices it has seen go back.
    for index in devices.indices { devices[index].awaitsMark = false }
    cloudBackup = nil
    bankEpoch += 1
    for number in model.leftToCloud { mayBeGone(number) }
    model.leftToCloud = []
    // All streams ended with the old server; most devices open theirs again before long.
    for index in devices.indices where !random.may(swarm.deafnessOdds) {
      schedule(
        after: Int64.random(in: 10...3_000, using: &random), .listen(device: index, opening: devices[index].opening))
    }
  }
}
