package import KeepsakeReplication

/// Moves a slot out of the cloud's reach, or back, in one transaction: a crash leaves it on one side or the other.
///
/// While a slot is local, its versions are under a slot key of their own (`SlotKey`), and what other devices save
/// under its name arrives beside it. Both sides of the border then have versions with the same bytes. The move leaves a
/// record of which version substitutes which, for a game that continues to play.
package struct SlotMove: Sendable {
  package enum Direction: Hashable, Sendable {
    /// From now on, nothing of the slot is sent. With `removing`, it is also deleted on the other devices.
    case leave(removing: Bool)
    /// The slot is synced again, with what is on this device.
    case comeBack
  }
  package let slot: String
  package let direction: Direction
  /// The device's clock, in milliseconds since 1970.
  package let now: Int64

  package init(of slot: String, _ direction: Direction, now: Int64) {
    (self.slot, self.direction, self.now) = (slot, direction, now)
  }

  /// The metadata of the tombstone that replaces a local slot which came back. No history shows it.
  fileprivate static let end = SaveMetadata(custom: ["keepsake": "came back"])

  /// Returns whether the game made this version, so that a history shows it.
  package static func isOfGame(_ version: StoredVersion) -> Bool {
    !version.record.tombstone || !version.record.key.isLocal || version.record.metadata != end
  }

  /// Runs within the store's transaction, in the order of the commits. Returns the lineage for the saves after the
  /// move.
  func apply(after lineage: SaveLineage, writer: WriterID, in transaction: inout StoreTransaction) throws -> SaveLineage
  {
    var crossing = Crossing(slot: slot, now: now, writer: writer)
    switch direction {
    case .leave(let removing): try crossing.leave(removing: removing, in: &transaction)
    case .comeBack: try crossing.comeBack(in: &transaction)
    }
    var lineage = lineage
    lineage.substitute(crossing.substitutes)
    return lineage
  }
}

/// One move in progress.
private struct Crossing {
  let slot: String
  /// In the cloud's reach.
  let key: SlotKey
  let now: Int64
  let writer: WriterID
  /// For each version that a game may have loaded, the identical one on the other side.
  private(set) var substitutes: [VersionID: VersionID] = [:]

  init(slot: String, now: Int64, writer: WriterID) {
    (self.slot, self.now, self.writer) = (slot, now, writer)
    key = SlotKey(text: slot)
  }

  // MARK: Out

  mutating func leave(removing: Bool, in transaction: inout StoreTransaction) throws {
    if try transaction.isLocal(slot) { return removing ? try remove(in: &transaction) : () }
    let view = try currentView(under: key, transaction)
    var declaration = LocalDeclaration(parents: view.parents)
    try DeviceCommit.withdraw(slot, in: &transaction)
    var random = SystemRandomNumberGenerator()
    var saves: [SaveDraft] = []
    if let winner = view.winner {
      let copy = draft(of: winner, under: key.local, replacing: .everyHead, &random)
      saves.append(copy)
      for id in view.parents { substitutes[id] = copy.id }
      if removing {
        let delete = delete(under: key, replacing: .versions(view.parents), &random)
        saves.append(delete)
        declaration.parents = [delete.id]
      }
    }
    try apply(saves, in: &transaction, &random)
    try transaction.setLocalDeclaration(declaration, of: slot)
  }

  /// Deletes what the cloud was left with, for a slot that is already local. What other devices have saved since then
  /// stays.
  private func remove(in transaction: inout StoreTransaction) throws {
    guard var declaration = try transaction.localDeclaration(of: slot) else { return }
    let heads = Set(try transaction.heads(of: slot))
    let left = try declaration.parents.filter {
      try heads.contains($0) && transaction.version($0)?.record.tombstone == false
    }
    guard !left.isEmpty else { return }
    var random = SystemRandomNumberGenerator()
    let delete = delete(under: key, replacing: .versions(left), &random)
    declaration.parents = declaration.parents.filter { !left.contains($0) } + [delete.id]
    try apply([delete], in: &transaction, &random)
    try transaction.setLocalDeclaration(declaration, of: slot)
  }

  // MARK: Back

  /// Offers the local state as if it had been saved over what the slot showed when it left. What other devices did in
  /// the meantime remains beside it.
  mutating func comeBack(in transaction: inout StoreTransaction) throws {
    guard try transaction.isLocal(slot) else { return }
    let view = try currentView(under: key.local, transaction)
    let parents = try transaction.localDeclaration(of: slot)?.parents ?? []
    var random = SystemRandomNumberGenerator()
    var saves: [SaveDraft] = []
    if let winner = view.winner {
      let same: VersionID
      if let known = try alike(winner, among: parents + transaction.heads(of: slot), transaction) {
        same = known
      } else {
        let copy = draft(of: winner, under: key, replacing: .versions(parents), &random)
        saves.append(copy)
        same = copy.id
      }
      for id in view.parents { substitutes[id] = same }
      // Nothing remains under the local slot key.
      var end = delete(under: key.local, replacing: .everyHead, &random)
      end.metadata = SlotMove.end
      saves.append(end)
    }
    try apply(saves, in: &transaction, &random)
    try transaction.setLocalDeclaration(nil, of: slot)
  }

  /// Returns the version that is identical to the local state, if the cloud's side has one: nothing was saved here, or
  /// the same was saved there.
  private func alike(
    _ record: VersionRecord, among others: [VersionID], _ transaction: StoreTransaction
  ) throws -> VersionID? {
    try others.first { id in
      // What was removed from the outbox when the slot left exists nowhere else, and has to be offered as a new
      // version.
      guard let other = try transaction.version(id), !other.neverLeft else { return false }
      return !other.record.tombstone && other.record.contents == record.contents
        && other.record.metadata == record.metadata
    }
  }

  // MARK: -

  private func currentView(under key: SlotKey, _ transaction: StoreTransaction) throws -> SlotView {
    let view = try Resolution.view(of: key, in: transaction)
    guard !view.isConflict else { throw CommitError.inConflict(key.name) }
    return view
  }

  private func draft(
    of record: VersionRecord, under key: SlotKey, replacing parents: SaveParents,
    _ random: inout SystemRandomNumberGenerator
  ) -> SaveDraft {
    SaveDraft(
      id: VersionID(using: &random), slot: key.text, parents: parents, contents: record.contents, length: record.length,
      metadata: record.metadata, savedAtMilliseconds: record.savedAtMilliseconds)
  }

  private func delete(under key: SlotKey, replacing parents: SaveParents, _ random: inout SystemRandomNumberGenerator)
    -> SaveDraft
  {
    SaveDraft(
      id: VersionID(using: &random), slot: key.text, parents: parents, contents: [], length: 0,
      savedAtMilliseconds: now, tombstone: true)
  }

  private func apply(
    _ saves: [SaveDraft], in transaction: inout StoreTransaction, _ random: inout SystemRandomNumberGenerator
  ) throws {
    if !saves.isEmpty {
      let draft = CommitDraft(saves: saves)
      let records = try DeviceCommit.apply(draft, now: now, writer: writer, in: &transaction, using: &random)
      // What was withdrawn may have been in flight, and no other version reports that it was replaced. So each of these
      // is sent, even if it is replaced before: it counts as offered.
      for record in records where !record.key.isLocal {
        guard var version = try transaction.version(record.id) else { continue }
        version.offered = true
        try transaction.putVersion(version)
      }
    }
    if let base = try transaction.fileBase(of: slot), let same = substitutes[base] {
      try transaction.setFileBase(same, of: slot)
    }
  }
}
