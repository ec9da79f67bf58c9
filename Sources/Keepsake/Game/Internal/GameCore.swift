import Foundation
import KeepsakeReplication
import KeepsakeStore
import Synchronization

/// What the parts of a game's data share: the store, the clock, the news, and the one way by which all of them commit.
final class GameCore: Sendable {
  /// One save on its way into a commit.
  struct Save: Sendable {
    enum Payload: Sendable {
      /// Encoded by the caller; hashed and compressed later, off its thread.
      case bytes(Data)
      /// What an earlier version holds.
      case contents([ContentHash], length: Int)
      case tombstone
    }
    var parents: SlotParents.Snapshot
    var payload: Payload
    var metadata: SaveMetadata
    /// What it replaces beside what the lineage says: the heads shown before a delete or a restore, the sides of a conflict.
    var additionalParents: [VersionID] = []
    /// Where it only changes what is said about a version: that one. The game's next save goes on from it only if the game's state came
    /// from that version.
    var redescribes: VersionID?
    /// Of a tracked file, whose slot no saved game may have.
    var isOfFile = false

    var slot: String { parents.slot }
  }

  /// What a commit made.
  struct Committed: Sendable {
    /// In the order of the saves.
    var versions: [Version] = []
    /// The cells that it wrote to, as they are now.
    var cells: [CellUpdate] = []
  }

  /// The most incidents that are remembered: a game that asks now and then misses none, one that never asks isn't flooded.
  static let maximumIncidents = 100
  /// Changes kept for a game that polls; as many as a stream keeps.
  static let maximumUntaken = 256

  let store: Store
  let environment: GameEnvironment
  let slotParents = SlotParents()
  let changes = Broadcast<GameChange>()
  /// For `takeChanges`.
  private let untaken = Mutex<[GameChange]>([])
  private let incidentLog = Mutex<[Incident]>([])
  private let hooks = Mutex(CloudHooks())
  /// What stands in the slots may have changed, and how far it has come; each listener has to look only once for any number of these.
  let slotTicks = Broadcast<Void>(keepingNewest: 1)
  let statusTicks = Broadcast<Void>(keepingNewest: 1)
  let seen = SeenByCache()

  init(store: Store, environment: GameEnvironment) {
    self.store = store
    self.environment = environment
    store.onIncident { [weak self] in self?.report($0) }
    for incident in store.incidents { report(incident) }
  }

  /// What the store, or the records, met by themselves.
  func report(_ incident: StoreIncident) {
    let kind: Incident.Kind =
      switch incident.kind {
      case .recovered: .recovered
      case .rebuilt: .rebuilt
      case .reopened: .diskFailed
      case .unnoted: .unreadable
      }
    report(Incident(kind: kind, message: incident.message, date: now))
  }

  /// What stands in the slots as the game begins is what it may replace without loading it.
  func showSlots() throws {
    slotParents.show(
      try store.read { transaction in
        let local = try transaction.localSlots()
        var shown: [String: [VersionID]] = [:]
        let notDownloaded = Set(try transaction.notDownloadedVersions())
        for (place, heads) in try transaction.headsOfAllSlots() {
          let slot = LocalSlot.slot(at: place)
          if LocalSlot.contains(place) == local.contains(slot) { shown[slot] = heads.filter { !notDownloaded.contains($0) } }
        }
        return shown
      })
  }

  /// What the cloud can do from now on.
  func onCloud(_ change: (inout CloudHooks) -> Void) { hooks.withLock { change(&$0) } }

  /// As it is now: whoever calls one of them holds no lock.
  var cloud: CloudHooks { hooks.withLock { $0 } }

  func slotsDidChange() {
    slotTicks.send(())
    statusTicks.send(())
  }

  // MARK: Commits

  /// Hands everything to the store as one commit: all of it or nothing. Returns before it is durable.
  ///
  /// Throws for what can be seen to be wrong at once, and `timedOut` if the disk is so far behind that nothing is taken within the limit.
  /// The versions are in the order of `saves`; a save that changes nothing gives the version that is there already.
  func commit(
    saves: [Save] = [], cells: [CellDraft] = [], scores: [ScoreDraft] = [], wallet: [WalletOperation] = [],
    within limit: Duration? = nil
  ) throws -> PendingCommit<Committed> {
    let now = environment.nowMilliseconds()
    for save in saves { try check(save, now: now) }
    var contents: [SubmittedContent] = []
    for save in saves {
      if case .bytes(let bytes) = save.payload { contents.append(SubmittedContent(slot: save.slot, bytes: bytes)) }
    }
    let undo = Mutexed<[@Sendable () -> Void]>([])
    let writer = store.writer
    let pending: PendingCommit<Committed> = try translating {
      try store.submit(
        contents,
        reverted: { for step in undo.value.reversed() { step() } },
        finished: { [weak self] error in self?.finished(saves, error) },
        within: limit
      ) { [slotParents] transaction, kept in
        let steps = Mutexed<[@Sendable () -> Void]>([])
        do {
          let committed = try Self.apply(
            saves, kept, cells, scores, wallet, now: now, writer: writer, slotParents, steps, in: &transaction)
          undo.value = steps.value
          return committed
        } catch {
          for step in steps.value.reversed() { step() }
          throw GameDataError.translated(error)
        }
      }
    }
    for save in saves { slotParents.setPending(pending, in: save.slot) }
    return pending
  }

  /// Runs within the store's transaction, in the order of the commits.
  private static func apply(
    _ saves: [Save], _ kept: [KeptContent], _ cells: [CellDraft], _ scores: [ScoreDraft],
    _ wallet: [WalletOperation], now: Int64,
    writer: WriterID, _ slotParents: SlotParents, _ undo: Mutexed<[@Sendable () -> Void]>,
    in transaction: inout StoreTransaction
  ) throws -> Committed {
    var random = SystemRandomNumberGenerator()
    var kept = kept[...]
    var draft = CommitDraft(cells: cells, wallet: wallet)
    var ids: [VersionID] = []
    for save in saves {
      let contents: [ContentHash]
      let length: Int
      switch save.payload {
      case .bytes:
        guard let content = kept.popFirst() else { throw StoreError(.io, "a commit lost its bytes") }
        (contents, length) = (content.hashes, content.length)
      case .contents(let hashes, let bytes): (contents, length) = (hashes, bytes)
      case .tombstone: (contents, length) = ([], 0)
      }
      let place = try transaction.place(of: save.slot)
      let (parents, same) = try parents(of: save, contents, length: length, at: place, slotParents, in: transaction)
      if let same {
        ids.append(same)
        if save.isOfFile { try transaction.setFileBase(same, of: save.slot) }
        continue
      }
      let id = VersionID(using: &random)
      ids.append(id)
      draft.saves.append(
        SaveDraft(
          id: id, slot: place, parents: parents, contents: contents, length: length, metadata: save.metadata,
          savedAtMilliseconds: now, tombstone: save.payload.isTombstone))
      if save.isOfFile {
        try transaction.setFileBase(id, of: save.slot)
        continue
      }
      if let source = save.redescribes, slotParents.parents(of: save.parents) != .versions(slotParents.current([source])) { continue }
      let before = slotParents.saved(save.parents, as: id)
      let slot = save.slot
      undo.value.append { slotParents.restore(slot, to: before) }
    }
    for score in scores {
      if let best = try ScoreCommit.apply(score, in: &transaction) { draft.cells.append(best) }
    }
    if !draft.saves.isEmpty || !draft.cells.isEmpty || !draft.wallet.isEmpty {
      try DeviceCommit.apply(draft, now: now, writer: writer, in: &transaction, using: &random)
    }
    let versions = try ids.map { id in
      guard let version = try transaction.version(id) else { throw StoreError(.damaged, "the version \(id) is gone") }
      return Version(version, isPinned: try transaction.isPinned(id))
    }
    let updates = try cells.compactMap { draft in
      try transaction.cell(draft.key).map { CellUpdate(key: draft.key, state: $0) }
    }
    return Committed(versions: versions, cells: updates)
  }

  /// What the save replaces at its place, and the version that says the same already.
  private static func parents(
    of save: Save, _ contents: [ContentHash], length: Int, at place: String, _ slotParents: SlotParents, in transaction: StoreTransaction
  ) throws -> (SaveParents, same: VersionID?) {
    if save.isOfFile {
      let file = try FileParents(
        of: save, contents, length: length, at: place, additionalParents: slotParents.current(save.additionalParents), in: transaction)
      return (file.parents, file.same)
    }
    var parents = slotParents.parents(of: save.parents).joined(with: slotParents.current(save.additionalParents))
    if case .versions(let ids) = parents { parents = try .versions(ids, at: place, of: save.slot, in: transaction) }
    guard case .bytes = save.payload else { return (parents, nil) }
    return (parents, try unchanged(parents, contents, save, at: place, in: transaction))
  }

  /// The version that the slot shows already, if the save would only repeat it.
  private static func unchanged(
    _ parents: SaveParents, _ contents: [ContentHash], _ save: Save, at place: String, in transaction: StoreTransaction
  ) throws -> VersionID? {
    guard case .versions(let ids) = parents, ids.count == 1, let id = ids.first,
      let version = try transaction.version(id), !version.record.tombstone, version.record.contents == contents,
      version.record.metadata == save.metadata, try transaction.heads(of: place).contains(id)
    else { return nil }
    return id
  }

  private func check(_ save: Save, now: Int64) throws {
    var record = VersionRecord(
      id: VersionID(high: 0, low: 0), slot: save.slot, covers: [], contents: [], length: 0, metadata: save.metadata,
      savedAtMilliseconds: now, writer: store.writer, provisional: false)
    if case .bytes(let bytes) = save.payload {
      record.length = bytes.count
      guard bytes.count <= EncodedContent.maximumContentBytes else {
        throw GameDataError(
          .tooLarge,
          "the save for \"\(save.slot)\" has \(bytes.count) bytes; \(EncodedContent.maximumContentBytes) are the most")
      }
    }
    // Of a file the name was checked when it was tracked; one that stays here may be a little longer.
    if save.isOfFile { record.slot = LocalSlot.place(of: record.slot) }
    if let refusal = save.isOfFile ? ExchangeRules.objection(toOwn: record) : SaveSlots.objection(to: record) {
      throw GameDataError(
        refusal.reason == .tooLarge ? .tooLarge : .misuse, "\"\(save.slot.prefix(80))\" can't be saved: \(refusal.message)")
    }
  }

  private func finished(_ saves: [Save], _ error: (any Error)?) {
    guard let error else {
      if !saves.isEmpty { slotsDidChange() }
      return didCommit()
    }
    report(
      Incident(
        kind: .failedCommit, slot: saves.first?.slot, message: "a save could not be kept: \(error)", date: now))
  }

  // MARK: Incidents and errors

  var now: Date { Date(timeIntervalSince1970: Double(environment.nowMilliseconds()) / 1000) }

  var incidents: [Incident] { incidentLog.withLock { $0 } }

  /// Remembers an incident, and tells of it once: a damaged save is found at each load.
  func report(_ incident: Incident) {
    let isNew = incidentLog.withLock { log in
      let known = log.contains {
        $0.kind == incident.kind && $0.version == incident.version && $0.slot == incident.slot
          && $0.message == incident.message
      }
      guard !known else { return false }
      log.append(incident)
      if log.count > Self.maximumIncidents { log.removeFirst() }
      return true
    }
    if isNew { emit(.incident(incident)) }
  }

  /// Tells whoever listens, and keeps it for whoever asks.
  func emit(_ change: GameChange) {
    untaken.withLock { untaken in
      untaken.append(change)
      if untaken.count > Self.maximumUntaken { untaken.removeFirst() }
    }
    changes.send(change)
  }

  func takeChanges() -> [GameChange] {
    untaken.withLock { untaken in
      defer { untaken = [] }
      return untaken
    }
  }

  /// Nil where the store is closed: a loop over what changes ends then.
  func whileOpen<Value>(_ body: () throws -> Value) throws -> Value? {
    do {
      return try body()
    } catch {
      guard store.isClosed else { throw error }
      return nil
    }
  }

  /// Runs `body` and turns what the floors below throw for themselves into errors that a game can see.
  func translating<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch {
      throw GameDataError.translated(error)
    }
  }
}

extension GameCore.Save.Payload {
  fileprivate var isTombstone: Bool {
    if case .tombstone = self { return true }
    return false
  }
}

/// A value behind a lock, for closures that share it.
final class Mutexed<Value: Sendable>: Sendable {
  private let mutex: Mutex<Value>

  init(_ value: Value) { mutex = Mutex(value) }

  var value: Value {
    get { mutex.withLock { $0 } }
    set { mutex.withLock { $0 = newValue } }
  }
}
