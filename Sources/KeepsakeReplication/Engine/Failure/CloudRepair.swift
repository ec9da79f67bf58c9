/// Contents that are damaged in the cloud: those that this device got, and those that it can give back.
struct CloudRepair: Sendable {
  /// What has still to be reported to the cloud.
  private(set) var damaged: Set<ContentHash> = []
  /// What the cloud asks for and is here.
  private(set) var uploads: [PlannedUpload] = []
  /// When such a content was last uploaded, in milliseconds.
  private var tried: [ContentHash: Int64] = [:]

  /// What the cloud has isn't what it should be: the next exchange says so.
  mutating func report(_ hash: ContentHash) { damaged.insert(hash) }

  /// An exchange with this report was answered.
  mutating func reported(_ hashes: [ContentHash]) { damaged.subtract(hashes) }

  /// A content is in the cloud, is refused there, or isn't here any more.
  mutating func drop(_ hash: ContentHash) { uploads.removeAll { $0.hash == hash } }

  /// A new start: everything may be tried once more.
  mutating func reset() { (uploads, tried) = ([], [:]) }

  /// Plans what the cloud asks for, as far as it is here and whole.
  ///
  /// - Parameters:
  ///   - hashes: All that the cloud asks for now.
  ///   - now: The device's clock, in milliseconds; one that was turned back makes no content wait.
  ///   - interval: How long a content isn't uploaded once more, in milliseconds.
  /// - Returns: What was planned now. It has to be sent in full.
  mutating func plan(
    _ hashes: [ContentHash], now: Int64, interval: Int64, in storage: inout some DeviceStorage
  ) throws -> [ContentHash] {
    uploads.removeAll { !hashes.contains($0.hash) }
    var planned: [ContentHash] = []
    for hash in hashes.prefix(ExchangeRules.maximumWanted) where !uploads.contains(where: { $0.hash == hash }) {
      if let tried = tried[hash], tried <= now, Int128(now) - Int128(tried) < Int128(interval) { continue }
      // One that is damaged here, too, is another device's to give. Reading it proves it.
      guard try storage.hasContent(hash), try storage.isReadable(hash), let owner = try Self.owner(of: hash, in: storage) else {
        continue
      }
      let length = try storage.contentLength(hash) ?? 0
      tried[hash] = now
      try storage.setCloudDepth(nil, of: hash)
      uploads.append(
        PlannedUpload(hash: hash, version: owner.record, index: owner.index, bytes: length, depth: 0, length: length, lengthInAll: length)
      )
      planned.append(hash)
    }
    return planned
  }

  /// The nearest version that has a content.
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
