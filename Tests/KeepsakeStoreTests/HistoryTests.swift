import Foundation
import GRDB
import KeepsakeReplication
import Testing

@testable import KeepsakeStore

@Suite struct HistoryTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test("a year of autosaves keeps the newest twenty, and the disk with them; what was covered is known for ever")
  func thins() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    for number in UInt64(1)...200 { try store.save(Data("save \(number) \(String(repeating: "x", count: 200))".utf8), as: number) }
    try store.read { transaction throws in
      #expect(try transaction.history(of: "main").map(\.record.id.low) == (181...200).reversed())
      let contents = try Int.fetchOne(transaction.database, sql: "SELECT COUNT(*) FROM content") ?? 0
      #expect(contents <= History.newestKept + ContentTable.maximumDepth)
      #expect(try transaction.isCovered(id(1)))
      #expect(try transaction.heads(of: "main") == [id(200)])
    }
  }

  @Test("a conflict's sides, and what both came from, stay however many saves follow on one of them")
  func keepsAncestors() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    func content(_ text: String) throws -> [KeptContent] {
      let bytes = Data(text.utf8)
      return [KeptContent(hash: try store.write { try $0.keepContent(bytes) }, length: bytes.count)]
    }
    let common = try content("common")
    let left = try content("left")
    try store.write { transaction throws in
      try transaction.put(1, common)
      try transaction.put(2, covers: [1], left)
      try transaction.put(1000, covers: [1])
    }
    for number in UInt64(1001)...1100 {
      try store.write { transaction in try transaction.put(number, covers: [number - 1]) }
    }
    try store.read { transaction throws in
      let kept = Set(try transaction.history(of: "main").map(\.record.id.low))
      #expect(kept.isSuperset(of: [1, 2, 1100, 1099]))
      #expect(kept.count <= History.newestKept + 3)
      #expect(try transaction.heads(of: "main") == [id(2), id(1100)])
      #expect(try transaction.plainContent(common[0].hash) == Data("common".utf8))
    }
    // Once the other side is covered, nothing pins the ancestor any longer.
    try store.write { transaction in try transaction.put(1101, covers: [2, 1100]) }
    for number in UInt64(1102)...1130 {
      try store.write { transaction in try transaction.put(number, covers: [number - 1]) }
    }
    #expect(try store.read { try !$0.hasContent(common[0].hash) && !$0.hasContent(left[0].hash) })
  }

  @Test("saves that the cloud has yet to get stay, those replaced before anyone saw them leave the outbox too")
  func unacknowledged() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try store.write { transaction throws in
      try transaction.put(1, acknowledged: false)
      // Offered, and the answer never came.
      try transaction.putVersion(StoredVersion(record: record(1), acknowledged: false, offered: true))
      try transaction.appendToOutbox(OutboxGroup(versions: [id(1)]))
    }
    for number in UInt64(2)...60 {
      try store.write { transaction throws in
        try transaction.put(number, covers: [number - 1], acknowledged: false)
        try transaction.appendToOutbox(OutboxGroup(versions: [id(number)]))
      }
    }
    try store.read { transaction throws in
      #expect(try transaction.history(of: "main").map(\.record.id.low) == (41...60).reversed() + [1])
      #expect(try transaction.outbox(limit: 100).flatMap(\.versions).map(\.low) == [1] + (41...60))
      #expect(try transaction.unacknowledgedVersions().count == 21)
    }
  }

  @Test("a content received for a save that is not shown yet is not collected with an old save that had the same")
  func keepsStaged() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let shared = try store.write { try $0.keepContent(Data("shared".utf8)) }
    let orphan = try store.write { try $0.keepContent(Data("orphan".utf8)) }
    try store.write { transaction throws in
      try transaction.put(1, [KeptContent(hash: shared, length: 6)])
      try transaction.stage([CloudChange(seq: 1, item: .version(record(500, contents: [shared])))])
    }
    for number in UInt64(2)...40 {
      try store.write { transaction in try transaction.put(number, covers: [number - 1]) }
    }
    #expect(try store.read { try $0.version(id(1)) == nil })
    #expect(try store.read { try $0.hasContent(shared) && $0.hasContent(orphan) })
    try store.close()
    let again = try Store.open(at: folder.store)
    defer { try? again.close() }
    #expect(try again.read { try $0.hasContent(shared) && !$0.hasContent(orphan) })
  }
}
