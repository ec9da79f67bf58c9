#if Cloud
import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

@testable import KeepsakeServer

#if PostgreSQL
import KeepsakePostgreSQL
#endif

/// What a server remembers of a container spares it loads, and changes nothing else.
@Suite("Decisions over what is remembered", .hangLimit)
struct RememberedTests {
  /// Where the cloud is.
  enum Place: CaseIterable {
    case sqlite, postgreSQL
  }
  private static let device = DeviceID(high: 1, low: 1)
  /// Those that there are here.
  static let places = Place.allCases.filter { $0 == .sqlite || TestDatabase.address != nil }

  private static func isAccepted(_ response: ExchangeResponse) -> Bool {
    if case .accepted = response.outcome { true } else { false }
  }

  /// With two servers, which are one in SQLite.
  private func with(
    _ place: Place, _ body: (_ one: CountedLoads, _ other: CountedLoads) async throws -> Void
  ) async throws {
    try await TemporaryFolder.with { folder in
      var storages: [any AdminStorage] = []
      let result: Result<Void, any Error>
      do {
        storages = try await Self.storages(in: place, folder)
        result = .success(try await body(CountedLoads(storages[0]), CountedLoads(storages.last ?? storages[0])))
      } catch {
        result = .failure(error)
      }
      for storage in storages { try await storage.close() }
      try result.get()
    }
  }

  private static func storages(in place: Place, _ folder: URL) async throws -> [any AdminStorage] {
    switch place {
    case .sqlite:
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      let database = folder.appendingPathComponent("cloud.sqlite")
      return [try SQLiteCloudStorage(database: database, contents: contents, clock: { 5 })]
    case .postgreSQL:
      #if PostgreSQL
      let settings = TestDatabase.settings(try #require(TestDatabase.address))
      return [
        try await PostgreSQLStorage(settings, connections: 1, clock: { 5 }),
        try await PostgreSQLStorage(settings, connections: 1, clock: { 5 }),
      ]
      #else
      throw CancellationError()
      #endif
    }
  }

  private static func newContainer() -> ContainerID {
    var random = SystemRandomNumberGenerator()
    return ContainerID(using: &random)
  }

  /// A device that saves.
  private struct Player {
    let container = RememberedTests.newContainer()
    var device = RememberedTests.device
    var cursor = Cursor.start
    var heads: [String: VersionID] = [:]
    var number: UInt64 = 0

    static func hash(_ name: String) -> ContentHash { ContentHash(of: Data(name.utf8)) }

    /// Saves in a slot; with the bytes of a content unless those are on the server.
    @discardableResult
    mutating func save(
      _ slot: String, _ content: String? = nil, id: VersionID? = nil, sendsBytes: Bool = true, base: String? = nil,
      at storage: CountedLoads
    ) async throws -> ExchangeResponse {
      number += 1
      let name = content ?? "content \(number) of \(device)"
      var request = ExchangeRequest(cursor: cursor, limit: 500)
      if sendsBytes {
        request.contents = [
          EncodedContent(
            hash: Self.hash(name), length: 5, base: base.map(Self.hash), bytes: frameBytes(100, seed: number))
        ]
      }
      let id = id ?? VersionID(high: device.low, low: number)
      request.versions = [
        VersionRecord(
          id: id, slot: slot, covers: heads[slot].map { [$0] } ?? [], contents: [Self.hash(name)], length: 5,
          savedAtMilliseconds: 5, writer: WriterID(1), provisional: false)
      ]
      let response = try await exchange(request, at: storage)
      heads[slot] = id
      return response
    }

    mutating func exchange(_ request: ExchangeRequest, at storage: CountedLoads) async throws -> ExchangeResponse {
      let number = number
      let identity = DeviceIdentity(
        device: device, player: PlayerID(high: 2, low: 2), container: container, app: AppID(ofKey: "app"))
      let reads = try CloudAcceptance.reads(of: request, from: device, hasQuota: true)
      let response = try await storage.decide(on: container, reading: reads) { container in
        var random = SeededGenerator(seed: number)
        // As the server's route does.
        try container.admit(identity.device, with: nil)
        try container.recordVisit(of: identity, now: 5)
        return try CloudAcceptance.exchange(
          request, from: identity.device, now: 5, quota: 1_000_000, in: &container, using: &random)
      }
      cursor = response.cursor
      return response
    }

    /// Everything there is of it.
    func all(at storage: CountedLoads) async throws -> [CloudChange] {
      var reads = ReadSet()
      reads.changes = ReadSet.Changes(after: 0, count: 9_999, bytes: .max)
      return try await storage.storage.load(reads, of: container).changes?.list ?? []
    }
  }

  @Test(
    "750 random exchanges of devices that play get the same responses as in memory, most of them without a load",
    arguments: places, [1, 2] as [UInt64])
  func same(place: Place, seed: UInt64) async throws {
    try await with(place) { storage, _ in
      let player = RememberedTests.newContainer()
      for device in SameDecisionsTests.devices(of: player) { try await storage.storage.recordDevice(device) }
      let memory = try await SameDecisionsTests.play(storage, player, seed: seed, isPlaying: true)
      // Of those before the quota is reached, most load nothing.
      #expect(storage.loads.value < 700, "\(storage.loads.value) loads, \(storage.commits.value) commits")
      var reads = ReadSet()
      reads.changes = ReadSet.Changes(after: 0, count: 9_999, bytes: .max)
      let stored = try await storage.storage.load(reads, of: player)
      #expect(stored.changes?.list == memory.changes(after: 0, limit: 9_999) && stored.used == memory.usedBytes())
    }
  }

  @Test(
    "a device that saves in eight slots loads until it has saved in each of them, and nothing after that",
    arguments: places)
  func saves(place: Place) async throws {
    try await with(place) { storage, _ in
      var player = Player()
      for number in 0..<40 {
        let loads = storage.loads.value
        try await player.save("slot \(number % 8)", at: storage)
        #expect((storage.loads.value == loads) == (number >= 8), "save \(number)")
      }
      #expect(storage.commits.value == 40)
      let all = try await player.all(at: storage)
      #expect(all.count == 40)
    }
  }

  @Test(
    "what another server has changed is found, and the device is remembered again after two saves",
    .enabled(if: TestDatabase.address != nil, "no PostgreSQL: KEEPSAKE_POSTGRES isn't set"))
  func others() async throws {
    try await with(.postgreSQL) { one, other in
      var player = Player()
      for _ in 0..<3 { try await player.save("main", at: one) }
      var tablet = player
      (tablet.device, tablet.cursor) = (DeviceID(high: 1, low: 2), .start)
      try await tablet.save("main", at: other)
      let before = player.heads["main"]
      one.loads.value = 0
      // It covers what the tablet has covered, too: both stay.
      let response = try await player.save("main", at: one)
      #expect(one.loads.value == 1 && response.changes.count == 1, "\(one.loads.value), \(response.changes.count)")
      let heads = try await one.look(at: player.container) { try $0.heads(of: "main") }
      #expect(Set(heads) == Set([player.heads["main"], tablet.heads["main"]].compactMap(\.self)))
      #expect(before != player.heads["main"])
      player.heads["main"] = heads.first
      one.loads.value = 0
      for loads in [1, 1, 1] {
        try await player.save("main", at: one)
        #expect(one.loads.value == loads)
      }
    }
  }

  @Test(
    "a device that another server has removed is refused, and its player's data stay as they were",
    arguments: places)
  func removed(place: Place) async throws {
    try await with(place) { one, other in
      var player = Player()
      for _ in 0..<3 { try await player.save("main", at: one) }
      _ = try await other.retire(Self.device, of: player.container, now: 5)
      let error = await #expect(throws: APIError.self) { try await player.save("main", at: one) }
      #expect(error?.code == APIError.retired.code)
      #expect(try await player.all(at: one).count == 3)
    }
  }

  @Test("of saves that a device makes at the same time, each counts", arguments: places)
  func together(place: Place) async throws {
    try await with(place) { storage, _ in
      var player = Player()
      for number in 0..<12 { try await player.save("slot \(number % 4)", at: storage) }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<8 as Range<UInt64> {
          var saving = player
          saving.number += number
          group.addTask { [saving] in
            var saving = saving
            try await saving.save("slot \(number % 4)", at: storage)
          }
        }
        try await group.waitForAll()
      }
      #expect(try await player.all(at: storage).count == 20)
      // Two in each slot that don't cover each other.
      for slot in 0..<4 {
        #expect(try await storage.look(at: player.container) { try $0.heads(of: "slot \(slot)").count } == 2)
      }
    }
  }

  @Test("a save whose content or version the container has already is decided over what is loaded", arguments: places)
  func known(place: Place) async throws {
    try await with(place) { storage, _ in
      var player = Player()
      for name in ["a", "b", "c"] { try await player.save("main", name, at: storage) }
      // A content of a version that isn't remembered.
      storage.loads.value = 0
      #expect(Self.isAccepted(try await player.save("main", "a", at: storage)))
      #expect(storage.loads.value == 1)
      for name in ["d", "e"] { try await player.save("main", name, at: storage) }
      storage.loads.value = 0
      // The same without its bytes, which the server has.
      #expect(Self.isAccepted(try await player.save("main", "b", sendsBytes: false, at: storage)))
      #expect(storage.loads.value == 1)
      for name in ["f", "g"] { try await player.save("main", name, at: storage) }
      // A version that was replaced, sent again.
      storage.loads.value = 0
      let count = try await player.all(at: storage).count
      player.heads["main"] = nil
      try await player.save("main", "a", id: VersionID(high: Self.device.low, low: 1), at: storage)
      #expect(storage.loads.value == 1)
      #expect(try await player.all(at: storage).count == count)
    }
  }

  @Test(
    "a commit is refused if what its decision takes as given isn't so: a version, a covered one, a content, a mark",
    arguments: places)
  func refused(place: Place) async throws {
    try await with(place) { storage, _ in
      var player = Player()
      for name in ["a", "b", "c"] { try await player.save("main", name, at: storage) }
      let covered = VersionID(high: 9, low: 9)
      try await storage.decide(on: player.container) { $0.markCovered(covered) }
      func isCommitted(
        _ id: VersionID, _ name: String, _ change: (inout Snapshot) -> Void = { _ in }
      ) async throws -> Bool {
        var reads = ReadSet()
        (reads.device, reads.used) = (Self.device, true)
        reads.slots = [ExactText("main")]
        var snapshot = try await storage.load(reads, of: player.container)
        snapshot.known.versions = [id]
        snapshot.known.contents = [Player.hash(name)]
        snapshot.assumption = Snapshot.Assumption(
          position: snapshot.position, newVersions: [id], newContents: [Player.hash(name)])
        #if PostgreSQL
        snapshot.assumption?.connections = (storage.storage as? PostgreSQLStorage)?.pool.connectionsMade ?? 0
        #endif
        change(&snapshot)
        var container = SnapshotContainer(snapshot)
        try container.putContent(
          EncodedContent(hash: Player.hash(name), length: 5, base: nil, bytes: frameBytes(10, seed: 1)))
        let position = snapshot.position
        container.advance(to: Cursor(epoch: position.epoch, seq: position.seq + 1, mark: 5))
        let record = VersionRecord(
          id: id, slot: "main", covers: [], contents: [Player.hash(name)], length: 5, savedAtMilliseconds: 5,
          writer: WriterID(1), provisional: false)
        try container.putVersion(SequencedVersion(record: record, seq: position.seq + 1))
        #expect(container.writes.showsAssumption)
        return try await storage.commit(
          container.writes, of: player.container, ifAt: snapshot.revision, leaving: nil)
      }
      let new = VersionID(high: 9, low: 1)
      #expect(try await !isCommitted(VersionID(high: Self.device.low, low: 1), "new"))
      #expect(try await !isCommitted(covered, "new"))
      #expect(try await !isCommitted(new, "a"))
      // No other database can take over from SQLite's.
      if place == .postgreSQL {
        #expect(try await !isCommitted(new, "new") { $0.assumption?.position.mark &+= 1 })
        #expect(try await !isCommitted(new, "new") { $0.assumption?.position.epoch += 1 })
        #expect(try await !isCommitted(new, "new") { $0.assumption?.connections -= 1 })
      }
      #expect(try await !isCommitted(new, "new") { $0.revision -= 1 })
      let before = try await player.all(at: storage).count
      #expect(before == 3)
      #expect(try await isCommitted(new, "new"))
      #expect(try await player.all(at: storage).count == 4)
    }
  }

  @Test("a content whose file is lost is asked for again by a save that builds on it, although it is remembered")
  func lost() async throws {
    try await with(.sqlite) { storage, _ in
      let sqlite = try #require(storage.storage as? SQLiteCloudStorage)
      try await TemporaryFolder.with { folder in
        for isBase in [false, true] {
          var player = Player()
          try await player.save("main", "first", at: storage)
          let file = folder.appendingPathComponent("frame")
          try frameBytes(100, seed: 1).write(to: file)
          let content = KeptContent(
            hash: Player.hash("large"), length: 5, base: nil, bytes: .file(file, count: frameBytes(100, seed: 1).count))
          _ = try await sqlite.putContent(content, of: player.container, quota: nil)
          for _ in 0..<2 {
            #expect(Self.isAccepted(try await player.save("main", "large", sendsBytes: false, at: storage)))
          }
          storage.loads.value = 0
          #expect(Self.isAccepted(try await player.save("main", "large", sendsBytes: false, at: storage)))
          #expect(storage.loads.value == 0)
          for name in try sqlite.files.names() { try sqlite.files.remove(name) }
          let response =
            if isBase {
              try await player.save("main", base: "large", at: storage)
            } else {
              try await player.save("main", "large", sendsBytes: false, at: storage)
            }
          #expect(!Self.isAccepted(response), "\(response.outcome)")
        }
      }
    }
  }

  @Test("nothing of a deleted player is remembered", arguments: places)
  func deleted(place: Place) async throws {
    try await with(place) { storage, _ in
      var player = Player()
      for _ in 0..<3 { try await player.save("main", at: storage) }
      var reads = ReadSet()
      (reads.device, reads.slots, reads.versions) = (Self.device, [ExactText("main")], [VersionID(high: 5, low: 5)])
      let remembered = try #require(await storage.remembered(of: player.container))
      #expect(remembered.snapshot(of: player.container, for: reads) != nil)
      _ = try await storage.storage.delete(player.container, now: 6)
      #expect(remembered.snapshot(of: player.container, for: reads) == nil)
    }
  }

  @Test("nothing is remembered from before a connection was made")
  func connections() {
    let made = Shared(1)
    let remembered = RememberedContainers { made.value }
    var reads = ReadSet()
    (reads.device, reads.suspects) = (Self.device, true)
    reads.cells = [CellKey(collection: "progress", key: "level")]
    let container = RememberedTests.newContainer()
    var snapshot = Snapshot(revision: 1, position: .start, known: reads)
    snapshot.device = Snapshot.Device()
    for revision in 1...2 as ClosedRange<UInt64> {
      snapshot.revision = revision
      #expect(remembered.snapshot(of: container, for: reads) == nil)
      remembered.note(SnapshotContainer(snapshot), of: container, connections: 1)
    }
    #expect(remembered.snapshot(of: container, for: reads)?.revision == 3)
    made.value = 2
    #expect(remembered.snapshot(of: container, for: reads) == nil)
    made.value = 1
    remembered.forget(container)
    #expect(remembered.snapshot(of: container, for: reads) == nil)
  }

  @Test("what was committed before a player was deleted isn't remembered after that")
  func late() {
    let remembered = RememberedContainers { 1 }
    var reads = ReadSet()
    (reads.device, reads.suspects) = (Self.device, true)
    reads.cells = [CellKey(collection: "progress", key: "level")]
    let container = RememberedTests.newContainer()
    var snapshot = Snapshot(revision: 1, position: .start, known: reads)
    snapshot.device = Snapshot.Device()
    for isDeleted in [false, true] {
      if isDeleted { remembered.end(container) }
      for revision in 1...2 as ClosedRange<UInt64> {
        snapshot.revision = revision
        remembered.note(SnapshotContainer(snapshot), of: container, connections: 1)
      }
      #expect((remembered.snapshot(of: container, for: reads) == nil) == isDeleted)
    }
  }
}
#endif
