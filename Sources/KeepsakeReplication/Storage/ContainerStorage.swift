/// What the cloud's acceptance reads and writes of one container, inside one transaction that the caller opened and in
/// which nobody else touches the container.
package protocol ContainerStorage {
  /// Epoch, newest seq and its mark; `seq` 0 with mark 0 in a new container.
  func position() throws -> Cursor
  /// Moves to `position`, whose seq is greater than all before; its mark stays readable for ever.
  mutating func advance(to position: Cursor) throws
  func mark(of seq: UInt64) throws -> UInt64?

  func cell(_ key: CellKey) throws -> SequencedCell?
  mutating func setCell(_ cell: SequencedCell) throws

  func version(_ id: VersionID) throws -> SequencedVersion?
  mutating func putVersion(_ version: SequencedVersion) throws
  /// The versions of `slot` that nothing known covers, sorted by id.
  func heads(of slot: String) throws -> [VersionID]
  func isCovered(_ id: VersionID) throws -> Bool
  mutating func markCovered(_ id: VersionID) throws

  func hasContent(_ hash: ContentHash) throws -> Bool
  /// As it was received; nil if it isn't here.
  func content(_ hash: ContentHash) throws -> EncodedContent?
  /// Keeps the encoding, unread. If the content is here already, the one that is here stays, unless that is suspect.
  mutating func putContent(_ content: EncodedContent) throws

  // Room. A container that knows no quota needs none of these.
  /// Bytes that are kept of this player: frames of contents, records of versions, cells.
  func usedBytes() throws -> Int64
  /// Versions that are covered and still hold their contents here; of one slot, or of all.
  func replacedHolders(in slot: String?) throws -> [SlotVersion]
  /// The version needs its contents no longer: those that nothing else needs go, with bases that only they needed.
  mutating func releaseContents(of version: VersionID) throws
  /// Lets go contents that came before this time and that no version was ever told to need.
  mutating func removeStrayContents(before milliseconds: Int64) throws

  // Damage
  /// Contents that a device found damaged and that weren't put again since, sorted. They are served, and count as not here.
  func suspectContents() throws -> [ContentHash]
  func isSuspect(_ hash: ContentHash) throws -> Bool
  /// Does nothing for a content that isn't here.
  mutating func suspectContent(_ hash: ContentHash) throws
  /// The heads that need this content, as their own or as a base, sorted by id.
  func heads(needing hash: ContentHash) throws -> [VersionID]

  // Offers in parts
  /// What is kept of offers that aren't whole yet, in no order.
  func heldOffers() throws -> [HeldOffer]
  /// The parts of an offer that are kept, in their order.
  func items(of offer: OfferID) throws -> [OfferItems]
  /// Keeps a part, the next one of its offer.
  mutating func hold(_ items: OfferItems, as part: OfferPart, now: Int64) throws
  /// Lets go all parts of an offer.
  mutating func dropOffer(_ offer: OfferID) throws

  // Devices
  /// How far each device has come, by its own last word; without those that never had one, or start again.
  func reached() throws -> [DeviceID: UInt64]
  /// Takes it down, and writes nothing if it is so already. No change of the container.
  mutating func setReached(_ seq: UInt64, by device: DeviceID) throws

  /// Cells and versions whose seq is greater than `seq`, in that order, at most `limit`.
  func changes(after seq: UInt64, limit: Int) throws -> [CloudChange]

  func bank() throws -> BankState
  mutating func setBank(_ state: BankState) throws
  /// What was decided about an operation; nil if it was never seen.
  func decision(on operation: OperationID) throws -> WalletDecision.Verdict?
  mutating func recordDecision(_ verdict: WalletDecision.Verdict, on operation: WalletOperation, of chain: ChainID) throws
  /// The operation at this number of this chain, for finding where copies of a chain part.
  func chainHead(of chain: ChainID, at count: UInt64) throws -> ChainHead?
  mutating func recordChainHead(_ head: ChainHead, of chain: ChainID) throws

  /// The bugs that a test planted; none in any storage of the product.
  var faults: Faults { get }
}

extension ContainerStorage {
  package var faults: Faults { Faults() }

  // What a folder that devices share does: it has no quota, and its contents are checked by whoever reads them.
  package func usedBytes() -> Int64 { 0 }
  package func replacedHolders(in slot: String?) -> [SlotVersion] { [] }
  package mutating func releaseContents(of version: VersionID) {}
  package mutating func removeStrayContents(before milliseconds: Int64) {}
  package func suspectContents() -> [ContentHash] { [] }
  package func isSuspect(_ hash: ContentHash) -> Bool { false }
  package mutating func suspectContent(_ hash: ContentHash) {}
  package func heads(needing hash: ContentHash) -> [VersionID] { [] }
  // It knows no devices either.
  package func reached() -> [DeviceID: UInt64] { [:] }
  package mutating func setReached(_ seq: UInt64, by device: DeviceID) {}
}

/// A version, and the slot that it is of.
package struct SlotVersion: Hashable, Sendable {
  package var slot: String
  package var version: VersionID

  package init(slot: String, version: VersionID) {
    self.slot = slot
    self.version = version
  }
}

/// A cell with the seq of its newest change.
package struct SequencedCell: Hashable, Sendable {
  package var update: CellUpdate
  package var seq: UInt64

  package init(update: CellUpdate, seq: UInt64) {
    self.update = update
    self.seq = seq
  }
}

/// A version with the seq of its acceptance.
package struct SequencedVersion: Hashable, Sendable {
  package var record: VersionRecord
  package var seq: UInt64

  package init(record: VersionRecord, seq: UInt64) {
    self.record = record
    self.seq = seq
  }
}
