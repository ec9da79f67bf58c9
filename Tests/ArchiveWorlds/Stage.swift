import KeepsakeArchive

/// Archived by hand-written code: decoding calls the normal initialiser and applies the saved state.
final class Stage: Archivable {
  let name: String
  let monsters: Int
  var monstersLeft: Int
  weak var hero: Creature?
  var linked: Stage?
  private(set) var loadedFrom: String?

  init(name: String) {
    self.name = name
    monsters = name.count
    monstersLeft = monsters
  }

  static var archiveSubclasses: [any Archivable.Type] { [Creature.self] }

  func encode(to writer: inout ArchiveWriter) throws {
    try writer.encode(name, forKey: "name")
    try writer.encode(monsters - monstersLeft, forKey: "killed")
    try writer.encode([Item(kind: 8)], forKey: "loot")
  }

  convenience init(from reader: inout ArchiveReader) throws {
    self.init(name: try reader.decode(String.self, forKey: "name"))
    monstersLeft = monsters - (try reader.decode(Int.self, forKey: "killed", default: 0))
    loadedFrom = reader.context as? String
  }

  func encodeReferences(to writer: inout ArchiveWriter) throws {
    try writer.encodeConditional(hero, forKey: "hero")
    try writer.encode(linked, forKey: "linked")
  }

  func decodeReferences(from reader: inout ArchiveReader) throws {
    hero = try reader.decode(Creature?.self, forKey: "hero")
    linked = try reader.decode(Stage?.self, forKey: "linked")
  }
}

@Archivable struct Campaign {
  var level: Stage
  var heroes: [Creature] = []
}
