// Which replaced versions a cloud removes, in small steps beside play.
extension CloudAcceptance {
  /// What one step of pruning did.
  package struct PruningStep: Hashable, Sendable {
    /// Versions that were removed.
    package var versions = 0
    /// Ids that were forgotten.
    package var ids = 0
    /// Where the next step begins; nil if nothing is left for now.
    package var next: Place?

    /// A place between two slots.
    package enum Place: Hashable, Sendable {
      case start
      case after(slot: String)
    }
  }

  /// Removes replaced versions that nobody needs: their replacement is older than the window, the rules for history
  /// don't keep them, no device may continue from them, and nothing that is kept is merged from them. Forgets ids and
  /// marks that aren't remembered any longer.
  ///
  /// This isn't a change of the container: it takes no seq, and no device is notified. Costs reading the records of a
  /// few slots.
  ///
  /// - Parameter place: Where the step before ended.
  package static func prune(
    from place: PruningStep.Place = .start, under rules: PruningRules = PruningRules(), now: Int64,
    in storage: inout some ContainerStorage
  ) throws -> PruningStep {
    var after: String?
    if case .after(let slot) = place { after = slot }
    var reads = ReadSet()
    reads.slotNames = ReadSet.SlotNames(after: after.map(ExactText.init), limit: PruningRules.slotsAtOnce)
    (reads.visits, reads.pastPositions) = (true, true)
    try storage.need(reads)
    let times = try times(under: rules, now: now, in: storage)
    if case .start = place { try recordPosition(times, under: rules, now: now, in: &storage) }
    let slots = try storage.slots(after: after, limit: PruningRules.slotsAtOnce)
    var step = try prune(slots, from: place, under: rules, times, in: &storage)
    if step.next == nil, slots.count == PruningRules.slotsAtOnce, let last = slots.last {
      step.next = .after(slot: last)
    }
    if step.next == nil { try forget(times, under: rules, now: now, in: &storage) }
    return step
  }

  /// Removes records, too, when room is needed: also those that were replaced just now, and those that the rules for
  /// history keep.
  static func pruneForRoom(now: Int64, in storage: inout some ContainerStorage) throws {
    let rules = PruningRules.forRoom()
    var reads = ReadSet()
    reads.slotNames = ReadSet.SlotNames(after: nil, limit: .max)
    (reads.visits, reads.pastPositions) = (true, true)
    try storage.need(reads)
    let times = try times(under: rules, now: now, in: storage)
    _ = try prune(storage.slots(after: nil, limit: .max), from: .start, under: rules, times, in: &storage)
  }

  private static func times(
    under rules: PruningRules, now: Int64, in storage: some ContainerStorage
  ) throws -> PruningTimes {
    PruningTimes(
      rules, now: now, position: try storage.position().seq, past: try storage.pastPositions(),
      visits: try storage.visits())
  }

  /// Prunes the slots until as much was removed as one step may remove.
  private static func prune(
    _ slots: [String], from place: PruningStep.Place, under rules: PruningRules, _ times: PruningTimes,
    in storage: inout some ContainerStorage
  ) throws -> PruningStep {
    var reads = ReadSet()
    reads.histories = Set(slots.map(ExactText.init))
    reads.rooms = reads.histories
    try storage.need(reads)
    var step = PruningStep()
    var reached = place
    for slot in slots {
      let room = PruningRules.versionsAtOnce - step.versions
      let graph = prune(try storage.history(of: slot), under: rules, times, upTo: room, faults: storage.faults)
      for id in graph.removed { try storage.removeVersion(id) }
      for id in graph.rewritten.sorted() { try storage.setCovers(graph.covers(of: id), of: id) }
      if !graph.forgotten.isEmpty { try storage.forgetCovered(graph.forgotten) }
      step.versions += graph.removed.count
      step.ids += graph.forgotten.count
      if step.versions >= PruningRules.versionsAtOnce || step.ids >= PruningRules.forgottenAtOnce {
        // The rest of this slot.
        step.next = reached
        return step
      }
      reached = .after(slot: slot)
    }
    return step
  }

  /// Returns what is left of a slot's versions.
  private static func prune(
    _ history: SlotHistory, under rules: PruningRules, _ times: PruningTimes, upTo limit: Int, faults: Faults
  ) -> VersionGraph {
    var graph = VersionGraph(history.versions)
    let kept = kept(by: rules.history, of: history)
    var old: [SequencedVersion] = []
    for (id, version) in history.versions where history.covered.contains(id) && !kept.contains(id) {
      guard let replaced = graph.replacedSeq(of: id), replaced <= times.settled else { continue }
      let isNeeded = times.mayBeNeeded(accepted: version.accepted, replaced: replaced)
      if !isNeeded || faults.prunesWhereDevicesAre { old.append(version) }
    }
    // The newest first: each hands on little.
    old.sort { ($0.seq, $0.record.id) > ($1.seq, $1.record.id) }
    for version in old where graph.removed.count < limit {
      guard let heir = graph.heir(of: version.record.id), let inherits = graph.versions[heir] else { continue }
      // A device between the two would never learn what the heir inherits.
      if inherits.seq < version.seq, times.separate(inherits.seq, version.seq) { continue }
      guard
        graph.coverCount(of: heir) + graph.coverCount(of: version.record.id) <= PruningRules.maximumCovers
      else { continue }
      graph.remove(version.record.id, inheritedBy: faults.prunesWithoutHeirs ? nil : heir)
    }
    forgetIDs(of: history.pruned, in: &graph, times, faults)
    return graph
  }

  /// Forgets the ids of versions that were pruned and were replaced longer ago than is remembered.
  ///
  /// Not the ids of versions that never came: a device may still have one in its outbox, refused until there is room,
  /// however far it has come, and the cloud would take it for a head. And not while a new device catches up: it may
  /// have got a version just before that was pruned.
  private static func forgetIDs(
    of pruned: Set<VersionID>, in graph: inout VersionGraph, _ times: PruningTimes, _ faults: Faults
  ) {
    for (id, version) in graph.versions.sorted(by: { $0.key < $1.key }) where version.seq <= times.forgotten {
      for older in graph.pureIDs(of: id) where pruned.contains(older) {
        guard graph.forgotten.count < PruningRules.forgottenAtOnce else { return }
        guard let last = graph.lastCoveringSeq(of: older), last <= times.forgotten,
          faults.prunesWhereDevicesAre || times.isForgotten(last)
        else { continue }
        // Two versions may come from nothing else.
        if graph.heir(of: older) != nil { graph.forget(older) }
      }
    }
  }

  /// Returns the versions that the rules for history keep, of those that can still be loaded.
  private static func kept(by rules: HistoryRules?, of history: SlotHistory) -> Set<VersionID> {
    guard let rules else { return [] }
    let ordered = history.holding.compactMap { history.versions[$0] }.sorted {
      ($0.accepted, $0.record.id) > ($1.accepted, $1.record.id)
    }
    return Set(
      zip(ordered, rules.kept(ordered.map(\.record.savedAtMilliseconds))).filter(\.1).map(\.0.record.id))
  }

  // MARK: Marks and times

  private static func recordPosition(
    _ times: PruningTimes, under rules: PruningRules, now: Int64, in storage: inout some ContainerStorage
  ) throws {
    let last = try storage.pastPositions().last
    if let last, now < last.milliseconds.addingClamped(rules.stepMilliseconds) { return }
    try storage.recordPosition(
      PastPosition(milliseconds: now, seq: try storage.position().seq, devices: times.devices))
  }

  private static func forget(
    _ times: PruningTimes, under rules: PruningRules, now: Int64, in storage: inout some ContainerStorage
  ) throws {
    if times.forgotten > 0 {
      let position = try storage.position().seq
      try storage.forgetMarks(
        through: times.forgotten, butNot: times.devices.map { $0.from...$0.through } + [position...position])
    }
    let past = try storage.pastPositions()
    guard let first = past.lastIndex(where: { $0.milliseconds <= now.addingClamped(-rules.rememberedMilliseconds) })
    else { return }
    var needed = Set([past[first].milliseconds])
    for visits in try storage.visits().values {
      if let time = visits.lastMilliseconds?.addingClamped(rules.lateMilliseconds) {
        if let next = past.first(where: { $0.milliseconds > time }) { needed.insert(next.milliseconds) }
      }
      if let time = visits.firstMilliseconds, let before = past.last(where: { $0.milliseconds < time }) {
        needed.insert(before.milliseconds)
      }
    }
    let useless = Set(past[..<first].map(\.milliseconds)).subtracting(needed)
    if !useless.isEmpty { try storage.forgetPositions(useless) }
  }
}
