import KeepsakeReplication
import KeepsakeStore

/// Takes a slot out of the cloud's reach and back, each in one transaction: a crash leaves it on one side or the other.
///
/// While a slot stays here its versions stand in a place of their own (`LocalSlot`), and what other devices save under its name arrives beside
/// it. Both sides of the border have versions with the same bytes then: `substitutes` says which one took the place of which, for a game that plays on.
struct SlotMove {
  let slot: String
  let now: Int64
  let writer: WriterID
  /// By the version that a game may have loaded: the one that says the same on the other side.
  private(set) var substitutes: [VersionID: VersionID] = [:]

  /// What the delete says that stands in the place of a slot which came back: no history is to show it.
  private static let end = SaveMetadata(custom: ["keepsake": "came back"])

  /// Whether a version is one that a game made, for a history.
  static func isOfGame(_ version: StoredVersion) -> Bool {
    !version.record.tombstone || !LocalSlot.contains(version.record.slot) || version.record.metadata != end
  }

  init(of slot: String, now: Int64, writer: WriterID) {
    (self.slot, self.now, self.writer) = (slot, now, writer)
  }

  // MARK: Out

  /// From here on nothing of the slot is sent.
  ///
  /// - Parameter removing: Whether the other devices shall see it go.
  mutating func leave(removing: Bool, in transaction: inout StoreTransaction) throws {
    if try transaction.isLocal(slot) { return removing ? try remove(in: &transaction) : () }
    let view = try currentView(in: slot, transaction)
    var declaration = LocalDeclaration(parents: view.parents)
    try DeviceCommit.withdraw(slot, in: &transaction)
    var random = SystemRandomNumberGenerator()
    var saves: [SaveDraft] = []
    if let winner = view.winner {
      let copy = draft(of: winner, in: LocalSlot.place(of: slot), replacing: .everyHead, &random)
      saves.append(copy)
      for id in view.parents { substitutes[id] = copy.id }
      if removing {
        let delete = delete(in: slot, replacing: .versions(view.parents), &random)
        saves.append(delete)
        declaration.parents = [delete.id]
      }
    }
    try apply(saves, in: &transaction, &random)
    try transaction.setLocalDeclaration(declaration, of: slot)
  }

  /// It stays here already, and what the cloud was left with goes. What others saved since stays.
  private func remove(in transaction: inout StoreTransaction) throws {
    guard var declaration = try transaction.localDeclaration(of: slot) else { return }
    let heads = Set(try transaction.heads(of: slot))
    let left = try declaration.parents.filter { try heads.contains($0) && transaction.version($0)?.record.tombstone == false }
    guard !left.isEmpty else { return }
    var random = SystemRandomNumberGenerator()
    let delete = delete(in: slot, replacing: .versions(left), &random)
    declaration.parents = declaration.parents.filter { !left.contains($0) } + [delete.id]
    try apply([delete], in: &transaction, &random)
    try transaction.setLocalDeclaration(declaration, of: slot)
  }

  // MARK: Back

  /// What stands here is offered as if it had been saved over what the slot showed when it left. What others did meanwhile stands beside it.
  mutating func comeBack(in transaction: inout StoreTransaction) throws {
    guard try transaction.isLocal(slot) else { return }
    let place = LocalSlot.place(of: slot)
    let view = try currentView(in: place, transaction)
    let parents = try transaction.localDeclaration(of: slot)?.parents ?? []
    var random = SystemRandomNumberGenerator()
    var saves: [SaveDraft] = []
    if let winner = view.winner {
      let same: VersionID
      if let known = try alike(winner, among: parents + transaction.heads(of: slot), transaction) {
        same = known
      } else {
        let copy = draft(of: winner, in: slot, replacing: .versions(parents), &random)
        saves.append(copy)
        same = copy.id
      }
      for id in view.parents { substitutes[id] = same }
      // Nothing stands here any more.
      var end = delete(in: place, replacing: .everyHead, &random)
      end.metadata = Self.end
      saves.append(end)
    }
    try apply(saves, in: &transaction, &random)
    try transaction.setLocalDeclaration(nil, of: slot)
  }

  /// Nothing was saved here, or what was is there as well: that says it all.
  private func alike(
    _ record: VersionRecord, among others: [VersionID], _ transaction: StoreTransaction
  ) throws -> VersionID? {
    try others.first { id in
      // What was taken out of the outbox when the slot left is nowhere else: it has to be offered as a new version.
      guard let other = try transaction.version(id), !other.neverLeft else { return false }
      return !other.record.tombstone && other.record.contents == record.contents && other.record.metadata == record.metadata
    }
  }

  // MARK: -

  private func currentView(in place: String, _ transaction: StoreTransaction) throws -> SlotView {
    let view = try Resolution.view(of: place, in: transaction)
    guard !view.isConflict else {
      throw GameDataError(
        .misuse, "\"\(FileSlot.shown(slot))\" was written twice without one knowing of the other: end the conflict first")
    }
    return view
  }

  private func draft(
    of record: VersionRecord, in place: String, replacing parents: SaveParents, _ random: inout SystemRandomNumberGenerator
  ) -> SaveDraft {
    SaveDraft(
      id: VersionID(using: &random), slot: place, parents: parents, contents: record.contents, length: record.length,
      metadata: record.metadata, savedAtMilliseconds: record.savedAtMilliseconds)
  }

  private func delete(in place: String, replacing parents: SaveParents, _ random: inout SystemRandomNumberGenerator) -> SaveDraft {
    SaveDraft(
      id: VersionID(using: &random), slot: place, parents: parents, contents: [], length: 0, savedAtMilliseconds: now, tombstone: true)
  }

  private func apply(
    _ saves: [SaveDraft], in transaction: inout StoreTransaction, _ random: inout SystemRandomNumberGenerator
  ) throws {
    if !saves.isEmpty { try DeviceCommit.apply(CommitDraft(saves: saves), now: now, writer: writer, in: &transaction, using: &random) }
    if let base = try transaction.fileBase(of: slot), let same = substitutes[base] { try transaction.setFileBase(same, of: slot) }
  }
}

extension GameCore {
  /// Takes what stands in the slot out of the cloud's reach. Durable when it returns.
  func keepLocal(_ slot: String, removing: Bool) throws {
    // Nothing damaged is carried on. Read before the transaction, which keeps other saves waiting.
    try store.read { transaction in
      guard try !transaction.isLocal(slot), let winner = try Resolution.view(of: slot, in: transaction).winner else { return }
      _ = try SlotReading.side(winner, in: transaction)
    }
    try move(slot) { try $0.leave(removing: removing, in: &$1) }
  }

  func syncAgain(_ slot: String) throws { try move(slot) { try $0.comeBack(in: &$1) } }

  private func move(_ slot: String, _ body: (inout SlotMove, inout StoreTransaction) throws -> Void) throws {
    let now = environment.nowMilliseconds()
    var undo: [VersionID: VersionID]?
    do {
      try translating {
        try store.write { transaction in
          do {
            var move = SlotMove(of: slot, now: now, writer: store.writer)
            try body(&move, &transaction)
            // Before any later commit is decided, which goes on from these.
            undo = slotParents.substitute(move.substitutes)
          } catch {
            throw GameDataError.translated(error)
          }
        }
      }
    } catch {
      if let undo { slotParents.restoreSubstitutes(undo) }
      throw error
    }
    slotsDidChange()
    didCommit()
  }
}
