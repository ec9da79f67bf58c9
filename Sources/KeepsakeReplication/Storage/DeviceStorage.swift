/// What a device's decisions read and write, inside one transaction that the caller opened: SQLite in a game, memory in
/// a simulation. Later reads see a change immediately; nothing is certain before the transaction commits.
package protocol DeviceStorage {
  // Facts
  func facts() throws -> DeviceFacts
  mutating func setFacts(_ facts: DeviceFacts) throws

  // Cells
  func cell(_ key: CellKey) throws -> CellState?
  /// Returns the cells of one collection, or of all, sorted by key.
  func cells(in collection: String?) throws -> [CellUpdate]
  mutating func setCell(_ update: CellUpdate) throws
  /// Returns the best score that is kept here under a key of `scores`, whether or not the cell holds it; nil if none
  /// is.
  func keptBest(for key: CellKey, _ order: ScoreOrder) throws -> BestScore?

  // Versions
  func version(_ id: VersionID) throws -> StoredVersion?
  /// Adds the version, or replaces what is known of it.
  mutating func putVersion(_ version: StoredVersion) throws
  /// Returns every slot that has a version, sorted by name.
  func slots() throws -> [String]
  /// Returns the versions of `slot` that no known version covers, sorted by id.
  func heads(of slot: String) throws -> [VersionID]
  func isCovered(_ id: VersionID) throws -> Bool
  /// Remembers forever that `id` is covered, whether or not the version itself is known.
  mutating func markCovered(_ id: VersionID) throws
  /// Returns whether what is saved in the slot stays on this device, so that no cloud gets any of it. Deletes are still
  /// sent, for a slot that left its cloud.
  func staysHere(_ slot: String) throws -> Bool
  /// Returns the versions that aren't acknowledged yet, sorted by id.
  func unacknowledgedVersions() throws -> [VersionID]
  /// Returns those of them that no other device can have yet, sorted by id.
  func unofferedVersions() throws -> [VersionID]
  /// Returns the heads that aren't downloaded because the game wants to ask for their contents, sorted by id.
  func notDownloadedVersions() throws -> [VersionID]
  /// Marks a head as not downloaded, or as one whose contents are here and kept.
  mutating func setNotDownloaded(_ isNotDownloaded: Bool, _ id: VersionID) throws

  // Contents
  func hasContent(_ hash: ContentHash) throws -> Bool
  /// Returns whether a content that is here has the bytes that its hash promises. Reads all of it.
  func isReadable(_ hash: ContentHash) throws -> Bool
  /// Returns the plain bytes of a content; nil if it isn't here.
  func contentLength(_ hash: ContentHash) throws -> Int?
  /// Returns how many bases the cloud has to decode for this content (0 for a full frame); nil if the cloud isn't known
  /// to have it.
  func cloudDepth(of hash: ContentHash) throws -> Int?
  mutating func setCloudDepth(_ depth: Int?, of hash: ContentHash) throws
  /// Forgets all cloud depths, because the cloud starts over.
  mutating func clearCloudDepths() throws
  /// Returns the content as it is sent: a delta against `base` if that saves bytes, else a full frame.
  func encoded(_ hash: ContentHash, against base: ContentHash?) throws -> EncodedContent
  /// Stores a content that was received. Its plain bytes are checked against its hash.
  mutating func receiveContent(_ content: EncodedContent) throws -> ContentReceipt

  // Outbox
  /// Returns what waits to be sent or acknowledged, oldest first, at most `limit` groups.
  func outbox(limit: Int) throws -> [OutboxGroup]
  func outboxCount() throws -> Int
  /// Returns the group that was appended last; nil if nothing waits. Every commit calls this, so it must not take
  /// longer when much waits.
  func newestOutboxGroup() throws -> OutboxGroup?
  /// Appends a group. The storage assigns its `id`, which is greater than all before.
  mutating func appendToOutbox(_ group: OutboxGroup) throws
  mutating func updateOutbox(_ group: OutboxGroup) throws
  mutating func removeFromOutbox(_ id: Int64) throws

  // Changes received but not yet shown
  func staged() throws -> [CloudChange]
  /// Returns whether there are any. Called for every exchange.
  func hasStaged() throws -> Bool
  mutating func stage(_ changes: [CloudChange]) throws
  mutating func clearStaged() throws

  // Wallet
  func wallet() throws -> WalletState?
  mutating func setWallet(_ state: WalletState) throws
  /// Returns the fingerprint of the operation that was performed here under this id, however long ago; nil if none was.
  func performedOperation(_ id: OperationID) throws -> UInt64?
  /// Returns whether a claim of this payment was ever performed here.
  func hasClaimed(_ key: String) throws -> Bool
  /// Returns the operations of the wallet's chain from this head to the last one that the bank acknowledged.
  func acknowledgedOperations(after head: ChainHead) throws -> AcknowledgedOperations
  /// Returns the operations in the ledger that count, oldest first, as far as they are kept: without those that no bank
  /// has decided, or that were declined.
  ///
  /// - Parameter includingChain: Whether those on the wallet's chain are among them.
  func settledOperations(includingChain: Bool) throws -> [WalletOperation]
  /// Records in the ledger what became of operations. Those whose outcome the game doesn't know yet are kept until it
  /// takes them.
  mutating func recordDecisions(_ decisions: [Wallet.Decided]) throws
  /// Records the bank's own operations in the ledger, and keeps them until the game takes them. One that is in the
  /// ledger already changes nothing. A refund's purchase is marked as refunded there.
  ///
  /// - Parameter areNews: Whether the game is to be told of them; if not, they are only recorded.
  mutating func recordOrders(_ orders: [BankOrder], areNews: Bool) throws
  /// Returns what goods the player has by the bank; none that are too damaged to be read, which the bank then sends
  /// again.
  func goods() throws -> PlayerGoods
  mutating func setGoods(_ goods: PlayerGoods) throws
  /// Returns the wallets of players that the store belonged to before, until their banks have settled them, in the
  /// order in which it left them.
  func formerWallets() throws -> [FormerWallet]
  mutating func setFormerWallets(_ wallets: [FormerWallet]) throws

  /// The bugs that a test planted; none in any production storage.
  var faults: Faults { get }
}

extension DeviceStorage {
  package var faults: Faults { Faults() }

  package func hasStaged() throws -> Bool { try !staged().isEmpty }
  package func staysHere(_ slot: String) throws -> Bool { false }

  /// Returns the contents of a version with their lengths. Contents that aren't here are assumed to share equally what
  /// is left of the version's length.
  package func parts(of record: VersionRecord) throws -> [ContentAlignment.Part] {
    // Another device, or a damaged row, may give any length.
    let whole = min(max(record.length, 0), ExchangeRules.maximumVersionBytes)
    if record.contents.count == 1 { return [ContentAlignment.Part(hash: record.contents[0], length: whole)] }
    let lengths = try record.contents.map(contentLength)
    let known = lengths.reduce(0) { $0 + ($1 ?? 0) }
    let missing = lengths.count { $0 == nil }
    return zip(record.contents, lengths).map { hash, length in
      ContentAlignment.Part(hash: hash, length: length ?? max(whole - known, 0) / missing)
    }
  }
}

/// The result of storing a received content.
package enum ContentReceipt: Hashable, Sendable {
  case stored
  /// Its base isn't here and has to be fetched first.
  case needsBase(ContentHash)
  /// The decoded bytes don't match the hash; nothing was stored.
  case damaged
}

/// The few facts that a store keeps about itself and its cloud.
package struct DeviceFacts: Hashable, Sendable, Codable {
  /// The container and cloud that the cursor belongs to; nil as long as the store has never been connected.
  package var container: ContainerID?
  package var cursor: Cursor
  /// The store has once shown everything that its cloud had.
  package var caughtUp: Bool
  /// Milliseconds to add to the device's clock to get the server's; 0 before the first response.
  package var serverOffsetMilliseconds: Int64
  /// When the cloud last responded, by the device's clock; nil if it never did.
  package var lastFetchedMilliseconds: Int64?
  /// How often what it holds joined another player's container; nil for never.
  package var moves: UInt64?
  /// What is staged is complete, including the contents that it needs, and kept back until the game takes it.
  package var hasArrivals: Bool
  /// Of the changes kept back: the versions that are shown without their contents.
  package var arrivalsNotDownloaded: [VersionID] = []
  /// The cloud refused this device the last time it was asked: what was certain there may be gone.
  package var isRefused = false
  /// The cloud has told this store that it went back to an older state, and hasn't yet responded to a request that
  /// confirms it.
  package var setBack: SetBack?
  /// The cloud has marked this device as set back, and wants its game to know.
  package var setBackMark: SetBackMark?
  /// The cloud's last response said that this device may only read.
  package var isReadOnly = false

  // The names on disk; two are older than the properties' names.
  private enum CodingKeys: String, CodingKey {
    case container, cursor, caughtUp, serverOffsetMilliseconds, moves, hasArrivals, isRefused
    case setBack, setBackMark, isReadOnly
    case lastFetchedMilliseconds = "lastHeardMilliseconds"
    case arrivalsNotDownloaded = "arrivalsDeferred"
  }

  package init(
    container: ContainerID? = nil, cursor: Cursor = .start, caughtUp: Bool = false, serverOffsetMilliseconds: Int64 = 0,
    lastFetchedMilliseconds: Int64? = nil, hasArrivals: Bool = false
  ) {
    self.container = container
    self.cursor = cursor
    self.caughtUp = caughtUp
    self.serverOffsetMilliseconds = serverOffsetMilliseconds
    self.lastFetchedMilliseconds = lastFetchedMilliseconds
    self.hasArrivals = hasArrivals
  }

  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    container = try values.decodeIfPresent(ContainerID.self, forKey: .container)
    cursor = try values.decode(Cursor.self, forKey: .cursor)
    caughtUp = try values.decode(Bool.self, forKey: .caughtUp)
    serverOffsetMilliseconds = try values.decode(Int64.self, forKey: .serverOffsetMilliseconds)
    lastFetchedMilliseconds = try values.decodeIfPresent(Int64.self, forKey: .lastFetchedMilliseconds)
    moves = try values.decodeIfPresent(UInt64.self, forKey: .moves)
    // Written by a store that didn't have this field yet.
    hasArrivals = try values.decodeIfPresent(Bool.self, forKey: .hasArrivals) ?? false
    arrivalsNotDownloaded = try values.decodeIfPresent([VersionID].self, forKey: .arrivalsNotDownloaded) ?? []
    isRefused = try values.decodeIfPresent(Bool.self, forKey: .isRefused) ?? false
    setBack = try values.decodeIfPresent(SetBack.self, forKey: .setBack)
    setBackMark = try values.decodeIfPresent(SetBackMark.self, forKey: .setBackMark)
    isReadOnly = try values.decodeIfPresent(Bool.self, forKey: .isReadOnly) ?? false
  }
}

/// What one commit, or several in a row, have to send to the cloud: kept until it is certain there, and applied there
/// as a whole.
package struct OutboxGroup: Hashable, Sendable {
  /// Assigned by the storage; 0 before that.
  package var id: Int64
  package var cells: [CellUpdate]
  package var versions: [VersionID]
  /// Why the cloud refused the group, if it did.
  package var refusals: [Refusal]
  /// The group doesn't come from commits, but is a piece of all that the store holds: it is sent together with
  /// everything else that waits, or other devices would see half of a checkpoint.
  package var isPiece: Bool

  package init(
    id: Int64 = 0, cells: [CellUpdate] = [], versions: [VersionID] = [], refusals: [Refusal] = [], isPiece: Bool = false
  ) {
    self.id = id
    self.cells = cells
    self.versions = versions
    self.refusals = refusals
    self.isPiece = isPiece
  }
}

extension OutboxGroup: Codable {
  private enum CodingKeys: String, CodingKey {
    case id, cells, versions, refusals, isPiece
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    id = try container.decode(Int64.self, forKey: .id)
    cells = try container.decode([CellUpdate].self, forKey: .cells)
    versions = try container.decode([VersionID].self, forKey: .versions)
    refusals = try container.decode([Refusal].self, forKey: .refusals)
    // Groups of older stores don't have this field.
    isPiece = try container.decodeFlag(forKey: .isPiece)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(id, forKey: .id)
    try container.encode(cells, forKey: .cells)
    try container.encode(versions, forKey: .versions)
    try container.encode(refusals, forKey: .refusals)
    try container.encodeIfTrue(isPiece, forKey: .isPiece)
  }
}
