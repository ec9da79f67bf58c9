import KeepsakeReplication

// A cloud that removes what was replaced while everything else happens.
extension World {
  /// The rules of a world: times as long as it can see some of them pass.
  static func pruningRules(_ swarm: Swarm, using random: inout SeededGenerator) -> PruningRules {
    let length = Int64(swarm.operations) * swarm.pauseMilliseconds / 2
    var rules = PruningRules()
    rules.windowMilliseconds = Int64.random(in: length / 20...length / 4, using: &random)
    rules.rememberedMilliseconds = 2 * rules.windowMilliseconds
    // A device may fail to send for a while and still get events.
    rules.lateMilliseconds = 120_000
    rules.stepMilliseconds = 1
    rules.history =
      random.once(in: 3)
      ? nil : HistoryRules(newest: Int.random(in: 0...3, using: &random), hourly: 1, daily: 0, weekly: 0)
    return rules
  }

  /// Lets the cloud prune now and then.
  func pruneCloud() {
    guard var rules = pruningRules, pruner.once(in: 8) else { return }
    // What a copy of a store has sent is remembered for long: the store that it was copied from sends it as well.
    if devices.contains(where: { holdsAccepted($0.storage) }) { rules.rememberedMilliseconds = .max }
    let seq = cloud.position().seq
    do {
      var place: CloudAcceptance.PruningStep.Place? = .start
      while let from = place {
        let now = now
        let step = try cloud.decide(reading: ReadSet(), using: &pruner) { cloud, _ in
          try CloudAcceptance.prune(from: from, under: rules, now: now, in: &cloud)
        }
        report.statistics.prunedInCloud += step.versions
        report.statistics.forgottenInCloud += step.ids
        place = step.next
      }
    } catch {
      violation("the cloud can't prune: \(error)")
    }
    if cloud.position().seq != seq { violation("pruning is a change of the container") }
    if cloud.usedBytes() != cloud.recountedBytes() {
      violation("after pruning the cloud counts \(cloud.usedBytes()) bytes, but has \(cloud.recountedBytes())")
    }
  }

  /// Whether a device is still going to send a version that the cloud has got from elsewhere.
  private func holdsAccepted(_ storage: SimulatedDevice) -> Bool {
    storage.outbox(limit: storage.outboxCount()).contains { group in
      group.versions.contains { cloud.version($0) != nil || cloud.isPruned($0) }
    }
  }

  /// The cloud removes what no head needs.
  func collectContents() {
    for holder in cloud.replacedHolders(in: nil) { cloud.releaseContents(of: holder.version) }
    var needed: Set<ContentHash> = []
    for slot in cloud.slots() {
      for id in cloud.heads(of: slot) {
        for hash in cloud.version(id)?.record.contents ?? [] {
          var next: ContentHash? = hash
          while let hash = next, needed.insert(hash).inserted { next = cloud.content(hash)?.base }
        }
      }
    }
    trace(29, UInt64(needed.count), words: "the cloud collects unused contents, \(needed.count) are kept")
    cloud.removeContents(butNot: needed)
  }

  /// Whether a device may be set back to a backup: only as far as pruning promises that nothing is noticed.
  func maySetBack(to time: Int64) -> Bool {
    // A cloud without room keeps less.
    if let lastFull, lastFull >= time { return false }
    return pruningRules.map { now - time < $0.windowMilliseconds } ?? true
  }

  /// A store that was set back reports within the window, too.
  func reportSetBack(_ index: Int) {
    guard pruningRules != nil || lastFull != nil else { return }
    let storage = devices[index].storage
    let cursor = storage.facts().cursor
    let isWhole = cursor.ahead == nil && storage.staged().isEmpty
    do {
      let isKnown = try isWhole && CloudAcceptance.isOfThisHistory(cursor, in: cloud)
      cloud.setReached(isKnown ? cursor.seq : 0, by: Device.id(index))
    } catch {
      violation("the cloud can't check whether it knows a cursor: \(error)")
    }
  }
}
