package import Foundation
import Keepsake
package import KeepsakeReplication
import KeepsakeStore

/// A device's storage in memory: a value, so that a copy is a snapshot and dropping a changed copy is a rollback.
///
/// Contents are transferred as their plain bytes, but a content that was encoded against a base is only accepted if the
/// base is here.
package struct SimulatedDevice: SlotSource, Sendable {
  package enum Failure: Error, Hashable, Sendable {
    case noSuchContent(ContentHash)
  }

  /// The rules for what is kept of a slot's history.
  package var rules = HistoryRules.everything
  private var theFacts = DeviceFacts()
  private var theCells: [CellKey: CellState] = [:]
  private var versions: [VersionID: StoredVersion] = [:]
  private var covered: Set<VersionID> = []
  private var headsBySlot: [String: Set<VersionID>] = [:]
  /// Every version of a slot, in the order of arrival.
  private var arrivals: [String: [VersionID]] = [:]
  /// Versions of which only the record is kept.
  private var pruned: Set<VersionID> = []
  /// Those pruned versions that were heads when they were pruned, and whose contents the cloud has.
  private var notDownloaded: Set<VersionID> = []
  /// Slots that changed since they were last pruned.
  private var touched: Set<String> = []
  private var unacknowledged: Set<VersionID> = []
  private var contents: [ContentHash: Data] = [:]
  private var depths: [ContentHash: Int] = [:]
  private var groups: [OutboxGroup] = []
  private var lastGroup: Int64 = 0
  private var stagedChanges: [CloudChange] = []
  private var theWallet: WalletState?
  /// The fingerprint of every operation that was ever performed here.
  private var performed: [OperationID: UInt64] = [:]
  private var claimed: Set<String> = []
  private var theGoods = PlayerGoods()
  private var theFormerWallets: [FormerWallet] = []
  /// The operations of the wallet's chain that the bank has acknowledged.
  private var ledger: [WalletOperation] = []
  /// Operations that a bank has settled and that aren't on the wallet's chain, as they were settled.
  private var past: [WalletOperation] = []
  /// What the bank last said about operations that it had to decide.
  package private(set) var outcomes: [OperationID: WalletDecision.Verdict] = [:]
  /// Operations of which a notice was ever appended.
  private var noticed: Set<OperationID> = []
  /// What a bank declined, and the claims that it paid, until the game takes them.
  package private(set) var notices: [KeepsakeReplication.Wallet.Decided] = []
  /// The bank's own operations that it has learned of.
  package private(set) var orders: [BankOrder] = []
  /// Cells that were ever set to less than they contained, which must never happen.
  package private(set) var retreats: [CellKey] = []
  /// Planted bugs, for tests of the tests.
  package var faults = Faults()

  package init() {}

  package func facts() -> DeviceFacts { theFacts }

  /// Does what the shell around the engine does before its first step: from here on, the store belongs to a container.
  package mutating func connect() {
    if theFacts.container == nil { theFacts.container = ContainerID(high: 0, low: 1) }
  }
  package mutating func setFacts(_ facts: DeviceFacts) { theFacts = facts }

  package func cell(_ key: CellKey) -> CellState? { theCells[key] }
  package func cells(in collection: String?) -> [CellUpdate] {
    theCells.filter { collection == nil || $0.key.collection == collection }
      .map { CellUpdate(key: $0.key, state: $0.value) }.sorted { $0.key < $1.key }
  }
  /// Returns nil: no scores are kept besides those in cells.
  package func keptBest(for key: CellKey, _ order: ScoreOrder) -> BestScore? { nil }
  package mutating func setCell(_ update: CellUpdate) {
    if let known = theCells[update.key], !update.state.contains(known) { retreats.append(update.key) }
    theCells[update.key] = update.state
  }

  package func version(_ id: VersionID) -> StoredVersion? { versions[id] }
  package mutating func putVersion(_ version: StoredVersion) {
    let id = version.record.id
    touched.insert(version.record.slot)
    if versions.updateValue(version, forKey: id) == nil { arrivals[version.record.slot, default: []].append(id) }
    if version.acknowledged { unacknowledged.remove(id) } else { unacknowledged.insert(id) }
    if covered.contains(id) {
      headsBySlot[version.record.slot, default: []].remove(id)
    } else {
      headsBySlot[version.record.slot, default: []].insert(id)
    }
  }
  package func slots() -> [String] { headsBySlot.keys.sorted() }
  package func heads(of slot: String) -> [VersionID] {
    guard faults.showsFirstArrival else { return (headsBySlot[slot] ?? []).sorted() }
    return (arrivals[slot] ?? []).filter { headsBySlot[slot]?.contains($0) == true }
  }
  package func isCovered(_ id: VersionID) -> Bool { covered.contains(id) }
  package mutating func markCovered(_ id: VersionID) {
    covered.insert(id)
    guard let slot = versions[id]?.record.slot else { return }
    headsBySlot[slot]?.remove(id)
    touched.insert(slot)
  }
  package func unacknowledgedVersions() -> [VersionID] { unacknowledged.sorted() }
  package func unofferedVersions() -> [VersionID] {
    unacknowledgedVersions().filter { versions[$0]?.offered == false }
  }
  package func notDownloadedVersions() -> [VersionID] { notDownloaded.filter { !covered.contains($0) }.sorted() }
  package mutating func setNotDownloaded(_ isNotDownloaded: Bool, _ id: VersionID) {
    if isNotDownloaded {
      notDownloaded.insert(id)
      pruned.insert(id)
    } else {
      notDownloaded.remove(id)
      pruned.remove(id)
    }
  }
  /// Every known version, sorted by id.
  package func allVersions() -> [VersionID] { versions.keys.sorted() }

  package func hasContent(_ hash: ContentHash) -> Bool { contents[hash] != nil }
  package func isReadable(_ hash: ContentHash) -> Bool { contents[hash] != nil }
  package func contentLength(_ hash: ContentHash) -> Int? { contents[hash]?.count }
  package func cloudDepth(of hash: ContentHash) -> Int? { depths[hash] }
  package mutating func setCloudDepth(_ depth: Int?, of hash: ContentHash) { depths[hash] = depth }
  package mutating func clearCloudDepths() { depths = [:] }
  package func encoded(_ hash: ContentHash, against base: ContentHash?) throws -> EncodedContent {
    guard let bytes = contents[hash] else { throw Failure.noSuchContent(hash) }
    // A delta doesn't always pay off: here in three of four cases.
    let base = base.flatMap { contents[$0] != nil && hash.bytes.first.map { $0 & 3 != 0 } == true ? $0 : nil }
    return EncodedContent(hash: hash, length: bytes.count, base: base, bytes: bytes)
  }
  package mutating func receiveContent(_ content: EncodedContent) -> ContentReceipt {
    if let base = content.base, contents[base] == nil { return .needsBase(base) }
    guard content.bytes.count == content.length, ContentHash(of: content.bytes) == content.hash else { return .damaged }
    contents[content.hash] = content.bytes
    return .stored
  }
  /// Stores a content that the game made.
  package mutating func addContent(_ bytes: Data) -> ContentHash {
    let hash = ContentHash(of: bytes)
    contents[hash] = bytes
    return hash
  }
  package func content(_ hash: ContentHash) -> Data? { contents[hash] }

  // MARK: History

  package func plainBytes(of record: VersionRecord) throws -> Data {
    try record.contents.reduce(into: Data()) { bytes, hash in
      guard let content = contents[hash] else { throw StoreError(.missing, "the content \(hash) is missing") }
      bytes.append(content)
    }
  }
  package func isPinned(_ id: VersionID) -> Bool { false }
  package func isNotDownloaded(_ record: VersionRecord) -> Bool { notDownloaded.contains(record.id) }
  package func history(of slot: String) -> [StoredVersion] {
    (arrivals[slot] ?? []).reversed().filter { !pruned.contains($0) }.compactMap { versions[$0] }
  }

  /// Does what a store does at the end of a transaction: removes what neither the rules nor a head needs, in the slots
  /// that changed. There are no pins, and deletions keep nothing.
  ///
  /// - Returns: The number of versions that were pruned.
  package mutating func prune() throws -> Int {
    defer { touched = [] }
    var letGo = 0
    var candidates: [ContentHash] = []
    var unsent: Set<VersionID> = []
    for slot in touched.sorted() {
      let whole = history(of: slot)
      let heads = heads(of: slot)
      let outdated = zip(whole, rules.kept(whole.map(\.record.savedAtMilliseconds))).filter { !$1 }.map(\.0)
      guard !outdated.isEmpty || heads.count > 1 else { continue }
      let needed = try Resolution.needed(by: heads, in: self)
      // Versions that were pruned, are needed again, and came back with a download.
      keepWhole(needed)
      for version in outdated where !needed.contains(version.record.id) {
        pruned.insert(version.record.id)
        letGo += 1
        candidates += version.record.contents
        if !version.acknowledged, !version.offered { unsent.insert(version.record.id) }
      }
    }
    guard !candidates.isEmpty else { return letGo }
    groups.removeAll { $0.isOnly(of: unsent) }
    // A conflict elsewhere may have lacked its ancestor until the save of another slot delivered the same content.
    for slot in slots() where !touched.contains(slot) && heads(of: slot).count > 1 {
      keepWhole(try Resolution.needed(by: heads(of: slot), in: self))
    }
    var used = Set(versions.values.filter { !pruned.contains($0.record.id) }.flatMap(\.record.contents))
    for case .version(let record) in stagedChanges.map(\.item) { used.formUnion(record.contents) }
    for hash in candidates where !used.contains(hash) {
      contents[hash] = nil
      depths[hash] = nil
    }
    return letGo
  }

  private mutating func keepWhole(_ ids: Set<VersionID>) {
    for id in ids where pruned.contains(id) && versions[id]?.record.contents.allSatisfy(hasContent) == true {
      setNotDownloaded(false, id)
    }
  }

  /// Removes a head's contents, which the cloud has, except for those that other versions need.
  package mutating func evict(_ id: VersionID) {
    guard let record = versions[id]?.record else { return }
    setNotDownloaded(true, id)
    let used = Set(versions.values.filter { !pruned.contains($0.record.id) }.flatMap(\.record.contents))
    for hash in record.contents where !used.contains(hash) {
      contents[hash] = nil
      depths[hash] = nil
    }
  }

  /// Whether something changed since the last pruning.
  package var hasHistoryToPrune: Bool { rules != .everything && !touched.isEmpty }

  package func outbox(limit: Int) -> [OutboxGroup] { Array(groups.prefix(max(0, limit))) }
  package func outboxCount() -> Int { groups.count }
  package func newestOutboxGroup() -> OutboxGroup? { groups.last }
  package mutating func appendToOutbox(_ group: OutboxGroup) {
    lastGroup += 1
    var group = group
    group.id = lastGroup
    groups.append(group)
  }
  package mutating func updateOutbox(_ group: OutboxGroup) {
    if let index = groups.firstIndex(where: { $0.id == group.id }) { groups[index] = group }
  }
  package mutating func removeFromOutbox(_ id: Int64) { groups.removeAll { $0.id == id } }

  package func staged() -> [CloudChange] { stagedChanges }
  package mutating func stage(_ changes: [CloudChange]) { stagedChanges += changes }
  package mutating func clearStaged() { stagedChanges = [] }

  // MARK: Wallet

  package func wallet() -> WalletState? { theWallet }
  package mutating func setWallet(_ state: WalletState) {
    let before = theWallet ?? WalletState(chain: state.chain)
    for (list, known) in zip(state.undecided, before.undecided) {
      for operation in list.shift(since: known)?.appended ?? list[...] {
        performed[operation.id] = performed[operation.id] ?? operation.fingerprint
        if let key = operation.kind.key { claimed.insert(key) }
      }
    }
    settle(state, since: before)
    if state.chain != before.chain {
      past += ledger
      ledger = []
    } else if state.acknowledged.count >= before.acknowledged.count {
      ledger += before.operations.prefix(Int(state.acknowledged.count - before.acknowledged.count))
    } else {
      ledger.removeLast(min(ledger.count, Int(before.acknowledged.count - state.acknowledged.count)))
    }
    // What was made for a bank before isn't offered to this one.
    if before.isBound, !state.isBound, state.chain != before.chain { past = [] }
    theWallet = state
  }
  /// The ids of all operations that were ever performed here.
  package var performedOperations: Set<OperationID> { Set(performed.keys) }
  package func goods() -> PlayerGoods { theGoods }
  package mutating func setGoods(_ goods: PlayerGoods) { theGoods = goods }
  package func formerWallets() -> [FormerWallet] { theFormerWallets }
  package mutating func setFormerWallets(_ wallets: [FormerWallet]) { theFormerWallets = wallets }
  package func performedOperation(_ id: OperationID) -> UInt64? { performed[id] }
  package func hasClaimed(_ key: String) -> Bool { claimed.contains(key) }
  package func acknowledgedOperations(after head: ChainHead) -> AcknowledgedOperations {
    guard let acknowledged = theWallet?.acknowledged, head.count <= acknowledged.count else { return .branched }
    let asked = Int(acknowledged.count - head.count)
    guard asked <= ledger.count else { return .notKept }
    let operations = ledger.suffix(asked)
    return operations.reduce(head) { $0.appending($1) } == acknowledged ? .kept(Array(operations)) : .branched
  }
  package func settledOperations(includingChain: Bool) -> [WalletOperation] {
    (includingChain ? past + ledger : past).filter { outcomes[$0.id].map { $0.counts || !$0.isFinal } ?? true }
  }

  /// Moves what a bank has settled beside the wallet's chain to the past.
  private mutating func settle(_ state: WalletState, since before: WalletState) {
    guard !before.late.isEmpty || !before.waiting.isEmpty || state.chain != before.chain || state.again > 0 else {
      return
    }
    let undecided = Set(state.undecided.flatMap { $0.map(\.id) })
    past.removeAll { undecided.contains($0.id) }
    let onChain = state.chain == before.chain ? [] : Array(before.operations)
    let known = Set(past.map(\.id))
    for operation in Array(before.late) + Array(before.waiting) + onChain
    where !undecided.contains(operation.id) && !known.contains(operation.id) { past.append(operation) }
  }

  package mutating func recordDecisions(_ decisions: [KeepsakeReplication.Wallet.Decided]) {
    for decided in decisions { outcomes[decided.operation.id] = decided.verdict }
    for decided in decisions where decided.verdict.isFinal {
      let isNoticed = !decided.verdict.counts || decided.operation.effect == .claim
      if isNoticed, noticed.insert(decided.operation.id).inserted { notices.append(decided) }
    }
  }
  /// A device keeps each order once.
  package mutating func recordOrders(_ orders: [BankOrder], areNews: Bool) {
    for order in orders where performed[order.id] == nil {
      performed[order.id] = 0
      self.orders.append(order)
    }
  }
  /// Returns the notices, and removes them.
  package mutating func takeNotices() -> [KeepsakeReplication.Wallet.Decided] {
    defer { notices = [] }
    return notices
  }
}
