package import Foundation
package import KeepsakeReplication

/// A device's storage in memory: a value, so that a copy is a snapshot and dropping a changed copy is a rollback.
///
/// Contents travel as their plain bytes, but a content that was encoded against a base is only taken where the base is.
package struct SimulatedDevice: DeviceStorage, Sendable {
  package enum Failure: Error, Hashable, Sendable {
    case noSuchContent(ContentHash)
  }

  private var theFacts = DeviceFacts()
  private var theCells: [CellKey: CellState] = [:]
  private var versions: [VersionID: StoredVersion] = [:]
  private var covered: Set<VersionID> = []
  private var headsBySlot: [String: Set<VersionID>] = [:]
  private var unacknowledged: Set<VersionID> = []
  private var contents: [ContentHash: Data] = [:]
  private var depths: [ContentHash: Int] = [:]
  private var groups: [OutboxGroup] = []
  private var lastGroup: Int64 = 0
  private var stagedChanges: [CloudChange] = []
  private var theWallet: WalletState?
  /// Cells that were ever set to less than they held: never happens.
  package private(set) var retreats: [CellKey] = []

  package init() {}

  package func facts() -> DeviceFacts { theFacts }

  /// What the shell around the engine does before its first step: from here on the store belongs to a container.
  package mutating func connect() {
    if theFacts.container == nil { theFacts.container = ContainerID(high: 0, low: 1) }
  }
  package mutating func setFacts(_ facts: DeviceFacts) { theFacts = facts }

  package func cell(_ key: CellKey) -> CellState? { theCells[key] }
  package func cells(in collection: String?) -> [CellUpdate] {
    theCells.filter { collection == nil || $0.key.collection == collection }
      .map { CellUpdate(key: $0.key, state: $0.value) }.sorted { $0.key < $1.key }
  }
  /// Keeps no scores but those in cells.
  package func keptBest(for key: CellKey, _ order: ScoreOrder) -> BestScore? { nil }
  package mutating func setCell(_ update: CellUpdate) {
    if let known = theCells[update.key], !update.state.contains(known) { retreats.append(update.key) }
    theCells[update.key] = update.state
  }

  package func version(_ id: VersionID) -> StoredVersion? { versions[id] }
  package mutating func putVersion(_ version: StoredVersion) {
    let id = version.record.id
    versions[id] = version
    if version.acknowledged { unacknowledged.remove(id) } else { unacknowledged.insert(id) }
    if covered.contains(id) {
      headsBySlot[version.record.slot, default: []].remove(id)
    } else {
      headsBySlot[version.record.slot, default: []].insert(id)
    }
  }
  package func slots() -> [String] { headsBySlot.keys.sorted() }
  package func heads(of slot: String) -> [VersionID] { (headsBySlot[slot] ?? []).sorted() }
  package func isCovered(_ id: VersionID) -> Bool { covered.contains(id) }
  package mutating func markCovered(_ id: VersionID) {
    covered.insert(id)
    if let slot = versions[id]?.record.slot { headsBySlot[slot]?.remove(id) }
  }
  package func unacknowledgedVersions() -> [VersionID] { unacknowledged.sorted() }
  package func unofferedVersions() -> [VersionID] {
    unacknowledgedVersions().filter { versions[$0]?.offered == false }
  }
  /// Every version that is known, sorted by id.
  package func allVersions() -> [VersionID] { versions.keys.sorted() }

  package func hasContent(_ hash: ContentHash) -> Bool { contents[hash] != nil }
  package func contentLength(_ hash: ContentHash) -> Int? { contents[hash]?.count }
  package func cloudDepth(of hash: ContentHash) -> Int? { depths[hash] }
  package mutating func setCloudDepth(_ depth: Int?, of hash: ContentHash) { depths[hash] = depth }
  package mutating func clearCloudDepths() { depths = [:] }
  package func encoded(_ hash: ContentHash, against base: ContentHash?) throws -> EncodedContent {
    guard let bytes = contents[hash] else { throw Failure.noSuchContent(hash) }
    // Does a delta always pay? About as often as not.
    let base = base.flatMap { contents[$0] != nil && hash.bytes.first.map { $0 & 3 != 0 } == true ? $0 : nil }
    return EncodedContent(hash: hash, length: bytes.count, base: base, bytes: bytes)
  }
  package mutating func receiveContent(_ content: EncodedContent) -> ContentReceipt {
    if let base = content.base, contents[base] == nil { return .needsBase(base) }
    guard content.bytes.count == content.length, ContentHash(of: content.bytes) == content.hash else { return .damaged }
    contents[content.hash] = content.bytes
    return .stored
  }
  /// Puts a content that the game made.
  package mutating func addContent(_ bytes: Data) -> ContentHash {
    let hash = ContentHash(of: bytes)
    contents[hash] = bytes
    return hash
  }
  package func content(_ hash: ContentHash) -> Data? { contents[hash] }

  package func outbox(limit: Int) -> [OutboxGroup] { Array(groups.prefix(max(0, limit))) }
  package func outboxCount() -> Int { groups.count }
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

  package func wallet() -> WalletState? { theWallet }
  package mutating func setWallet(_ state: WalletState) { theWallet = state }
}
