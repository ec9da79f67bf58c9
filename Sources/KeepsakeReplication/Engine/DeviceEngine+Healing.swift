// Contents that are damaged in the cloud: those that this device got, and those that it can give back.
extension DeviceEngine {
  /// The cloud is told that what it has isn't what it should be.
  mutating func report(damaged hash: ContentHash) {
    damagedThere.insert(hash)
    exchangeDue = true
  }

  /// What a change names is worth another try, also if it was given up: the cloud tells of a version once more when its content is whole again.
  mutating func reconsider(_ changes: [CloudChange]) {
    guard !givenUp.isEmpty else { return }
    for change in changes {
      guard case .version(let record) = change.item else { continue }
      for hash in record.contents where givenUp.remove(hash) != nil { troubles[hash] = nil }
    }
  }

  /// Plans what the cloud asks for, as far as it is here and whole.
  mutating func takeWanted(_ hashes: [ContentHash], in storage: inout some DeviceStorage) throws {
    wanted.removeAll { !hashes.contains($0.hash) }
    for hash in hashes.prefix(ExchangeRules.maximumWanted) where !wanted.contains(where: { $0.hash == hash }) {
      if let tried = wantedTried[hash], tried <= now, Int128(now) - Int128(tried) < Int128(options.secondTryMilliseconds) { continue }
      // One that is damaged here, too, is another device's to give. Reading it proves it.
      guard try storage.hasContent(hash), try storage.isReadable(hash), let holder = try holder(of: hash, in: storage) else { continue }
      let length = try storage.contentLength(hash) ?? 0
      wantedTried[hash] = now
      try storage.setCloudDepth(nil, of: hash)
      sendFull.insert(hash)
      wanted.append(
        PlannedUpload(
          hash: hash, version: holder.record, index: holder.index, bytes: length, depth: 0, length: length, lengthInAll: length))
    }
  }

  /// The nearest version that has a content.
  private func holder(
    of hash: ContentHash, in storage: some DeviceStorage
  ) throws -> (record: VersionRecord, index: Int)? {
    for slot in try storage.slots() {
      var seen: Set<VersionID> = []
      var next = try storage.heads(of: slot)
      while !next.isEmpty, seen.count < Self.maximumLookBack {
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
