#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

// GRDB has a type of this name, too.
import struct KeepsakeReplication.Cursor

@testable import KeepsakeServer

/// The migration to packed rows.
@Suite("Packed rows, in SQLite") struct PackedRowsTests {
  private static let player = ContainerID(high: 3, low: 4)
  private static let other = ContainerID(high: 3, low: 5)
  private static let device = DeviceID(high: 1, low: 1)
  private static let key = CellKey(collection: "progress", key: "level")
  private static let hashes = (0..<3).map { ContentHash(of: Data([UInt8($0)])) }

  private static func version(_ number: UInt64, covers: [UInt64], contents: [ContentHash]) -> VersionRecord {
    VersionRecord(
      id: VersionID(high: 1, low: number), slot: "main", covers: covers.map { VersionID(high: 1, low: $0) },
      contents: contents, length: 5, metadata: SaveMetadata(title: "Chapter \(number)"), savedAtMilliseconds: 5,
      writer: WriterID(3), provisional: false)
  }

  /// A database of an older version, with rows in every table.
  private static func makeOld(_ database: URL, _ contents: URL) throws {
    let queue = try DatabaseQueue(path: database.path)
    try Schema.migrator(files: ContentFiles(folder: contents)).migrate(queue, upTo: Schema.migrations[6])
    try Data(count: 777).write(to: contents.appendingPathComponent("large"))
    try queue.write { db in
      let id = player.bytes
      func run(_ sql: String, _ arguments: StatementArguments) throws { try db.execute(sql: sql, arguments: arguments) }
      let encoder = JSONEncoder()
      var bank = BankState()
      bank.pool = ["gems": 7]
      try run("INSERT INTO container VALUES (?, 2, 6, 66, ?)", [id, try encoder.encode(bank)])
      try run("INSERT INTO container VALUES (?, 0, 0, 0, NULL)", [other.bytes])
      for seq in 1...6 { try run("INSERT INTO mark VALUES (?, ?, ?)", [id, seq, seq * 11]) }
      try run(
        "INSERT INTO cell VALUES (?, ?, ?, 4, ?)",
        [id, Data(key.collection.utf8), Data(key.key.utf8), try encoder.encode(CellState(value: .max(.int(5))))])
      let versions = [
        (seq: 1, version(1, covers: [], contents: [hashes[0]])),
        (seq: 3, version(2, covers: [1, 99], contents: [hashes[1], hashes[2]])),
        // Freed before.
        (seq: 6, version(3, covers: [], contents: [hashes[0]])),
      ]
      for (seq, record) in versions {
        try run(
          "INSERT INTO version VALUES (?, ?, ?, ?, ?, ?)",
          [id, record.id.bytes, Data("main".utf8), seq, record.id.low == 2, try encoder.encode(record)])
      }
      for number in [1, 3, 99] as [UInt64] {
        try run("INSERT INTO covered VALUES (?, ?)", [id, VersionID(high: 1, low: number).bytes])
      }
      for (index, hash) in hashes.enumerated() {
        try run(
          """
          INSERT INTO content (container, hash, length, base, bytes, file, size, taken, suspect)
          VALUES (?, ?, 5, ?, ?, ?, ?, 9, ?)
          """,
          [
            id, hash.bytes, index == 1 ? hashes[0].bytes : nil, index == 2 ? nil : Data([1, 2, 3]),
            index == 2 ? "large" : nil, index == 2 ? 777 : 3, index == 2,
          ])
      }
      for (hash, number) in [(0, 1), (1, 2), (2, 2)] as [(Int, UInt64)] {
        try run(
          "INSERT INTO holder VALUES (?, ?, ?, ?)",
          [id, hashes[hash].bytes, VersionID(high: 1, low: number).bytes, Data("main".utf8)])
      }
      let part = OfferItems(cells: [], versions: [version(7, covers: [], contents: [])])
      try run(
        "INSERT INTO offerPart VALUES (?, ?, 0, 5, 1, ?)",
        [id, OfferID(high: 1, low: 1).bytes, try encoder.encode(part)])
      try run(
        "INSERT INTO device (container, id, player, app, created, seen, reached) VALUES (?, ?, ?, x'01', 1, 2, 3)",
        [id, device.bytes, PlayerID(high: 2, low: 2).bytes])
      try run("INSERT INTO deviceChain VALUES (?, ?, ?)", [id, device.bytes, ChainID(high: 5, low: 5).bytes])
      try run("INSERT INTO retired VALUES (?, ?, 1)", [id, DeviceID(high: 1, low: 2).bytes])
      try run("INSERT INTO pairing VALUES (x'01', x'02', ?, ?, 9)", [id, PlayerID(high: 2, low: 2).bytes])
      try run("INSERT INTO paidClaim (container, key) VALUES (?, ?)", [id, Data("gift".utf8)])
      try run("INSERT INTO good VALUES (?, ?, 4, 1)", [id, Data("hat".utf8)])
      let operation = WalletOperation(
        id: OperationID(high: 1, low: 2), kind: .earn, currency: "gems", amount: 3, reason: "quest")
      try run(
        "INSERT INTO decision VALUES (?, ?, ?, 'accepted', ?, 1, ?)",
        [
          id, operation.id.bytes, ChainID(high: 5, low: 5).bytes, Int64(bitPattern: operation.fingerprint),
          try encoder.encode(operation),
        ])
      let packed = PackedDecisions.packed([
        PackedDecisions.Entry(operation: OperationID(high: 9, low: 9), isAccepted: true, fingerprint: 1 << 20)
      ])[0]
      try run("INSERT INTO packedDecision VALUES (?, 0, ?, ?)", [id, packed.first.bytes, packed.bytes])
      try run(
        "INSERT INTO closedChain (container, chain, count, hash) VALUES (?, ?, 0, ?)",
        [id, ChainID(high: 6, low: 6).bytes, hashes[0].bytes])
      let order = BankOrder(
        id: OperationID(high: 4, low: 4), kind: .grant, currency: "gems", amount: 5, reason: "support")
      try run("INSERT INTO bankOrder VALUES (?, 1, ?, 'grant', ?)", [id, order.id.bytes, try encoder.encode(order)])
      try run("INSERT INTO receipt VALUES (x'01', ?, ?, x'03')", [hashes[0].bytes, id])
      try run("INSERT INTO paidVoucher VALUES (?, ?, ?)", [id, other.bytes, ChainID(high: 7, low: 7).bytes])
      try run("INSERT INTO vouchedClaim VALUES (?, ?, ?, 8)", [id, other.bytes, Data("gift".utf8)])
      try run("INSERT INTO number VALUES ('generation', 5)", [])
      // Every table has a row.
      let tables = try String.fetchAll(
        db, sql: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
      for table in tables {
        #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table)") ?? 0 > 0, "\(table)")
      }
    }
    try queue.close()
  }

  private static var reads: ReadSet {
    var reads = ReadSet()
    (reads.device, reads.chain) = (device, ChainID(high: 5, low: 5))
    reads.marks = Set(1...6)
    reads.cells = [key]
    reads.versions = Set((1...3).map { VersionID(high: 1, low: $0) } + [VersionID(high: 1, low: 99)])
    reads.slots = [ExactText("main")]
    reads.contents = Set(hashes)
    reads.frames = Set(hashes)
    reads.changes = ReadSet.Changes(after: 0, count: 100, bytes: 1_000_000)
    (reads.suspects, reads.used, reads.wholeRoom, reads.offers) = (true, true, true, true)
    reads.needing = Set(hashes)
    reads.bank.state = true
    reads.bank.decisions = [OperationID(high: 1, low: 2), OperationID(high: 9, low: 9)]
    reads.bank.claims = [ExactText("gift")]
    (reads.bank.allGoods, reads.bank.allClosedChains) = (true, true)
    reads.bank.orders = [OperationID(high: 4, low: 4)]
    return reads
  }

  @Test("a database of an older version keeps everything, in every table, and counts its bytes")
  func migrated() async throws {
    try await TemporaryFolder.with { folder in
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      let database = folder.appendingPathComponent("cloud.sqlite")
      try Self.makeOld(database, contents)
      let storage = try SQLiteCloudStorage(database: database, contents: contents)
      let old = try await storage.load(Self.reads, of: Self.player)
      #expect(old.position == Cursor(epoch: 2, seq: 6, mark: 66) && old.revision == 0 && !old.isDeleted)
      #expect(old.marks == [1: 11, 2: 22, 3: 33, 4: 44, 5: 55])
      #expect(old.changes?.list.map(\.seq) == [1, 3, 4, 6] && old.changes?.marks == [1: 11, 3: 33, 4: 44, 6: 66])
      #expect(old.cells[Self.key]?.update.state.value == .max(.int(5)))
      #expect(
        old.versions[VersionID(high: 1, low: 2)]?.record
          == Self.version(2, covers: [1, 99], contents: [Self.hashes[1], Self.hashes[2]]))
      #expect(old.coverage.filter(\.value).keys.map(\.low).sorted() == [1, 3, 99])
      #expect(old.heads == [ExactText("main"): [VersionID(high: 1, low: 2)]])
      #expect(old.contents[Self.hashes[1]]?.base == Self.hashes[0] && old.contents.count == 3)
      #expect(old.frames[Self.hashes[0]]?.bytes == Data([1, 2, 3]) && old.suspects == [Self.hashes[2]])
      #expect(old.needing.count == 3 && old.needing.values.allSatisfy { $0.map(\.low) == [2] })
      #expect(old.room.holders.keys.map(\.low).sorted() == [1, 2])
      #expect(old.room.contents[Self.hashes[0]]?.holders == 1 && old.room.contents[Self.hashes[0]]?.leaning == 1)
      #expect(old.offers.map(\.parts) == [1])
      #expect(old.device?.reached == 3 && old.device?.seenMilliseconds == 2 && old.device?.chains.count == 1)
      #expect(old.bank.pool == ["gems": 7] && old.decisions.count == 2 && old.paidClaims.count == 1)
      #expect(old.goods == [ExactText("hat"): 4] && old.closedChains.count == 1 && old.orders.count == 1)
      let counted = try await storage.read(Self.player) { try $0.recountedBytes() }
      #expect(old.used == counted && old.used > 783)

      // And it goes on: a delete frees what the versions before it held.
      let reads = try CloudAcceptance.reads(
        of: ExchangeRequest(cursor: .start, limit: 5), from: Self.device, hasQuota: false)
      let changes = try await storage.decide(on: Self.player, reading: reads) { container in
        var source = SystemRandomNumberGenerator()
        var tombstone = Self.version(4, covers: [2], contents: [])
        (tombstone.tombstone, tombstone.length) = (true, 0)
        let cell = CellUpdate(key: Self.key, state: CellState(value: .max(.int(6))))
        return try CloudAcceptance.exchange(
          ExchangeRequest(cursor: old.position, cells: [cell], versions: [tombstone], limit: 50), from: Self.device,
          now: 0, in: &container, using: &source
        ).cursor.seq
      }
      #expect(changes == 8)
      let new = try await storage.load(Self.reads, of: Self.player)
      #expect(new.contents.isEmpty && new.room.holders.isEmpty && new.room.contents.isEmpty)
      #expect(new.marks == old.marks.merging([6: 66]) { $1 })
      #expect(new.changes?.list.map(\.seq) == [1, 3, 6, 7, 8] && new.revision == 1)
      #expect(new.used == (try await storage.read(Self.player) { try $0.recountedBytes() }))
      #expect(try FileManager.default.contentsOfDirectory(atPath: contents.path).isEmpty)
      try await storage.close()
    }
  }

  // MARK: The rows

  private static func withStorage(_ body: (SQLiteCloudStorage) async throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      let database = folder.appendingPathComponent("cloud.sqlite")
      let storage = try SQLiteCloudStorage(database: database, contents: contents)
      try await body(storage)
      try await storage.close()
    }
  }

  private static func exchange(_ request: ExchangeRequest, of device: DeviceID, in storage: SQLiteCloudStorage)
    async throws -> ExchangeResponse
  {
    let reads = try CloudAcceptance.reads(of: request, from: device, hasQuota: false)
    return try await storage.decide(on: player, reading: reads) { container in
      var source = SystemRandomNumberGenerator()
      return try CloudAcceptance.exchange(request, from: device, now: 0, in: &container, using: &source)
    }
  }

  @Test("contents whose hashes begin alike are found by the whole hash")
  func similarHashes() async throws {
    try await Self.withStorage { storage in
      let alike = try (0..<3).map { try #require(ContentHash(bytes: Data(repeating: 7, count: 31) + [$0])) }
      var request = ExchangeRequest(cursor: .start, limit: 5)
      request.contents = alike.prefix(2).enumerated().map { index, hash in
        EncodedContent(hash: hash, length: 5, base: nil, bytes: frameBytes(9, seed: UInt64(index)))
      }
      request.versions = [Self.version(1, covers: [], contents: Array(alike.prefix(2)))]
      _ = try await Self.exchange(request, of: Self.device, in: storage)
      var reads = ReadSet()
      (reads.frames, reads.contents) = (Set(alike), Set(alike))
      let loaded = try await storage.load(reads, of: Self.player)
      for (index, hash) in alike.prefix(2).enumerated() {
        #expect(loaded.frames[hash]?.bytes == frameBytes(9, seed: UInt64(index)))
      }
      #expect(loaded.frames[alike[2]] == nil && loaded.contents[alike[2]] == nil)
    }
  }

  @Test("a content keeps the hash of its base, also if that is removed and another one gets its number")
  func removedBase() async throws {
    try await Self.withStorage { storage in
      func content(_ index: Int, base: Int?) -> EncodedContent {
        EncodedContent(
          hash: Self.hashes[index], length: 5, base: base.map { Self.hashes[$0] },
          bytes: frameBytes(9, seed: UInt64(index)))
      }
      var request = ExchangeRequest(cursor: .start, limit: 5)
      request.contents = [content(0, base: nil)]
      request.versions = [Self.version(1, covers: [], contents: [Self.hashes[0]])]
      var cursor = try await Self.exchange(request, of: Self.device, in: storage).cursor
      request = ExchangeRequest(cursor: cursor, limit: 5)
      request.contents = [content(1, base: 0)]
      request.versions = [Self.version(2, covers: [1], contents: [Self.hashes[1]])]
      cursor = try await Self.exchange(request, of: Self.device, in: storage).cursor
      try await storage.transaction(on: Self.player) { rows in
        let base = try rows.row("SELECT typeof(base) FROM content WHERE base IS NOT NULL", [])
        #expect(try base?.decode(String.self, atIndex: 0) == "integer")
        try rows.removeContent(Self.hashes[0], isReplaced: false)
      }
      request = ExchangeRequest(cursor: cursor, limit: 5)
      request.contents = [content(2, base: nil)]
      request.versions = [Self.version(3, covers: [2], contents: [Self.hashes[2]])]
      _ = try await Self.exchange(request, of: Self.device, in: storage)
      var reads = ReadSet()
      reads.contents = Set(Self.hashes)
      let loaded = try await storage.load(reads, of: Self.player)
      #expect(loaded.contents[Self.hashes[0]] == nil)
      #expect(loaded.contents[Self.hashes[1]]?.base == Self.hashes[0])
    }
  }

  @Test("how far each device has come is in its container's row, until the device is removed")
  func reached() async throws {
    try await Self.withStorage { storage in
      let devices = [Self.device, DeviceID(high: 1, low: 2)]
      for device in devices {
        try await storage.recordDevice(
          DeviceRecord(
            identity: DeviceIdentity(
              device: device, player: PlayerID(high: 2, low: 2), container: Self.player, app: AppID(ofKey: "app")),
            name: "phone", createdMilliseconds: 1, seenMilliseconds: 1))
      }
      var request = ExchangeRequest(cursor: .start, limit: 5)
      request.versions = [Self.version(1, covers: [], contents: [])]
      let cursor = try await Self.exchange(request, of: devices[0], in: storage).cursor
      for device in devices {
        _ = try await Self.exchange(ExchangeRequest(cursor: cursor, limit: 5), of: device, in: storage)
      }
      var reads = ReadSet()
      reads.reached = true
      #expect(
        try await storage.load(reads, of: Self.player).reached == [devices[0]: cursor.seq, devices[1]: cursor.seq])
      _ = try await storage.retire(devices[1], of: Self.player, now: 1)
      #expect(try await storage.load(reads, of: Self.player).reached == [devices[0]: cursor.seq])
    }
  }

  @Test("what devices have reached is packed and read, and half of an entry is refused")
  func packedReached() throws {
    let reached = PackedReached([DeviceID(high: 2, low: 1): 7, DeviceID(high: 1, low: 1): .max - 1])
    #expect(try PackedReached(bytes: reached.bytes).seqs == reached.seqs && reached.bytes.count == 48)
    #expect(try PackedReached(bytes: Data()).seqs.isEmpty)
    for count in 1..<24 {
      #expect(throws: ServerError.self) { try PackedReached(bytes: Data(reached.bytes.prefix(count))) }
    }
  }

  @Test("a database with larger pages is rebuilt at the start, and has everything; a new one has small pages")
  func pages() async throws {
    try await TemporaryFolder.with { folder in
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      let database = folder.appendingPathComponent("cloud.sqlite")
      let storage = try SQLiteCloudStorage(database: database, contents: contents)
      var request = ExchangeRequest(cursor: .start, limit: 5)
      request.versions = [Self.version(1, covers: [], contents: [])]
      _ = try await Self.exchange(request, of: Self.device, in: storage)
      func pageBytes() throws -> Int? {
        try DatabaseQueue(path: database.path).read { try Int.fetchOne($0, sql: "PRAGMA page_size") }
      }
      #expect(try pageBytes() == Schema.pageBytes)
      try await storage.close()
      try await DatabaseQueue(path: database.path).writeWithoutTransaction { db in
        try db.execute(sql: "PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM")
      }
      #expect(try pageBytes() == 4_096)
      let again = try SQLiteCloudStorage(database: database, contents: contents)
      #expect(try pageBytes() == Schema.pageBytes)
      var reads = ReadSet()
      reads.slots = [ExactText("main")]
      #expect(try await again.load(reads, of: Self.player).heads.values.map(\.count) == [1])
      try await again.close()
    }
  }
}
#endif
