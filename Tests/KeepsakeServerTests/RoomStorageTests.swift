#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

@testable import KeepsakeServer

@Suite("Counting a player's bytes, in SQLite")
struct RoomStorageTests {
  private static let player = ContainerID(high: 3, low: 4)

  private func open(_ folder: URL, now: Int64 = 1_000_000_000) throws -> SQLiteCloudStorage {
    let contents = folder.appendingPathComponent("contents")
    try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
    return try SQLiteCloudStorage(
      database: folder.appendingPathComponent("cloud.sqlite"), contents: contents, clock: { now })
  }

  private func isRight(_ storage: SQLiteCloudStorage) async throws -> Bool {
    try await storage.read(Self.player) { try $0.snapshot(of: ReadSet()).used == $0.recountedBytes() }
  }

  /// Alters the only content of a database, as a failing disk may.
  static func damage(_ database: URL) throws {
    try DatabaseQueue(path: database.path).write { db in
      var bytes = try #require(try Data.fetchOne(db, sql: "SELECT bytes FROM content"))
      bytes[bytes.count / 2] ^= 0xFF
      try db.execute(sql: "UPDATE content SET bytes = ?", arguments: [bytes])
    }
  }

  /// One random operation of a player's devices, or a fault of the disk.
  private func act(
    _ number: UInt64, on storage: SQLiteCloudStorage, in folder: URL, using random: inout SeededGenerator
  ) async throws {
    struct Undone: Error {}
    let slot = "slot-\(random.next() % 4)"
    let name = random.next() % 30
    let bytes = frameBytes(Int(random.next() % 4_000) + 1, seed: name)
    let hash = ContentHash(of: Data("\(name)".utf8))
    let base: ContentHash? = random.next() % 3 == 0 ? ContentHash(of: Data("\(random.next() % 30)".utf8)) : nil
    let kind = random.next() % 10
    let seed = random.next()
    let version = VersionRecord(
      id: VersionID(high: 7, low: number), slot: slot, covers: [], contents: kind == 3 ? [] : [hash],
      length: kind == 3 ? 0 : 5,
      metadata: SaveMetadata(title: String(repeating: "t", count: Int(seed % 200))), savedAtMilliseconds: 5,
      writer: WriterID(1),
      provisional: seed % 2 == 0, tombstone: kind == 3)
    switch kind {
    case 0, 1:
      var content = KeptContent(hash: hash, length: 5, base: base == hash ? nil : base, bytes: .memory(bytes))
      if kind == 1 {
        let file = folder.appendingPathComponent("incoming-\(number)")
        try bytes.write(to: file)
        content.bytes = .file(file, count: bytes.count)
      }
      do {
        _ = try await storage.putContent(content, of: Self.player, quota: 30_000)
      } catch is MissingBase {
      } catch is OverQuota {}
    case 2, 3, 4, 5:
      try await storage.decide(on: Self.player) { container in
        var source = SeededGenerator(seed: seed)
        var record = version
        record.covers = try container.heads(of: slot).filter { _ in source.next() % 4 != 0 }
        let key = CellKey(collection: "progress", key: "key-\(seed % 5)")
        let cell = CellUpdate(
          key: key, state: CellState(value: .union([.string(String(repeating: "u", count: Int(seed % 300)))])))
        let content = EncodedContent(hash: hash, length: 5, base: nil, bytes: bytes)
        let request = ExchangeRequest(
          cursor: .start, cells: [cell], versions: [record], contents: kind == 3 ? [] : [content], limit: 5,
          damaged: seed % 7 == 0 ? [ContentHash(of: Data("\(seed % 30)".utf8))] : [])
        _ = try CloudAcceptance.exchange(request, now: 1_000_000_000, quota: 30_000, in: &container, using: &source)
      }
    case 6:
      try await storage.decide(on: Self.player) { try $0.suspectContent(hash) }
    case 7:
      // The disk loses a file; the content is uploaded again later.
      let contents = folder.appendingPathComponent("contents")
      guard let file = try FileManager.default.contentsOfDirectory(atPath: contents.path).sorted().first else { return }
      try FileManager.default.removeItem(at: contents.appendingPathComponent(file))
    case 8:
      await #expect(throws: Undone.self) {
        try await storage.decide(on: Self.player) { container in
          try container.putContent(EncodedContent(hash: hash, length: 5, base: nil, bytes: bytes))
          throw Undone()
        }
      }
    default:
      try await storage.decide(on: Self.player) { container in
        for holder in try container.replacedHolders(in: slot) { try container.releaseContents(of: holder.version) }
      }
    }
  }

  @Test("a player's counted bytes equal a recount throughout 1,000 random operations, and after each restart")
  func counted() async throws {
    try await TemporaryFolder.with { folder in
      let seed: UInt64 = 0xB0B
      var random = SeededGenerator(seed: seed)
      var storage = try open(folder)
      var most: Int64 = 0
      for number in 0..<1_000 as Range<UInt64> {
        try await act(number, on: storage, in: folder, using: &random)
        if number % 20 == 19 {
          try #require(try await isRight(storage), "seed \(seed), after \(number)")
          most = max(most, try await storage.decide(on: Self.player) { try $0.usedBytes() })
        }
        if number % 250 == 249 {
          try await storage.close()
          storage = try open(folder)
          try #require(try await isRight(storage), "seed \(seed), opened after \(number)")
        }
      }
      // Deletes are never refused, so the count may exceed the quota a little. It must have reached half of the quota.
      #expect(most > 15_000)
      try await storage.close()
    }
  }

  @Test("a save that was replaced before it came, without its contents, never frees another one's when it is deleted")
  func replacedWithoutContents() async throws {
    try await TemporaryFolder.with { folder in
      let storage = try open(folder)
      let (shared, newer) = (ContentHash(of: Data("shared".utf8)), ContentHash(of: Data("newer".utf8)))
      func version(_ number: UInt64, _ slot: String, over covers: [UInt64] = [], _ hash: ContentHash?) -> VersionRecord
      {
        VersionRecord(
          id: VersionID(high: 7, low: number), slot: slot, covers: covers.map { VersionID(high: 7, low: $0) },
          contents: [hash].compactMap(\.self), length: hash == nil ? 0 : 5, metadata: SaveMetadata(),
          savedAtMilliseconds: 5, writer: WriterID(1), provisional: false, tombstone: hash == nil)
      }
      func send(_ versions: [VersionRecord], _ hash: ContentHash?) async throws {
        let contents = [hash].compactMap(\.self).map {
          EncodedContent(hash: $0, length: 5, base: nil, bytes: frameBytes(100, seed: 1))
        }
        let request = ExchangeRequest(cursor: .start, versions: versions, contents: contents, limit: 5)
        try await storage.decide(on: Self.player) { container in
          var random = SeededGenerator(seed: 1)
          let response = try CloudAcceptance.exchange(request, now: 1_000_000_000, in: &container, using: &random)
          guard case .accepted = response.outcome else { throw UnexpectedOutcome() }
        }
      }
      try await send([version(1, "a", shared), version(2, "a", over: [1], newer)], newer)
      try await send([version(3, "b", shared)], shared)
      try await send([version(4, "a", over: [2], nil)], nil)
      let left = try await storage.decide(on: Self.player) { container in
        try [newer, shared].filter { try container.hasContent($0) }
      }
      #expect(left == [shared])
      try await storage.close()
    }
  }

  private struct UnexpectedOutcome: Error {}

  @Test("migrating an older server's database counts its bytes once, files included, and a delete then frees them")
  func migrated() async throws {
    try await TemporaryFolder.with { folder in
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      try Data(repeating: 1, count: 777).write(to: contents.appendingPathComponent("large"))
      let hashes = ["small", "large", "lost"].map { ContentHash(of: Data($0.utf8)) }
      let record = VersionRecord(
        id: VersionID(high: 1, low: 1), slot: "main", covers: [], contents: hashes, length: 9, savedAtMilliseconds: 5,
        writer: WriterID(3),
        provisional: false)
      let text = try JSONEncoder().encode(record)
      let queue = try DatabaseQueue(path: folder.appendingPathComponent("cloud.sqlite").path)
      try Schema.migrator(files: ContentFiles(folder: contents)).migrate(queue, upTo: Schema.migrations[0])
      try await queue.write { db in
        let id = Self.player.bytes
        try db.execute(sql: "INSERT INTO container (id, epoch, seq, mark) VALUES (?, 0, 1, 5)", arguments: [id])
        try db.execute(sql: "INSERT INTO mark (container, seq, mark) VALUES (?, 1, 5)", arguments: [id])
        try db.execute(
          sql: "INSERT INTO version (container, id, slot, seq, head, record) VALUES (?, ?, ?, 1, 1, ?)",
          arguments: [id, record.id.bytes, Data("main".utf8), text])
        for (hash, file) in zip(hashes, [nil, "large", "lost"] as [String?]) {
          try db.execute(
            sql: "INSERT INTO content (container, hash, length, bytes, file) VALUES (?, ?, 3, ?, ?)",
            arguments: [id, hash.bytes, file == nil ? Data(repeating: 2, count: 55) : nil, file])
        }
      }
      try queue.close()
      let storage = try open(folder)
      let used = try await storage.decide(on: Self.player) { try $0.usedBytes() }
      #expect(used == Int64(record.size + 777 + 55))
      #expect(try await isRight(storage))
      try await storage.decide(on: Self.player) { container in
        var random = SeededGenerator(seed: 2)
        let tombstone = VersionRecord(
          id: VersionID(high: 1, low: 2), slot: "main", covers: [record.id], contents: [], length: 0,
          savedAtMilliseconds: 6,
          writer: WriterID(3), provisional: false, tombstone: true)
        _ = try CloudAcceptance.exchange(
          ExchangeRequest(cursor: .start, versions: [tombstone], limit: 5), now: 0, in: &container, using: &random)
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: contents.path).isEmpty)
      #expect(try await storage.content(hashes[0], of: Self.player) == nil)
      #expect(try await isRight(storage))
      try await storage.close()
    }
  }

  @Test("uploads that no version names give way to new ones after an hour, and not before")
  func strays() async throws {
    for (hours, fits) in [(1, false), (2, true)] as [(Int64, Bool)] {
      try await TemporaryFolder.with { folder in
        let early = try open(folder, now: 5)
        let stray = KeptContent(
          hash: ContentHash(of: Data("s".utf8)), length: 5, base: nil, bytes: .memory(frameBytes(900, seed: 1)))
        _ = try await early.putContent(stray, of: Self.player, quota: 1_000)
        try await early.close()
        let storage = try open(folder, now: hours * 3_600_000)
        let other = KeptContent(
          hash: ContentHash(of: Data("o".utf8)), length: 5, base: nil, bytes: .memory(frameBytes(800, seed: 2)))
        if fits {
          _ = try await storage.putContent(other, of: Self.player, quota: 1_000)
        } else {
          let refused = await #expect(throws: OverQuota.self) {
            try await storage.putContent(other, of: Self.player, quota: 1_000)
          }
          #expect(refused?.shortage == QuotaShortage(limit: 1_000, used: 900, needed: 800))
        }
        #expect(try await storage.hasContent(stray.hash, of: Self.player) == !fits)
        try await storage.close()
      }
    }
  }

  #if os(Linux)
  @Test("a server that is killed during uploads, saves and deletes has counted the player's bytes right", .hangLimit)
  func killed() async throws {
    try await TemporaryFolder.with { folder in
      let data = folder.appendingPathComponent("server")
      var server = try await ServerProcess.start(data: data)
      let (client, account) = try await Client(url: server.url, appKey: ServerProcess.appKey).register()
      for round in 0..<3 as Range<UInt64> {
        let url = server.url
        let exchanges = Shared(0)
        let writers = (0..<3 as Range<UInt64>).map { writer in
          Task {
            let client = Client(url: url, appKey: ServerProcess.appKey, token: client.token)
            for number in 0..<10_000 as Range<UInt64> {
              let seed = round << 40 | writer << 20 | number
              let bytes = frameBytes(number % 5 == 0 ? 1_200_000 : 3_000, seed: seed)
              let hash = ContentHash(of: Data("\(seed)".utf8))
              let version = VersionRecord(
                id: VersionID(high: 9, low: seed), slot: "slot-\(writer)",
                covers: number == 0 ? [] : [VersionID(high: 9, low: seed - 1)],
                contents: number % 3 == 2 ? [] : [hash], length: 0, savedAtMilliseconds: 5, writer: WriterID(writer),
                provisional: false,
                tombstone: number % 3 == 2)
              let body = try JSONEncoder().encode(ExchangeRequest(cursor: .start, versions: [version], limit: 1))
              // Throws when the server is killed.
              _ = try await client.call("PUT", "/v1/contents/\(hash)", headers: ["Keepsake-Length": "5"], body: bytes)
              _ = try await client.call("POST", "/v1/exchange", body: body)
              exchanges.value += 1
            }
          }
        }
        try await until("saves are there") { exchanges.value > 5 * (Int(round) + 1) }
        await server.kill()
        for writer in writers { _ = await writer.result }
        let storage = try SQLiteCloudStorage(
          database: data.appendingPathComponent("cloud.sqlite"), contents: data.appendingPathComponent("contents"))
        let (used, counted, files) = try await storage.read(account.container) { container in
          let files = try Int.fetchOne(container.db, sql: "SELECT count(*) FROM content WHERE file IS NOT NULL")
          return (try container.snapshot(of: ReadSet()).used, try container.recountedBytes(), files)
        }
        #expect(used == counted && used > 0, "round \(round)")
        // Opening the storage has removed the files that no content names.
        #expect(
          try FileManager.default.contentsOfDirectory(atPath: data.appendingPathComponent("contents").path).count
            == files)
        try await storage.close()
        if round < 2 { server = try await ServerProcess.start(data: data) }
      }
    }
  }
  #endif
}
#endif
