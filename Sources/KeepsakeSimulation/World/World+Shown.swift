import KeepsakeReplication

// What games see, compared with what they must see.
extension World {
  static let season = progress("season")

  // MARK: After a commit

  /// What a player has just done must be there, and rank as it should.
  func checkCommitted(
    _ records: [VersionRecord], _ cells: [CellDraft], _ before: SimulatedDevice, _ seen: [VersionID: Set<VersionID>],
    on index: Int
  ) {
    for case .set(let value) in cells.filter({ $0.key == Self.progress("name") }).map(\.change) {
      if case .latest(_, value)? = devices[index].storage.cell(Self.progress("name"))?.value { continue }
      violation("device \(index) doesn't show the name \(value) that was just set")
    }
    for record in records where seen[record.id]?.isEmpty == true && !before.facts().caughtUp && !record.provisional {
      violation("device \(index) never fetched from its cloud, but its save \(short(record.id)) ranks as if it had")
    }
  }

  func noteSeason(_ cell: CellDraft, _ index: Int, _ write: Int) {
    guard cell.key == Self.season, let generation = devices[index].storage.cell(Self.season)?.generation else { return }
    switch cell.change {
    case .max(let value), .reset(.max(let value)): model.seasons.append((write, generation, value))
    default: break
    }
  }

  // MARK: Slots

  /// The same saves must look the same to every player, and none may be hidden.
  func checkView(_ view: SlotView, of slot: String, _ policy: SavePolicy, on index: Int) {
    let storage = devices[index].storage
    let heads = storage.heads(of: slot).sorted().compactMap { storage.version($0)?.record }
    if view.heads.isEmpty, let live = heads.first(where: { !$0.tombstone }) {
      violation("device \(index) shows \(slot) as deleted, although \(short(live.id)) is a head")
    }
    let key = Model.ShownHeads(policy: policy, heads: heads, related: view.related)
    if let first = model.winners[key] {
      if first != view.winner?.id {
        violation("device \(index) shows another save in \(slot) than the first device that had the same heads")
      }
    } else {
      model.winners[key] = .some(view.winner?.id)
    }
  }

  func checkShown() {
    do {
      for index in devices.indices {
        for slot in Self.slots {
          for policy in [SavePolicy.mostProgress, .longestPlayed, .newest] {
            checkView(
              try Resolution.view(of: slot, in: devices[index].storage, policy: policy), of: slot, policy, on: index)
          }
        }
        _ = try shownGarden(index)
      }
    } catch {
      violation("what is saved can't be loaded at rest: \(error)")
    }
  }

  // MARK: Values

  /// A reset must undo what was there before it, and nothing since.
  func checkSeason() {
    guard let held = devices[0].storage.cell(Self.season), case .max(let value) = held.value else {
      if model.seasons.contains(where: { !model.writes[$0.write].mayBeGone }) { violation("\(Self.season) is lost") }
      return
    }
    let certain = model.seasons.filter { !model.writes[$0.write].mayBeGone }
    if let newest = certain.map(\.generation).max(), newest > held.generation {
      violation("\(Self.season) was reset to generation \(newest), but is at \(held.generation)")
    }
    let current = model.seasons.filter { $0.generation == held.generation }
    if !current.contains(where: { $0.value == value }) {
      violation("\(Self.season) is \(value), which was never written since it was reset")
    }
    if let greatest = certain.filter({ $0.generation == held.generation }).map(\.value).max(), greatest > value {
      violation("\(Self.season) went back behind \(greatest): \(value)")
    }
  }

  // MARK: The cloud

  /// Returns saves of fresh installations that are new to the cloud, beside heads that they don't replace.
  func contested(in request: ExchangeRequest) -> [(save: VersionRecord, others: Set<VersionID>)] {
    request.versions.filter { $0.provisional && cloud.version($0.id) == nil }.compactMap { record in
      let others = Set(cloud.heads(of: record.slot)).subtracting(record.covers)
      return others.isEmpty ? nil : (record, others)
    }
  }

  func checkLifted(_ contested: [(save: VersionRecord, others: Set<VersionID>)]) {
    for (save, others) in contested where cloud.version(save.id)?.record.provisional == false {
      guard !others.isDisjoint(with: cloud.heads(of: save.slot)) else { continue }
      violation("the cloud ranks \(short(save.id)) of a new install like the other saves beside it")
    }
  }
}
