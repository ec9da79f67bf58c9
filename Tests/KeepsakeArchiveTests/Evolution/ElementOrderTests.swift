import Foundation
import KeepsakeArchive
import KeepsakeInspection
import Testing

@Archivable(subclasses: [Knight.self, Wizard.self]) private class Unit: Hashable {
  var id: Int
  init(id: Int) { self.id = id }
  static func == (a: Unit, b: Unit) -> Bool { a.id == b.id }
  func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

@Archivable private final class Knight: Unit {
  var horse: Horse?
}

@Archivable private final class Wizard: Unit {
  var spells = ["light"]
}

@Archivable private final class Horse {
  var name: String
  init(name: String) { self.name = name }
}

/// As if it were declared in another module: only `classes:` lists it.
@Archivable private final class Stranger: Unit {
  var home = "far"
}

/// Another such class.
@Archivable private final class Guest: Unit {
  var days = 3
}

private struct Note: Archivable, Hashable {
  var number: Int
  init(number: Int) { self.number = number }

  func encode(to writer: inout ArchiveWriter) throws {
    if number % 2 == 0 {
      try writer.encode(number, forKey: "even")
    } else {
      try writer.encode("\(number)", forKey: "odd")
    }
  }

  init(from reader: inout ArchiveReader) throws {
    if let even = try reader.decodeIfPresent(Int.self, forKey: "even") {
      number = even
    } else {
      number = Int(try reader.decode(String.self, forKey: "odd")) ?? -1
    }
  }
}

@Archivable private struct Tag: Hashable {
  var number: Int
  weak var owner: Unit?
  static func == (a: Tag, b: Tag) -> Bool { a.number == b.number }
  func hash(into hasher: inout Hasher) { hasher.combine(number) }
}

@Archivable private struct Army {
  var units: Set<Unit>
  var posts: [Unit: String]
}

@Archivable private struct Notes { var notes: Set<Note> }

@Archivable private struct Tags {
  var units: [Unit]
  var tags: Set<Tag>
}

/// Catches errors that it should pass on.
private struct Careless: Archivable {
  static var archiveSubclasses: [any Archivable.Type] { [Unit.self] }
  var unit: Unit
  init(unit: Unit) { self.unit = unit }
  func encode(to writer: inout ArchiveWriter) throws {
    try? writer.encode(unit, forKey: "unit")
    try? writer.encode([unit, unit], forKey: "again")
    try writer.encode(1, forKey: "after")
  }
  init(from reader: inout ArchiveReader) throws { unit = try reader.decode(Unit.self, forKey: "unit") }
}

/// The iteration order of a set or dictionary differs between processes, and here with its capacity. The archive must
/// not depend on it.
struct ElementOrderTests {
  /// The same elements in sets of different capacities.
  private func sets<T: Hashable>(_ make: (Int) -> T) -> [Set<T>] {
    [1, 100, 1_000, 9_000].map { capacity in
      var set = Set<T>(minimumCapacity: capacity)
      for number in 0..<60 { set.insert(make(number)) }
      return set
    }
  }

  private func unit(_ number: Int, strangers: Bool) -> Unit {
    switch number % (strangers ? 5 : 3) {
    case 0:
      let knight = Knight(id: number)
      if number % 2 == 0 { knight.horse = Horse(name: "horse \(number)") }
      return knight
    case 1: return Wizard(id: number)
    case 2: return Unit(id: number)
    case 3: return Stranger(id: number)
    default: return Guest(id: number)
    }
  }

  @Test(arguments: [false, true]) func objectsOfManyClassesGiveTheSameBytes(strangers: Bool) throws {
    let units = (0..<60).map { unit($0, strangers: strangers) }
    let classes: [any Archivable.Type] = strangers ? [Guest.self, Stranger.self] : []
    let archives = try sets { units[$0] }.map { set in
      var posts = [Unit: String](minimumCapacity: set.capacity)
      for unit in set { posts[unit] = "\(unit.id)" }
      return try Archive.encode(Army(units: set, posts: posts), classes: classes)
    }
    #expect(Set(archives).count == 1)
    let copy = try Archive.decode(Army.self, from: archives[0], classes: classes)
    #expect(copy.units.count == 60 && copy.posts.count == 60)
    #expect(copy.posts.allSatisfy { unit, post in post == "\(unit.id)" && type(of: unit) == type(of: units[unit.id]) })
    #expect(try Archive.encode(copy, classes: classes) == archives[0])
  }

  @Test func handWrittenElementsGiveTheSameBytes() throws {
    let archives = try sets(Note.init).map { try Archive.encode(Notes(notes: $0)) }
    #expect(Set(archives).count == 1)
    #expect(try Archive.decode(Notes.self, from: archives[0]).notes == Set((0..<60).map(Note.init)))
  }

  @Test func weakReferencesInElementsAreKept() throws {
    let units = (0..<60).map { Unit(id: $0) }
    let archives = try sets { Tag(number: $0, owner: units[$0]) }.map {
      try Archive.encode(Tags(units: units, tags: $0))
    }
    #expect(Set(archives).count == 1)
    let copy = try Archive.decode(Tags.self, from: archives[0])
    #expect(copy.tags.count == 60 && copy.tags.allSatisfy { $0.owner === copy.units[$0.number] })
  }

  /// What was written before the error can't be removed, so the archive would be damaged.
  @Test func aCaughtErrorStillEndsTheEncoding() throws {
    let unlisted = #expect(throws: ArchiveError.self) { try Archive.encode([Careless(unit: Stranger(id: 1))]) }
    #expect(unlisted?.code == .unlistedClass)
    var limits = ArchiveLimits()
    limits.objects = 1
    let tooMany = #expect(throws: ArchiveError.self) {
      try Archive.encode([Careless(unit: Unit(id: 1)), Careless(unit: Unit(id: 2))], limits: limits)
    }
    #expect(tooMany?.code == .limit)
    let fine = try Archive.encode([Careless(unit: Unit(id: 1))])
    #expect(throws: Never.self) { try ArchiveInspection.verify(fine) }
  }
}
