import Foundation
import GRDB
import Testing

@testable import KeepsakeStore

/// Rows that are read without GRDB's `Row`.
@Suite struct ColumnsTests {
  private func code<Value>(_ read: () throws -> Value) -> StoreError.Code? {
    do {
      _ = try read()
      return nil
    } catch {
      return (error as? StoreError)?.code
    }
  }

  @Test("values come as they were stored, whatever their length")
  func values() throws {
    try DatabaseQueue().write { db in
      try db.execute(sql: "CREATE TABLE t (k BLOB, s TEXT, b BLOB, i INTEGER)")
      for (key, text, bytes, number) in [
        (Data([1]), "", Data(), Int64.min), (Data([2]), "a\u{301} \u{1F600}", Data(repeating: 7, count: 70_000), 1),
      ] {
        try db.execute(sql: "INSERT INTO t VALUES (?, ?, ?, ?)", arguments: [key, text, bytes, number])
        let row = try db.first("SELECT s, b, i, i FROM t WHERE k = ?", key) { columns in
          (try columns.text(0, "s"), try columns.data(1, "b"), try columns.integer(2, "i"), try columns.flag(3, "i"))
        }
        let found = try #require(row)
        #expect(found.0.utf8.elementsEqual(text.utf8) && found.1 == bytes && found.2 == number && found.3)
      }
      #expect(try db.first("SELECT s FROM t WHERE k = ?", Data([3])) { try $0.text(0, "s") } == nil)
      #expect(try db.exists("SELECT 1 FROM t WHERE k = ?", Data([2])))
      #expect(try !db.exists("SELECT 1 FROM t WHERE k = ?", Data()))
      try db.execute(sql: "UPDATE t SET s = 'x'")
      let keys = try db.all("SELECT k FROM t WHERE s = ? ORDER BY k", "x") { try $0.data(0, "k") }
      #expect(keys == [Data([1]), Data([2])])
      #expect(try db.all("SELECT k FROM t WHERE s = ?", "y") { try $0.data(0, "k") }.isEmpty)
      var each: [Data] = []
      try db.each("SELECT k FROM t ORDER BY k DESC") { each.append(try $0.data(0, "k")) }
      #expect(each == [Data([2]), Data([1])])
    }
  }

  @Test("NULL and values of another type are damage, not zeros")
  func types() throws {
    try DatabaseQueue().write { db in
      try db.execute(sql: "CREATE TABLE t (k BLOB, n, s, b, i, r)")
      try db.execute(sql: "INSERT INTO t VALUES (x'01', NULL, 'text', x'02', 3, 4.5)")
      let names = ["n", "s", "b", "i", "r"]
      for (name, reads) in [("text", [1]), ("data", [2]), ("integer", [3]), ("flag", [3])] {
        for index in names.indices {
          let column = Int32(index)
          let found = code {
            _ = try db.first("SELECT n, s, b, i, r FROM t WHERE k = ?", Data([1])) { columns -> Int in
              switch name {
              case "text": _ = try columns.text(column, names[index])
              case "data": _ = try columns.data(column, names[index])
              case "integer": _ = try columns.integer(column, names[index])
              default: _ = try columns.flag(column, names[index])
              }
              return 0
            }
          }
          #expect(found == (reads.contains(index) ? nil : .damaged), "\(name) of \(names[index])")
        }
      }
      #expect(throws: DatabaseError.self) { try db.exists("SELECT 1 FROM nothing WHERE k = ?", Data([1])) }
    }
  }

  @Test("a query ends with its first row, and with an error of the reading")
  func ends() throws {
    try DatabaseQueue().write { db in
      try db.execute(sql: "CREATE TABLE t (k BLOB)")
      for _ in 0..<3 { try db.execute(sql: "INSERT INTO t VALUES (x'01')") }
      let sql = "SELECT k FROM t WHERE k = ?"
      #expect(try db.exists(sql, Data([1])))
      #expect(code { try db.first(sql, Data([1])) { try $0.text(0, "k") } } == .damaged)
      // A query that still runs would keep the table from being dropped.
      try db.execute(sql: "DROP TABLE t")
    }
  }
}
