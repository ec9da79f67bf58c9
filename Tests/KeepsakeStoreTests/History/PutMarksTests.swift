import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// Putting a version again, on its way to a cloud: only what differs is written.
@Suite struct PutMarksTests {
  private let folder: TemporaryFolder
  private let store: Store

  init() throws {
    folder = try TemporaryFolder()
    store = try Store.open(at: folder.store)
    for number in UInt64(1)...3 { try store.save(Data("save \(number)".utf8), as: number, acknowledged: false) }
    try store.write { try $0.setPinned(true, id(2)) }
  }

  private func stored(_ number: UInt64) throws -> StoredVersion {
    try #require(try store.read { try $0.version(id(number)) })
  }

  private func put(_ number: UInt64, _ change: (inout StoredVersion) -> Void) throws {
    var version = try stored(number)
    change(&version)
    try store.write { try $0.putVersion(version) }
    #expect(try stored(number) == version)
  }

  private func marks(_ number: UInt64) throws -> String {
    try store.read { transaction in
      let sql = "SELECT \(VersionRow.columns) FROM version WHERE id = ?"
      let row = try #require(try Row.fetchOne(transaction.statement(sql), arguments: [id(number).bytes]))
      return try VersionRow(row).marks.description
    }
  }

  @Test("other marks leave the record and all other marks as they are, and the row is sound")
  func otherMarks() throws {
    let before = try stored(2)
    try put(2) { $0.offered = true }
    #expect(try marks(2) == "01010")
    try put(2) { $0.acknowledged = true }
    #expect(try marks(2) == "11010")
    #expect(try stored(2).record == before.record)
    #expect(try store.read { try $0.pinnedVersions(of: "main") } == [id(2)])
    try store.close()
    let again = try Store.open(at: folder.store)
    defer { try? again.close() }
    #expect(again.incidents.isEmpty)
    #expect(try again.read { try $0.version(id(2)) }?.acknowledged == true)
    #expect(try again.read { try $0.heads(of: "main") } == [id(3)])
  }

  @Test("what changes a version between reading and putting it in one transaction isn't undone")
  func changedBetween() throws {
    try store.write { transaction in
      var version = try #require(try transaction.version(id(1)))
      version.offered = true
      try transaction.setPinned(true, id(1))
      try transaction.putVersion(version)
      // One that wasn't here when it was asked for.
      #expect(try transaction.version(id(9)) == nil)
      var other = version
      other.record.id = id(9)
      try transaction.putVersion(other)
      other.acknowledged = true
      try transaction.putVersion(other)
      #expect(try transaction.version(id(1))?.offered == true)
      #expect(try transaction.version(id(9))?.acknowledged == true)
      other.acknowledged = false
      try transaction.putVersion(other)
      #expect(try transaction.version(id(9))?.acknowledged == false)
      other.acknowledged = true
      try transaction.putVersion(other)
    }
    #expect(try marks(1) == "01010" && marks(9) == "11000")
    try store.close()
    let again = try Store.open(at: folder.store)
    defer { try? again.close() }
    #expect(again.incidents.isEmpty)
    #expect(try again.read { try $0.version(id(1)) }?.offered == true)
  }

  @Test("another record of the version is written, and keeps the pin")
  func otherRecord() throws {
    try put(2) { version in
      version.record.metadata.title = "renamed"
      version.acknowledged = true
    }
    #expect(try marks(2) == "10010")
    #expect(try stored(2).record.metadata.title == "renamed")
    #expect(throws: StoreError.self) { try put(2) { $0.record.slot = "other" } }
  }

  @Test("a damaged row isn't made sound by putting it again")
  func damagedRow() throws {
    var version = try stored(2)
    version.acknowledged = true
    try store.write { transaction in
      try transaction.run("UPDATE version SET saved_at = saved_at + 1 WHERE id = ?", [id(2).bytes])
    }
    #expect(errorCode { _ = try store.read { try $0.version(id(2)) } } == .damaged)
    // The whole record is written: what was damaged is gone.
    try store.write { try $0.putVersion(version) }
    #expect(try stored(2) == version)
    try store.close()
  }

  @Test("a version is known as long as its id is, whatever is left of its record")
  func known() throws {
    try store.write { transaction in
      try transaction.markCovered(id(77))
    }
    #expect(
      try store.read { transaction in try [1, 2, 3, 77, 78].map { try transaction.isKnown(id($0)) } }
        == [true, true, true, true, false])
  }

  @Test("slots whose names are equal as texts and not as bytes have heads of their own")
  func names() throws {
    let names = ["caf\u{E9}", "cafe\u{301}"]
    for (number, name) in names.enumerated() {
      try store.save(Data("x".utf8), as: UInt64(10 + 10 * number), slot: name)
    }
    let found = try store.read { try $0.headsByName() }
    #expect(found.map(\.slot.utf8.count) == [6, 5, 4] && found.map(\.heads) == [[id(20)], [id(10)], [id(3)]])
  }
}
