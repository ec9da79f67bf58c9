import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

@Suite struct HistoryTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test("of 200 autosaves the newest twenty and few contents are kept, and pruned versions are still known as covered")
  func thins() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    for number in UInt64(1)...200 {
      try store.save(Data("save \(number) \(String(repeating: "x", count: 200))".utf8), as: number)
    }
    try store.read { transaction throws in
      #expect(try transaction.history(of: "main").map(\.record.id.low) == (181...200).reversed())
      let contents = try Int.fetchOne(transaction.database, sql: "SELECT COUNT(*) FROM content") ?? 0
      #expect(contents <= HistoryRules.standard.newest + ContentCompaction.longestRow + 1)
      #expect(try transaction.isCovered(id(1)))
      #expect(try transaction.heads(of: "main") == [id(200)])
    }
  }

  @Test(
    "of three days of autosaves the newest, the last of each hour and the last of each day are kept, and can be loaded")
  func keepsByTime() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let (minute, hour): (Int64, Int64) = (60_000, 3_600_000)
    let start = 20_000 * 24 * hour
    let numbers: Range<Int64> = 0..<432
    let times = numbers.map { (number: Int64) -> Int64 in start + number * 10 * minute }
    for (index, time) in times.enumerated() {
      try store.save(Data("save \(time)".utf8), as: UInt64(index + 1), savedAt: time)
    }
    let kept = try store.read { try $0.history(of: "main").map(\.record) }
    // The newest, which are of the last four hours; twenty more hours before these; the ends of the two days before.
    let hours = (5...24).map { start + (72 - $0) * hour + 50 * minute }
    let days = [2, 1].map { start + $0 * 24 * hour - 10 * minute }
    #expect(kept.map(\.savedAtMilliseconds) == times.suffix(20).reversed() + hours + days)
    store.memory.forgetPlain()
    try store.read { transaction throws in
      for record in kept {
        #expect(try transaction.plainBytes(of: record) == Data("save \(record.savedAtMilliseconds)".utf8))
      }
    }
  }

  @Test(
    "a store keeps as many versions as the game's rules say, but at least the head and what it replaced in the cloud")
  func keepsAsAsked() throws {
    func kept(_ rules: HistoryRules) throws -> [UInt64] {
      let folder = try TemporaryFolder()
      let store = try Store.open(at: folder.store, history: rules)
      defer { try? store.close() }
      for number in UInt64(1)...40 { try store.save(Data("save \(number)".utf8), as: number) }
      return try store.read { try $0.history(of: "main").map(\.record.id.low) }
    }
    #expect(try kept(.everything) == (1...40).reversed())
    #expect(try kept(HistoryRules(newest: 3, hourly: 0, daily: 0, weekly: 0)) == [40, 39, 38])
    // The head, and the version that other devices have and may continue from.
    #expect(try kept(HistoryRules(newest: -1, hourly: 0, daily: 0, weekly: 0)) == [40, 39])
  }

  @Test("a pinned version is kept and can be loaded however many follow; once unpinned, the rules apply to it again")
  func keepsPinned() throws {
    var store = try Store.open(at: folder.store)
    for number in UInt64(1)...5 { try store.save(Data("save \(number)".utf8), as: number) }
    try store.write { try $0.setPinned(true, id(2)) }
    for number in UInt64(6)...300 { try store.save(Data("save \(number)".utf8), as: number) }
    try store.close()
    store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try store.read { transaction throws in
      #expect(try transaction.history(of: "main").map(\.record.id.low) == (281...300).reversed() + [2])
      #expect(try transaction.pinnedVersions(of: "main") == [id(2)])
      let record = try #require(try transaction.version(id(2))?.record)
      #expect(try transaction.plainBytes(of: record) == Data("save 2".utf8))
    }
    // A record that the cloud sends again keeps the pin.
    try store.write { transaction in try transaction.putVersion(#require(try transaction.version(id(2)))) }
    #expect(try store.read { try $0.pinnedVersions(of: "main") } == [id(2)])
    #expect(errorCode { try store.write { try $0.setPinned(true, id(3)) } } == .missing)
    #expect(errorCode { try store.write { try $0.setPinned(true, id(999)) } } == .missing)
    try store.write { try $0.setPinned(false, id(2)) }
    #expect(try store.read { try !$0.hasContent(ContentHash(of: Data("save 2".utf8))) })
  }

  @Test("a conflict's sides and their common ancestor are kept, however many saves follow on one side")
  func keepsAncestors() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    func content(_ text: String) throws -> [PreparedSave] {
      let bytes = Data(text.utf8)
      return [PreparedSave(hashes: [try store.write { try $0.keepContent(bytes) }], length: bytes.count)]
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
      #expect(kept.count <= HistoryRules.standard.newest + 3)
      #expect(try transaction.heads(of: "main") == [id(2), id(1100)])
      #expect(try transaction.plainContent(common[0].hashes[0]) == Data("common".utf8))
    }
    // Once the other side is covered, nothing keeps the ancestor any longer.
    try store.write { transaction in try transaction.put(1101, covers: [2, 1100]) }
    for number in UInt64(1102)...1130 {
      try store.write { transaction in try transaction.put(number, covers: [number - 1]) }
    }
    #expect(try store.read { try !$0.hasContent(common[0].hashes[0]) && !$0.hasContent(left[0].hashes[0]) })
  }

  @Test(
    "a conflict with a save that arrives after a hundred local ones still has its common ancestor, contents included")
  func knowsLineage() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let common = Data("common".utf8)
    try store.save(common, as: 1)
    try store.save(Data("second".utf8), as: 2)
    for number in UInt64(3)...120 { try store.save(Data("save \(number)".utf8), as: number) }
    let hash = ContentHash(of: common)
    #expect(try store.read { try !$0.hasContent(hash) })
    // A record that the cloud sends again doesn't claim contents that are gone.
    try store.write { transaction in try transaction.putVersion(#require(try transaction.version(id(1)))) }
    let uses = try store.read { transaction in
      let sql = "SELECT COUNT(*) FROM content_use WHERE version = ?"
      return try Int.fetchOne(transaction.database, sql: sql, arguments: [id(1).bytes])
    }
    #expect(uses == 0)
    // The engine downloads the ancestor's content, then shows the other side: two saves after the ancestor.
    let content = try EncodedContent.encoding(common, as: hash, against: nil)
    try store.write { transaction in
      #expect(try transaction.receiveContent(content) == .stored)
      try transaction.put(500, covers: [1])
      try transaction.put(501, covers: [500])
    }
    for number in UInt64(502)...560 {
      try store.write { transaction in try transaction.put(number, covers: [number - 1]) }
    }
    let view = try store.read { try Resolution.view(of: "main", in: $0) }
    #expect(view.related && view.ancestors == [id(1)])
    #expect(try store.read { try $0.plainContent(hash) } == common)
    try store.close()
    let again = try Store.open(at: folder.store)
    defer { try? again.close() }
    #expect(try again.read { try $0.plainContent(hash) } == common)
    #expect(try again.read { try $0.history(of: "main").map(\.record.id.low).contains(1) })
  }

  @Test("a conflict's ancestor keeps its content even if that came back only with a save in another slot")
  func keepsAncestorsBroughtBack() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let common = Data("common".utf8)
    try store.save(common, as: 1)
    for number in UInt64(2)...60 { try store.save(Data("save \(number)".utf8), as: number) }
    let hash = ContentHash(of: common)
    // The other side arrives when the bytes of the ancestor are no longer stored.
    try store.write { transaction in try transaction.put(500, covers: [1]) }
    #expect(try store.read { try !$0.hasContent(hash) })
    try store.save(common, as: 1000, slot: "other")
    for number in UInt64(1001)...1060 { try store.save(Data("other \(number)".utf8), as: number, slot: "other") }
    #expect(try store.read { try !$0.history(of: "other").map(\.record.id.low).contains(1000) })
    #expect(try store.read { try Resolution.view(of: "main", in: $0).ancestors } == [id(1)])
    #expect(try store.read { try $0.plainContent(hash) } == common)
  }

  @Test("the version that another device may continue from is kept, however often this device saves offline")
  func keepsSharedBasis() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try store.save(Data("shared".utf8), as: 1)
    for number in UInt64(2)...60 {
      try store.write { transaction in
        try transaction.put(number, covers: number > 2 ? [1, number - 1] : [1], acknowledged: false)
      }
    }
    #expect(try store.read { try $0.plainContent(ContentHash(of: Data("shared".utf8))) } == Data("shared".utf8))
    #expect(try store.read { try $0.history(of: "main").count } == HistoryRules.standard.newest + 1)
  }

  @Test(
    "the ancestor of two saves that this device merged is kept until a concurrent merge by another device is resolved")
  func keepsWhatMergedSavesCameFrom() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let common = Data("common".utf8)
    try store.save(common, as: 1)
    try store.write { transaction in
      try transaction.put(2, covers: [1])
      try transaction.put(3, covers: [1])
    }
    // The merge, and the saves that continue from it offline.
    for number in UInt64(4)...60 {
      try store.write { transaction in
        try transaction.put(number, covers: number > 4 ? [2, 3, number - 1] : [2, 3], acknowledged: false)
      }
    }
    #expect(try store.read { try $0.history(of: "main").map(\.record.id.low).contains(1) })
    #expect(try store.read { try $0.plainContent(ContentHash(of: common)) } == common)
    // The other device's merge: both merges start from 2 and 3, and these from 1.
    try store.write { transaction in try transaction.put(100, covers: [2, 3]) }
    for number in UInt64(101)...130 {
      try store.write { transaction in try transaction.put(number, covers: [number - 1]) }
    }
    #expect(try store.read { try $0.plainContent(ContentHash(of: common)) } == common)
    // Once that is resolved, the ancestor may be removed.
    try store.write { transaction in try transaction.put(131, covers: [60, 130]) }
    for number in UInt64(132)...160 {
      try store.write { transaction in try transaction.put(number, covers: [number - 1]) }
    }
    #expect(try store.read { try !$0.hasContent(ContentHash(of: common)) })
  }

  @Test("the number of records is limited, too, and versions whose records were removed are still known as covered")
  func boundsRecords() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try store.write { transaction in
      for number in UInt64(1)...2_500 { try transaction.put(number, covers: number > 1 ? [number - 1] : []) }
    }
    let count = try store.read { try Int.fetchOne($0.database, sql: "SELECT COUNT(*) FROM version") }
    #expect(count == History.recordsKept + HistoryRules.standard.newest)
    #expect(try store.read { try $0.version(id(1)) == nil && $0.isCovered(id(1)) })
  }

  @Test("replaced saves that were offered stay in the outbox; pruned ones that were never offered leave it")
  func unacknowledged() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try store.write { transaction throws in
      try transaction.put(1, acknowledged: false)
      // Offered, and the response never arrived.
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
      #expect(try transaction.history(of: "main").map(\.record.id.low) == (41...60).reversed())
      #expect(try transaction.outbox(limit: 100).flatMap(\.versions).map(\.low) == [1] + (41...60))
      // The records of the others remain, though no cloud will request them.
      #expect(try transaction.unacknowledgedVersions().count == 60)
    }
  }

  @Test("a checkpoint's values stay in the outbox together with its save, even if the save is pruned before it is sent")
  func keepsCheckpoints() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let value = CellUpdate(key: CellKey(collection: "progress", key: "level"), state: CellState(value: .max(.int(3))))
    for number in UInt64(1)...60 {
      try store.write { transaction throws in
        try transaction.put(number, covers: number > 1 ? [number - 1] : [], acknowledged: false)
        try transaction.appendToOutbox(OutboxGroup(cells: number == 1 ? [value] : [], versions: [id(number)]))
      }
    }
    try store.read { transaction throws in
      let groups = try transaction.outbox(limit: 100)
      #expect(groups.first?.cells == [value] && groups.first?.versions == [id(1)])
      #expect(groups.flatMap(\.versions).map(\.low) == [1] + (41...60))
    }
  }

  @Test("a content received for a staged save is kept when an old save with the same content is pruned")
  func keepsStaged() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let shared = try store.write { try $0.keepContent(Data("shared".utf8)) }
    let orphan = try store.write { try $0.keepContent(Data("orphan".utf8)) }
    try store.write { transaction throws in
      try transaction.put(1, [PreparedSave(hashes: [shared], length: 6)])
      try transaction.stage([CloudChange(seq: 1, item: .version(record(500, contents: [shared])))])
    }
    for number in UInt64(2)...40 {
      try store.write { transaction in try transaction.put(number, covers: [number - 1]) }
    }
    #expect(try store.read { try !$0.history(of: "main").contains { $0.record.id == id(1) } })
    #expect(try store.read { try $0.hasContent(shared) && $0.hasContent(orphan) })
    try store.close()
    let again = try Store.open(at: folder.store)
    defer { try? again.close() }
    #expect(try again.read { try $0.hasContent(shared) && !$0.hasContent(orphan) })
  }

  @Test("a deleted save can still be restored, however many saves follow")
  func keepsDeleted() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    for number in UInt64(1)...5 { try store.save(Data("old \(number)".utf8), as: number) }
    try store.write { transaction throws in
      var delete = record(6, covers: [5])
      delete.tombstone = true
      try transaction.putVersion(StoredVersion(record: delete, acknowledged: true, offered: true))
      try transaction.markCovered(id(5))
    }
    for number in UInt64(7)...200 { try store.save(Data("new \(number)".utf8), as: number) }
    try store.read { transaction throws in
      #expect(try transaction.history(of: "main").map(\.record.id.low) == (181...200).reversed() + [6, 5])
      let deleted = try #require(try transaction.version(id(5))?.record)
      #expect(try transaction.plainBytes(of: deleted) == Data("old 5".utf8))
    }
  }

  @Test("records of versions whose contents aren't stored don't displace versions that can be restored")
  func recordsAlone() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    for number in UInt64(1)...20 { try store.save(Data("save \(number)".utf8), as: number) }
    // As the cloud sends them: the newest with its bytes, those before it without.
    try store.write { transaction throws in
      let newest = try transaction.keepContent(Data("save 60".utf8))
      for number in UInt64(21)...60 {
        let hash = number == 60 ? newest : ContentHash(of: Data("save \(number)".utf8))
        try transaction.put(number, covers: [number - 1], [PreparedSave(hashes: [hash], length: 7)])
      }
    }
    try store.read { transaction throws in
      #expect(try transaction.history(of: "main").map(\.record.id.low) == [60] + (2...20).reversed())
      #expect(try transaction.version(id(40)) != nil)
    }
    #expect(errorCode { try store.write { try $0.setPinned(true, id(40)) } } == .missing)
    try store.save(Data("save 61".utf8), as: 61)
    #expect(try store.read { try $0.history(of: "main").map(\.record.id.low) } == [61, 60] + (3...20).reversed())
  }

  @Test("slots whose names only look the same have separate histories")
  func spellings() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
    try store.write { transaction throws in
      for number in UInt64(1)...60 {
        try transaction.put(number, slot: composed, covers: number > 1 ? [number - 1] : [])
        try transaction.put(number + 100, slot: decomposed, covers: number > 1 ? [number + 99] : [])
      }
    }
    #expect(try store.read { try ($0.history(of: composed).count, $0.history(of: decomposed).count) } == (20, 20))
  }
}
