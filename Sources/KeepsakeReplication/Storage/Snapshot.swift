/// What was loaded of a container, as of one moment: everything here is from the same revision.
package struct Snapshot: Sendable {
  /// The requesting device.
  package struct Device: Hashable, Sendable {
    /// Whether it was removed.
    package var isRetired = false
    /// When it was last seen, in milliseconds since 1970; nil for a device that isn't known.
    package var seenMilliseconds: Int64?
    package var reached: UInt64 = 0
    package var setBacks = DeviceSetBacks()
    /// Those of its chains that were asked for.
    package var chains: Set<ChainID> = []

    package init() {}
  }

  /// What is kept of a content beside its bytes.
  package struct Content: Hashable, Sendable {
    package var base: ContentHash?
    /// The frame's bytes.
    package var size: Int64
    package var isSuspect: Bool
    /// Whether its bytes have been lost.
    package var isLost: Bool

    package init(base: ContentHash?, size: Int64, isSuspect: Bool = false, isLost: Bool = false) {
      (self.base, self.size, self.isSuspect, self.isLost) = (base, size, isSuspect, isLost)
    }
  }

  /// Changes after a seq.
  package struct Changes: Sendable {
    package var list: [CloudChange] = []
    package var marks: [UInt64: UInt64] = [:]
    /// Up to where they are all here.
    package var through: UInt64

    package init(through: UInt64) { self.through = through }
  }

  /// What holds contents, as far as it was asked for.
  package struct Room: Sendable {
    package struct Content: Hashable, Sendable {
      package var base: ContentHash?
      package var size: Int64
      /// When it arrived, in milliseconds since 1970.
      package var takenMilliseconds: Int64
      /// How many versions hold it, and how many contents have it as their base.
      package var holders: Int
      package var leaning: Int

      package init(base: ContentHash?, size: Int64, takenMilliseconds: Int64, holders: Int, leaning: Int) {
        (self.base, self.size, self.takenMilliseconds) = (base, size, takenMilliseconds)
        (self.holders, self.leaning) = (holders, leaning)
      }
    }
    /// The contents that a version holds.
    package struct Holder: Hashable, Sendable {
      package var slot: String
      package var contents: Set<ContentHash>

      package init(slot: String, contents: Set<ContentHash>) { (self.slot, self.contents) = (slot, contents) }
    }
    package var holders: [VersionID: Holder] = [:]
    package var contents: [ContentHash: Content] = [:]
  }

  /// What was taken as given instead of being read.
  package struct Assumption: Hashable, Sendable {
    /// Where the container is: that of this revision, and not one of another history that has come as far.
    package var position: Cursor
    /// Versions that the container neither has nor knows as covered.
    package var newVersions: Set<VersionID>
    /// Contents that aren't here.
    package var newContents: Set<ContentHash>
    /// How many connections to the database had been made when the snapshot was read. A later one may be to a database
    /// that took over without the newest commits.
    package var connections = 0

    package init(position: Cursor, newVersions: Set<VersionID>, newContents: Set<ContentHash>) {
      (self.position, self.newVersions, self.newContents) = (position, newVersions, newContents)
    }
  }

  /// Grows with every commit. A commit names the revision on which its decision rests.
  package var revision: UInt64
  /// Set for a snapshot that is remembered (``RememberedContainer``) and not loaded.
  package var assumption: Assumption?
  /// Whether everything of the player was deleted.
  package var isDeleted = false
  /// What was loaded: what was asked for, and what came with it.
  package var known: ReadSet

  package var position: Cursor
  package var device: Device?
  package var reached: [DeviceID: UInt64] = [:]
  package var marks: [UInt64: UInt64] = [:]
  package var changes: Changes?

  package var cells: [CellKey: SequencedCell] = [:]
  package var versions: [VersionID: SequencedVersion] = [:]
  package var slotsOfVersions: [VersionID: String] = [:]
  /// Whether versions are covered.
  package var coverage: [VersionID: Bool] = [:]
  package var heads: [ExactText: [VersionID]] = [:]
  package var slotNames: [ExactText] = []
  package var visits: [DeviceID: DeviceVisits] = [:]
  package var pastPositions: [PastPosition] = []
  /// Ids of versions that were pruned: loaded with the past positions.
  package var pruned: Set<VersionID> = []

  package var contents: [ContentHash: Content] = [:]
  package var frames: [ContentHash: EncodedContent] = [:]
  package var suspects: [ContentHash] = []
  package var needing: [ContentHash: [VersionID]] = [:]
  package var used: Int64 = 0
  package var room = Room()

  package var offers: [HeldOffer] = []
  package var parts: [OfferID: [OfferItems]] = [:]

  // The bank.
  package var bank = BankState()
  package var decisions: [OperationID: DecidedOperation] = [:]
  package var operations: [OperationID: WalletOperation] = [:]
  package var paidClaims: Set<ExactText> = []
  package var payments: [WalletVoucher.Claim] = []
  package var paidVouchers: Set<BankReads.Voucher> = []
  package var vouchedClaims: [BankReads.VouchedClaim: Int64] = [:]
  package var orders: [OperationID: BankOrder] = [:]
  package var ordersAfter: [NumberedOrder] = []
  package var goods: [ExactText: Int64] = [:]
  package var goodsAfter: [NumberedGood] = []
  package var closedChains: [ChainID: BankState.ClosedChain] = [:]
  package var vouchers: [ChainID: WalletVoucher] = [:]
  /// The container whose player the receipt was paid to; nil if it wasn't paid.
  package var receiptHolder: ContainerID?

  /// The bugs that a test planted; none in any production storage.
  package var faults = Faults()

  package init(revision: UInt64, position: Cursor, known: ReadSet) {
    (self.revision, self.position, self.known) = (revision, position, known)
  }

  /// Adds a version that was loaded.
  package mutating func add(_ version: SequencedVersion, isCovered: Bool) {
    let id = version.record.id
    versions[id] = version
    known.versions.insert(id)
    coverage[id] = isCovered
  }
}
