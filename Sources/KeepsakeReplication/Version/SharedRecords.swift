extension DeviceStorage {
  /// Returns a closure that looks up records for a walk to a common ancestor: only those that other devices have too,
  /// and heads, so that all devices find the same ones.
  ///
  /// A version that was replaced here before it was sent isn't found, although its record is here: whatever replaced it
  /// covers what it had replaced, and other devices know no more than that. Each record is read once as long as the
  /// closure lives, which must not be longer than the transaction.
  ///
  /// - Parameter atHand: Versions that the caller has read already.
  package func sharedRecords(_ atHand: [VersionID: StoredVersion] = [:]) -> (VersionID) throws -> VersionRecord? {
    var known: [VersionID: VersionRecord?] = [:]
    var waiting: Set<VersionID>?

    func isShared(_ version: StoredVersion) throws -> Bool {
      // What stays here exists on this device alone, so no other device has to find the same ancestors.
      if version.acknowledged && version.offered || version.record.key.isLocal { return true }
      guard try isCovered(version.record.id) else { return true }
      guard !version.neverLeft else { return false }
      let sent = try waiting ?? Set(outbox(limit: outboxCount()).flatMap(\.versions))
      waiting = sent
      return sent.contains(version.record.id)
    }

    return { id in
      if let record = known[id] { return record }
      let version = try atHand[id] ?? version(id)
      let record = try version.flatMap { try isShared($0) ? $0.record : nil }
      known[id] = .some(record)
      return record
    }
  }
}
