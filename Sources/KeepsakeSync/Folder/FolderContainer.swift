import KeepsakeReplication

/// The folder as the cloud's acceptance sees it: cells and versions in memory, contents in the folder, and no bank.
struct FolderContainer: ContainerStorage {
  var memory: MemoryContainer
  private let contents: ContentFolder
  /// Contents that came with the request, each after its base.
  private(set) var arriving: [EncodedContent] = []

  init(_ memory: MemoryContainer, _ contents: ContentFolder) {
    self.memory = memory
    self.contents = contents
  }

  func position() -> Cursor { memory.position() }
  mutating func advance(to position: Cursor) { memory.advance(to: position) }
  func mark(of seq: UInt64) -> UInt64? { memory.mark(of: seq) }

  func cell(_ key: CellKey) -> SequencedCell? { memory.cell(key) }
  mutating func setCell(_ cell: SequencedCell) { memory.setCell(cell) }
  func version(_ id: VersionID) -> SequencedVersion? { memory.version(id) }
  mutating func putVersion(_ version: SequencedVersion) { memory.putVersion(version) }
  func heads(of slot: String) -> [VersionID] { memory.heads(of: slot) }
  func isCovered(_ id: VersionID) -> Bool { memory.isCovered(id) }
  mutating func markCovered(_ id: VersionID) { memory.markCovered(id) }
  func changes(after seq: UInt64, limit: Int) -> [CloudChange] { memory.changes(after: seq, limit: limit) }

  func heldOffers() -> [HeldOffer] { memory.heldOffers() }
  func items(of offer: OfferID) -> [OfferItems] { memory.items(of: offer) }
  mutating func hold(_ items: OfferItems, as part: OfferPart, now: Int64) { memory.hold(items, as: part, now: now) }
  mutating func dropOffer(_ offer: OfferID) { memory.dropOffer(offer) }

  func hasContent(_ hash: ContentHash) throws -> Bool {
    try arriving.contains { $0.hash == hash } || contents.isComplete(hash)
  }
  /// Returns contents to be sent inside a response. Larger ones, which aren't, are left unread and count as not here.
  func content(_ hash: ContentHash) throws -> EncodedContent? {
    let limit = CloudAcceptance.inlineContentBytes + FolderLimits.contentHeadBytes
    guard let size = try contents.fileSize(hash), size <= Int64(limit) else { return nil }
    return try contents.content(hash)
  }
  mutating func putContent(_ content: EncodedContent) { arriving.append(content) }

  // Wallet offers are removed from a request before it gets here.
  func bank() -> BankState { memory.bank() }
  mutating func setBank(_ state: BankState) { memory.setBank(state) }
  func decision(on operation: OperationID) -> DecidedOperation? { memory.decision(on: operation) }
  mutating func recordDecision(_ verdict: WalletDecision.Verdict, on operation: WalletOperation, of chain: ChainID) {
    memory.recordDecision(verdict, on: operation, of: chain)
  }
  func isClaimPaid(_ key: String) -> Bool { memory.isClaimPaid(key) }
  mutating func markClaimPaid(_ key: String) { memory.markClaimPaid(key) }
  func goods(changedAfter number: UInt64, limit: Int) -> [NumberedGood] {
    memory.goods(changedAfter: number, limit: limit)
  }
  mutating func addGood(_ name: String, _ count: Int64, number: UInt64) {
    memory.addGood(name, count, number: number)
  }
  func closedChain(_ id: ChainID) -> BankState.ClosedChain? { memory.closedChain(id) }
  mutating func recordClosedChain(_ chain: BankState.ClosedChain, _ id: ChainID) { memory.recordClosedChain(chain, id) }
}
