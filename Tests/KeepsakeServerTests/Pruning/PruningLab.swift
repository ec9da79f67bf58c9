#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

@testable import KeepsakeServer

/// A player's devices and a cloud in SQLite, by a clock that the test sets.
struct PruningLab {
  /// A device with all records that it ever got.
  struct Player {
    var cursor = KeepsakeReplication.Cursor.start
    private(set) var records: [VersionID: VersionRecord] = [:]
    private var covered: Set<VersionID> = []
    private var uncovered: Set<VersionID> = []
    var unsent: [(record: VersionRecord, content: EncodedContent)] = []
    var exchanges = 0
    var restarts = 0
    /// Its last save.
    var last: (version: VersionID, content: ContentHash, depth: Int)?

    var heads: [VersionID] { uncovered.sorted() }

    mutating func add(_ record: VersionRecord) {
      records[record.id] = records[record.id]?.joined(with: record) ?? record
      covered.formUnion(record.covers)
      uncovered.subtract(record.covers)
      if !covered.contains(record.id) { uncovered.insert(record.id) }
    }
  }

  static let day: Int64 = 86_400_000
  static let container = ContainerID(high: 3, low: 1)

  let storage: SQLiteCloudStorage
  let database: URL
  var random = SeededGenerator(seed: 11)
  var players: [Player]
  var now: Int64 = 1_735_689_600_000
  var rules = PruningRules()
  var quota: Int64?
  private var number: UInt64 = 0

  init(in folder: URL, players count: Int) throws {
    let contents = folder.appendingPathComponent("contents")
    try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
    database = folder.appendingPathComponent("cloud.sqlite")
    storage = try SQLiteCloudStorage(database: database, contents: contents)
    players = Array(repeating: Player(), count: count)
  }

  static func id(_ index: Int) -> DeviceID { DeviceID(high: 0, low: UInt64(index + 1)) }

  /// Saves over everything that the player sees: every twentieth time in full, else as a delta.
  @discardableResult
  mutating func save(_ index: Int, slot: String = "main", deltaBytes: Int = 1_200, tombstone: Bool = false) -> VersionID
  {
    number += 1
    var covers = Set(players[index].heads.filter { players[index].records[$0]?.slot == slot })
    for unsent in players[index].unsent where covers.contains(unsent.record.id) {
      covers.formUnion(unsent.record.covers)
    }
    let hash = ContentHash(of: Data("\(random.next())".utf8))
    // A delta has the save as its base that it replaces, if that is the player's own.
    let base = players[index].last.flatMap { covers == [$0.version] && $0.depth < 19 ? $0 : nil }
    let depth = base.map { $0.depth + 1 } ?? 0
    let bytes = base == nil ? deltaBytes * 5 : deltaBytes
    let content = EncodedContent(
      hash: hash, length: 20_000, base: base?.content,
      bytes: Data((0..<bytes / 8).flatMap { _ in withUnsafeBytes(of: random.next(), Array.init) }))
    let record = VersionRecord(
      id: VersionID(using: &random), slot: slot, covers: covers.sorted(), contents: tombstone ? [] : [hash],
      length: tombstone ? 0 : 20_000, metadata: SaveMetadata(playtime: Double(number), progress: Double(number)),
      savedAtMilliseconds: now, writer: WriterID(UInt64(index + 1)), provisional: false, tombstone: tombstone)
    players[index].add(record)
    players[index].last = tombstone ? nil : (record.id, hash, depth)
    players[index].unsent.append((record, content))
    return record.id
  }

  mutating func sync(_ index: Int) async throws {
    repeat {
      let cursor = players[index].cursor
      let sent = cursor.ahead == nil ? players[index].unsent : []
      let request = ExchangeRequest(
        cursor: cursor, versions: sent.map(\.record),
        contents: sent.filter { !$0.record.tombstone }.map(\.content), limit: ExchangeRules.maximumChanges)
      let (time, device, quota, seed) = (now, Self.id(index), quota, random.next())
      let reads = try CloudAcceptance.reads(of: request, from: device, hasQuota: quota != nil)
      let response = try await storage.decide(on: Self.container, reading: reads) { container in
        try container.recordVisit(
          WriteSet.Visit(player: PlayerID(high: 0, low: 1), app: Data([1]), milliseconds: time), of: device,
          every: ServerLimits.visitMilliseconds)
        var source = SeededGenerator(seed: seed)
        return try CloudAcceptance.exchange(
          request, from: device, now: time, quota: quota, in: &container, using: &source)
      }
      players[index].exchanges += 1
      players[index].cursor = response.cursor
      if response.restart { players[index].restarts += 1 }
      for case .version(let record) in response.changes.map(\.item) { players[index].add(record) }
      switch response.outcome {
      case .accepted: players[index].unsent = []
      case nil: break
      case let other: throw LabError(message: "\(String(describing: other))")
      }
      if !response.more { return }
    } while true
  }

  /// Prunes as the service does, without its pauses.
  @discardableResult
  func prune() async throws -> (versions: Int, ids: Int) {
    var place: CloudAcceptance.PruningStep.Place? = .start
    var done = (versions: 0, ids: 0)
    while let from = place {
      let (step, _) = try await storage.prune(Self.container, from: from, under: rules, now: now)
      done = (done.versions + step.versions, done.ids + step.ids)
      place = step.next
    }
    return done
  }

  /// The bytes of the database, without pages that are free.
  func databaseBytes() async throws -> Int {
    try await storage.pool.writeWithoutTransaction { db in
      _ = try db.checkpoint(.truncate)
      let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
      let free = try Int.fetchOne(db, sql: "PRAGMA freelist_count") ?? 0
      return (pages - free) * (try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0)
    }
  }

  /// Checks that the database is whole, and keeps nothing that nothing needs.
  static func checkDatabase(_ storage: SQLiteCloudStorage) async throws {
    let (integrity, heads, contents) = try await storage.pool.read { db in
      (
        try String.fetchOne(db, sql: "PRAGMA integrity_check"),
        try Int.fetchOne(db, sql: "SELECT count(*) FROM head WHERE version NOT IN (SELECT number FROM version)"),
        try Int.fetchOne(db, sql: "SELECT count(*) FROM content WHERE holders = 0 AND leaning = 0")
      )
    }
    #expect(integrity == "ok" && heads == 0 && contents == 0)
  }

  /// Everything that the cloud has of the slot.
  func snapshot(slot: String = "main") async throws -> Snapshot {
    var reads = ReadSet()
    (reads.histories, reads.wholeRoom) = ([ExactText(slot)], true)
    return try await storage.load(reads, of: Self.container)
  }

  /// The bytes of heads and of the history that the rules keep: contents with their bases, and records.
  func keptByRulesBytes(slot: String = "main") async throws -> Int {
    let snapshot = try await snapshot(slot: slot)
    let holding = snapshot.room.holders.keys.compactMap { snapshot.versions[$0] }.sorted { $0.accepted > $1.accepted }
    let kept = zip(holding, HistoryRules.standard.kept(holding.map(\.record.savedAtMilliseconds))).filter(\.1).map(\.0)
    let heads = snapshot.versions.values.filter { snapshot.coverage[$0.record.id] == false }
    var open = (kept + heads).flatMap(\.record.contents)
    var seen: Set<ContentHash> = []
    var bytes = kept.count * 200
    while let hash = open.popLast() {
      guard seen.insert(hash).inserted, let content = snapshot.room.contents[hash] else { continue }
      bytes += Int(content.size) + 100
      if let base = content.base { open.append(base) }
    }
    return bytes
  }

  private struct LabError: Error {
    var message: String
  }
}
#endif
