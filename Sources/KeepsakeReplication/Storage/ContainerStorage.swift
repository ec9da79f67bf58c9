/// What the cloud's acceptance reads and writes of one container, inside one transaction that the caller opened and in
/// which nothing else accesses the container.
package protocol ContainerStorage: BankStorage, PruningStorage {
  /// Returns the epoch, the newest seq and its mark; seq and mark are 0 in a new container.
  func position() throws -> Cursor
  /// Moves to `position`, whose seq is greater than all before; its mark stays readable until it is
  /// forgotten (``PruningStorage/forgetMarks(through:butNot:)``).
  mutating func advance(to position: Cursor) throws
  func mark(of seq: UInt64) throws -> UInt64?

  func cell(_ key: CellKey) throws -> SequencedCell?
  mutating func setCell(_ cell: SequencedCell) throws

  func version(_ id: VersionID) throws -> SequencedVersion?
  /// Returns the slot of a version without its record.
  func slot(of id: VersionID) throws -> String?
  mutating func putVersion(_ version: SequencedVersion) throws
  /// Returns the versions of `slot` that no known version covers, sorted by id.
  func heads(of slot: String) throws -> [VersionID]
  func isCovered(_ id: VersionID) throws -> Bool
  mutating func markCovered(_ id: VersionID) throws

  func hasContent(_ hash: ContentHash) throws -> Bool
  /// Returns the content as it was received; nil if it isn't here, or if it is too large for a response.
  func content(_ hash: ContentHash) throws -> EncodedContent?
  /// Stores the encoding without decoding it. A content that is here already stays as it is, unless it is suspect.
  mutating func putContent(_ content: EncodedContent) throws

  // Room. A container without a quota needs none of these.
  /// Returns the bytes kept for this player: frames of contents, records of versions, cells.
  func usedBytes() throws -> Int64
  /// Returns the versions that are covered and still hold their contents here, of one slot or of all.
  func replacedHolders(in slot: String?) throws -> [SlotVersion]
  /// Releases the contents of a version that doesn't need them any more: those that nothing else needs are removed,
  /// with bases that only they needed.
  mutating func releaseContents(of version: VersionID) throws
  /// Removes contents that arrived before this time and that no version has ever named.
  mutating func removeStrayContents(before milliseconds: Int64) throws

  // Damage
  /// Returns the contents that a device found damaged and that weren't uploaded again since, sorted. They are served,
  /// but don't count as here.
  func suspectContents() throws -> [ContentHash]
  func isSuspect(_ hash: ContentHash) throws -> Bool
  /// Marks a content as suspect; does nothing for one that isn't here.
  mutating func suspectContent(_ hash: ContentHash) throws
  /// Returns the heads that need this content, directly or as a base, sorted by id.
  func heads(needing hash: ContentHash) throws -> [VersionID]

  // Reading ahead
  /// Reports what is going to be read, so that storage that loads before it decides loads all of it at once.
  func need(_ reads: ReadSet) throws

  // Offers in parts
  /// Returns what is kept of unfinished offers, in no particular order.
  func heldOffers() throws -> [HeldOffer]
  /// Returns the parts of an offer that are kept, in order.
  func items(of offer: OfferID) throws -> [OfferItems]
  /// Keeps a part, which is the next one of its offer.
  mutating func hold(_ items: OfferItems, as part: OfferPart, now: Int64) throws
  /// Removes all parts of an offer.
  mutating func dropOffer(_ offer: OfferID) throws

  // Devices
  /// Returns how far each device has come according to its latest report, without devices that never reported, or that
  /// start over.
  func reached() throws -> [DeviceID: UInt64]
  /// Records how far a device has come; writes nothing if that is recorded already. This isn't a change of the
  /// container.
  mutating func setReached(_ seq: UInt64, by device: DeviceID) throws
  /// Returns how far one device has come; 0 if it never reported, or starts over.
  func reached(by device: DeviceID) throws -> UInt64
  /// Returns what is recorded of a device whose store went back to an older state; nothing of any other.
  func setBacks(of device: DeviceID) throws -> DeviceSetBacks
  /// Records that, or removes it if it is empty. This isn't a change of the container.
  mutating func setSetBacks(_ setBacks: DeviceSetBacks, of device: DeviceID) throws

  /// Returns cells and versions whose seq is greater than `seq`, in that order, at most `limit`; fewer don't mean that
  /// they are the last ones, none do.
  func changes(after seq: UInt64, limit: Int) throws -> [CloudChange]

  func bank() throws -> BankState
  mutating func setBank(_ state: BankState) throws

  /// The bugs that a test planted; none in any production storage.
  var faults: Faults { get }
}

extension ContainerStorage {
  package var faults: Faults { Faults() }
  package func slot(of id: VersionID) throws -> String? { try version(id)?.record.slot }
  package func need(_ reads: ReadSet) {}

  // The behaviour of a folder that devices share: it has no quota, and its contents are checked by the devices that
  // read them.
  package func usedBytes() -> Int64 { 0 }
  package func replacedHolders(in slot: String?) -> [SlotVersion] { [] }
  package mutating func releaseContents(of version: VersionID) {}
  package mutating func removeStrayContents(before milliseconds: Int64) {}
  package func suspectContents() -> [ContentHash] { [] }
  package func isSuspect(_ hash: ContentHash) -> Bool { false }
  package mutating func suspectContent(_ hash: ContentHash) {}
  package func heads(needing hash: ContentHash) -> [VersionID] { [] }
  // It doesn't know devices either.
  package func reached() -> [DeviceID: UInt64] { [:] }
  package mutating func setReached(_ seq: UInt64, by device: DeviceID) {}
  package func reached(by device: DeviceID) throws -> UInt64 { try reached()[device] ?? 0 }
  package func setBacks(of device: DeviceID) -> DeviceSetBacks { DeviceSetBacks() }
  package mutating func setSetBacks(_ setBacks: DeviceSetBacks, of device: DeviceID) {}
}

/// A version and its slot.
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

/// A version with the seq of its newest change.
package struct SequencedVersion: Hashable, Sendable {
  package var record: VersionRecord
  package var seq: UInt64
  /// The seq with which it was accepted first.
  package var accepted: UInt64

  /// - Parameter accepted: The seq with which it was accepted first; nil if nothing has changed since.
  package init(record: VersionRecord, seq: UInt64, accepted: UInt64? = nil) {
    self.record = record
    self.seq = seq
    self.accepted = accepted ?? seq
  }
}
