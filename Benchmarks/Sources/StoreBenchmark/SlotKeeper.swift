import BenchmarkKit
import Foundation
import GRDB
import Keepsake

/// A small save, as a game has thousands of: a level, a diary page, a chunk of a map.
@Archivable
struct Level: Equatable, Sendable {
  var name: String
  var score: Int
  var stars: [Int]

  init(_ number: Int, score: Int) {
    name = "level \(number)"
    self.score = score
    stars = (0..<10).map { (number * 7 + $0 * 3 + score) % 4 }
  }
}

/// One way to keep many small saves, in a place of its own.
protocol SlotKeeper: AnyObject, Sendable {
  /// Saves each level on its own, by its place in the list, and returns when all are durable.
  func saveEach(_ levels: [Level]) throws
  /// Returns the number of saves, each with its name and date.
  func list() throws -> Int
  func load(_ number: Int) throws -> Level?
  /// Saves one of several levels at once, from a task of its own, and returns when it is durable.
  func saveInTask(_ level: Level, _ number: Int) async throws
  func finish() throws
}

final class KeepsakeSlots: SlotKeeper {
  private let folder: URL
  private let game: GameData

  init(_ folder: URL) throws {
    self.folder = folder
    game = try GameData.open("benchmark", at: folder.appending(path: "game"))
  }

  private func slot(_ number: Int) -> Slot<Level> { Slot("level \(number)") }

  func saveEach(_ levels: [Level]) throws {
    let pending = try levels.enumerated().map { number, level in try game.saves.capture(level, to: slot(number)) }
    for save in pending { try save.wait(within: .seconds(600)) }
  }

  func list() throws -> Int { try game.saves.list().count }

  func load(_ number: Int) throws -> Level? { try game.saves.load(slot(number)) }

  func saveInTask(_ level: Level, _ number: Int) async throws { try await game.saves.save(level, to: slot(number)) }

  func finish() throws {
    try game.close(within: .seconds(600))
    try FileManager.default.removeItem(at: folder)
  }
}

/// Each save in a file of its own, written beside it, synced and renamed, and the folder synced.
final class FileSlots: SlotKeeper {
  private let folder: URL

  init(_ folder: URL) { self.folder = folder }

  private func file(_ number: Int) -> URL { folder.appending(path: "level \(number)") }

  func saveEach(_ levels: [Level]) throws {
    for (number, level) in levels.enumerated() { try save(level, number) }
  }

  private func save(_ level: Level, _ number: Int) throws {
    try DurableFile.write(try Archive.encode(level), to: file(number))
  }

  func list() throws -> Int {
    let keys: Set<URLResourceKey> = [.contentModificationDateKey]
    return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: Array(keys))
      .map { (name: $0.lastPathComponent, date: try $0.resourceValues(forKeys: keys).contentModificationDate) }
      .sorted { $0.name < $1.name }.count
  }

  func load(_ number: Int) throws -> Level? {
    try Archive.decode(Level.self, from: Data(contentsOf: file(number)))
  }

  func saveInTask(_ level: Level, _ number: Int) async throws { try save(level, number) }

  func finish() throws { try FileManager.default.removeItem(at: folder) }
}

/// Each save in a row of a database with a write-ahead log that is synced at each commit, as a store's is.
final class RowSlots: SlotKeeper {
  private let folder: URL
  private let pool: DatabasePool
  private let isOneTransaction: Bool

  init(_ folder: URL, isOneTransaction: Bool) throws {
    (self.folder, self.isOneTransaction) = (folder, isOneTransaction)
    pool = try DatabasePool(path: folder.appending(path: "levels.sqlite").path)
    try pool.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA synchronous = FULL")
      try db.execute(
        sql: "CREATE TABLE level (name TEXT PRIMARY KEY, date REAL NOT NULL, body BLOB NOT NULL) WITHOUT ROWID")
    }
  }

  func saveEach(_ levels: [Level]) throws {
    if isOneTransaction {
      try pool.write { db in
        for (number, level) in levels.enumerated() { try Self.insert(try Archive.encode(level), number, db) }
      }
    } else {
      for (number, level) in levels.enumerated() {
        let body = try Archive.encode(level)
        try pool.write { db in try Self.insert(body, number, db) }
      }
    }
  }

  private static func insert(_ body: Data, _ number: Int, _ db: Database) throws {
    try db.cachedStatement(sql: "INSERT OR REPLACE INTO level (name, date, body) VALUES (?, ?, ?)").execute(
      arguments: ["level \(number)", Date().timeIntervalSince1970, body])
  }

  func list() throws -> Int {
    try pool.read { db in try Row.fetchAll(db, sql: "SELECT name, date FROM level ORDER BY name").count }
  }

  func load(_ number: Int) throws -> Level? {
    let body = try pool.read { db in
      try Data.fetchOne(
        db.cachedStatement(sql: "SELECT body FROM level WHERE name = ?"), arguments: ["level \(number)"])
    }
    return try body.map { try Archive.decode(Level.self, from: $0) }
  }

  func saveInTask(_ level: Level, _ number: Int) async throws {
    let body = try Archive.encode(level)
    try await pool.write { db in try Self.insert(body, number, db) }
  }

  func finish() throws {
    try pool.close()
    try FileManager.default.removeItem(at: folder)
  }
}
