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
    try arriving.contains { $0.hash == hash } || contents.holds(hash)
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
  mutating func markClaimPaid(_ key: String, _ payment: ClaimPayment?) { memory.markClaimPaid(key, payment) }
  func payments(limit: Int) -> [WalletVoucher.Claim] { memory.payments(limit: limit) }
  func isVoucherPaid(_ chain: ChainID, of bank: ContainerID) -> Bool { memory.isVoucherPaid(chain, of: bank) }
  mutating func markVoucherPaid(_ chain: ChainID, of bank: ContainerID) { memory.markVoucherPaid(chain, of: bank) }
  func vouchedClaim(_ key: String, by bank: ContainerID) -> Int64? { memory.vouchedClaim(key, by: bank) }
  mutating func setVouchedClaim(_ key: String, by bank: ContainerID, left: Int64) {
    memory.setVouchedClaim(key, by: bank, left: left)
  }
  func decidedOperation(_ id: OperationID) -> WalletOperation? { memory.decidedOperation(id) }
  func order(_ id: OperationID) -> BankOrder? { memory.order(id) }
  func orders(after number: UInt64, limit: Int) -> [NumberedOrder] { memory.orders(after: number, limit: limit) }
  mutating func recordOrder(_ order: NumberedOrder) { memory.recordOrder(order) }
  func goods(changedAfter number: UInt64, limit: Int) -> [NumberedGood] {
    memory.goods(changedAfter: number, limit: limit)
  }
  mutating func addGood(_ name: String, _ count: Int64, number: UInt64) {
    memory.addGood(name, count, number: number)
  }
  func closedChain(_ id: ChainID) -> BankState.ClosedChain? { memory.closedChain(id) }
  mutating func recordClosedChain(_ chain: BankState.ClosedChain, _ id: ChainID) { memory.recordClosedChain(chain, id) }
  func voucher(of chain: ChainID) -> WalletVoucher? { memory.voucher(of: chain) }
  mutating func recordVoucher(_ voucher: WalletVoucher) { memory.recordVoucher(voucher) }
}
