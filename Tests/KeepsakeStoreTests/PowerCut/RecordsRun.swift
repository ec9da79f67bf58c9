import Foundation
import GRDB
import KeepsakeReplication
import Testing

@testable import KeepsakeStore

/// A recorded use of a game's own tables: the events of the disk, how many of them there were when each step began and
/// returned, and what the tables contained after it.
struct RecordsRun: Sendable {
  /// Planted mistakes, which the power cuts have to find.
  enum Mistake: CaseIterable, Sendable {
    case synchronousOff
    /// GRDB's own setting.
    case synchronousNormal

    fileprivate var pragma: String {
      switch self {
      case .synchronousOff: "PRAGMA synchronous = OFF"
      case .synchronousNormal: "PRAGMA synchronous = NORMAL"
      }
    }
  }

  private(set) var recording = DiskRecording()
  private(set) var begun: [Int] = []
  private(set) var returned: [Int] = []
  private(set) var states: [ContentHash] = []

  /// Plays `steps` steps from one seed in a new folder.
  static func play(_ steps: Int, seed: UInt64, in folder: URL, mistake: Mistake? = nil) throws -> RecordsRun {
    let url = folder.appendingPathComponent("recorded")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    let recorder = DiskRecorder()
    return try RecordingFileLayer.record(url, into: recorder) {
      var run = RecordsRun()
      var player = Player(url: url, mistake: mistake, random: SeededRandom(seed: seed))
      for number in 0..<steps {
        run.begun.append(recorder.count)
        let records = try player.step(number)
        run.returned.append(recorder.count)
        run.states.append(try digest(records))
      }
      try player.close()
      run.recording = recorder.recording
      return run
    }
  }

  /// The states that the tables may be in after a power cut after the first `events` events; nil means none at all.
  func allowed(after events: Int) -> [ContentHash?] {
    let lower = returned.lastIndex { $0 <= events }
    let upper = max(lower ?? 0, begun.lastIndex { $0 <= events } ?? 0)
    return (lower == nil ? [nil] : []) + states[(lower ?? 0)...upper].map { $0 }
  }

  /// The hash of everything in the tables. GRDB makes its empty list of migrations before the first one.
  static func digest(_ records: RecordsDatabase) throws -> ContentHash {
    let text = try records.reading { database in
      try String.fetchAll(database, sql: "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").map {
        table in
        let columns = try database.columns(in: table).map { "quote(\"\($0.name)\")" }.joined(separator: " || ',' || ")
        let sql = "SELECT group_concat(row, ';') FROM (SELECT \(columns) AS row FROM \"\(table)\" ORDER BY rowid)"
        let rows = try String.fetchOne(database, sql: sql) ?? ""
        return rows.isEmpty && table == "grdb_migrations" ? "" : "\(table): \(rows)\n"
      }
    }
    return ContentHash(of: Data(text.joined().utf8))
  }

  private struct Player {
    let url: URL
    let mistake: Mistake?
    var random: SeededRandom
    private var records: RecordsDatabase?
    private var migrations = 0
    private var snapshot: URL { url.deletingLastPathComponent().appendingPathComponent("snapshot") }

    init(url: URL, mistake: Mistake?, random: SeededRandom) {
      (self.url, self.mistake, self.random) = (url, mistake, random)
    }

    mutating func step(_ number: Int) throws -> RecordsDatabase {
      guard let records else { return try open() }
      switch number == 1 ? 0 : Int.random(in: 0..<24, using: &random) {
      case 0, 1:
        migrations += 1
        // A snapshot from before may lack it, and applying it to that one would give another state.
        if StoreFiles.exists(snapshot) { try FileManager.default.removeItem(at: snapshot) }
        try records.migrate(Self.migrator(upTo: migrations))
      case 2:
        try close()
        return try open()
      case 3: try (records.reader as? DatabasePool)?.writeWithoutTransaction { _ = try $0.checkpoint(.passive) }
      case 4: try (records.reader as? DatabasePool)?.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
      case 5:
        try records.write { try $0.execute(sql: "DELETE FROM thing WHERE number % 7 = ?", arguments: [number % 7]) }
      case 6: try refuse(number, in: records)
      case 7 where FileManager.default.fileExists(atPath: snapshot.path):
        try records.restore(from: snapshot, Self.migrator(upTo: migrations))
      case 7, 8: try records.snapshot(to: snapshot)
      case 9..<12:
        try records.write {
          try $0.execute(sql: "UPDATE thing SET size = size + 1 WHERE number % 3 = ?", arguments: [number % 3])
        }
      default:
        let rows = (0..<Int.random(in: 1...4, using: &random)).map { _ in
          random.bytes(Int.random(in: 1...3_000, using: &random))
        }
        try records.write { database in
          for row in rows {
            try database.execute(sql: "INSERT INTO thing (size, body) VALUES (?, ?)", arguments: [row.count, row])
          }
        }
      }
      return records
    }

    private mutating func open() throws -> RecordsDatabase {
      let opened = try RecordsDatabase.open(in: url) { told in Issue.record("unexpected: \(told)") }
      if let mistake {
        try (opened.reader as? DatabasePool)?.writeWithoutTransaction { try $0.execute(sql: mistake.pragma) }
      }
      records = opened
      return opened
    }

    mutating func close() throws {
      try records?.close()
      records = nil
    }

    /// The changes of a write that throws must never be there.
    private func refuse(_ number: Int, in records: RecordsDatabase) throws {
      struct Refused: Error {}
      do {
        try records.write { database in
          try database.execute(sql: "DELETE FROM thing")
          throw Refused()
        }
      } catch is Refused {}
    }

    private static func migrator(upTo count: Int) -> DatabaseMigrator {
      var migrator = DatabaseMigrator()
      migrator.registerMigration("first") {
        try $0.execute(
          sql:
            """
            CREATE TABLE thing (number INTEGER PRIMARY KEY AUTOINCREMENT, size INTEGER, body BLOB); \
            CREATE INDEX by_size ON thing (size)
            """)
      }
      for number in 1..<max(count, 1) {
        migrator.registerMigration("later \(number)") { database in
          try database.execute(
            sql: "CREATE TABLE extra_\(number) (value); ALTER TABLE thing ADD COLUMN column_\(number) TEXT")
          try database.execute(sql: "INSERT INTO extra_\(number) SELECT body FROM thing")
          try database.execute(sql: "UPDATE thing SET column_\(number) = 'changed by a migration'")
        }
      }
      return migrator
    }
  }
}
