import Crypto
import Foundation
import GRDB
import Keepsake
import TestSupport
import Testing

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A database that ships with the game is opened only if it is the one that the game was built with.
@Suite struct ReferenceDatabaseTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func make(_ name: String = "words.sqlite", wal: Bool = false) throws -> URL {
    let url = folder.url.appendingPathComponent(name)
    let queue = try DatabaseQueue(path: url.path)
    try queue.write { db in
      try db.execute(sql: "CREATE TABLE word (text TEXT PRIMARY KEY)")
      for number in 0..<2_000 { try db.execute(sql: "INSERT INTO word VALUES (?)", arguments: ["word \(number)"]) }
    }
    if wal { try queue.writeWithoutTransaction { try $0.execute(sql: "PRAGMA journal_mode = WAL") } }
    try queue.close()
    return url
  }

  private func hash(_ url: URL) throws -> String {
    SHA256.hash(data: try Data(contentsOf: url)).map { String(UInt16($0) + 256, radix: 16).dropFirst() }.joined()
  }

  private func code(_ url: URL, _ hash: String) -> ReferenceError.Code? {
    do {
      _ = try ReferenceDatabase(at: url, sha256: hash)
      return nil
    } catch let error as ReferenceError {
      return error.code
    } catch {
      Issue.record("another error: \(error)")
      return nil
    }
  }

  @Test(
    "a reference database is read without creating a file beside it, whatever its name and journal mode",
    arguments: [false, true])
  func reads(wal: Bool) throws {
    let url = try make("a?b#c%20 d'\".sqlite", wal: wal)
    let words = try ReferenceDatabase(at: url, sha256: try hash(url).uppercased())
    let guess = "word 7' OR '1'='1"
    #expect(
      try words.read {
        try Bool.fetchOne($0, sql: "SELECT EXISTS (SELECT 1 FROM word WHERE text = ?)", arguments: [guess])
      } == false)
    #expect(try words.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM word") } == 2_000)
    #expect(throws: DatabaseError.self) { try words.read { try $0.execute(sql: "DELETE FROM word") } }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.url.path) == [url.lastPathComponent])
  }

  @Test("a file with any byte altered, a truncated file and a longer file are refused when they are opened")
  func otherHash() throws {
    let url = try make()
    let right = try hash(url)
    let bytes = try Data(contentsOf: url)
    for place in stride(from: 0, to: bytes.count, by: bytes.count / 40) {
      var altered = bytes
      altered[place] ^= 1
      try altered.write(to: url)
      #expect(code(url, right) == .otherHash, "byte \(place)")
    }
    try bytes.dropLast(1).write(to: url)
    #expect(code(url, right) == .otherHash)
    try (bytes + Data([0])).write(to: url)
    #expect(code(url, right) == .otherHash)
    try bytes.write(to: url)
    #expect(code(url, right) == nil)
  }

  @Test("a missing file, other kinds of files, wrong hashes, a damaged database and a log throw typed errors")
  func causes() throws {
    let url = try make()
    let right = try hash(url)
    #expect(code(folder.url.appendingPathComponent("nowhere"), right) == .missing)
    #expect(code(folder.url, right) == .notADatabase)
    for text in ["", "right", String(right.dropLast()), right + "0", String(repeating: "g", count: 64)] {
      #expect(code(url, text) == .misuse)
    }
    let other = folder.url.appendingPathComponent("text")
    for content in [Data(), Data("a text".utf8), Data("SQLite format 3\0".utf8)] {
      try content.write(to: other)
      #expect(code(other, try hash(other)) == .notADatabase)
    }
    var bytes = try Data(contentsOf: url)
    bytes.replaceSubrange(100..<2_000, with: Data(repeating: 0xFF, count: 1_900))
    let broken = folder.url.appendingPathComponent("broken.sqlite")
    try bytes.write(to: broken)
    #expect(code(broken, try hash(broken)) == .damaged)
    try Data("more".utf8).write(to: URL(fileURLWithPath: url.path + "-wal"))
    #expect(code(url, right) == .misuse)
  }

  @Test("a file whose name is too long to have a log is read, and a link at the path of its log is refused")
  func logNames() throws {
    let long = folder.url.appendingPathComponent(String(repeating: "w", count: 253))
    try FileManager.default.moveItem(at: make(), to: long)
    #expect(code(long, try hash(long)) == nil)
    let url = try make()
    let right = try hash(url)
    try FileManager.default.createSymbolicLink(atPath: url.path + "-wal", withDestinationPath: "nowhere")
    #expect(code(url, right) == .misuse)
  }

  @Test("a damaged page throws a typed error when it is read")
  func damagedPage() throws {
    let url = try make()
    var bytes = try Data(contentsOf: url)
    for page in 2..<bytes.count / 4_096 {
      bytes.replaceSubrange(page * 4_096..<page * 4_096 + 16, with: Data(repeating: 0xEE, count: 16))
    }
    try bytes.write(to: url)
    let words = try ReferenceDatabase(at: url, sha256: try hash(url))
    do {
      _ = try words.read { try String.fetchAll($0, sql: "SELECT text FROM word NOT INDEXED") }
      Issue.record("damage went unnoticed")
    } catch let error as ReferenceError {
      #expect(error.code == .damaged)
    }
  }

  @Test(
    "a pipe and links to a pipe or a device are refused without blocking; a link to the file is followed", .hangLimit)
  func kinds() async throws {
    try await onThread {
      let url = try make()
      let right = try hash(url)
      let pipe = folder.url.appendingPathComponent("pipe")
      try #require(mkfifo(pipe.path, 0o600) == 0)
      for (name, target) in [("device", "/dev/zero"), ("to the pipe", pipe.path), ("good", url.path)] {
        try FileManager.default.createSymbolicLink(
          atPath: folder.url.appendingPathComponent(name).path, withDestinationPath: target)
      }
      #expect(code(pipe, right) == .notADatabase)
      #expect(code(folder.url.appendingPathComponent("device"), right) == .notADatabase)
      #expect(code(folder.url.appendingPathComponent("to the pipe"), right) == .notADatabase)
      #expect(code(folder.url.appendingPathComponent("good"), right) == nil)
    }
  }

  @Test("reads can be nested, nothing can be inserted, and a view in the file can't load an extension")
  func nests() throws {
    let url = try make()
    let queue = try DatabaseQueue(path: url.path)
    try queue.writeWithoutTransaction { db in
      try db.execute(
        sql:
          """
          CREATE TRIGGER wild AFTER INSERT ON word BEGIN DELETE FROM word; END; CREATE VIEW wilder AS \
          SELECT load_extension('x')
          """)
    }
    try queue.close()
    let words = try ReferenceDatabase(at: url, sha256: try hash(url))
    let count = try words.read { _ in try words.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM word") } }
    #expect(count == 2_000)
    #expect(throws: DatabaseError.self) { try words.read { try Row.fetchAll($0, sql: "SELECT * FROM wilder") } }
    #expect(throws: DatabaseError.self) {
      try words.read { _ = try Row.fetchAll($0, sql: "INSERT INTO word VALUES ('new') RETURNING text") }
    }
    #expect(try words.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM word") } == 2_000)
  }
}
