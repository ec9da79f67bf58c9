package import Foundation

/// What a decision changes in a container: storage commits all of it or nothing.
package struct WriteSet: Sendable {
  /// A content to keep.
  package struct Content: Sendable {
    package enum Bytes: Sendable {
      case inline(Data)
      /// Stored already, under this name, as this many bytes.
      case stored(name: String, count: Int)

      package var count: Int {
        switch self {
        case .inline(let data): data.count
        case .stored(_, let count): count
        }
      }
    }
    package var hash: ContentHash
    package var length: Int
    package var base: ContentHash?
    package var bytes: Bytes

    package init(hash: ContentHash, length: Int, base: ContentHash?, bytes: Bytes) {
      (self.hash, self.length, self.base, self.bytes) = (hash, length, base, bytes)
    }
  }

  /// A version that is new, or whose record or seq has changed.
  package struct Version: Sendable {
    package var version: SequencedVersion
    package var isHead: Bool
    /// Whether it holds its contents from now on.
    package var holds: Bool
    /// Whether the container may have it already, so that this replaces it.
    package var isStored: Bool
    /// Whether the container may know it as covered, without having it.
    package var wasCovered: Bool
  }

  /// What is recorded of the requesting device.
  package struct Device: Sendable {
    package var id: DeviceID
    /// Whose it is and when it was seen; nil if that stays as it is.
    package var visit: Visit?
    package var reached: UInt64?
    /// Empty to remove what is recorded; nil if that stays as it is.
    package var setBacks: DeviceSetBacks?
    /// Whether the device is marked for one more time that its store went back.
    package var isSetBack = false
    package var chain: ChainID?
  }

  /// A device's visit.
  package struct Visit: Hashable, Sendable {
    package var player: PlayerID
    /// The app's bytes.
    package var app: Data
    package var milliseconds: Int64

    package init(player: PlayerID, app: Data, milliseconds: Int64) {
      (self.player, self.app, self.milliseconds) = (player, app, milliseconds)
    }
  }

  /// Marks to forget.
  package struct ForgottenMarks: Sendable {
    /// Those of seqs up to this one, but not those of newest changes of cells and versions.
    package var through: UInt64
    /// Where marks stay besides.
    package var kept: [ClosedRange<UInt64>]

    /// The seqs whose marks go, from the first to the last: what is between those that stay.
    package var ranges: [ClosedRange<UInt64>] {
      guard through > 0 else { return [] }
      var ranges: [ClosedRange<UInt64>] = []
      var first: UInt64 = 1
      for kept in kept.sorted(by: { $0.lowerBound < $1.lowerBound }) {
        if kept.lowerBound > first { ranges.append(first...min(kept.lowerBound - 1, through)) }
        first = max(first, kept.upperBound + 1)
        guard first <= through else { return ranges }
      }
      return ranges + [first...through]
    }
  }

  /// A decision of the bank.
  package struct Decision: Sendable {
    package var verdict: WalletDecision.Verdict
    package var operation: WalletOperation
    package var chain: ChainID
  }

  /// A part of an offer.
  package struct Part: Sendable {
    package var part: OfferPart
    package var items: OfferItems
    package var now: Int64
  }

  /// What the decision takes as given: storage commits nothing unless it is so.
  package internal(set) var assumption: Snapshot.Assumption?
  /// Where the container stands after the commit; nil if it doesn't move.
  package internal(set) var position: Cursor?
  /// The mark of each change, in their order.
  package internal(set) var marks: [Cursor.Mark] = []
  package internal(set) var cells: [CellKey: SequencedCell] = [:]
  package internal(set) var versions: [VersionID: Version] = [:]
  package internal(set) var covered: Set<VersionID> = []
  /// Those of them that the container may not have: nothing but this is kept of them.
  package internal(set) var coveredApart: Set<VersionID> = []
  /// Covered versions to remove, with their slots.
  package internal(set) var removed: [VersionID: String] = [:]
  /// Versions whose covers are others now. Their seq stays.
  package internal(set) var rewritten: [VersionID: SequencedVersion] = [:]
  /// Ids that aren't known as covered any more.
  package internal(set) var forgotten: Set<VersionID> = []
  package internal(set) var forgottenMarks: ForgottenMarks?
  package internal(set) var recordedPosition: PastPosition?
  /// The times of past positions to forget.
  package internal(set) var forgottenPositions: Set<Int64> = []
  /// What the bytes kept for the player grow by.
  package internal(set) var used: Int64 = 0

  /// In order: a content comes after its base. Those to remove are removed before.
  package internal(set) var contents: [Content] = []
  package internal(set) var removedContents: Set<ContentHash> = []
  /// Versions that hold their contents no more, with what they held.
  package internal(set) var released: [VersionID: Snapshot.Room.Holder] = [:]
  package internal(set) var suspects: Set<ContentHash> = []

  package internal(set) var droppedOffers: Set<OfferID> = []
  package internal(set) var parts: [Part] = []

  package internal(set) var device: Device?
  /// A device to remove, with when.
  package internal(set) var retired: (device: DeviceID, isLeaving: Bool, now: Int64)?

  package internal(set) var bank: BankState?
  /// In their order; several may be about one operation.
  package internal(set) var decisions: [Decision] = []
  package internal(set) var claims: [(key: String, payment: ClaimPayment?)] = []
  package internal(set) var paidVouchers: Set<BankReads.Voucher> = []
  package internal(set) var vouchedClaims: [BankReads.VouchedClaim: Int64] = [:]
  package internal(set) var orders: [NumberedOrder] = []
  package internal(set) var goods: [ExactText: NumberedGood] = [:]
  package internal(set) var closedChains: [(id: ChainID, chain: BankState.ClosedChain)] = []
  package internal(set) var vouchers: [WalletVoucher] = []
  package internal(set) var receipt: Receipt?

  package init() {}

  package var isEmpty: Bool { work == 0 }

  /// Whether committing this shows that what was taken as given is so: each item that was thought to be new is added.
  package var showsAssumption: Bool {
    guard let assumption else { return true }
    return assumption.newVersions.isSubset(of: versions.keys)
      && assumption.newContents.isSubset(of: contents.map(\.hash))
  }

  /// Whether this does nothing but add items, in place of others or beside them, and note where their device is.
  package var isOrdinary: Bool {
    var rest = self
    (rest.position, rest.marks, rest.cells, rest.versions, rest.contents) = (nil, [], [:], [:], [])
    (rest.covered, rest.coveredApart) = ([], [])
    if let device, device.setBacks == nil, device.chain == nil { rest.device = nil }
    return rest.isEmpty
  }

  /// How many rows are written, roughly, where a row is about a kibibyte at most: what committing it costs.
  package var work: Int {
    let items =
      marks.count + cells.count + versions.count + covered.count + removedContents.count + released.count
      + suspects.count + droppedOffers.count + parts.count
    let pruning = removed.count + rewritten.count + forgotten.count + forgottenPositions.count
    let bank =
      decisions.count + claims.count + paidVouchers.count + vouchedClaims.count + orders.count + goods.count
      + closedChains.count + vouchers.count
    let single = [
      position != nil, device != nil, retired != nil, self.bank != nil, receipt != nil, forgottenMarks != nil,
      recordedPosition != nil,
    ].count { $0 }
    let bytes = contents.reduce(0) { sum, content in
      guard case .inline(let data) = content.bytes else { return sum + 1 }
      return sum + 1 + data.count / 1_024
    }
    return items + pruning + bank + single + bytes + parts.reduce(0) { $0 + $1.items.size / 1_024 }
  }
}
