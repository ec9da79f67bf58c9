#if Cloud
import Foundation
import GRDB
import Keepsake
import KeepsakeStore
import TestSupport
import Testing

@testable import KeepsakeCommand

/// Support inspects the game's own tables, too: what they contain, whether they are damaged, and what a repair would
/// recover.
@Suite(.serialized) struct RecordsCommandTests {
  private let folder = TemporaryFolder.url("records")
  private var database: URL { folder.appendingPathComponent(RecordsDatabase.fileName) }

  private func doctor(_ arguments: String...) async -> Int32 {
    await KeepsakeCommandTests.status(of: DoctorCommand.self, [folder.path] + arguments)
  }

  private func verify() -> Verification { Verification.run(on: [folder.path], progress: { _ in }, each: { _ in }) }

  private func inspect() throws -> StoreReport {
    guard case .store(let report) = try InspectCommand.look(at: folder.path) else {
      throw CommandFailure(.software, "no store")
    }
    return report
  }

  private func makeStore(keepingBackup: Bool) throws {
    let game = try GameData.open("com.example.space", at: folder)
    try game.records.write { db in
      try db.execute(
        sql:
          """
          CREATE TABLE creature (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE "\u{1B}[2J" (a); \
          CREATE INDEX by_name ON creature (name)
          """)
      for number in 1...300 {
        try db.execute(sql: "INSERT INTO creature (name) VALUES (?)", arguments: ["creature \(number)"])
      }
    }
    try game.close()
    for name in try FileManager.default.contentsOfDirectory(atPath: folder.path)
    where name.hasPrefix("records-backup") && !keepingBackup {
      try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
    }
  }

  private func alter(_ body: (inout Data) -> Void) throws -> Data {
    var bytes = try Data(contentsOf: database)
    body(&bytes)
    try bytes.write(to: database)
    return bytes
  }

  @Test("tables and rows are listed, also while the game has them open, with unprintable characters escaped")
  func inspects() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    try makeStore(keepingBackup: false)
    let game = try GameData.open("com.example.space", at: folder)
    try game.records.write { try $0.execute(sql: "INSERT INTO creature (name) VALUES ('one more')") }
    let report = try inspect()
    #expect(report.records?.map(\.name) == ["\u{1B}[2J", "creature"] && report.records?.map(\.rowCount) == [0, 301])
    #expect(report.text.contains("creature: 301 rows") && !report.text.contains("\u{1B}"))
    try game.close()
    #expect(verify().unsound == 0 && verify().files.first?.message.contains("2 tables of records") == true)
  }

  @Test(
    "damaged tables are reported with what a repair would recover, unchanged, and then repaired",
    arguments: [false, true])
  func repairs(backup: Bool) async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    try makeStore(keepingBackup: backup)
    #expect(await doctor() == 0)
    let damaged = try alter { $0[4_096] = 0xEE }
    let verdict = verify()
    #expect(verdict.unsound == 1)
    #expect(verdict.files.first?.message.contains("records are damaged") == true, "\(verdict.files)")
    let report = try inspect()
    #expect(report.recordsMessage == nil)
    #expect(report.records?.map(\.name) == ["\u{1B}[2J", "creature"] && report.records?.map(\.rowCount) == [0, nil])
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    do {
      let doctor = try StoreDoctor(at: folder)
      defer { doctor.release() }
      let diagnosis = try doctor.examine()
      #expect(!diagnosis.isSound && diagnosis.plan == .nothing && diagnosis.recordsPlan == .recover)
      #expect(diagnosis.recordsRecovery?.source == (backup ? .backup : .rows))
      let lines = DoctorCommand.Answer(store: folder.path, diagnosis).lines
      #expect(
        lines.contains { $0.hasPrefix("damaged: records: ") }
          && lines.contains { $0.contains("would move the damaged records") })
    }
    #expect(await doctor("--json") == VerifyCommand.unsound)
    let isUntouched = try Data(contentsOf: database) == damaged
    #expect(isUntouched)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == names)
    #expect(await doctor("--repair") == 0)
    #expect(await doctor() == 0)
    #expect(FileManager.default.fileExists(atPath: folder.appendingPathComponent("damaged").path))
    if backup { #expect(try inspect().records?.last?.rowCount == 300) }
  }

  @Test("an index with a missing entry is reported as damage, and rebuilt by a repair")
  func rebuilds() async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    try makeStore(keepingBackup: true)
    // The index is hidden while a row is replaced.
    func edit(_ sql: String) throws {
      let queue = try DatabaseQueue(path: database.path)
      try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA writable_schema = ON; \(sql)") }
      try queue.close()
    }
    let queue = try DatabaseQueue(path: database.path)
    let root = try await queue.read {
      try Int.fetchOne($0, sql: "SELECT rootpage FROM sqlite_master WHERE name = 'by_name'") ?? 0
    }
    try queue.close()
    try edit("DELETE FROM sqlite_master WHERE name = 'by_name'")
    try edit("DELETE FROM creature WHERE id = 300; INSERT INTO creature (id, name) VALUES (300, 'unlisted')")
    try edit(
      """
      INSERT INTO sqlite_master VALUES ('index', 'by_name', 'creature', \(root), \
      'CREATE INDEX by_name ON creature (name)')
      """)
    #expect(await doctor() == VerifyCommand.unsound)
    #expect(await doctor("--repair") == 0)
    #expect(await doctor() == 0)
    let game = try GameData.open("com.example.space", at: folder)
    #expect(
      try game.records.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM creature INDEXED BY by_name") } == 300)
    #expect(game.incidents.isEmpty)
    try game.close()
  }
}
#endif
