import Foundation
import GRDB
import Keepsake
import TestSupport
import Testing

/// A game's own tables, beside everything else that it keeps.
@Suite struct RecordsTests {
  /// The migrations of the game's first releases.
  static func migrator(upTo version: Int = 2, failing: Bool = false) -> DatabaseMigrator {
    var migrator = DatabaseMigrator()
    migrator.registerMigration("creatures") { db in
      try db.create(table: "creature") { table in
        table.primaryKey("id", .integer)
        table.column("name", .text).notNull()
        table.column("seen", .integer).notNull().indexed()
      }
    }
    if version >= 2 {
      migrator.registerMigration("places") { db in
        try db.alter(table: "creature") { $0.add(column: "place", .text) }
        try db.execute(sql: "UPDATE creature SET place = 'forest'")
        if failing { try db.execute(sql: "INSERT INTO creature (id, name, seen) VALUES (1, 'twice', 0)") }
      }
    }
    return migrator
  }

  static func add(_ name: String, seen: Int = 0, to game: GameData) throws {
    try game.records.write { db in
      try db.execute(sql: "INSERT INTO creature (name, seen) VALUES (?, ?)", arguments: [name, seen])
    }
  }

  static func names(_ game: GameData) throws -> [String] {
    try game.records.read { db in try String.fetchAll(db, sql: "SELECT name FROM creature ORDER BY id") }
  }

  @Test("what was written is there after a restart, and a write that throws is rolled back")
  func keeps() throws {
    let device = try Device()
    let game = try device.open()
    try game.records.migrate(Self.migrator())
    // A name is a value, whatever it contains.
    let hostile = "Robert'); DROP TABLE creature; --\u{202E}"
    try Self.add(hostile, to: game)
    struct Refused: Error {}
    #expect(throws: Refused.self) {
      try game.records.write { db in
        try db.execute(sql: "DELETE FROM creature")
        throw Refused()
      }
    }
    #expect(try Self.names(game) == [hostile])
    try game.close()
    let again = try device.open()
    defer { end(again) }
    try again.records.migrate(Self.migrator())
    #expect(try Self.names(again) == [hostile])
    #expect(again.incidents.isEmpty)
  }

  @Test("a game without records has no file for them, and using the records of a closed game throws")
  func opensLate() throws {
    let device = try Device()
    let game = try device.open()
    try game.saves.capture(World(), to: .main)
    try game.close()
    #expect(!FileManager.default.fileExists(atPath: device.url.appendingPathComponent("records.sqlite").path))
    #expect(gameErrorCode { try game.records.write { _ in } } == .closed)
    #expect(gameErrorCode { _ = try game.records.reader } == .closed)
  }

  @Test("each write is durable when it returns: the write-ahead log is synced at every commit")
  func isDurable() throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    let settings = try game.records.write { db in
      (try Int.fetchOne(db, sql: "PRAGMA synchronous"), try String.fetchOne(db, sql: "PRAGMA journal_mode"))
    }
    #expect(settings.0 == 2 && settings.1 == "wal")
  }

  @Test("a write's result may be used or discarded, as may the last expression of its body")
  func results() throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    try game.records.migrate(Self.migrator())
    try Self.add("owl", to: game)
    let sql = "UPDATE creature SET name = name || '!'"
    let count = try game.records.write { db in
      try db.execute(sql: sql)
      return db.changesCount
    }
    // Without `_ =`: a warning would be an error here.
    try game.records.write { db in
      try db.execute(sql: sql)
      return db.changesCount
    }
    #expect(try count == 1 && Self.names(game) == ["owl!!"])
  }

  @Test("an older game refuses a newer game's tables, before and after reading them, and changes no byte of them")
  func refusesNewer() throws {
    let device = try Device()
    let game = try device.open()
    try game.records.migrate(Self.migrator(upTo: 2))
    try Self.add("owl", to: game)
    try game.close()
    let file = device.url.appendingPathComponent("records.sqlite")
    let before = try Data(contentsOf: file)
    let older = try device.open()
    #expect(storeErrorCode { try older.records.migrate(Self.migrator(upTo: 1)) } == .newerFormat)
    #expect(storeErrorCode { try Self.add("wolf", to: older) } == .newerFormat)
    #expect(storeErrorCode { _ = try Self.names(older) } == .newerFormat)
    try older.close()
    let isUntouched = try Data(contentsOf: file) == before
    #expect(isUntouched)
    let late = try device.open()
    #expect(try Self.names(late) == ["owl"])
    #expect(storeErrorCode { try late.records.migrate(Self.migrator(upTo: 1)) } == .newerFormat)
    #expect(storeErrorCode { try Self.add("wolf", to: late) } == .newerFormat)
    try late.close()
    let updated = try device.open()
    defer { end(updated) }
    try updated.records.migrate(Self.migrator(upTo: 2))
    #expect(try Self.names(updated) == ["owl"])
  }

  @Test("a migration that fails is named in the error and rolled back, and the next release can migrate")
  func failsMigration() throws {
    let device = try Device()
    let game = try device.open()
    try game.records.migrate(Self.migrator(upTo: 1))
    try Self.add("owl", to: game)
    do {
      try game.records.migrate(Self.migrator(failing: true))
      Issue.record("the migration did not fail")
    } catch let error as StoreError {
      #expect(error.code == .misuse && error.message.contains("\"places\""), "\(error)")
    }
    let columns = try game.records.read { db in try db.columns(in: "creature").map(\.name) }
    #expect(columns == ["id", "name", "seen"])
    #expect(try Self.names(game) == ["owl"])
    try game.records.migrate(Self.migrator())
    let places = try game.records.read { db in try String.fetchAll(db, sql: "SELECT place FROM creature") }
    #expect(places == ["forest"])
    try game.close()
  }

  @Test("migrations that a later release declares as merged don't count as those of a newer game")
  func mergesMigrations() throws {
    let device = try Device()
    let game = try device.open()
    try game.records.migrate(Self.migrator())
    try Self.add("owl", to: game)
    try game.close()
    var merging = DatabaseMigrator()
    merging.registerMigration("both", merging: ["creatures", "places"]) { _, applied in
      #expect(applied == ["creatures", "places"])
    }
    let unaware = try device.open()
    #expect(storeErrorCode { try unaware.records.migrate(merging) } == .newerFormat)
    try unaware.close()
    let updated = try device.open()
    try updated.records.migrate(merging, merged: ["creatures", "places"])
    #expect(try Self.names(updated) == ["owl"])
    try updated.records.migrate(merging)
    try updated.close()
  }

  @Test("a wrong statement throws GRDB's own error, and the records remain usable")
  func wrongStatements() throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    try game.records.migrate(Self.migrator())
    #expect(throws: DatabaseError.self) { try game.records.read { try $0.execute(sql: "SELECT nothing") } }
    #expect(throws: DatabaseError.self) { try game.records.read { try $0.execute(sql: "DELETE FROM creature") } }
    #expect(throws: DatabaseError.self) {
      try game.records.write { try $0.execute(sql: "INSERT INTO creature (name) VALUES (NULL)") }
    }
    try Self.add("owl", to: game)
    #expect(try Self.names(game) == ["owl"] && game.incidents.isEmpty)
  }

  @Test("GRDB's own observation reports a change, without the main actor")
  func observes() throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    try game.records.migrate(Self.migrator())
    let counts = Shared<[Int]>([])
    let arrived = DispatchSemaphore(value: 0)
    let observation = ValueObservation.tracking { db in try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM creature") ?? 0
    }
    let watching = observation.start(
      in: try game.records.reader, scheduling: .async(onQueue: DispatchQueue(label: "test"))
    ) { error in
      Issue.record("\(error)")
    } onChange: { count in
      counts.value += [count]
      arrived.signal()
    }
    #expect(arrived.wait(timeout: .now() + 600) == .success)
    try Self.add("owl", to: game)
    // It may report the first value twice.
    while counts.value.last == 0 { try #require(arrived.wait(timeout: .now() + 600) == .success) }
    #expect(counts.value.first == 0 && counts.value.last == 1)
    watching.cancel()
  }

  @Test("writes from several threads are all stored, while the threads also read")
  func threads() async throws {
    let device = try Device()
    let game = try device.open()
    try game.records.migrate(Self.migrator())
    let failures = Shared<[String]>([])
    let done = DispatchSemaphore(value: 0)
    for thread in 0..<4 {
      Thread {
        do {
          for number in 0..<25 {
            try Self.add("\(thread) \(number)", to: game)
            _ = try Self.names(game)
          }
        } catch { failures.value += ["\(error)"] }
        done.signal()
      }.start()
    }
    await withCheckedContinuation { (all: CheckedContinuation<Void, Never>) in
      Thread {
        for _ in 0..<4 { done.wait() }
        all.resume()
      }.start()
    }
    #expect(failures.value == [])
    #expect(try Set(Self.names(game)).count == 100)
    try game.close()
  }

  @Test("a snapshot is one complete file, replaces the one before, and leaves nothing else in the folder")
  func snapshots() throws {
    let device = try Device()
    let game = try device.open()
    try game.records.migrate(Self.migrator())
    try Self.add("owl", to: game)
    let folder = device.folder.url.appendingPathComponent("snapshots")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = folder.appendingPathComponent("a name with ? and # and %41.sqlite")
    try Data("something else".utf8).write(to: file)
    try game.records.snapshot(to: file)
    let first = try Data(contentsOf: file)
    try game.records.snapshot(to: file)
    let isSame = try Data(contentsOf: file) == first
    #expect(isSame, "unchanged records give the same bytes")
    try Self.add("wolf", to: game)
    try game.close()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 1)
    let queue = try DatabaseQueue(path: file.path)
    #expect(try queue.read { try String.fetchAll($0, sql: "SELECT name FROM creature") } == ["owl"])
    try queue.close()
  }

  @Test("a snapshot can't replace the game's own data or a folder")
  func snapshotPlaces() throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    try game.records.migrate(Self.migrator())
    try Self.add("owl", to: game)
    let link = device.folder.url.appendingPathComponent("link")
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: device.url)
    for name in ["records.sqlite", "store.sqlite", "other"] {
      #expect(
        storeErrorCode { try game.records.snapshot(to: device.url.appendingPathComponent(name)) } == .misuse, "\(name)")
      #expect(storeErrorCode { try game.records.snapshot(to: link.appendingPathComponent(name)) } == .misuse, "\(name)")
    }
    #expect(storeErrorCode { try game.records.snapshot(to: link) } == .misuse)
    #expect(
      storeErrorCode { try game.records.snapshot(to: link.appendingPathComponent("nowhere/snapshot")) } == .missing)
    #expect(try Self.names(game) == ["owl"])
  }

  @Test("damaged records are recovered from the backup, with an incident, and the damaged file is kept")
  func recovers() throws {
    let device = try Device()
    let game = try device.open()
    try game.records.migrate(Self.migrator())
    try Self.add("owl", to: game)
    try game.close()
    let file = device.url.appendingPathComponent("records.sqlite")
    var bytes = try Data(contentsOf: file)
    bytes.replaceSubrange(0..<16, with: Data(repeating: 0xAA, count: 16))
    try bytes.write(to: file)
    let again = try device.open()
    defer { end(again) }
    #expect(again.incidents.isEmpty, "records are checked when they are first used")
    try again.records.migrate(Self.migrator())
    #expect(try Self.names(again) == ["owl"])
    #expect(again.incidents.map(\.kind) == [.recovered])
    let folder = try #require(
      FileManager.default.contentsOfDirectory(atPath: device.url.appendingPathComponent("damaged").path).first)
    let aside = try Data(contentsOf: device.url.appendingPathComponent("damaged/\(folder)/records.sqlite"))
    let isKept = aside == bytes
    #expect(isKept)
    try Self.add("wolf", to: again)
    #expect(try Self.names(again) == ["owl", "wolf"])
  }

  @Test("closing waits for a read no longer than its time limit, and can be tried again")
  func closesInTime() throws {
    let device = try Device()
    let game = try device.open()
    try game.records.migrate(Self.migrator())
    let (entered, gate, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    Thread {
      do {
        try game.records.read { _ in
          entered.signal()
          gate.wait()
        }
      } catch { Issue.record("\(error)") }
      done.signal()
    }.start()
    entered.wait()
    #expect(storeErrorCode { try game.close(within: .milliseconds(50)) } == .timedOut)
    gate.signal()
    done.wait()
    try game.close()
  }

  @Test("closing waits no longer than its time limit for a read through GRDB's own interface")
  func closesInTimeBesideReader() async throws {
    try await onThread {
      let device = try Device()
      let game = try device.open()
      try game.records.migrate(Self.migrator())
      let reader = try game.records.reader
      let (entered, gate, done) = (
        DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
      )
      let wasAwaited = Shared(false)
      Thread {
        do {
          try reader.read { _ in
            entered.signal()
            // With a limit, so that a close that waits for the read fails instead of hanging forever.
            if gate.wait(timeout: .now() + 600) == .timedOut { wasAwaited.value = true }
          }
        } catch { Issue.record("\(error)") }
        done.signal()
      }.start()
      entered.wait()
      #expect(storeErrorCode { try game.close(within: .milliseconds(50)) } == .timedOut)
      gate.signal()
      done.wait()
      #expect(!wasAwaited.value, "closing did not wait until the read had ended")
      try game.close()
      let again = try device.open()
      end(again)
    }
  }

  @Test("calls within calls are executed or refused, and never crash the game")
  func nests() throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    try game.records.migrate(Self.migrator())
    try Self.add("owl", to: game)
    let (outer, inner) = try game.records.read { _ in
      // Written between the two reads, and seen by neither.
      try Self.add("wolf", to: game)
      return (try Self.names(game), try game.records.read { _ in try Self.names(game) })
    }
    #expect(outer == ["owl"] && inner == ["owl"])
    #expect(try Self.names(game) == ["owl", "wolf"])
    try game.records.write { db in
      try db.execute(sql: "DELETE FROM creature")
      #expect(try Self.names(game) == ["owl", "wolf"], "a read shows what is committed")
      #expect(storeErrorCode { try Self.add("bear", to: game) } == .misuse)
      #expect(storeErrorCode { try game.records.migrate(Self.migrator()) } == .misuse)
      try db.execute(sql: "INSERT INTO creature (name, seen) VALUES ('fox', 0)")
    }
    let folder = device.folder.url.appendingPathComponent("snapshots")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try game.records.read { _ in
      #expect(storeErrorCode { try game.records.migrate(Self.migrator()) } == .misuse)
      try game.records.snapshot(to: folder.appendingPathComponent("within"))
    }
    #expect(try Self.names(game) == ["fox"])
  }

  @Test("tracked snapshots are versions of the tables, which this and a newer release of the game can restore")
  func versions() throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    try game.records.migrate(Self.migrator(upTo: 1))
    try Self.add("owl", to: game)
    let folder = device.folder.url.appendingPathComponent("snapshots")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = folder.appendingPathComponent("records")
    try game.records.snapshot(to: file)
    let tracked = try game.files.track(file)
    try Self.add("wolf", to: game)
    try game.records.snapshot(to: file)
    try tracked.capture()
    try game.records.write { try $0.execute(sql: "DELETE FROM creature") }
    let versions = try tracked.history()
    #expect(versions.count == 2)
    try game.records.restore(from: file, migrator: Self.migrator(upTo: 1))
    #expect(try Self.names(game) == ["owl", "wolf"])
    try tracked.restore(try #require(versions.last).id)
    let told = Shared<[Int]>([])
    let arrived = DispatchSemaphore(value: 0)
    let observation = ValueObservation.tracking { db in try Int.fetchOne(db, sql: "SELECT COUNT(*) FROM creature") ?? 0
    }
    let watching = observation.start(
      in: try game.records.reader, scheduling: .async(onQueue: DispatchQueue(label: "test"))
    ) { error in
      Issue.record("\(error)")
    } onChange: { count in
      told.value += [count]
      arrived.signal()
    }
    try #require(arrived.wait(timeout: .now() + 600) == .success)
    try game.records.restore(from: file, migrator: Self.migrator(upTo: 1))
    #expect(try Self.names(game) == ["owl"])
    while told.value.last != 1 { try #require(arrived.wait(timeout: .now() + 600) == .success, "it is observed") }
    watching.cancel()
    try game.records.restore(from: file, migrator: Self.migrator(upTo: 2))
    #expect(try game.records.read { try String.fetchAll($0, sql: "SELECT place FROM creature") } == ["forest"])
    try Self.add("fox", to: game)
    try game.close()
    let again = try device.open()
    defer { end(again) }
    #expect(try Self.names(again) == ["owl", "fox"] && again.incidents.isEmpty)
  }

  @Test("a snapshot that is damaged, foreign, newer or incomplete is refused, and the tables are unchanged")
  func refusesSnapshots() throws {
    let device = try Device()
    let game = try device.open()
    defer { end(game) }
    try game.records.migrate(Self.migrator())
    for number in 0..<200 { try Self.add("owl \(number)", to: game) }
    let folder = device.folder.url.appendingPathComponent("snapshots")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let good = folder.appendingPathComponent("good")
    try game.records.snapshot(to: good)
    try game.records.write { try $0.execute(sql: "DELETE FROM creature WHERE id > 1") }
    func refusal(_ name: String, upTo version: Int = 2, _ bytes: Data?) throws -> StoreError.Code? {
      let url = folder.appendingPathComponent(name)
      try bytes?.write(to: url)
      return storeErrorCode { try game.records.restore(from: url, migrator: Self.migrator(upTo: version)) }
    }
    let bytes = try Data(contentsOf: good)
    var altered = bytes
    // In a part that only a complete check reads.
    altered.replaceSubrange(altered.count - 4_096..<altered.count - 3_992, with: Data(repeating: 0xEE, count: 104))
    #expect(try refusal("nowhere", nil) == .missing)
    #expect(try refusal("empty", Data()) == .damaged)
    #expect(try refusal("text", Data(repeating: 65, count: 10_000)) == .damaged)
    #expect(try refusal("cut", bytes.prefix(bytes.count / 4_096 / 2 * 4_096)) == .damaged)
    #expect(try refusal("altered", altered) == .damaged)
    #expect(try refusal("newer", upTo: 1, bytes) == .newerFormat)
    #expect(storeErrorCode { try game.records.restore(from: folder, migrator: Self.migrator()) } == .misuse)
    #expect(
      storeErrorCode { try game.records.read { _ in try game.records.restore(from: good, migrator: Self.migrator()) } }
        == .misuse)
    try Data("more".utf8).write(to: folder.appendingPathComponent("unfinished-wal"))
    #expect(try refusal("unfinished", bytes) == .misuse)
    let other = folder.appendingPathComponent("other")
    let queue = try DatabaseQueue(path: other.path)
    try queue.writeWithoutTransaction {
      try $0.execute(sql: "PRAGMA page_size = 8192; VACUUM; CREATE TABLE thing (id)")
    }
    try queue.close()
    #expect(try refusal("other", nil) == .misuse)
    #expect(try Self.names(game) == ["owl 0"])
    try game.records.restore(from: good, migrator: Self.migrator())
    #expect(try Self.names(game).count == 200)
  }

  @Test("closing waits no longer than its time limit while the tables are still being opened")
  func closesInTimeBesideOpening() async throws {
    try await onThread {
      let device = try Device()
      let first = try device.open()
      try first.records.migrate(Self.migrator())
      try first.close()
      // Another program has locked the file, so that opening has to wait.
      var configuration = Configuration()
      configuration.allowsUnsafeTransactions = true
      let other = try DatabaseQueue(
        path: device.url.appendingPathComponent("records.sqlite").path, configuration: configuration)
      try other.inDatabase { try $0.execute(sql: "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE") }
      var closed: StoreError.Code?
      var attempts = 0
      // Tried again if the game was closed before the other thread had begun.
      let start = ContinuousClock.now
      while closed == nil, ContinuousClock.now - start < Patience.limit {
        attempts += 1
        let game = try device.open()
        let (begins, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        Thread {
          begins.signal()
          _ = try? Self.names(game)
          done.signal()
        }.start()
        begins.wait()
        closed = storeErrorCode { try game.close(within: .milliseconds(20)) }
        done.wait()
        try game.close()
      }
      #expect(closed == .timedOut, "in \(attempts) attempts")
      try other.inDatabase { try $0.execute(sql: "COMMIT") }
      try other.close()
      let again = try device.open()
      defer { end(again) }
      #expect(try Self.names(again) == [])
    }
  }
}
