#if Cloud
import Foundation
import KeepsakeArchive
import KeepsakeInspection
import KeepsakeReplication
import KeepsakeStore

/// One version as commands show it.
struct VersionReport: Codable, Hashable {
  var id: String
  var savedAt: String
  var savedAtMilliseconds: Int64
  /// The size in bytes, uncompressed.
  var bytes: Int
  /// The hash of the bytes if they are one content, as files are.
  var sha256: String?
  var contents: [String]
  /// Whether the contents are in the store. Whether they are undamaged is only known once they are read.
  var downloaded: Bool
  var head: Bool
  var acknowledged: Bool
  var provisional: Bool
  var tombstone: Bool
  /// Whether it is kept regardless of the rules for history.
  var pinned: Bool
  var covers: [String]
  /// The opening of a store that made it.
  var writer: String
  /// The name of the device that made it, if that is recorded.
  var device: String?
  var title: String?
  var playtime: Double?
  var progress: Double?

  init(_ version: StoredVersion, isHead: Bool, isPinned: Bool, in transaction: StoreTransaction) throws {
    let record = version.record
    id = record.id.description
    savedAt = TimeText.iso(milliseconds: record.savedAtMilliseconds)
    savedAtMilliseconds = record.savedAtMilliseconds
    bytes = record.length
    sha256 = record.contents.count == 1 ? record.contents[0].description : nil
    contents = record.contents.map(\.description)
    downloaded =
      try !transaction.isNotDownloaded(record) && record.contents.allSatisfy { try transaction.hasContent($0) }
    head = isHead
    acknowledged = version.acknowledged
    provisional = record.provisional
    tombstone = record.tombstone
    pinned = isPinned
    covers = record.covers.map(\.description)
    writer = record.writer.description
    device = record.metadata.device
    title = record.metadata.title
    playtime = record.metadata.playtime
    progress = record.metadata.progress
  }
}

/// One slot: its heads that are only in the cloud, then its history that is kept, newest first.
struct SlotReport: Codable, Hashable {
  /// The name that people use and commands take: for a file that the game tracks, `tracked:` and the file's name.
  var slot: String
  /// Whether it stays on this device.
  var local: Bool
  /// The slot key in the store, if it differs.
  var slotKey: String?
  var heads: [String]
  /// Whether several devices changed it, and no version covers both sides yet.
  var conflict: Bool
  var versions: [VersionReport]

  /// - Parameter key: The slot key in the store.
  init(_ key: String, in transaction: StoreTransaction) throws {
    slot = SlotName.shown(key)
    local = SlotKey(text: key).isLocal
    slotKey = slot == key ? nil : key
    let view = try Resolution.view(of: key, in: transaction, policy: .newest)
    // The winner first; those with the same bytes as another, and deletions, last.
    let shown = view.heads.map(\.id)
    heads = (shown + view.parents.filter { !shown.contains($0) }).map(\.description)
    conflict = view.isConflict
    let known = try Set(transaction.heads(of: key))
    let pinned = try transaction.pinnedVersions(of: key)
    let history = try transaction.history(of: key)
    // Heads that are only in the cloud aren't part of it.
    let remote = try known.subtracting(history.map(\.record.id)).sorted().compactMap { try transaction.version($0) }
    versions = try (remote + history).map {
      try VersionReport(
        $0, isHead: known.contains($0.record.id), isPinned: pinned.contains($0.record.id), in: transaction)
    }
  }
}

/// Everything in a store, as `keepsake inspect` shows it.
struct StoreReport: Codable {
  struct Cloud: Codable {
    var container: String?
    var epoch: UInt64
    var seq: UInt64
    var caughtUp: Bool
    var lastFetched: String?
    var serverOffsetMilliseconds: Int64
  }
  struct Protection: Codable, Equatable {
    /// `signed` or `sealed`.
    var kind: String
    /// False if the secret wasn't given: signatures are then trusted.
    var checked: Bool
    /// Rows that failed verification when the game opened the store, and are kept.
    var quarantined: Int
  }
  struct Cell: Codable {
    var collection: String
    var key: String
    var generation: UInt64
    var value: CellValue
  }
  struct Preference: Codable, Hashable {
    var name: String
    /// Whether all of the player's devices share it.
    var synced: Bool
    /// As Swift writes it; nil if the value can't be read.
    var type: String?
    /// On one line, cut off if it is long; the error if it can't be read.
    var value: String
    /// The size of the archive.
    var bytes: Int
  }
  struct Scores: Codable, Equatable {
    var board: String
    /// `ascending` or `descending`.
    var order: String
    var scores: Int
    var players: Int
  }
  struct Waiting: Codable {
    var id: Int64
    var cells: [String]
    var versions: [String]
    var refusals: [Refusal]
  }
  struct Content: Codable {
    var hash: String
    /// The size in bytes, uncompressed.
    var bytes: Int
    var encodedBytes: Int
    /// `zstd`, or `zstd delta` against `base`.
    var encoding: String
    var base: String?
    var depth: Int
  }
  struct Money: Codable {
    var currency: String
    /// The player's, as last reported by the bank, with what was done here since.
    var total: Int64
    /// What this store may spend offline.
    var spendable: Int64
    var pending: Int64
  }

  /// The most waiting groups that are listed: more than a person would read. The rest is counted.
  static let maximumWaiting = 1_000

  var kind = "store"
  var path: String
  /// Nil without a seal.
  var seal: Protection?
  var cloud: Cloud
  var slots: [SlotReport]
  var cells: [Cell]
  var preferences: [Preference]
  var boards: [Scores]
  var waitingCount: Int
  var waiting: [Waiting]
  var stagedChanges: Int
  var contents: [Content]
  var plainBytes: Int64
  var encodedBytes: Int64
  var wallet: [Money]
  /// The game's own tables; nil if it has none, or if they can't be read.
  var records: [RecordsReader.Table]?
  /// Why they can't be read.
  var recordsProblem: String?

  init(_ transaction: StoreTransaction, of store: StoreReader, path: String) throws {
    self.path = path
    if store.seal != .none {
      seal = Protection(
        kind: store.seal.rawValue, checked: store.checksSeal, quarantined: try transaction.quarantinedCount())
    }
    let facts = try transaction.facts()
    cloud = Cloud(
      container: facts.container?.description, epoch: facts.cursor.epoch, seq: facts.cursor.seq,
      caughtUp: facts.caughtUp,
      lastFetched: facts.lastFetchedMilliseconds.map(TimeText.iso(milliseconds:)),
      serverOffsetMilliseconds: facts.serverOffsetMilliseconds)
    slots = try transaction.slots().map { try SlotReport($0, in: transaction) }
    cells = try transaction.cells(in: nil).map {
      Cell(collection: $0.key.collection, key: $0.key.key, generation: $0.state.generation, value: $0.state.value)
    }
    preferences = try Self.preferences(in: transaction)
    boards = try transaction.boards().map {
      Scores(board: $0.board, order: $0.order.rawValue, scores: $0.scores, players: $0.players)
    }
    waitingCount = try transaction.outboxCount()
    waiting = try transaction.outbox(limit: Self.maximumWaiting).map {
      Waiting(
        id: $0.id, cells: $0.cells.map(\.key.description), versions: $0.versions.map(\.description),
        refusals: $0.refusals)
    }
    stagedChanges = try transaction.staged().count
    contents = try transaction.contentSummaries().map {
      Content(
        hash: $0.hash.description, bytes: $0.length, encodedBytes: $0.encodedBytes,
        encoding: $0.base == nil ? "zstd" : "zstd delta", base: $0.base?.description, depth: $0.depth)
    }
    plainBytes = contents.reduce(0) { $0 &+ Int64($1.bytes) }
    encodedBytes = contents.reduce(0) { $0 &+ Int64($1.encodedBytes) }
    wallet = try Self.money(in: transaction)
  }

  /// Returns this device's own preferences, then the synced ones, which are cells as well.
  private static func preferences(in transaction: StoreTransaction) throws -> [Preference] {
    let local = try transaction.preferences().kept.map { row in
      do {
        return Preference(name: row.name, synced: false, archive: try row.bytes())
      } catch let error as StoreError where error.code == .damaged || error.code == .tampered {
        return Preference(name: row.name, synced: false, type: nil, value: error.message, bytes: row.size)
      }
    }
    let synced = try transaction.cells(in: "preferences").compactMap { cell -> Preference? in
      // An empty value means that the preference was removed.
      guard case .latest(_, .data(let archive)) = cell.state.value, !archive.isEmpty else { return nil }
      return Preference(name: cell.key.key, synced: true, archive: archive)
    }
    return local + synced
  }

  /// Adds the game's own tables. An error in reading them must not hide the rest.
  mutating func addRecords(beside store: URL) {
    do {
      records = try RecordsReader.open(in: Self.folder(of: store))?.tables()
    } catch {
      recordsProblem = ErrorReason.text(error)
    }
  }

  /// Returns the folder of a store, which may be given by its database.
  static func folder(of store: URL) -> URL {
    var isFolder: ObjCBool = false
    let exists = FileManager.default.fileExists(atPath: store.path, isDirectory: &isFolder)
    return exists && isFolder.boolValue ? store : store.deletingLastPathComponent()
  }

  private static func money(in transaction: StoreTransaction) throws -> [Money] {
    guard let state = try transaction.wallet() else { return [] }
    let wallet = Wallet(state)
    return wallet.currencies.map { currency in
      Money(
        currency: currency, total: wallet.total(currency), spendable: wallet.spendable(currency),
        pending: wallet.pending(currency))
    }
  }
}

extension StoreReport.Preference {
  fileprivate init(name: String, synced: Bool, archive: Data) {
    do {
      let inspection = try ArchiveInspection(of: archive)
      self.init(
        name: name, synced: synced, type: inspection.header.rootType, value: inspection.rootLine(), bytes: archive.count
      )
    } catch {
      self.init(
        name: name, synced: synced, type: nil, value: "can't be read: \(ErrorReason.text(error))", bytes: archive.count)
    }
  }
}
#endif
