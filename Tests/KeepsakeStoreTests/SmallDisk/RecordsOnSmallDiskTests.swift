#if os(Linux)
import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// A player's disk is really full, and the game writes its own tables.
@Suite struct RecordsOnSmallDiskTests {
  @Test("nothing that was committed to the game's own tables is lost on a full or read-only disk", .needsPrivateMounts)
  func keepsEverything() async throws {
    let failure = try await onThread { try SmallDisk.run("RecordsChildOfFullDisk") }
    #expect(failure == nil)
  }
}

/// The test that runs on the small disk.
@Suite(.serialized, .partOfAnotherTest(where: SmallDisk.mounted != nil))
struct RecordsChildOfFullDisk {
  private static let maximumRows = 1_000
  private let folder: URL

  init() throws { folder = try #require(SmallDisk.mounted) }

  private func open() throws -> RecordsDatabase {
    // A full disk has no room for a backup.
    try RecordsDatabase.open(in: folder) { if $0.kind != .notBackedUp { Issue.record("got: \($0)") } }
  }

  private func add(_ number: Int, to records: RecordsDatabase) throws {
    try records.write { try $0.execute(sql: "INSERT INTO thing VALUES (?, zeroblob(20000))", arguments: [number]) }
  }

  private func count(_ records: RecordsDatabase) throws -> Int {
    try records.reading { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM thing") ?? 0 }
  }

  private func fill(_ url: URL) throws {
    if !FileManager.default.fileExists(atPath: url.path) { try Data().write(to: url) }
    let handle = try FileHandle(forWritingTo: url)
    try handle.seekToEnd()
    for size in [65_536, 4_096, 512, 1] {
      do {
        while true { try handle.write(contentsOf: Data(count: size)) }
      } catch {
        // Full.
      }
    }
    try handle.close()
  }

  @Test func fillsUp() throws {
    let filler = folder.appendingPathComponent("filler")
    // Removed later: room for the database, its log and a backup.
    try Data(count: 3 << 20).write(to: filler)
    var records = try open()
    try records.write { try $0.execute(sql: "CREATE TABLE thing (number INTEGER PRIMARY KEY, body BLOB)") }
    var rows = 0
    while rows < Self.maximumRows {
      if let code = errorCode({ try add(rows + 1, to: records) }) {
        #expect(code == .diskFull)
        break
      }
      rows += 1
    }
    #expect(rows > 5 && rows < Self.maximumRows)
    #expect(try count(records) == rows)
    let other = folder.appendingPathComponent("else")
    try FileManager.default.createDirectory(at: other, withIntermediateDirectories: true)
    try fill(filler)
    #expect(errorCode { try records.snapshot(to: other.appendingPathComponent("snapshot")) } == .diskFull)
    #expect(try FileManager.default.contentsOfDirectory(atPath: other.path) == [])
    try records.close()
    try fill(filler)
    // A game that starts while there is no room left reads everything.
    records = try open()
    #expect(try count(records) == rows)
    #expect(errorCode { try add(rows + 1, to: records) } == .diskFull)
    try FileManager.default.removeItem(at: filler)
    try add(rows + 1, to: records)
    #expect(try count(records) == rows + 1)
    try records.close()
    // Everything is in one file now. What SQLite needs beside it, even to read, has no room except what was reserved
    // for it.
    try fill(filler)
    records = try open()
    #expect(try count(records) == rows + 1)
    try records.close()
    try FileManager.default.removeItem(at: filler)
    records = try open()
    try add(rows + 2, to: records)
    try records.close()
    try SmallDisk.remount("ro")
    #expect(errorCode { _ = try open() } == .notPermitted)
    try SmallDisk.remount("rw")
    records = try open()
    #expect(try count(records) == rows + 2)
    try records.close()
  }
}
#endif
