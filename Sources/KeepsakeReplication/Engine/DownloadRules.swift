/// Which contents of other devices' saves come by themselves, and which when the game asks.
package struct DownloadRules: Hashable, Sendable {
  /// Of a save with more plain bytes only the record comes, if nothing of its slot is here; nil for all of it.
  package var largest: Int?
  /// Slots of which everything comes because the game asked.
  package var asked: Set<String>

  package init(largest: Int? = nil, asked: Set<String> = []) {
    (self.largest, self.asked) = (largest, asked)
  }
}

/// Saves that show without their contents, which are in the cloud alone until somebody asks for them.
extension DeviceEngine {
  /// Whether the contents of a save are left in the cloud for now.
  ///
  /// What replaces a save that is here comes: the game plays on with it, and it is a small delta, most likely.
  func comesWhenAsked(_ record: VersionRecord, in storage: some DeviceStorage) throws -> Bool {
    guard let largest = downloads.largest, record.length > largest, !record.tombstone, !downloads.asked.contains(record.slot) else {
      return false
    }
    return try !storage.heads(of: record.slot).contains { id in
      guard let head = try storage.version(id)?.record, !head.tombstone else { return false }
      return try head.contents.allSatisfy(storage.hasContent)
    }
  }

  func notDownloadedRecords(in storage: some DeviceStorage) throws -> [VersionRecord] {
    try storage.notDownloadedVersions().compactMap { try storage.version($0)?.record }
  }

  /// What of the staged versions shows without its contents, on purpose.
  func deferring(_ staged: [CloudChange], in storage: some DeviceStorage) throws -> [VersionID] {
    guard !storage.faults.showsWithoutContents else { return [] }
    let records = staged.compactMap { if case .version(let record) = $0.item { record } else { nil } }
    let covered = Set(records.flatMap(\.covers))
    return try records.filter { record in
      guard try !covered.contains(record.id) && !storage.isCovered(record.id) else { return false }
      // What was given up is damaged, which is another matter.
      return try record.contents.contains { try !givenUp.contains($0) && !storage.hasContent($0) }
    }.map(\.id)
  }

  /// Saves of which everything is here by now, whichever way it came, are as all others.
  mutating func holdWhatCame(_ effects: inout [EngineEffect], in storage: inout some DeviceStorage) throws {
    guard hasNotDownloaded else { return }
    var slots: Set<String> = []
    for record in try notDownloadedRecords(in: storage) where try record.contents.allSatisfy(storage.hasContent) {
      try storage.setNotDownloaded(false, record.id)
      slots.insert(record.slot)
    }
    guard !slots.isEmpty else { return }
    hasNotDownloaded = try !storage.notDownloadedVersions().isEmpty
    effects.append(.notify(.slots(slots.sorted())))
  }

  /// Whether something of the slot that was asked for is still on its way, or will be.
  package func isDownloading(_ slot: String, in storage: some DeviceStorage) throws -> Bool {
    if exchangeDue || exchange != nil || paging || !complete || needs == nil || unanswered.contains(slot) { return true }
    // By content: another slot may have asked for the same.
    let lacking = try notDownloadedRecords(in: storage).filter { $0.slot == slot }.flatMap(\.contents).filter {
      try !storage.hasContent($0)
    }
    let coming = Set(needs?.map(\.hash) ?? []).union(transfers.filter { !$0.isUpload }.map(\.hash))
    return lacking.contains(where: coming.contains)
  }

  /// Ends the downloads that nobody waits for any more.
  ///
  /// - Returns: The requests that are to be ended.
  package mutating func dropUnasked(in storage: some DeviceStorage) throws -> [UInt64] {
    let missing = try missingContents(in: storage)
    let wanted = Set(missing.map(\.hash)).union(
      held.filter { content in missing.contains { $0.hash == content.root } }.compactMap(\.content.base))
    let dropped = transfers.filter { !$0.isUpload && !wanted.contains($0.hash) }.map(\.request)
    transfers.removeAll { dropped.contains($0.request) }
    return dropped
  }
}
