import Keepsake
import KeepsakeRecords

struct Creature: Codable, FetchableRecord, PersistableRecord {
  var id: Int
  var name: String
  var seen: Int
}

/// Call it once, after opening the game's data.
func openCreatures(of game: GameData) throws {
  var migrator = DatabaseMigrator()
  migrator.registerMigration("creatures") { db in
    try db.create(table: "creature") { table in
      table.primaryKey("id", .integer)
      table.column("name", .text).notNull()
      table.column("seen", .integer).notNull().indexed()
    }
  }
  try game.records.migrate(migrator)
}

func keep(_ creatures: [Creature], in game: GameData) throws {
  try game.records.write { db in
    for creature in creatures { try creature.upsert(db) }
  }
}

func creatures(of game: GameData, seenAtLeast count: Int) throws -> [Creature] {
  try game.records.read { db in
    try Creature.filter(Column("seen") >= count).order(Column("name")).fetchAll(db)
  }
}
