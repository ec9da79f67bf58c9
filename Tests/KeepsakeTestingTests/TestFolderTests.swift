import Foundation
import GRDB
import TestSupport
import Testing

@testable import KeepsakeStore
@testable import KeepsakeTesting

struct TestFolderTests {
  @Test("copying a device's folder ends even if a log becomes shorter meanwhile", .hangLimit)
  func shrinkingLog() async throws {
    try await TemporaryFolder.with { folder in
      let (from, to) = (folder.appendingPathComponent("from"), folder.appendingPathComponent("to"))
      try FileManager.default.createDirectory(at: from, withIntermediateDirectories: true)
      let log = from.appendingPathComponent("store.sqlite-wal")
      try Data().write(to: log)
      // Most of it takes no room on the disk.
      try #require(truncate(log.path, 128 << 20) == 0)
      let copy = to.appendingPathComponent("store.sqlite-wal")
      try await onThread {
        try TestFolder.copy(from, to: to) { #expect(truncate(log.path, 10) == 0) }
      }
      #expect(try Data(contentsOf: copy) == Data(count: 10))
    }
  }

  @Test("a copy of a log that is restarted and written over meanwhile has every commit up to its end", .hangLimit)
  func rewrittenLog() async throws {
    try await TemporaryFolder.with { folder in
      try await onThread {
        let from = folder.appendingPathComponent("from")
        try FileManager.default.createDirectory(at: from, withIntermediateDirectories: true)
        let writer = try Self.writer(to: from)
        let pool = try DatabasePool(path: from.appendingPathComponent("store.sqlite").path)
        for round in 0..<(TestDepth.isDeep ? 300 : 60) {
          let to = folder.appendingPathComponent("to-\(round)")
          // All of the log is in the database when the copy begins, so that the next write starts at its beginning.
          _ = try writer.writeWithoutTransaction { try $0.checkpoint(.passive) }
          let (isOver, writes) = (Shared(false), Shared(0))
          defer { isOver.value = true }
          let before = try pool.read { database in
            let before = try Int.fetchOne(database, sql: "SELECT number FROM pot") ?? 0
            let thread = WatchedThread {
              while !isOver.value {
                try writer.write { try $0.execute(sql: "UPDATE pot SET number = number + 1, soil = randomblob(60000)") }
                writes.value += 1
              }
            }
            // The writer is near the end of the first part that is copied at once, so that it soon writes the next.
            while writes.value < 12 + round % 8 { Thread.sleep(forTimeInterval: 0.000_1) }
            try TestFolder.copy(from, to: to)
            isOver.value = true
            try thread.value()
            return before
          }
          let log = try WriteAheadLog.read(to.appendingPathComponent("store.sqlite-wal"), defaultPageSize: 4_096)
          #expect(log.state != .damaged, "round \(round)")
          let copy = try DatabaseQueue(path: to.appendingPathComponent("store.sqlite").path)
          #expect(
            try copy.read { try Int.fetchOne($0, sql: "SELECT number FROM pot") } ?? 0 >= before, "round \(round)")
          #expect(try copy.read { try String.fetchOne($0, sql: "PRAGMA integrity_check") } == "ok", "round \(round)")
          try copy.close()
          try FileManager.default.removeItem(at: to)
        }
        try pool.close()
        try writer.close()
      }
    }
  }

  /// A database with a log of several megabytes, whose writes don't wait for the disk.
  private static func writer(to folder: URL) throws -> DatabasePool {
    var configuration = Configuration()
    configuration.prepareDatabase { database in
      try database.execute(sql: "PRAGMA wal_autocheckpoint = 0")
    }
    let writer = try DatabasePool(
      path: folder.appendingPathComponent("store.sqlite").path, configuration: configuration)
    try writer.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = OFF") }
    try writer.write { database in
      try database.execute(sql: "CREATE TABLE pot (number INTEGER, soil BLOB); INSERT INTO pot VALUES (0, x'')")
    }
    for _ in 0..<100 {
      try writer.write { try $0.execute(sql: "UPDATE pot SET soil = randomblob(60000)") }
    }
    return writer
  }
}
