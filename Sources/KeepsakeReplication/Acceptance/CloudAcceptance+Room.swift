// How much of a player's data a cloud keeps, and what it removes to make room.
extension CloudAcceptance {
  /// How long contents that no version names yet are kept: a large save is uploaded in pieces before it is offered. If
  /// it is offered later nevertheless, the response names what is missing, and the device uploads it again.
  package static let strayMilliseconds: Int64 = 3_600_000

  /// Checks whether `needed` more bytes fit, after removing what nobody needs if they don't.
  ///
  /// - Returns: What is missing; nil if they fit.
  package static func shortage(
    for needed: Int64, _ quota: Int64, now: Int64, in storage: inout some ContainerStorage
  ) throws -> QuotaShortage? {
    guard try QuotaUse(limit: quota, used: storage.usedBytes()).shortage(for: needed) != nil else { return nil }
    var reads = ReadSet()
    reads.wholeRoom = true
    try storage.need(reads)
    try makeRoom(now: now, in: &storage)
    return try QuotaUse(limit: quota, used: storage.usedBytes()).shortage(for: needed)
  }

  /// Returns why there is no room for a request; nil if there is, or if nothing of it may be refused.
  ///
  /// Values, deletes, covers added to known versions and the wallet are always accepted: a player without room can go
  /// on playing, and a delete is what makes room.
  static func refusal(
    of plan: inout Plan, _ quota: Int64, _ now: Int64, in storage: inout some ContainerStorage
  ) throws -> ExchangeOutcome? {
    // The replacement of a damaged content was counted before, and is wanted.
    let counted = try plan.contents.filter { try !storage.isSuspect($0.hash) }
    let arriving = Set(counted.map(\.hash))
    var needed = counted.reduce(Int64(0)) { $0 + Int64($1.bytes.count) }
    var refusable: [VersionID] = []
    for record in plan.versions where !record.tombstone {
      let isNew = try storage.version(record.id) == nil
      if isNew { needed += Int64(record.size) }
      if isNew || record.contents.contains(where: arriving.contains) { refusable.append(record.id) }
    }
    guard needed > 0, let shortage = try shortage(for: needed, quota, now: now, in: &storage) else { return nil }
    guard !refusable.isEmpty else {
      // Contents that no version of the request needs.
      plan.contents.removeAll { arriving.contains($0.hash) }
      return nil
    }
    let message =
      """
      this player has \(shortage.used) of \(shortage.limit) bytes in the cloud, and this takes \(shortage.needed) \
      more: delete saves to make room
      """
    return .refused(
      refusable.map { Refusal(item: ExchangeRules.item($0), reason: .quota, message: message, quota: shortage) })
  }

  // MARK: Making room

  /// Frees what deleted slots held. A slot that still has a save, for example beside a delete that didn't know of it,
  /// keeps everything.
  static func freeDeleted(_ slots: Set<String>, in storage: inout some ContainerStorage) throws {
    for slot in slots.sorted() {
      let heads = try storage.heads(of: slot)
      guard try !heads.isEmpty && heads.allSatisfy({ try storage.version($0)?.record.tombstone == true }) else {
        continue
      }
      for holder in try storage.replacedHolders(in: slot) { try storage.releaseContents(of: holder.version) }
    }
  }

  /// Removes the contents of replaced versions, except those that a conflict is merged from, uploads that were never
  /// used, and then the records of replaced versions that no device needs.
  private static func makeRoom(now: Int64, in storage: inout some ContainerStorage) throws {
    try storage.removeStrayContents(before: now.addingClamped(-strayMilliseconds))
    let bySlot = Dictionary(grouping: try storage.replacedHolders(in: nil), by: \.slot)
    var reads = ReadSet()
    reads.slots = Set(bySlot.keys.map(ExactText.init))
    try storage.need(reads)
    reads.histories = Set(try bySlot.keys.filter { try storage.heads(of: $0).count > 1 }.map(ExactText.init))
    try storage.need(reads)
    for slot in bySlot.keys.sorted() {
      let heads = try storage.heads(of: slot)
      var kept: Set<VersionID> = []
      if heads.count > 1 {
        kept.formUnion(try Resolution.mergeAncestors(of: heads) { try storage.version($0)?.record }.all)
      }
      for holder in bySlot[slot] ?? [] where !kept.contains(holder.version) {
        try storage.releaseContents(of: holder.version)
      }
    }
    try pruneForRoom(now: now, in: &storage)
  }
}
