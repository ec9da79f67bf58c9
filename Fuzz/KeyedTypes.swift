import Foundation
import KeepsakeArchive

// Conformances written by hand: each field carries its key.

struct Note: Archivable {
  var text: String
  var number: Int
  var inner: [Note] = []
  var chain: Chain?
  var bond: Bond?
  /// Read by a type that goes on without what it can't read.
  var tree: Tree?
  var pair: Pair<[Place], Need?>?

  init(_ text: String, _ number: Int) {
    self.text = text
    self.number = number
  }

  func encode(to writer: inout ArchiveWriter) throws {
    try writer.encode(number, forKey: "number")
    try writer.encode(text, forKey: "text")
    if !inner.isEmpty { try writer.encode(inner, forKey: "inner") }
    if let chain { try writer.encode(chain, forKey: "chain") }
    if let bond { try writer.encode(bond, forKey: "bond") }
    if let tree { try writer.encode(tree, forKey: "tree") }
    if let pair { try writer.encode(pair, forKey: "pair") }
  }

  init(from reader: inout ArchiveReader) throws {
    text = try reader.decode(String.self, forKey: "text")
    number = try reader.decode(Int.self, forKey: "number", default: 3)
    inner = try reader.decodeIfPresent([Note].self, forKey: "inner") ?? []
    chain = try reader.decodeIfPresent(Chain.self, forKey: "chain")
    bond = try reader.decodeIfPresent(Bond.self, forKey: "bond")
    tree = try? reader.decodeIfPresent(Tree.self, forKey: "tree")
    pair = try? reader.decodeIfPresent(Pair<[Place], Need?>.self, forKey: "pair")
  }
}

class Scene: Archivable, Linked {
  var name: String
  var count: Int
  var notes: [Note] = []
  weak var hero: Creature?
  var linked: Scene?
  var others: [Scene] = []

  init(name: String) {
    self.name = name
    count = name.utf8.count
  }

  class var archiveName: String { "Scene" }
  class var archiveSubclasses: [any Archivable.Type] { [Creature.self, Chain.self, Need.self, Finale.self] }
  class func archiveFields(_ fields: ArchiveFieldList) {
    fields.describe(Scene.self)
    fields.markKeyed()
  }

  func encode(to writer: inout ArchiveWriter) throws {
    try writer.encode(name, forKey: "name")
    try writer.encode(count, forKey: "count")
    try writer.encode(notes, forKey: "notes")
  }

  required convenience init(from reader: inout ArchiveReader) throws {
    self.init(name: try reader.decode(String.self, forKey: "name"))
    count = try reader.decode(Int.self, forKey: "count")
    notes = try reader.decode([Note].self, forKey: "notes", default: [])
  }

  func encodeReferences(to writer: inout ArchiveWriter) throws {
    try writer.encodeConditional(hero, forKey: "hero")
    try writer.encode(linked, forKey: "linked")
    try writer.encode(others, forKey: "others")
  }

  func decodeReferences(from reader: inout ArchiveReader) throws {
    Registry.note(self)
    hero = try reader.decode(Creature?.self, forKey: "hero")
    linked = try reader.decodeIfPresent(Scene?.self, forKey: "linked") ?? nil
    others = try reader.decode([Scene].self, forKey: "others", default: [])
  }

  func unlink() {
    linked = nil
    others = []
    notes = []
  }
}

final class Finale: Scene {
  override class var archiveName: String { "Finale" }
  override class var archiveSubclasses: [any Archivable.Type] { [] }
  override class func archiveFields(_ fields: ArchiveFieldList) {
    fields.describe(Finale.self)
    fields.markKeyed()
  }
}

@Archivable struct Kept {
  var scene: Scene
  var notes: [Note] = []
  var byName: [String: Note] = [:]
  var heroes: [Creature] = []
}
