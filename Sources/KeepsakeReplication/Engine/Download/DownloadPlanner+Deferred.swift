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

// Saves that show without their contents, which are in the cloud alone until somebody asks for them.
extension DownloadPlanner {
  /// Whether the contents of a save are left in the cloud for now.
  ///
  /// What replaces a save that is here comes: the game plays on with it, and it is a small delta, most likely.
  func isLeftInCloud(_ record: VersionRecord, in storage: some DeviceStorage) throws -> Bool {
    guard let largest = rules.largest, record.length > largest, !record.tombstone, !rules.asked.contains(record.slot) else {
      return false
    }
    return try !storage.heads(of: record.slot).contains { id in
      guard let head = try storage.version(id)?.record, !head.tombstone else { return false }
      return try head.contents.allSatisfy(storage.hasContent)
    }
  }

  /// What of the staged versions shows without its contents, on purpose.
  func versionsWithoutContents(_ staged: [CloudChange], in storage: some DeviceStorage) throws -> [VersionID] {
    guard !storage.faults.showsWithoutContents else { return [] }
    let records = staged.compactMap { if case .version(let record) = $0.item { record } else { nil } }
    let covered = Set(records.flatMap(\.covers))
    return try records.filter { record in
      guard try !covered.contains(record.id) && !storage.isCovered(record.id) else { return false }
      // What was given up is damaged, which is another matter.
      return try record.contents.contains { try !failures.givenUp.contains($0) && !storage.hasContent($0) }
    }.map(\.id)
  }

  /// Saves of which everything is here by now, whichever way it came, are as all others.
  ///
  /// - Returns: Their slots.
  mutating func finishDeferred(in storage: inout some DeviceStorage) throws -> Set<String> {
    guard hasNotDownloaded else { return [] }
    var slots: Set<String> = []
    for record in try storage.notDownloadedRecords() where try record.contents.allSatisfy(storage.hasContent) {
      try storage.setNotDownloaded(false, record.id)
      slots.insert(record.slot)
    }
    if !slots.isEmpty { hasNotDownloaded = try !storage.notDownloadedVersions().isEmpty }
    return slots
  }
}

extension DeviceStorage {
  /// The heads of which only the record is here.
  func notDownloadedRecords() throws -> [VersionRecord] { try notDownloadedVersions().compactMap { try version($0)?.record } }
}
