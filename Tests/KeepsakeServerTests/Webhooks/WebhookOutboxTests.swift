#if Cloud
import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeServer

// GRDB has a type of this name, too.
import struct KeepsakeReplication.Cursor

/// What is written for a studio's backends, and when.
@Suite("Events for webhooks", .hangLimit) struct WebhookOutboxTests {
  private struct Failure: Error {}

  @Test(
    "an event is committed with its deed: neither is there if the decision fails or another one was first",
    arguments: TestStorage.single)
  func together(_ store: TestStorage) async throws {
    try await WebhookLab.with(store) { lab in
      var lab = lab
      try await lab.register(1)
      let first = try await lab.save(1)
      #expect(try await lab.rows().map(\.kind) == ["deviceAdded", "saveArrived"])
      let container = WebhookLab.player(1).container
      let writes = try await Self.writes(over: lab.storage, container)
      #expect(try await lab.storage.commit(writes, of: container, ifAt: 999) == false)
      await #expect(throws: Failure.self) {
        try await lab.storage.decide(on: container) { container throws in
          container.advance(to: Cursor(epoch: 1, seq: 2, mark: 12))
          throw Failure()
        }
      }
      #expect(try await lab.rows().count == 2)
      // A save whose event can't be written isn't there either.
      try await lab.execute(
        sqlite: "CREATE TRIGGER no AFTER INSERT ON webhookEvent BEGIN SELECT RAISE(ABORT, 'no'); END",
        postgreSQL: "ALTER TABLE webhook_event ADD CONSTRAINT refused CHECK (false) NOT VALID")
      await #expect(throws: (any Error).self) { try await lab.save(1, covers: [first]) }
      #expect(try await lab.rows().count == 2)
      #expect(try await lab.storage.position(of: container).seq == 1)
      try await lab.storage.close()
    }
  }

  /// What a save would write.
  private static func writes(
    over storage: any AdminStorage, _ container: ContainerID
  ) async throws -> WriteSet {
    var reads = ReadSet()
    let id = VersionID(high: 9, low: 9)
    reads.versions = [id]
    var overlay = SnapshotContainer(try await storage.load(reads, of: container))
    overlay.advance(to: Cursor(epoch: 1, seq: 2, mark: 12))
    try overlay.putVersion(
      SequencedVersion(
        record: VersionRecord(
          id: id, slot: "main", covers: [], contents: [], length: 0, savedAtMilliseconds: 1, writer: WriterID(3),
          provisional: false), seq: 2))
    return overlay.writes
  }

  @Test(
    "without webhooks nothing is written, and with some only the kinds that an endpoint takes",
    arguments: TestStorage.single)
  func kinds(_ store: TestStorage) async throws {
    try await WebhookLab.with(store, kinds: [.saveArrived]) { lab in
      var lab = lab
      try await lab.register(1)
      try await lab.save(1)
      #expect(try await lab.rows().map(\.kind) == ["saveArrived"])
      #expect(try await lab.rows()[0].player == WebhookLab.player(1).player)
      try await lab.storage.close()
      // As a server without any opens it.
      let storage = try await lab.openQuietly()
      try await storage.decide(on: WebhookLab.player(1).container) { container throws in
        container.advance(to: Cursor(epoch: 1, seq: 2, mark: 12))
        try container.putVersion(
          SequencedVersion(
            record: VersionRecord(
              id: VersionID(high: 1, low: 2), slot: "main", covers: [], contents: [], length: 0,
              savedAtMilliseconds: 1, writer: WriterID(3), provisional: false), seq: 2))
      }
      #expect(try await lab.rows(in: storage).count == 1)
      // What waits for an endpoint that isn't configured any more is a dead letter.
      var limits = WebhookLimits()
      limits.deadMilliseconds = 1_000
      try await storage.retireWebhooks(except: ["shop"], limits, now: 5)
      #expect(try await storage.deadWebhooks(of: "shop", after: 0, limit: 9).isEmpty)
      try await storage.retireWebhooks(except: [], limits, now: 5)
      #expect(try await storage.deadWebhooks(of: "shop", after: 0, limit: 9).map(\.reason) == ["no such webhook"])
      try await storage.retireWebhooks(except: [], limits, now: 1_006)
      #expect(try await storage.deadWebhooks(of: "shop", after: 0, limit: 9).isEmpty)
      try await storage.close()
    }
  }

  @Test(
    "what is left of removed webhooks is held to the bounds of dead letters, in steps; others keep what they have",
    arguments: TestStorage.single)
  func removedWebhooks(_ store: TestStorage) async throws {
    var limits = WebhookLimits()
    (limits.dead, limits.rowsAtOnce) = (20, 8)
    try await WebhookLab.with(store, kinds: [.saveArrived], limits: limits) { lab in
      var lab = lab
      try await lab.register(1)
      for _ in 0..<50 { try await lab.save(1) }
      #expect(try await lab.rows().map(\.number) == Array(1...50))
      for (name, from) in [("bank", 11), ("log", 41)] {
        try await lab.execute(
          sqlite: "UPDATE webhookEvent SET endpoint = '\(name)' WHERE id >= \(from)",
          postgreSQL: "UPDATE webhook_event SET endpoint = '\(name)' WHERE number >= \(from)")
        _ = try await lab.storage.takeWebhooks(of: name, by: Data(), after: nil)
      }
      let before = lab.commits
      try await lab.storage.retireWebhooks(except: ["shop"], limits, now: lab.time.value)
      #expect(try await lab.rows("endpoint = 'shop' AND dead IS NULL").count == 10)
      #expect(try await lab.rows("endpoint = 'log'").count == 10)
      #expect(try await lab.rows("endpoint = 'bank'").map(\.number) == Array(21...40))
      #expect(try await lab.rows("dead IS NOT NULL").allSatisfy { $0.reason == "no such webhook" })
      // 30 rows in four steps and ten of these in two, ten rows in two.
      #expect(lab.commits == before.map { $0 + 8 })
      try await lab.storage.close()
    }
  }

  @Test("what waits of one webhook costs another nothing: an index serves every statement, and counting reads no rows")
  func indexes() async throws {
    try await WebhookLab.with(.sqlite) { lab in
      let storage = try #require(lab.storage as? SQLiteCloudStorage)
      let waiting = "INDEX webhookWaiting (endpoint=?"
      for (statement, index) in [
        (WebhookStatement.scan, waiting), (WebhookStatement.refill, "INDEX webhookLane (lane=? AND endpoint=?"),
        (WebhookStatement.countWaiting, "COVERING \(waiting)"),
        (WebhookStatement.countDead, "COVERING INDEX webhookDead (endpoint=?"),
        (WebhookStatement.buryOfLane, "INDEX webhookLane (lane=? AND endpoint=?"),
        (WebhookStatement.bury, "COVERING \(waiting)"), (WebhookStatement.buryOld, "COVERING \(waiting)"),
        (WebhookStatement.retire, "COVERING \(waiting)"),
        (WebhookStatement.nextWaiting, "COVERING INDEX webhookWaiting (endpoint>?)"),
        (WebhookStatement.nextDead, "COVERING INDEX webhookDead (endpoint>?)"),
      ] {
        let plan = try await storage.pool.read { db in
          try String.fetchAll(
            db.makeStatement(sql: "EXPLAIN QUERY PLAN " + statement.replacingOccurrences(of: "?", with: "1")),
            adapter: SuffixRowAdapter(fromIndex: 3))
        }
        #expect(plan.contains { $0.contains(index) }, "\(statement)")
        #expect(!plan.contains { $0.contains("SCAN webhookEvent") }, "\(statement)")
      }
      try await lab.storage.close()
    }
  }

  @Test(
    "a version brings one event however often it changes, and a device one however often it comes",
    arguments: TestStorage.single)
  func once(_ store: TestStorage) async throws {
    try await WebhookLab.with(store, kinds: [.saveArrived, .deviceAdded]) { lab in
      var lab = lab
      for _ in 0..<3 {
        try await lab.register(1)
        lab.time.value += WebhookLab.hour
      }
      let id = try await lab.save(1)
      try await lab.storage.decide(on: WebhookLab.player(1).container) { container throws in
        container.advance(to: Cursor(epoch: 1, seq: 2, mark: 12))
        guard let version = try container.version(id) else { throw Failure() }
        try container.putVersion(SequencedVersion(record: version.record, seq: 2))
      }
      #expect(try await lab.rows().map(\.kind) == ["deviceAdded", "saveArrived"])
      try await lab.storage.close()
    }
  }

  @Test(
    "a slot with two versions is told of after ten minutes and once; one that was merged before isn't",
    arguments: TestStorage.single)
  func conflicts(_ store: TestStorage) async throws {
    try await WebhookLab.with(store, kinds: [.conflictOpen]) { lab in
      var lab = lab
      func tell() async throws -> Int {
        try await lab.storage.tellConflicts(
          openSince: lab.time.value - lab.limits.conflictMilliseconds, now: lab.time.value, limit: 10)
      }
      try await lab.register(1)
      try await lab.register(2)
      let began = lab.time.value
      for number in [1, 2] as [UInt64] { for _ in 0..<2 { try await lab.save(number, covers: []) } }
      lab.time.value += WebhookLab.minute * 9
      #expect(try await tell() == 0)
      // The second player merges.
      try await lab.save(2, covers: [VersionID(high: 2, low: 1), VersionID(high: 2, low: 2)])
      lab.time.value += WebhookLab.minute
      #expect(try await tell() == 1)
      #expect(try await tell() == 0)
      // A third version is the same conflict.
      try await lab.save(1, covers: [])
      lab.time.value += WebhookLab.hour
      #expect(try await tell() == 0)
      let row = try #require(try await lab.rows().first)
      let data = try #require(try JSONSerialization.jsonObject(with: row.data) as? [String: Any])
      #expect(row.player == WebhookLab.player(1).player && data["slot"] as? String == "main")
      #expect(data["versions"] as? Int == 2 && data["sinceMilliseconds"] as? Int == Int(began))
      // The next conflict of the slot is another one.
      try await lab.save(1, covers: (1...3).map { VersionID(high: 1, low: $0) })
      try await lab.save(1, covers: [])
      lab.time.value += WebhookLab.hour
      #expect(try await tell() == 1)
      #expect(try await lab.rows().count == 2)
      try await lab.storage.close()
    }
  }

  @Test("conflicts that were open before anybody was told of any are told of, too", arguments: TestStorage.single)
  func olderConflicts(_ store: TestStorage) async throws {
    try await WebhookLab.with(store, kinds: [.conflictOpen]) { lab in
      var lab = lab
      try await lab.register(1)
      for _ in 0..<2 { try await lab.save(1, covers: []) }
      try await lab.execute(sqlite: "DELETE FROM webhookConflict", postgreSQL: "DELETE FROM webhook_conflict")
      try await lab.storage.noteOpenConflicts(now: lab.time.value)
      #expect(try await lab.storage.tellConflicts(openSince: lab.time.value, now: lab.time.value, limit: 10) == 1)
      try await lab.storage.noteOpenConflicts(now: lab.time.value)
      #expect(try await lab.storage.tellConflicts(openSince: .max, now: lab.time.value, limit: 10) == 0)
      try await lab.storage.close()
    }
  }

  @Test(
    "what was noted of conflicts is forgotten when nobody is told of any, so that it hides no later one",
    arguments: TestStorage.single)
  func conflictMeanwhile(_ store: TestStorage) async throws {
    try await WebhookLab.with(store, kinds: [.conflictOpen]) { lab in
      var lab = lab
      func tell() async throws -> Int {
        try await lab.storage.tellConflicts(openSince: .max, now: lab.time.value, limit: 10)
      }
      try await lab.register(1)
      for _ in 0..<2 { try await lab.save(1, covers: []) }
      #expect(try await tell() == 1)
      try await lab.storage.forgetUnwantedConflicts()
      try await lab.storage.noteOpenConflicts(now: lab.time.value)
      #expect(try await tell() == 0)
      // A server that tells nobody runs. The slot is merged, and shows two versions again.
      let quiet = try await lab.openQuietly()
      try await quiet.forgetUnwantedConflicts()
      try await quiet.close()
      try await lab.storage.noteOpenConflicts(now: lab.time.value)
      #expect(try await tell() == 1)
      try await lab.storage.close()
    }
  }

  @Test(
    "of a deleted player one event is left, without the id, after what was on its way; others keep theirs",
    arguments: TestStorage.single)
  func deletion(_ store: TestStorage) async throws {
    try await WebhookLab.with(store) { lab in
      var lab = lab
      for number in [1, 2] as [UInt64] {
        try await lab.register(number)
        for _ in 0..<3 { try await lab.save(number) }
      }
      // The first event of each is on its way, and takes its time.
      try await lab.play(for: 10) { _, _ in WebhookLab.Reply(milliseconds: 5_000) }
      #expect(lab.received.map(\.kind) == ["deviceAdded", "deviceAdded"])
      let identity = WebhookLab.player(1)
      try await lab.storage.delete(identity.container, now: lab.time.value)
      await lab.courier.notice()
      #expect(try await lab.rows().allSatisfy { $0.player != identity.player })
      try await lab.play(for: 4_000)
      #expect(lab.received.count == 2)
      try await lab.play(for: WebhookLab.minute)
      let deleted = lab.received.filter { $0.kind == "playerDeleted" }
      #expect(deleted.count == 1 && deleted[0].player == nil)
      #expect(deleted[0].data["playerSHA256"] as? String == "\(AuditEntry.hash(identity.player))")
      #expect(lab.versions["\(identity.player)"] == nil)
      let other = "\(WebhookLab.player(2).player)"
      #expect(lab.versions[other] == lab.saved[other])
      #expect(try await lab.rows().isEmpty)
      try await lab.storage.close()
    }
  }

  @Test("what is sent is signed as another implementation signs it, by both secrets while one is replaced")
  func signature() throws {
    let body = Data(
      """
      {"id":"000102030405060708090a0b0c0d0e0f","kind":"deviceAdded","player":null,"createdMilliseconds":5,\
      "data":{"device":"ff"}}
      """.utf8)
    // By Python's hmac.
    let (new, old) = (
      "a0de9c8e3ac675d13d6144ca8126559aa7a77bf6b0d3ee95d4e20ea33d576be2",
      "807e3759ab82833010529afd5a7bb57f42d74c25ca52abfb42ba363809c7c544"
    )
    let secrets = try WebhookSecrets(["correct-horse-battery-staple", "an-older-secret-0123456789"])
    #expect(
      secrets.signature(id: "000102030405060708090a0b0c0d0e0f", milliseconds: 1_764_230_400_000, body: body)
        == "v1=\(new),v1=\(old)")
  }

  @Test("a file of secrets that others may read is refused, and one without secrets, or with short ones")
  func secretFiles() throws {
    let folder = try TemporaryFolder()
    let file = folder.url.appendingPathComponent("secrets")
    #expect(throws: ServerError.self) { try WebhookSecrets(file, of: "shop") }
    for (text, isGood) in [
      ("0123456789abcdef\n", true), ("0123456789abcdef\n\nfedcba9876543210\n", true), ("", false), ("short\n", false),
      ("0123456789abcdef\n0123456789abcdef\n0123456789abcdef\n", false), ("0123456789 abcdef\n", false),
    ] {
      try PrivateFile.write(Data(text.utf8), to: file)
      if isGood {
        _ = try WebhookSecrets(file, of: "shop")
      } else {
        #expect(throws: ServerError.self, "\(text)") { try WebhookSecrets(file, of: "shop") }
      }
    }
    try PrivateFile.write(Data("0123456789abcdef\n".utf8), to: file)
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: file.path)
    let error = #expect(throws: ServerError.self) { try WebhookSecrets(file, of: "shop") }
    #expect(error?.message.contains("chmod 600") == true)
  }
}
#endif
