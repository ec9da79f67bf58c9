#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import Logging
import TestSupport
import Testing

// GRDB has a type of this name, too.
import struct KeepsakeReplication.Cursor

@testable import KeepsakeServer

/// Load, decide, commit: what happens between a decision and its commit, and whom it waits for.
@Suite("Decisions over what was loaded", .hangLimit) struct DecisionTests {
  private static let player = ContainerID(high: 3, low: 4)
  private static let identity = DeviceIdentity(
    device: DeviceID(high: 1, low: 1), player: PlayerID(high: 2, low: 2), container: player, app: AppID(ofKey: "app"))

  private func with(_ body: (CountingStorage, URL) async throws -> Void) async throws {
    try await TemporaryFolder.with { folder in
      let contents = folder.appendingPathComponent("contents")
      try FileManager.default.createDirectory(at: contents, withIntermediateDirectories: true)
      let storage = try SQLiteCloudStorage(
        database: folder.appendingPathComponent("cloud.sqlite"), contents: contents, clock: { 1_000_000 })
      try await body(CountingStorage(storage: storage), folder)
      try await storage.close()
    }
  }

  /// The routes over a storage, as a server has them.
  private func routes(_ storage: CountingStorage, _ folder: URL, quota: Int64? = nil) throws
    -> CloudRoutes
  {
    let incoming = folder.appendingPathComponent("incoming")
    try FileManager.default.createDirectory(at: incoming, withIntermediateDirectories: true)
    let (logger, clock) = (Logger(label: "keepsake.test"), { 1_000_000 } as @Sendable () -> Int64)
    let metrics = ServerMetrics(PrometheusRegistry())
    let refusals = RefusalLog(metrics: metrics, logger: logger, clock: clock)
    let partials = try PartialUploads(folder: incoming, refusals: refusals, clock: clock, logger: logger)
    return CloudRoutes(
      storage: storage, appKeys: try AppKeys(["key-of-an-app"]),
      tokens: try TokenAuthority(ServerSecrets(data: folder), clock: clock, logger: logger),
      tokenUses: TokenUses(storage.storage, logger: logger), events: EventHub(), guesses: GuessLimiter(),
      identityChecks: try IdentityChecks(ServerConfiguration(data: folder), nonceKeys: { [] }, logger: logger),
      uploads: UploadSpool(folder: incoming, sharing: partials), partials: partials,
      gate: ServerGate(folder: incoming, connections: 100, log: refusals, clock: clock), clock: clock, quota: quota,
      serverKeys: try ServerKeys(data: folder), metrics: metrics, refusals: refusals, authoritative: [])
  }

  private static func version(_ number: UInt64, covers: [UInt64] = [], contents: [ContentHash] = []) -> VersionRecord {
    VersionRecord(
      id: VersionID(high: 1, low: number), slot: "main", covers: covers.map { VersionID(high: 1, low: $0) },
      contents: contents, length: 5, savedAtMilliseconds: 5, writer: WriterID(3), provisional: number == 1)
  }

  private static func content(_ name: String) -> EncodedContent {
    EncodedContent(hash: ContentHash(of: Data(name.utf8)), length: 5, base: nil, bytes: Data(name.utf8))
  }

  /// Keeps the writer busy until it is opened.
  private final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)
    private let isClosed = Shared(false)

    func close(_ storage: CountingStorage) async throws -> Task<Void, any Error> {
      let task = Task {
        try await storage.storage.committer.write(for: nil) { _ in
          self.isClosed.value = true
          self.semaphore.wait()
        }
      }
      try await until("the writer waits") { self.isClosed.value }
      return task
    }

    func open() { semaphore.signal() }
  }

  // MARK: Conflicts

  @Test("of two decisions that rest on the same revision, one is committed, and nothing of the other")
  func conflict() async throws {
    try await with { storage, _ in
      let snapshot = try await storage.load(ReadSet(), of: Self.player)
      var (first, second) = (SnapshotContainer(snapshot), SnapshotContainer(snapshot))
      first.advance(to: Cursor(epoch: 0, seq: 1, mark: 11))
      second.advance(to: Cursor(epoch: 0, seq: 1, mark: 12))
      second.markCovered(VersionID(high: 9, low: 9))
      #expect(try await storage.commit(first.writes, of: Self.player, ifAt: snapshot.revision))
      #expect(try await !storage.commit(second.writes, of: Self.player, ifAt: snapshot.revision))
      #expect(try await storage.position(of: Self.player).mark == 11)
      #expect(try await storage.decide(on: Self.player) { try $0.isCovered(VersionID(high: 9, low: 9)) } == false)
      // It begins anew.
      let next = try await storage.load(ReadSet(), of: Self.player)
      #expect(next.revision == snapshot.revision + 1)
      var third = SnapshotContainer(next)
      third.advance(to: Cursor(epoch: 0, seq: 2, mark: 12))
      third.markCovered(VersionID(high: 9, low: 9))
      #expect(try await storage.commit(third.writes, of: Self.player, ifAt: next.revision))
      #expect(try await storage.decide(on: Self.player) { try $0.isCovered(VersionID(high: 9, low: 9)) })
    }
  }

  @Test("decisions that are made at the same time about one container all count, one after the other")
  func allCount() async throws {
    try await with { storage, _ in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<40 as Range<UInt64> {
          group.addTask { try await storage.addGem(to: Self.player, mark: number) }
        }
        try await group.waitForAll()
      }
      #expect(try await storage.position(of: Self.player).seq == 40)
      #expect(try await storage.decide(on: Self.player) { try $0.bank().pool } == ["gems": 40])
      #expect(storage.commits.value >= 40)
    }
  }

  @Test("the revision moves with everything: damage, what devices have reached, the bank, contents, removed devices")
  func revisions() async throws {
    try await with { storage, _ in
      try await storage.recordDevice(
        DeviceRecord(identity: Self.identity, name: "a", createdMilliseconds: 1, seenMilliseconds: 1))
      let hash = ContentHash(of: Data("a".utf8))
      let content = KeptContent(hash: hash, length: 5, base: nil, bytes: .memory(Data([1, 2])))
      let device = Self.identity.device
      let changes: [@Sendable () async throws -> Void] = [
        { _ = try await storage.putContent(content, of: Self.player, quota: nil) },
        { try await storage.decide(on: Self.player) { try $0.suspectContent(hash) } },
        { try await storage.decide(on: Self.player) { try $0.setReached(5, by: device) } },
        { try await storage.decide(on: Self.player) { $0.setBank(BankState()) } },
        { try await storage.decide(on: Self.player) { try $0.recordChain(ChainID(high: 1, low: 1), of: device) } },
        { _ = try await storage.retire(device, of: Self.player, now: 5) },
      ]
      for change in changes {
        let before = try await storage.load(ReadSet(), of: Self.player).revision
        try await change()
        #expect(try await storage.load(ReadSet(), of: Self.player).revision == before + 1)
      }
    }
  }

  @Test("a decision that was made before its player's data was deleted isn't committed after that", arguments: [0, 1])
  func deleted(commits: Int) async throws {
    try await with { storage, _ in
      for number in 0..<UInt64(commits) {
        try await storage.decide(on: Self.player) { $0.advance(to: Cursor(epoch: 0, seq: number + 1, mark: 1)) }
      }
      let snapshot = try await storage.load(ReadSet(), of: Self.player)
      try await storage.delete(Self.player, now: 5)
      var late = SnapshotContainer(snapshot)
      late.advance(to: Cursor(epoch: 0, seq: snapshot.position.seq + 1, mark: 11))
      #expect(try await !storage.commit(late.writes, of: Self.player, ifAt: snapshot.revision))
      #expect(try await storage.position(of: Self.player).seq == 0)
    }
  }

  @Test("a receipt that two players' decisions want to be paid for is paid to the first that is committed")
  func receipts() async throws {
    try await with { storage, _ in
      let receipt = Receipt(
        app: Data([1]), hash: ContentHash(of: Data("r".utf8)), operation: OperationID(high: 1, low: 1))
      var reads = ReadSet()
      reads.bank.receipt = receipt
      let containers = [Self.player, ContainerID(high: 3, low: 5)]
      var outcomes: [Bool] = []
      var snapshots: [Snapshot] = []
      for container in containers { snapshots.append(try await storage.load(reads, of: container)) }
      for (container, snapshot) in zip(containers, snapshots) {
        var decision = SnapshotContainer(snapshot)
        #expect(try decision.takeReceipt(receipt, for: container))
        outcomes.append(try await storage.commit(decision.writes, of: container, ifAt: snapshot.revision))
      }
      #expect(outcomes == [true, false])
      let isTaken = try await storage.decide(on: containers[1], reading: reads) { container in
        try container.takeReceipt(receipt, for: containers[1])
      }
      #expect(!isTaken)
    }
  }

  // MARK: Round trips

  @Test("what a decision asks for and wasn't loaded is loaded in a second round, and the decision begun anew")
  func notLoaded() async throws {
    try await with { storage, _ in
      let key = CellKey(collection: "progress", key: "level")
      let update = CellUpdate(key: key, state: CellState(value: .max(.int(5))))
      let runs = Shared(0)
      try await storage.decide(on: Self.player) { container in
        runs.value += 1
        container.advance(to: Cursor(epoch: 0, seq: 1, mark: 1))
        try container.setCell(SequencedCell(update: update, seq: 1))
      }
      #expect(runs.value == 2 && storage.loads.value == 2 && storage.commits.value == 1)
      var reads = ReadSet()
      reads.cells = [key]
      let found = try await storage.decide(on: Self.player, reading: reads) { try $0.cell(key)?.update }
      #expect(found == update && storage.loads.value == 3 && storage.commits.value == 1)
    }
  }

  @Test("an exchange takes at most two round trips: saves, values, money, deletes, catching up, with and without quota")
  func roundTrips() async throws {
    for quota in [nil, 10_000_000] as [Int64?] {
      try await with { storage, folder in
        let routes = try routes(storage, folder, quota: quota)
        var other = Self.identity
        other.device = DeviceID(high: 1, low: 2)
        for device in [Self.identity, other] {
          try await storage.recordDevice(
            DeviceRecord(identity: device, name: "a", createdMilliseconds: 1, seenMilliseconds: 1_000_000))
        }
        func trips(_ request: ExchangeRequest, _ device: DeviceIdentity = Self.identity) async throws
          -> (ExchangeResponse, Int)
        {
          let before = storage.trips
          let response = try await routes.exchange(request, from: device)
          return (response, storage.trips - before)
        }
        var cursor = Cursor.start
        let chain = ChainID(high: 5, low: 6)
        var head = ChainHead(emptyChain: chain)
        for number in 1...12 as ClosedRange<UInt64> {
          let bytes = Data("content \(number)".utf8)
          let content = EncodedContent(
            hash: ContentHash(of: bytes), length: 5,
            base: number % 3 == 2 ? ContentHash(of: Data("content \(number - 1)".utf8)) : nil, bytes: bytes)
          let operation = WalletOperation(
            id: OperationID(high: 1, low: number), kind: .earn, currency: "gems", amount: 3, reason: "quest",
            goods: number == 5 ? ["hat"] : [])
          let offer = WalletOffer(chain: chain, base: head, statement: number - 1, operations: [operation])
          let cell = CellUpdate(
            key: CellKey(collection: "progress", key: "\(number % 4)"),
            state: CellState(value: .max(.int(Int64(number)))))
          var record = Self.version(number, covers: number > 1 ? [number - 1] : [], contents: [content.hash])
          if number == 12 { (record.contents, record.length, record.tombstone) = ([], 0, true) }
          let (response, count) = try await trips(
            ExchangeRequest(
              cursor: cursor, cells: [cell], versions: [record], contents: number == 12 ? [] : [content],
              wallet: offer, limit: 500))
          #expect(count <= 2, "exchange \(number), quota \(quota ?? 0)")
          guard case .accepted = response.outcome, case .accepted(let next) = response.wallet?.state else {
            Issue.record("\(response)")
            return
          }
          (cursor, head) = (response.cursor, next)
          if number == 6 {
            let (page, count) = try await trips(ExchangeRequest(cursor: .start, limit: 500), other)
            #expect(count <= 2 && page.contents.count == 1 && !page.more)
          }
        }
        let (pages, _) = try await trips(ExchangeRequest(cursor: .start, limit: 2), other)
        #expect(pages.more)
        let (_, rest) = try await trips(ExchangeRequest(cursor: pages.cursor, limit: 500), other)
        #expect(rest <= 2)
      }
    }
  }

  @Test("an empty exchange at the newest position writes nothing, and doesn't wait for the writer")
  func empty() async throws {
    try await with { storage, folder in
      let routes = try routes(storage, folder)
      try await storage.recordDevice(
        DeviceRecord(identity: Self.identity, name: "a", createdMilliseconds: 1, seenMilliseconds: 1_000_000))
      let saved = try await routes.exchange(
        ExchangeRequest(cursor: .start, versions: [Self.version(1)], limit: 10), from: Self.identity)
      let empty = ExchangeRequest(cursor: saved.cursor, limit: 10)
      _ = try await routes.exchange(empty, from: Self.identity)
      func written() async throws -> Int { try await storage.storage.pool.write { $0.totalChangesCount } }
      let (before, commits, trips) = (try await written(), storage.commits.value, storage.trips)
      let gate = Gate()
      let blocked = try await gate.close(storage)
      let response = try await routes.exchange(empty, from: Self.identity)
      gate.open()
      try await blocked.value
      #expect(response.cursor == saved.cursor && response.changes.isEmpty)
      #expect(storage.commits.value == commits && storage.trips == trips + 1)
      #expect(try await written() == before)
    }
  }

  // MARK: Fairness

  @Test("a player with much to write is one transaction ahead of another one at most, however many wait")
  func fair() async throws {
    try await with { storage, _ in
      let committer = storage.storage.committer
      let gate = Gate()
      let blocked = try await gate.close(storage)
      let turns = Shared<[(isGreedy: Bool, group: Int)]>([])
      func enqueue(_ container: ContainerID, work: Int) -> Task<Void, any Error> {
        Task {
          try await committer.write(for: container, work: work) { _ in
            turns.value += [(container == Self.player, committer.groups)]
          }
        }
      }
      var tasks = (0..<30).map { _ in enqueue(Self.player, work: ServerLimits.workPerCommit) }
      try await until("they wait") { committer.waitingCount == 30 }
      let start = committer.groups
      tasks += (1...20).map { enqueue(ContainerID(high: 4, low: UInt64($0)), work: 10) }
      try await until("the others wait") { committer.waitingCount == 50 }
      gate.open()
      try await blocked.value
      for task in tasks { try await task.value }
      let others = turns.value.filter { !$0.isGreedy }.map { $0.group - start }
      #expect(others.count == 20 && others.allSatisfy { $0 <= 2 })
      #expect(turns.value.filter(\.isGreedy).map { $0.group - start }.max() == 31)
    }
  }

  @Test("a request that covers very many versions delays another player's by one turn of the writer at most")
  func hugeRequest() async throws {
    try await with { storage, folder in
      let routes = try routes(storage, folder)
      let gate = Gate()
      let blocked = try await gate.close(storage)
      let committer = storage.storage.committer
      let huge = (0..<3 as Range<UInt64>).map { request in
        Task {
          let content = Self.content("\(request)")
          var version = Self.version(request + 1, contents: [content.hash])
          version.covers = (0..<9_000).map { VersionID(high: request + 7, low: $0) }
          _ = try await routes.exchange(
            ExchangeRequest(cursor: .start, versions: [version], contents: [content], limit: 5), from: Self.identity)
        }
      }
      try await until("all of them wait") { committer.waitingCount == 3 }
      var other = Self.identity
      (other.container, other.device) = (ContainerID(high: 9, low: 9), DeviceID(high: 9, low: 9))
      let content = Self.content("other")
      let small = Task { [other] in
        _ = try await routes.exchange(
          ExchangeRequest(
            cursor: .start, versions: [Self.version(1, contents: [content.hash])], contents: [content], limit: 5),
          from: other)
      }
      try await until("the other waits") { committer.waitingCount == 4 }
      gate.open()
      try await blocked.value
      try await small.value
      for task in huge { try await task.value }
      let order = try await storage.storage.pool.read { db in
        try Data.fetchAll(
          db, sql: "SELECT id FROM content JOIN container ON container.number = container ORDER BY content.number")
      }
      #expect(order.count == 4 && order.prefix(2).contains(other.container.bytes))
    }
  }
}
#endif
