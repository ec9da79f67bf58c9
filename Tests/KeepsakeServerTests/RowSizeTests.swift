#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

// GRDB has a type of this name, too.
import struct KeepsakeReplication.Cursor

@testable import KeepsakeServer

/// What saves cost on the server's disk. Prints its figures, which depend on nothing but the rows.
@Suite("Bytes of rows, in SQLite") struct RowSizeTests {
  /// A player whose device autosaves: each save is a delta against the one before it.
  private struct Player {
    let container: ContainerID
    let device: DeviceID
    var cursor = Cursor.start
    var number: UInt64 = 0

    init(_ number: UInt64) {
      container = ContainerID(high: number &* 0x9E37_79B9_7F4A_7C15, low: number)
      device = DeviceID(high: number &* 0xD1B5_4A32_D192_ED03, low: number)
    }

    mutating func request(frame: Data) -> ExchangeRequest {
      number += 1
      let container = container
      func name(_ number: UInt64) -> ContentHash { ContentHash(of: container.bytes + Data("content \(number)".utf8)) }
      func id(_ number: UInt64) -> VersionID {
        var source = SeededGenerator(seed: number &* 1_000_003 &+ container.low)
        return VersionID(high: source.next(), low: source.next())
      }
      let version = VersionRecord(
        id: id(number), slot: "autosave", covers: number > 1 ? [id(number - 1)] : [], contents: [name(number)],
        length: 40_000, savedAtMilliseconds: 1_800_000_000_000 + Int64(number), writer: WriterID(.max / 3),
        provisional: false)
      let content = EncodedContent(
        hash: name(number), length: 40_000, base: number > 1 ? name(number - 1) : nil, bytes: frame)
      return ExchangeRequest(cursor: cursor, versions: [version], contents: [content], limit: 500)
    }
  }

  /// A cloud whose commits are made one by one, or together as its writer does it.
  private final class Cloud {
    let storage: SQLiteCloudStorage
    private let files: ContentFiles
    private let database: URL
    private var random = SeededGenerator(seed: 7)
    private(set) var frameBytes = 0

    init(in folder: URL) throws {
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      files = ContentFiles(folder: contents)
      database = folder.appendingPathComponent("cloud.sqlite")
      storage = try SQLiteCloudStorage(database: database, contents: contents, clock: { 1_800_000_000_000 })
      // Otherwise the size of the log would depend on when it was emptied.
      try storage.pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA wal_autocheckpoint = 0") }
    }

    func record(_ player: Player) async throws {
      let identity = DeviceIdentity(
        device: player.device, player: PlayerID(high: 2, low: player.device.low), container: player.container,
        app: AppID(ofKey: "app"))
      try await storage.recordDevice(
        DeviceRecord(identity: identity, name: "phone", createdMilliseconds: 1, seenMilliseconds: 1_800_000_000_000))
    }

    /// One exchange of each of these players, in one commit.
    func save(_ bytes: Int, of players: inout [Player], _ indices: [Int]) async throws {
      var commits: [(container: ContainerID, writes: WriteSet, revision: UInt64)] = []
      for index in indices {
        let request = players[index].request(frame: KeepsakeServerTests.frameBytes(bytes, seed: random.next()))
        frameBytes += request.contents[0].bytes.count
        var reads = try CloudAcceptance.reads(of: request, from: players[index].device, hasQuota: true)
        while true {
          var container = SnapshotContainer(try await storage.load(reads, of: players[index].container))
          do {
            players[index].cursor = try CloudAcceptance.exchange(
              request, from: players[index].device, now: 1, quota: .max, in: &container, using: &random
            ).cursor
            commits.append((players[index].container, container.writes, container.base.revision))
            break
          } catch let lacking as NotLoaded {
            reads.formUnion(lacking.reads)
          }
        }
      }
      let (files, all) = (files, commits)
      try await storage.pool.write { db in
        for commit in all {
          var rows = try SQLiteContainer(commit.container, in: db, files: files, now: 1_800_000_000_000)
          #expect(try rows.commit(commit.writes, EncodedRows(commit.writes), ifAt: commit.revision))
        }
      }
    }

    /// Empties the log, and returns how many bytes the database has.
    func emptyLog() throws -> Int {
      _ = try storage.pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
      return try size(database.path)
    }

    var logBytes: Int { get throws { try size(database.path + "-wal") } }

    private func size(_ path: String) throws -> Int {
      (try FileManager.default.attributesOfItem(atPath: path)[.size] as? NSNumber)?.intValue ?? 0
    }

    /// Returns the trees whose pages the log has.
    func logged() async throws -> [String] {
      let log = try Data(contentsOf: URL(fileURLWithPath: database.path + "-wal"))
      let names = try await storage.pool.read { db in
        try Row.fetchAll(db, sql: "SELECT pageno, name || ' ' || pagetype AS name FROM dbstat").reduce(
          into: [Int: String]()
        ) { $0[$1["pageno"]] = $1["name"] }
      }
      return stride(from: 32, to: log.count, by: 24 + Schema.pageBytes).map { frame in
        let page = log[frame..<(frame + 4)].reduce(0) { $0 << 8 | Int($1) }
        return names[page] ?? "page \(page)"
      }
    }
  }

  @Test("a save of 1.2 KB takes little more than its bytes in the database, and few pages of the log")
  func autosaves() async throws {
    try await TemporaryFolder.with { folder in
      let cloud = try Cloud(in: folder)
      var players = [Player(1)]
      try await cloud.record(players[0])
      let before = try cloud.emptyLog()
      let count = 2_000
      for _ in 0..<count { try await cloud.save(1_200, of: &players, [0]) }
      let overhead = (try cloud.emptyLog() - before - cloud.frameBytes) / count
      for _ in 0..<50 { try await cloud.save(1_024, of: &players, [0]) }
      let log = try cloud.logBytes / 50
      _ = try cloud.emptyLog()
      try await cloud.save(1_024, of: &players, [0])
      let pages = try await cloud.logged()
      let tables = try await cloud.storage.pool.read { db in
        try Row.fetchAll(
          db, sql: "SELECT name, sum(pgsize) / \(count) AS size FROM dbstat GROUP BY name ORDER BY size DESC LIMIT 8"
        ).map { "  \($0["name"] as String? ?? ""): \($0["size"] as Int? ?? 0) bytes a version" }
      }
      print("overhead of a version: \(overhead) bytes; log of an exchange of 1 KB: \(log) bytes, one of them:")
      print("  \(pages.joined(separator: ", "))")
      for table in tables { print(table) }
      #expect(overhead < 360)
      #expect(log < 12_288)
      try await cloud.storage.close()
    }
  }

  @Test("exchanges of many players share pages of the log when they are committed together")
  func groups() async throws {
    try await TemporaryFolder.with { folder in
      let cloud = try Cloud(in: folder)
      var players = (1...400).map { Player(UInt64($0)) }
      for player in players { try await cloud.record(player) }
      var order = Array(players.indices)
      var random = SeededGenerator(seed: 3)
      let before = try cloud.emptyLog()
      for _ in 0..<8 {
        order.shuffle(using: &random)
        for start in stride(from: 0, to: 400, by: 50) {
          try await cloud.save(1_200, of: &players, Array(order[start..<(start + 50)]))
        }
      }
      let overhead = (try cloud.emptyLog() - before - cloud.frameBytes) / 3_200
      var figures: [Int: Int] = [:]
      for size in [1, 16, 64] {
        order.shuffle(using: &random)
        for start in stride(from: 0, to: 128, by: size) {
          try await cloud.save(1_024, of: &players, Array(order[start..<(start + size)]))
        }
        figures[size] = try cloud.logBytes / 128
        _ = try cloud.emptyLog()
      }
      print("400 players: overhead of a version: \(overhead) bytes; log of an exchange of 1 KB, by size of the group:")
      print("  \(figures.sorted { $0.key < $1.key })")
      #expect(overhead < 400)
      #expect(figures[1] ?? 0 < 13_312)
      #expect(figures[16] ?? 0 < 10_240)
      #expect(figures[64] ?? 0 < 8_192)
      try await cloud.storage.close()
    }
  }
}
#endif
