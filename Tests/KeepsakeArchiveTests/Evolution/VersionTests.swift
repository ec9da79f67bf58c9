import Foundation
import KeepsakeArchive
import KeepsakeInspection
import Testing

/// The same types at version 1 (this program) and version 2 (a newer one).
private enum Here {
  @Archivable struct Part { var x = 1 }
  @Archivable enum Mode {
    case on
    case off(Int)
  }
  @Archivable(name: "Unit", subclasses: [Tower.self]) class Unit { var life = 3 }
  @Archivable(name: "Tower") final class Tower: Unit { var floors = 2 }
  @Archivable struct Field { var part = Part() }
  @Archivable struct Parts { var parts = [Part()] }
  @Archivable struct Modes { var modes: [String: Mode] = ["a": .off(1)] }
  @Archivable struct Maybe { var part: Part? = Part() }
  @Archivable struct Army { var units: [Unit] = [] }
  @Archivable struct Reward {
    var kind = Kind.part(Part())
    @Archivable enum Kind { case part(Part) }
  }
}

private enum Later {
  @Archivable(version: 2) struct Part { var x = 1 }
  @Archivable(version: 2) enum Mode {
    case on
    case off(Int)
  }
  @Archivable(name: "Unit", subclasses: [Tower.self]) class Unit { var life = 3 }
  @Archivable(name: "Tower", version: 2) final class Tower: Unit { var floors = 2 }
  @Archivable struct Field { var part = Part() }
  @Archivable struct Parts { var parts = [Part()] }
  @Archivable struct Modes { var modes: [String: Mode] = ["a": .off(1)] }
  @Archivable struct Maybe { var part: Part? = Part() }
  @Archivable struct Army { var units: [Unit] = [] }
  @Archivable struct Reward {
    var kind = Kind.part(Part())
    @Archivable enum Kind { case part(Part) }
  }
}

/// Only the superclass has a newer version.
private enum LaterAbove {
  @Archivable(name: "Unit", version: 2, subclasses: [Tower.self]) class Unit { var life = 3 }
  @Archivable(name: "Tower") final class Tower: Unit { var floors = 2 }
  @Archivable struct Army { var units: [Unit] = [] }
}

private struct HandLater: Archivable {
  static var archiveName: String { "Hand" }
  static var archiveVersion: Int { 2 }
  init() {}
  init(from reader: inout ArchiveReader) throws {}
  func encode(to writer: inout ArchiveWriter) throws { try writer.encode(1, forKey: "x") }
}
private struct HandHere: Archivable {
  static var archiveName: String { "Hand" }
  var version = 0
  init(from reader: inout ArchiveReader) throws { version = reader.savedVersion }
  func encode(to writer: inout ArchiveWriter) throws {}
}

@Suite struct VersionTests {
  @Test func aNewerTypeIsRefusedWhereverItStands() throws {
    let attempts: [(String, Data, (Data) throws -> Void)] = [
      ("Part", try Archive.encode(Later.Part()), { _ = try Archive.decode(Here.Part.self, from: $0) }),
      ("Part", try Archive.encode(Later.Field()), { _ = try Archive.decode(Here.Field.self, from: $0) }),
      ("Part", try Archive.encode(Later.Parts()), { _ = try Archive.decode(Here.Parts.self, from: $0) }),
      ("Part", try Archive.encode(Later.Maybe()), { _ = try Archive.decode(Here.Maybe.self, from: $0) }),
      ("Part", try Archive.encode(Later.Reward()), { _ = try Archive.decode(Here.Reward.self, from: $0) }),
      ("Mode", try Archive.encode(Later.Modes()), { _ = try Archive.decode(Here.Modes.self, from: $0) }),
      ("Mode", try Archive.encode(Later.Mode.on), { _ = try Archive.decode(Here.Mode.self, from: $0) }),
      ("Tower", try Archive.encode(Later.Tower()), { _ = try Archive.decode(Here.Tower.self, from: $0) }),
      (
        "Tower", try Archive.encode(Later.Army(units: [Later.Tower()])),
        { _ = try Archive.decode(Here.Army.self, from: $0) }
      ),
      ("Unit", try Archive.encode(LaterAbove.Unit()), { _ = try Archive.decode(Here.Unit.self, from: $0) }),
      (
        "Unit", try Archive.encode(LaterAbove.Army(units: [LaterAbove.Tower()])),
        { _ = try Archive.decode(Here.Army.self, from: $0) }
      ),
      ("Hand", try Archive.encode([HandLater()]), { _ = try Archive.decode([HandHere].self, from: $0) }),
    ]
    for (index, (name, bytes, read)) in attempts.enumerated() {
      let error = #expect(throws: ArchiveError.self, "attempt \(index)") { try read(bytes) }
      #expect(error?.code == .tooNew && error?.type == name, "attempt \(index): \(String(describing: error))")
      // Tools can still show what is in the archive.
      let inspection = try ArchiveInspection(of: bytes)
      #expect(inspection.types.contains { $0.name == name && $0.version == 2 }, "attempt \(index)")
      #expect(inspection.text().contains("version 2"), "attempt \(index)")
    }
  }

  @Test func aNewerTypeThatNothingOfIsSavedDoesNotStandInTheWay() throws {
    let empty = try Archive.decode(Here.Army.self, from: Archive.encode(Later.Army()))
    #expect(empty.units.isEmpty)
    let parts = try Archive.decode(Here.Parts.self, from: Archive.encode(Later.Parts(parts: [])))
    #expect(parts.parts.isEmpty)
  }

  @Test func anOlderHandWrittenValueSaysItsVersion() throws {
    struct HandFirst: Archivable {
      static var archiveName: String { "Hand" }
      init() {}
      init(from reader: inout ArchiveReader) throws {}
      func encode(to writer: inout ArchiveWriter) throws {}
    }
    struct HandThird: Archivable {
      static var archiveName: String { "Hand" }
      static var archiveVersion: Int { 3 }
      var version = 0
      init(from reader: inout ArchiveReader) throws { version = reader.savedVersion }
      func encode(to writer: inout ArchiveWriter) throws {}
    }
    #expect(try Archive.decode(HandThird.self, from: Archive.encode(HandFirst())).version == 1)
    #expect(try Archive.decode(HandThird.self, from: Archive.encode(HandLater())).version == 2)
  }
}
