import Keepsake
import KeepsakeRecords
import KeepsakeTesting
import Testing

@Archivable struct World {
  @Merge(.max) var level = 1
}
extension Slot<World> { static let main = Slot("main") }

/// A game's own test of its saves, as the article TestingYourGame has it.
@Test("a game left on the phone goes on where it was on the tablet, also after a kill")
func goesOnOnTheTablet() async throws {
  let world = TestWorld()
  let phone = try world.device("phone")
  let tablet = try world.device("tablet").open("com.example.space")
  let game = try phone.open("com.example.space")
  try await game.saves.save(World(level: 7), to: .main)
  try phone.kill()
  try phone.open("com.example.space")
  try await world.settle()
  #expect(try tablet.saves.load(.main)?.level == 7)
}

struct Creature: Codable, FetchableRecord, PersistableRecord {
  var id: Int
  var name: String
}

/// A game that depends on this package alone has GRDB by the import above.
@Test("a game's own tables need no second package")
func ownTables() throws {
  let world = TestWorld()
  let game = try world.device("phone").open("com.example.space")
  var migrator = DatabaseMigrator()
  migrator.registerMigration("creatures") { db in
    try db.create(table: "creature") { table in
      table.primaryKey("id", .integer)
      table.column("name", .text).notNull()
    }
  }
  try game.records.migrate(migrator)
  try game.records.write { try Creature(id: 7, name: "newt").insert($0) }
  let names = try game.records.read { try Creature.filter(Column("id") == 7).fetchAll($0).map(\.name) }
  #expect(names == ["newt"])
}
