extension DeviceStorage {
  /// Looks up records for a walk to a common ancestor: only such as other devices have too, and heads, so that all find the same ones.
  ///
  /// A version that was replaced here before it was sent leads nowhere, although its record is here: whatever replaced it names what it had
  /// replaced, and others know no more than that. Each record is read once for as long as the closure lives, which must not be longer than
  /// the transaction.
  ///
  /// - Parameter atHand: Versions that the caller has read already.
  package func sharedRecords(_ atHand: [VersionID: StoredVersion] = [:]) -> (VersionID) throws -> VersionRecord? {
    var known: [VersionID: VersionRecord?] = [:]
    var waiting: Set<VersionID>?

    func isShared(_ version: StoredVersion) throws -> Bool {
      // What stays here is this device's alone, and looks the same to nobody else.
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
