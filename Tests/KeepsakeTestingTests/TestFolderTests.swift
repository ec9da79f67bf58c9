import Foundation
import TestSupport
import Testing

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
      async let copied: Void = onThread { try TestFolder.copy(from, to: to) }
      let copy = to.appendingPathComponent("store.sqlite-wal")
      try await until("the copy has begun") { FileManager.default.fileExists(atPath: copy.path) }
      try #require(truncate(log.path, 10) == 0)
      try await copied
      #expect(try Data(contentsOf: copy) == Data(count: 10))
    }
  }
}
