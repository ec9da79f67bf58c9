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
  /// Keeps the encoding, unread. If the content is here already, the one that is here stays.
  mutating func putContent(_ content: EncodedContent) throws

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
