package import KeepsakeReplication

/// A container of the cloud in memory: a value, so that a copy is a backup.
package struct SimulatedContainer: ContainerStorage, Sendable {
  private enum Name: Hashable, Sendable {
    case cell(CellKey)
    case version(VersionID)
  }

  private var thePosition: Cursor
  private var marks: [UInt64: UInt64] = [:]
  private var cells: [CellKey: SequencedCell] = [:]
  private var versions: [VersionID: SequencedVersion] = [:]
  private var covered: Set<VersionID> = []
  private var headsBySlot: [String: Set<VersionID>] = [:]
  private var contents: [ContentHash: EncodedContent] = [:]
  /// Every change in the order of its seq; those that a later change of the same item replaces stay, and are passed over.
  private var log: [(seq: UInt64, name: Name)] = []
  private var theBank = BankState()
  /// What was decided about every operation, with the operation.
  package private(set) var decisions: [OperationID: (verdict: WalletDecision.Verdict, operation: WalletOperation)] = [:]
  private var chainHeads: [ChainID: [UInt64: ChainHead]] = [:]
  /// Operations that were decided twice: never happens.
  package private(set) var decidedTwice: [OperationID] = []

  package init(epoch: UInt64) { thePosition = Cursor(epoch: epoch, seq: 0, mark: 0) }

  package func position() -> Cursor { thePosition }
  package mutating func advance(to position: Cursor) {
    thePosition = position
    marks[position.seq] = position.mark
  }
  package func mark(of seq: UInt64) -> UInt64? { seq == 0 ? 0 : marks[seq] }

  package func cell(_ key: CellKey) -> SequencedCell? { cells[key] }
  package mutating func setCell(_ cell: SequencedCell) {
    cells[cell.update.key] = cell
    log.append((cell.seq, .cell(cell.update.key)))
  }
  package func version(_ id: VersionID) -> SequencedVersion? { versions[id] }
  package mutating func putVersion(_ version: SequencedVersion) {
    let record = version.record
    versions[record.id] = version
    if !covered.contains(record.id) { headsBySlot[record.slot, default: []].insert(record.id) }
    log.append((version.seq, .version(record.id)))
  }
  package func heads(of slot: String) -> [VersionID] { (headsBySlot[slot] ?? []).sorted() }
  package func isCovered(_ id: VersionID) -> Bool { covered.contains(id) }
  package mutating func markCovered(_ id: VersionID) {
    covered.insert(id)
    if let slot = versions[id]?.record.slot { headsBySlot[slot]?.remove(id) }
  }
  package func slots() -> [String] { headsBySlot.keys.sorted() }

  package func hasContent(_ hash: ContentHash) -> Bool { contents[hash] != nil }
  package func content(_ hash: ContentHash) -> EncodedContent? { contents[hash] }
  package mutating func putContent(_ content: EncodedContent) {
    if contents[content.hash] == nil { contents[content.hash] = content }
  }
  /// Throws away every content but these.
  package mutating func removeContents(butNot kept: Set<ContentHash>) {
    contents = contents.filter { kept.contains($0.key) }
  }

  package func changes(after seq: UInt64, limit: Int) -> [CloudChange] {
    var low = 0
    var high = log.count
    while low < high {
      let middle = (low + high) / 2
      if log[middle].seq <= seq { low = middle + 1 } else { high = middle }
    }
    var result: [CloudChange] = []
    for entry in log[low...] where result.count < limit {
      switch entry.name {
      case .cell(let key):
        if let cell = cells[key], cell.seq == entry.seq { result.append(CloudChange(seq: entry.seq, item: .cell(cell.update))) }
      case .version(let id):
        if let version = versions[id], version.seq == entry.seq {
          result.append(CloudChange(seq: entry.seq, item: .version(version.record)))
        }
      }
    }
    return result
  }

  package func bank() -> BankState { theBank }
  package mutating func setBank(_ state: BankState) { theBank = state }
  package func decision(on operation: OperationID) -> WalletDecision.Verdict? { decisions[operation]?.verdict }
  package mutating func recordDecision(
    _ verdict: WalletDecision.Verdict, on operation: WalletOperation, of chain: ChainID
  ) {
    if decisions[operation.id] != nil { decidedTwice.append(operation.id) }
    decisions[operation.id] = (verdict, operation)
  }
  package func chainHead(of chain: ChainID, at count: UInt64) -> ChainHead? { chainHeads[chain]?[count] }
  package mutating func recordChainHead(_ head: ChainHead, of chain: ChainID) {
    chainHeads[chain, default: [:]][head.count] = head
  }
}
