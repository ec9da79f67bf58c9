import BenchmarkKit
import Foundation
import GRDB
import Keepsake

/// The same creatures kept in each of the ways, in a folder of its own.
final class Keeper {
  /// What is compared.
  enum Way: String, CaseIterable, Codable {
    case slot, archive, json, propertyList, records

    var title: String {
      switch self {
      case .slot: "slot"
      case .archive: "Archive.write"
      case .json: "JSON"
      case .propertyList: "property list"
      case .records: "records"
      }
    }
  }

  private let folder: URL
  private let game: GameData
  private let slot = Slot<Herd>("herd")
  private var herd: Herd
  private var turn = 0
  /// As many as a screen shows.
  private var rangeCount: Int { min(herd.creatures.count, 100) }

  init(count: Int) throws {
    folder = FileManager.default.temporaryDirectory.appending(
      path: "keepsake-records-\(count)-\(ProcessInfo.processInfo.processIdentifier)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    game = try GameData.open("benchmark", at: folder.appending(path: "game"))
    herd = Herd(creatures: Creature.all(count))
    var migrator = DatabaseMigrator()
    migrator.registerMigration("creatures") { db in
      try db.execute(
        sql: """
          CREATE TABLE creature (id INTEGER PRIMARY KEY, name TEXT NOT NULL, species TEXT NOT NULL, x REAL NOT NULL, y \
          REAL NOT NULL,
            health INTEGER NOT NULL, seen INTEGER NOT NULL, note TEXT NOT NULL);
          CREATE INDEX creature_seen ON creature (seen)
          """)
    }
    try game.records.migrate(migrator)
    try game.records.write { db in
      let insert = try db.makeStatement(
        sql: "INSERT INTO creature (\(Creature.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
      for creature in herd.creatures { try insert.execute(arguments: creature.arguments) }
    }
  }

  /// Removes the folder.
  func finish() throws {
    try game.close()
    try FileManager.default.removeItem(at: folder)
  }

  // MARK: Saving

  /// One creature is hurt: what has to be saved afterwards.
  func play() {
    turn = (turn + 7_919) % herd.creatures.count
    herd.creatures[turn].health += 1
  }

  /// The creature that was hurt is saved; where there is only one file, with all others.
  func saveOne(_ way: Way) throws {
    guard way == .records else { return try saveAll(way) }
    let creature = herd.creatures[turn]
    try game.records.write { db in
      try db.execute(literal: "UPDATE creature SET health = \(creature.health) WHERE id = \(creature.id)")
    }
  }

  func saveAll(_ way: Way) throws {
    switch way {
    case .slot: try game.saves.capture(herd, to: slot).wait()
    case .archive: try Archive.write(herd, to: file("archive"))
    case .json: try JSONEncoder().encode(herd).write(to: file("json"), options: .atomic)
    case .propertyList:
      let encoder = PropertyListEncoder()
      encoder.outputFormat = .binary
      try encoder.encode(herd).write(to: file("plist"), options: .atomic)
    case .records:
      try game.records.write { db in
        let update = try db.makeStatement(
          sql:
            """
            UPDATE creature SET id = ?, name = ?, species = ?, x = ?, y = ?, health = ?, seen = ?, note = ? WHERE id = ?
            """)
        for creature in herd.creatures { try update.execute(arguments: creature.arguments + [creature.id]) }
      }
    }
  }

  /// Every creature is hurt, for a way in which what didn't change costs nothing.
  func playAll() {
    for index in herd.creatures.indices { herd.creatures[index].health += 1 }
  }

  // MARK: Loading

  func loadAll(_ way: Way) throws -> [Creature] {
    switch way {
    case .slot: try game.saves.load(slot)?.creatures ?? []
    case .archive: try Archive.read(Herd.self, from: file("archive"))?.creatures ?? []
    case .json: try JSONDecoder().decode(Herd.self, from: Data(contentsOf: file("json"))).creatures
    case .propertyList: try PropertyListDecoder().decode(Herd.self, from: Data(contentsOf: file("plist"))).creatures
    case .records:
      try game.records.read { db in
        try Creature.fetchAll(db, sql: "SELECT \(Creature.columns) FROM creature ORDER BY id")
      }
    }
  }

  /// One by its key.
  func find(_ way: Way) throws -> Creature? {
    play()
    let id = herd.creatures[turn].id
    guard way == .records else { return try loadAll(way).first { $0.id == id } }
    return try game.records.read { db in
      try Creature.fetchOne(db, sql: "SELECT \(Creature.columns) FROM creature WHERE id = ?", arguments: [id])
    }
  }

  /// A hundred that were seen one after the other.
  func range(_ way: Way) throws -> [Creature] {
    play()
    let first = Creature.begin + min(turn, herd.creatures.count - rangeCount) * Creature.seconds
    let last = first + (rangeCount - 1) * Creature.seconds
    guard way == .records else { return try loadAll(way).filter { (first...last).contains($0.seen) } }
    return try game.records.read { db in
      try Creature.fetchAll(
        db, sql: "SELECT \(Creature.columns) FROM creature WHERE seen BETWEEN ? AND ? ORDER BY seen",
        arguments: [first, last])
    }
  }

  /// Every way has all of it, and every look finds what it should.
  func check() throws {
    for way in Way.allCases {
      try saveAll(way)
      try BenchmarkError.require(try loadAll(way) == herd.creatures, "\(way.title) lost something")
      try BenchmarkError.require(try find(way)?.id == herd.creatures[turn].id, "\(way.title) doesn't find a creature")
      try BenchmarkError.require(try range(way).count == rangeCount, "\(way.title) doesn't find a range")
    }
  }

  func bytes(_ way: Way) throws -> Int? {
    switch way {
    case .slot: nil
    case .archive: try size(file("archive"))
    case .json: try size(file("json"))
    case .propertyList: try size(file("plist"))
    case .records:
      try game.records.read { db in
        try (Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0) * (Int.fetchOne(db, sql: "PRAGMA page_size") ?? 0)
      }
    }
  }

  private func size(_ url: URL) throws -> Int? { try url.resourceValues(forKeys: [.fileSizeKey]).fileSize }

  private func file(_ name: String) -> URL { folder.appending(path: "herd.\(name)") }
}
