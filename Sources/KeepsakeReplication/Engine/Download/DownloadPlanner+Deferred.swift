/// Which contents of other devices' saves are downloaded by default, and which only when the game asks.
package struct DownloadRules: Hashable, Sendable {
  /// Of a save with more plain bytes than this only the record is fetched, unless a save of its slot is on this device;
  /// nil for no limit.
  package var largest: Int?
  /// Slots whose contents are all downloaded because the game asked.
  package var asked: Set<String>

  package init(largest: Int? = nil, asked: Set<String> = []) {
    (self.largest, self.asked) = (largest, asked)
  }
}

// Saves that are shown without their contents, which stay in the cloud until somebody asks for them.
extension DownloadPlanner {
  /// Returns whether the contents of a save are left in the cloud for now.
  ///
  /// What replaces a save that is on this device is downloaded: the game continues from it, and it is most likely a
  /// small delta.
  func isLeftInCloud(_ record: VersionRecord, in storage: some DeviceStorage) throws -> Bool {
    guard let largest = rules.largest, record.length > largest, !record.tombstone, !rules.asked.contains(record.slot)
    else {
      return false
    }
    return try !storage.heads(of: record.slot).contains { id in
      guard let head = try storage.version(id)?.record, !head.tombstone else { return false }
      return try head.contents.allSatisfy(storage.hasContent)
    }
  }

  /// Returns which of the staged versions are shown without their contents on purpose.
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

  /// Makes saves ordinary ones if all their contents are here by now, whichever way they arrived.
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
  /// Returns the heads that aren't downloaded.
  func notDownloadedRecords() throws -> [VersionRecord] {
    try notDownloadedVersions().compactMap { try version($0)?.record }
  }
}
