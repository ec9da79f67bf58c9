import Foundation

/// A container of the cloud in memory: a value, so that a copy is a backup, and discarding a changed copy is a
/// rollback.
///
/// It has no clock and no random source: the same requests, times and random numbers given to `CloudAcceptance` produce
/// the same container.
package struct MemoryContainer: ContainerStorage, Sendable {
  enum Name: Hashable, Sendable {
    case cell(CellKey)
    case version(VersionID)
  }

  var thePosition: Cursor
  var marks: [UInt64: UInt64] = [:]
  var cells: [CellKey: SequencedCell] = [:]
  var versions: [VersionID: SequencedVersion] = [:]
  var covered: Set<VersionID> = []
  var headsBySlot: [String: Set<VersionID>] = [:]
  var contents: [ContentHash: EncodedContent] = [:]
  /// How many contents have each content as their base.
  var leaning: [ContentHash: Int] = [:]
  /// By content, the versions that hold it; and the versions that still hold theirs.
  var holders: [ContentHash: Set<VersionID>] = [:]
  var holding: Set<VersionID> = []
  var suspect: Set<ContentHash> = []
  var offers: [OfferID: (parts: [OfferItems], touched: Int64)] = [:]
  var used: Int64 = 0
  var reachedSeqs: [DeviceID: UInt64] = [:]
  /// What is recorded of devices whose store went back.
  var setBacksByDevice: [DeviceID: DeviceSetBacks] = [:]
  /// When each device was seen first and last.
  var visitTimes: [DeviceID: (first: Int64, last: Int64)] = [:]
  var past: [PastPosition] = []
  /// Ids of versions that were pruned, as long as they are remembered.
  var pruned: Set<VersionID> = []
  /// Every change in the order of its seq. Those that a later change of the same item replaces stay, and are skipped.
  var log: [(seq: UInt64, name: Name)] = []
  var theBank = BankState()
  /// The decision about every operation, with the operation.
  package internal(set) var decisions:
    [OperationID: (verdict: WalletDecision.Verdict, operation: WalletOperation, chain: ChainID)] = [:]
  var payments: [String: ClaimPayment?] = [:]
  package internal(set) var orders: [BankOrder] = []
  var paidVouchers: [ContainerID: Set<ChainID>] = [:]
  var vouchedClaims: [ContainerID: [String: Int64]] = [:]
  var theGoods: [String: NumberedGood] = [:]
  package internal(set) var closedChains: [ChainID: BankState.ClosedChain] = [:]
  /// What closed chains took along to other banks.
  package internal(set) var vouchers: [ChainID: WalletVoucher] = [:]
  /// Operations that were decided twice, which must never happen.
  package internal(set) var decidedTwice: [OperationID] = []
  /// Grows with each decision that changes anything.
  package internal(set) var revision: UInt64 = 0
  /// For tests of the tests; nothing else plants any.
  package var faults = Faults()

  package init(epoch: UInt64) { thePosition = Cursor(epoch: epoch, seq: 0, mark: 0) }

  package func position() -> Cursor { thePosition }
  package mutating func advance(to position: Cursor) {
    thePosition = position
    marks[position.seq] = position.mark
  }
  package func mark(of seq: UInt64) -> UInt64? { seq == 0 ? 0 : marks[seq] }

  package func cell(_ key: CellKey) -> SequencedCell? { cells[key] }
  package mutating func setCell(_ cell: SequencedCell) {
    used += Int64(cell.update.size - (cells[cell.update.key]?.update.size ?? 0))
    cells[cell.update.key] = cell
    log.append((cell.seq, .cell(cell.update.key)))
  }
  package func version(_ id: VersionID) -> SequencedVersion? { versions[id] }
  package mutating func putVersion(_ version: SequencedVersion) {
    let record = version.record
    used += Int64(record.size - (versions[record.id]?.record.size ?? 0))
    if versions[record.id] == nil, !covered.contains(record.id), !record.contents.isEmpty,
      record.contents.allSatisfy({ contents[$0] != nil })
    {
      holding.insert(record.id)
      for hash in record.contents { holders[hash, default: []].insert(record.id) }
    }
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

  package func hasContent(_ hash: ContentHash) -> Bool { contents[hash] != nil && !suspect.contains(hash) }
  package func content(_ hash: ContentHash) -> EncodedContent? { contents[hash] }
  package mutating func putContent(_ content: EncodedContent) {
    guard !hasContent(content.hash) else { return }
    removeContent(content.hash)
    contents[content.hash] = content
    used += Int64(content.bytes.count)
    if let base = content.base { leaning[base, default: 0] += 1 }
  }
  /// Removes all contents except these.
  package mutating func removeContents(butNot kept: Set<ContentHash>) {
    for hash in contents.keys where !kept.contains(hash) { removeContent(hash) }
  }

  mutating func removeContent(_ hash: ContentHash) {
    suspect.remove(hash)
    guard let content = contents.removeValue(forKey: hash) else { return }
    used -= Int64(content.bytes.count)
    guard let base = content.base, let count = leaning[base] else { return }
    leaning[base] = count > 1 ? count - 1 : nil
  }

  // MARK: Room

  package func usedBytes() -> Int64 { used }

  /// Returns the same number, counted anew.
  package func recountedBytes() -> Int64 {
    cells.values.reduce(Int64(0)) { $0 + Int64($1.update.size) }
      + versions.values.reduce(Int64(0)) { $0 + Int64($1.record.size) }
      + contents.values.reduce(Int64(0)) { $0 + Int64($1.bytes.count) }
  }

  package func replacedHolders(in slot: String?) -> [SlotVersion] {
    holding.intersection(covered).sorted().compactMap { id in
      guard let own = versions[id]?.record.slot, slot == nil || own == slot else { return nil }
      return SlotVersion(slot: own, version: id)
    }
  }

  package mutating func releaseContents(of version: VersionID) {
    guard holding.remove(version) != nil else { return }
    for hash in versions[version]?.record.contents ?? [] {
      holders[hash]?.remove(version)
      if holders[hash]?.isEmpty == true { holders[hash] = nil }
      removeUnneeded(hash)
    }
  }

  private mutating func removeUnneeded(_ hash: ContentHash) {
    var next: ContentHash? = hash
    while let hash = next, holders[hash] == nil, leaning[hash] == nil, let content = contents[hash] {
      removeContent(hash)
      next = content.base
    }
  }

  /// Does nothing: it has no clock, and doesn't know when a content arrived.
  package mutating func removeStrayContents(before milliseconds: Int64) {}

  // MARK: Damage

  package func suspectContents() -> [ContentHash] { suspect.sorted() }
  package func isSuspect(_ hash: ContentHash) -> Bool { suspect.contains(hash) }
  package mutating func suspectContent(_ hash: ContentHash) {
    if contents[hash] != nil { suspect.insert(hash) }
  }
  package func heads(needing hash: ContentHash) -> [VersionID] {
    var needing: Set<ContentHash> = [hash]
    var open = [hash]
    while let base = open.popLast() {
      for content in contents.values where content.base == base && needing.insert(content.hash).inserted {
        open.append(content.hash)
      }
    }
    return Set(needing.flatMap { holders[$0] ?? [] }).subtracting(covered).sorted()
  }

  /// Damages the stored bytes of a content, as a disk may.
  package mutating func damageContent(_ hash: ContentHash) {
    guard var content = contents[hash], !content.bytes.isEmpty else { return }
    content.bytes[content.bytes.startIndex] ^= 0xFF
    contents[hash] = content
  }

  // MARK: Offers in parts

  package func heldOffers() -> [HeldOffer] {
    offers.map { id, held in
      HeldOffer(
        id: id, parts: held.parts.count, bytes: held.parts.reduce(0) { $0 + $1.size }, touchedMilliseconds: held.touched
      )
    }
  }
  package func items(of offer: OfferID) -> [OfferItems] { offers[offer]?.parts ?? [] }
  package mutating func hold(_ items: OfferItems, as part: OfferPart, now: Int64) {
    offers[part.offer, default: ([], now)].parts.append(items)
    offers[part.offer]?.touched = now
  }
  package mutating func dropOffer(_ offer: OfferID) { offers[offer] = nil }
  /// Takes over the unfinished offers of another state of this container.
  package mutating func holdOffers(of other: MemoryContainer) { offers = other.offers }

  // MARK: Devices

  package func reached() -> [DeviceID: UInt64] { reachedSeqs }
  package mutating func setReached(_ seq: UInt64, by device: DeviceID) { reachedSeqs[device] = seq == 0 ? nil : seq }
  package func setBacks(of device: DeviceID) -> DeviceSetBacks { setBacksByDevice[device] ?? DeviceSetBacks() }
  package mutating func setSetBacks(_ setBacks: DeviceSetBacks, of device: DeviceID) {
    setBacksByDevice[device] = setBacks.isEmpty ? nil : setBacks
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
        if let cell = cells[key], cell.seq == entry.seq {
          result.append(CloudChange(seq: entry.seq, item: .cell(cell.update)))
        }
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
  package func decision(on operation: OperationID) -> DecidedOperation? {
    decisions[operation].map {
      DecidedOperation(verdict: $0.verdict, fingerprint: $0.operation.fingerprint, chain: $0.chain)
    }
  }
  package mutating func recordDecision(
    _ verdict: WalletDecision.Verdict, on operation: WalletOperation, of chain: ChainID
  ) {
    if decisions[operation.id]?.verdict.isFinal == true { decidedTwice.append(operation.id) }
    decisions[operation.id] = (verdict, operation, chain)
  }
  package var paidClaims: Set<String> { Set(payments.keys) }
  package func isClaimPaid(_ key: String) -> Bool { payments[key] != nil }
  package mutating func markClaimPaid(_ key: String, _ payment: ClaimPayment?) { payments[key] = .some(payment) }
  package func payments(limit: Int) -> [WalletVoucher.Claim] { Array(payments.claims.prefix(limit)) }
  package func isVoucherPaid(_ chain: ChainID, of bank: ContainerID) -> Bool {
    paidVouchers[bank]?.contains(chain) ?? false
  }
  package mutating func markVoucherPaid(_ chain: ChainID, of bank: ContainerID) {
    paidVouchers[bank, default: []].insert(chain)
  }
  package func vouchedClaim(_ key: String, by bank: ContainerID) -> Int64? { vouchedClaims[bank]?[key] }
  package mutating func setVouchedClaim(_ key: String, by bank: ContainerID, left: Int64) {
    vouchedClaims[bank, default: [:]][key] = left
  }
  package func decidedOperation(_ id: OperationID) -> WalletOperation? { decisions[id]?.operation }
  package func order(_ id: OperationID) -> BankOrder? { orders.first { $0.id == id } }
  package func orders(after number: UInt64, limit: Int) -> [NumberedOrder] {
    orders.enumerated().dropFirst(Int(clamping: number)).prefix(limit)
      .map { NumberedOrder(number: UInt64($0.offset + 1), order: $0.element) }
  }
  package mutating func recordOrder(_ order: NumberedOrder) { orders.append(order.order) }
  package func goods(changedAfter number: UInt64, limit: Int) -> [NumberedGood] {
    let changed = theGoods.values.filter { $0.number > number }.sorted { ($0.number, $0.name) < ($1.number, $1.name) }
    guard let last = changed.prefix(limit).last else { return [] }
    return changed.filter { $0.number <= last.number }
  }
  package mutating func addGood(_ name: String, _ count: Int64, number: UInt64) {
    theGoods[name] = NumberedGood(name: name, count: max(0, (theGoods[name]?.count ?? 0) + count), number: number)
  }
  package func closedChain(_ id: ChainID) -> BankState.ClosedChain? { closedChains[id] }
  package mutating func recordClosedChain(_ chain: BankState.ClosedChain, _ id: ChainID) { closedChains[id] = chain }
  package func voucher(of chain: ChainID) -> WalletVoucher? { vouchers[chain] }
  package mutating func recordVoucher(_ voucher: WalletVoucher) { vouchers[voucher.chain] = voucher }
}
