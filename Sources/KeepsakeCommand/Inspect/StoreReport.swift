#if Cloud
import Foundation
import KeepsakeArchive
import KeepsakeInspection
import KeepsakeReplication
import KeepsakeStore

/// Everything in a store, as `keepsake inspect` shows it.
struct StoreReport: Codable {
  struct Cloud: Codable {
    var container: String?
    var epoch: UInt64
    var seq: UInt64
    var caughtUp: Bool
    var lastFetched: String?
    var lastFetchedMilliseconds: Int64?
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
    var scoreCount: Int
    var playerCount: Int
  }
  /// A commit that isn't in the cloud yet.
  struct Waiting: Codable {
    struct Cell: Codable {
      var collection: String
      var key: String
    }
    struct Version: Codable {
      var version: String
    }
    struct Refusal: Codable {
      /// The cell's key or the version's id, in words.
      var item: String
      var reason: String
      var message: String
      /// With the reason `quota`: how much room there is, how much of it is used, and what the refused items take.
      var limitBytes: Int64?
      var usedBytes: Int64?
      var neededBytes: Int64?
    }
    /// Its number on this device.
    var commit: Int64
    var cells: [Cell]
    var versions: [Version]
    var refusals: [Refusal]
  }
  struct Content: Codable {
    var sha256: String
    /// The size in bytes, uncompressed.
    var bytes: Int
    var encodedBytes: Int
    /// `zstd`, or `zstd delta` against `base`.
    var encoding: String
    var base: String?
    var depth: Int
  }
  struct Records: Codable {
    var name: String
    /// Nil if the rows can't be read.
    var rowCount: Int?
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
  var waitingCommits: Int
  var waiting: [Waiting]
  var stagedChanges: Int
  var contents: [Content]
  /// Of all contents.
  var bytes: Int64
  var encodedBytes: Int64
  var wallet: [Money]
  /// The game's own tables; nil if it has none, or if they can't be read.
  var records: [Records]?
  /// Why they can't be read.
  var recordsMessage: String?

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
      lastFetchedMilliseconds: facts.lastFetchedMilliseconds,
      serverOffsetMilliseconds: facts.serverOffsetMilliseconds)
    slots = try transaction.slots().map { try SlotReport($0, in: transaction) }
    cells = try transaction.cells(in: nil).map {
      Cell(collection: $0.key.collection, key: $0.key.key, generation: $0.state.generation, value: $0.state.value)
    }
    preferences = try Self.preferences(in: transaction)
    boards = try transaction.boards().map {
      Scores(board: $0.board, order: $0.order.rawValue, scoreCount: $0.scores, playerCount: $0.players)
    }
    waitingCommits = try transaction.outboxCount()
    waiting = try transaction.outbox(limit: Self.maximumWaiting).map(Waiting.init)
    stagedChanges = try transaction.staged().count
    contents = try transaction.contentSummaries().map {
      Content(
        sha256: $0.hash.description, bytes: $0.length, encodedBytes: $0.encodedBytes,
        encoding: $0.base == nil ? "zstd" : "zstd delta", base: $0.base?.description, depth: $0.depth)
    }
    bytes = contents.reduce(0) { $0 &+ Int64($1.bytes) }
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
      records = try RecordsReader.open(in: Self.folder(of: store))?.tables().map {
        Records(name: $0.name, rowCount: $0.rows)
      }
    } catch {
      recordsMessage = ErrorReason.text(error)
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

extension StoreReport.Waiting {
  fileprivate init(_ group: OutboxGroup) {
    commit = group.id
    cells = group.cells.map { Cell(collection: $0.key.collection, key: $0.key.key) }
    versions = group.versions.map { Version(version: $0.description) }
    refusals = group.refusals.map {
      Refusal(
        item: $0.item, reason: $0.reason.rawValue, message: $0.message, limitBytes: $0.quota?.limit,
        usedBytes: $0.quota?.used, neededBytes: $0.quota?.needed)
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
