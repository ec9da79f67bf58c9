import Foundation
import GRDB
import KeepsakeReplication
import TestSupport
import Testing

@testable import KeepsakeStore

/// What is open is damaged when it is copied into a new folder.
@Suite struct StoreRescueTests {
  let folder: TemporaryFolder
  private var rescued: URL { folder.url.appendingPathComponent("rescued") }

  init() throws { folder = try TemporaryFolder() }

  @Test("a damaged store is rescued all the same, and marked, so that opening it checks all of it and repairs it")
  func damagedStore() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try store.save(Data("one".utf8), as: 1)
    try store.save(Data("two".utf8), as: 2)
    try store.database.pool.write { database in
      try database.execute(
        sql: "UPDATE version SET slot = 'Main' WHERE position = (SELECT MIN(position) FROM version)")
    }
    try StoreRescue.rescue(store, nil, to: rescued)
    #expect(StoreFiles.exists(StoreFiles(folder: rescued).suspicion))
    let found = try Store.open(at: rescued)
    defer { try? found.close() }
    #expect(found.incidents.map(\.kind) == [.recovered])
    #expect(try found.read { try $0.heads(of: "main") } == [id(2)])
    #expect(!StoreFiles.exists(StoreFiles(folder: rescued).suspicion))
  }

  @Test("a store with a row that has its checksum and can't be decoded is rescued all the same, and marked")
  func undecodableRow() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    try store.save(Data("one".utf8), as: 1)
    try store.save(Data("two".utf8), as: 2, slot: "other")
    try store.database.pool.write { database in
      let codec = StoreTransaction(database, in: store.database.context).codec
      let row = try #require(
        try Row.fetchOne(database, sql: "SELECT \(VersionRow.columns) FROM version WHERE slot = 'main'"))
      let version = try VersionRow(row)
      let body = try codec.encode(["not a version"], place: version.place)
      try database.execute(sql: "UPDATE version SET body = ? WHERE id = ?", arguments: [body, version.id.bytes])
      // So that the audit decodes the versions.
      try database.execute(sql: "DELETE FROM content_use WHERE version = ?", arguments: [version.id.bytes])
    }
    try StoreRescue.rescue(store, nil, to: rescued)
    #expect(StoreFiles.exists(StoreFiles(folder: rescued).suspicion))
    let found = try Store.open(at: rescued)
    defer { try? found.close() }
    #expect(found.incidents.first?.kind == .recovered)
    #expect(try found.read { try $0.heads(of: "other") } == [id(2)])
  }

  @Test("what is intact is rescued without a mark")
  func intact() throws {
    let store = try Store.open(at: folder.store)
    defer { try? store.close() }
    let records = try RecordsDatabase.open(in: folder.store, beside: store) { _ in }
    defer { try? records.close() }
    try store.save(Data("one".utf8), as: 1)
    try records.write { try $0.execute(sql: "CREATE TABLE thing (number INTEGER)") }
    try StoreRescue.rescue(store, records, to: rescued)
    #expect(!StoreFiles.exists(StoreFiles(folder: rescued).suspicion))
    #expect(!StoreFiles.exists(RecordsFiles(folder: rescued).suspicion))
  }
}
