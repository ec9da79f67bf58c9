/// Contents that are damaged in the cloud: those that this device received damaged, and those that it can upload again.
struct CloudRepair: Sendable {
  /// What has still to be reported to the cloud.
  private(set) var damaged: Set<ContentHash> = []
  /// What the cloud asks for and this device has.
  private(set) var uploads: [PlannedUpload] = []
  /// When each of these contents was last planned for upload, in milliseconds.
  private var tried: [ContentHash: Int64] = [:]

  /// Reports in the next exchange that the cloud's copy of a content is damaged.
  mutating func report(_ hash: ContentHash) { damaged.insert(hash) }

  /// Forgets damaged contents that were reported by an exchange which had a response.
  mutating func reported(_ hashes: [ContentHash]) { damaged.subtract(hashes) }

  /// Drops a content that is in the cloud, is refused there, or isn't here any more.
  mutating func drop(_ hash: ContentHash) { uploads.removeAll { $0.hash == hash } }

  /// Starts afresh: everything may be tried once more.
  mutating func reset() { (uploads, tried) = ([], [:]) }

  /// Plans uploads of what the cloud asks for, as far as it is here and intact.
  ///
  /// - Parameters:
  ///   - hashes: All that the cloud asks for.
  ///   - now: The device's clock, in milliseconds; a clock that was set back makes no content wait.
  ///   - interval: How long a content isn't uploaded again, in milliseconds.
  /// - Returns: What this call planned. It has to be sent in full.
  mutating func plan(
    _ hashes: [ContentHash], now: Int64, interval: Int64, in storage: inout some DeviceStorage
  ) throws -> [ContentHash] {
    uploads.removeAll { !hashes.contains($0.hash) }
    var planned: [ContentHash] = []
    for hash in hashes.prefix(ExchangeRules.maximumWanted) where !uploads.contains(where: { $0.hash == hash }) {
      if let tried = tried[hash], tried <= now, Int128(now) - Int128(tried) < Int128(interval) { continue }
      // One that is damaged here, too, has to come from another device. Reading it is the check.
      guard try storage.hasContent(hash), try storage.isReadable(hash),
        let owner = try Self.owner(of: hash, in: storage)
      else {
        continue
      }
      let length = try storage.contentLength(hash) ?? 0
      tried[hash] = now
      try storage.setCloudDepth(nil, of: hash)
      uploads.append(
        PlannedUpload(
          hash: hash, version: owner.record, index: owner.index, bytes: length, depth: 0, length: length,
          lengthInAll: length)
      )
      planned.append(hash)
    }
    return planned
  }

  /// Returns the nearest version that has a content.
  private static func owner(
    of hash: ContentHash, in storage: some DeviceStorage
  ) throws -> (record: VersionRecord, index: Int)? {
    for slot in try storage.slots() {
      var seen: Set<VersionID> = []
      var next = try storage.heads(of: slot)
      while !next.isEmpty, seen.count < DeltaBases.maximumLookBack {
        var further: [VersionID] = []
        for id in next where seen.insert(id).inserted {
          guard let record = try storage.version(id)?.record else { continue }
          if let index = record.contents.firstIndex(of: hash) { return (record, index) }
          further += record.covers
        }
        next = further
      }
    }
    return nil
  }
}
