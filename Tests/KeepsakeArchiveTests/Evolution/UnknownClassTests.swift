import Foundation
import Testing

@testable import ArchiveWorlds
@testable import KeepsakeArchive

// How saves are read that have objects of classes which the program no longer has.

private enum Saved {
  @Archivable(name: "Fighter", subclasses: [Knight.self]) class Fighter {
    var hp = 10
    var foe: Fighter?
    var squad: Squad?
  }
  @Archivable(name: "Knight") final class Knight: Fighter { var horse = "Bess" }
  @Archivable(name: "Squad") final class Squad {
    let leader: Fighter
    var members: [Fighter] = []
    var banner = ["red": 1.5]
    init(leader: Fighter) { self.leader = leader }
  }
  @Archivable(name: "Castle") struct Castle {
    var gold = 5
    var fighters: [Fighter] = []
    var squad: Squad?
    var other: Squad?
    var name = "Stirling"
    var champion: Fighter?
  }
  @Archivable(name: "Keep") final class Keep {
    var floors = 3
    var guards: [Fighter] = []
    var guest: Fighter?
    var next: Keep?
    var name = "keep"
  }
  @Archivable(name: "Town") struct Town { var gold = 4, keep: Keep? }
  @Archivable(name: "Clan") final class Clan {
    var parent: Parent
    var child: Child
    init(_ parent: Parent) { (self.parent, child) = (parent, Child(parent: parent, name: "Kit")) }
  }
  @Archivable(name: "Home") struct Home { var gold = 3, clan: Clan?, child: Child? }
  @Archivable(name: "Box") final class Box<Value: Archivable> {
    var value: Value
    init(_ value: Value) { self.value = value }
  }
  @Archivable(name: "Crate") struct Crate { var box: Box<Int>? }
  @Archivable(name: "Inn") struct Inn { var gone: Bard?, bard: Bard? }

  final class Bard: Archivable {
    var foe: Fighter?
    init(foe: Fighter?) { self.foe = foe }
    static var archiveName: String { "Bard" }
    static var archiveSubclasses: [any Archivable.Type] { [Fighter.self] }
    func encode(to writer: inout ArchiveWriter) throws { try writer.encode(2, forKey: "songs") }
    convenience init(from reader: inout ArchiveReader) throws { self.init(foe: nil) }
    func encodeReferences(to writer: inout ArchiveWriter) throws { try writer.encode(foe, forKey: "foe") }
    func decodeReferences(from reader: inout ArchiveReader) throws {
      foe = try reader.decode(Fighter?.self, forKey: "foe")
    }
  }

  struct Chronicle: Archivable {
    var heroes: [Fighter]
    init(heroes: [Fighter]) { self.heroes = heroes }
    static var archiveName: String { "Chronicle" }
    static var archiveSubclasses: [any Archivable.Type] { [Fighter.self] }
    func encode(to writer: inout ArchiveWriter) throws {
      try writer.encode(heroes, forKey: "heroes")
      try writer.encode(1314, forKey: "year")
    }
    init(from reader: inout ArchiveReader) throws { heroes = try reader.decode([Fighter].self, forKey: "heroes") }
  }
}

/// No property leads to a fighter any more.
private enum Gone {
  @Archivable(name: "Castle") struct Castle { var gold = 0, name = "" }
  @Archivable(name: "Castle") struct Unsaving {
    var gold = 0
    @Unsaved var fighters: [Saved.Fighter] = []
    @Unsaved var champion: Saved.Fighter?
    var name = ""
  }
  @Archivable(name: "Castle", version: 2) struct Migrated {
    var gold = 0, name = ""
    mutating func migrate(_ saved: inout ArchiveMigration) throws {
      gold = try saved.decode(Int.self, forKey: "gold") * 100
    }
  }
  @Archivable(name: "Keep") final class Keep {
    var floors = 0
    var next: Keep?
    var name = ""
  }
  @Archivable(name: "Home") struct Home { var gold = 0, other: Child? }
  @Archivable(name: "Home") struct Orphanage { var gold = 0, child: Child? }
}

/// A hook asks for the fighters.
private enum Asking {
  @Archivable(name: "Castle", version: 2) struct Castle {
    @Unsaved var count = 0
    var gold = 0
    mutating func migrate(_ saved: inout ArchiveMigration) throws {
      count = try saved.decode([Saved.Fighter].self, forKey: "fighters").count
    }
  }
  @Archivable(name: "Castle", version: 2) struct Catching {
    var gold = 0
    mutating func migrate(_ saved: inout ArchiveMigration) throws {
      _ = try? saved.decode([Saved.Fighter].self, forKey: "fighters")
    }
  }
  @Archivable(name: "Castle", version: 2) struct Listing {
    static var archiveSubclasses: [any Archivable.Type] { [Saved.Fighter.self] }
    @Unsaved var count = 0
    var gold = 0
    mutating func migrate(_ saved: inout ArchiveMigration) throws {
      count = try saved.decode([Saved.Fighter].self, forKey: "fighters").count
    }
  }
  @Archivable(name: "Keep", version: 2) final class Keep {
    var floors = 0
    func migrate(_ saved: inout ArchiveMigration) throws {
      _ = try saved.decode([Saved.Fighter].self, forKey: "guards")
    }
  }
  @Archivable(name: "Town") struct Town { var gold = 0, keep: Keep? }
  @Archivable(name: "Town") struct Ruin { var gold = 0, tower: Keep? }
}

/// Only the subclass is gone.
private enum Later {
  @Archivable(name: "Fighter") final class Fighter {
    var hp = 0
    var foe: Fighter?
    func didDecode(context: Any?) throws { (context as? Log)?.hps.append(hp) }
  }
  @Archivable(name: "Squad") final class Squad {
    let leader: Fighter
    var members: [Fighter] = []
    init(leader: Fighter) { self.leader = leader }
  }
  @Archivable(name: "Castle") struct Castle { var gold = 0, fighters: [Fighter] = [] }
  @Archivable(name: "Castle") struct Champion { var gold = 0, champion: Fighter?, name = "" }
  @Archivable(name: "Castle") struct Other { var gold = 0, other: Squad?, name = "" }
  @Archivable(name: "Castle") struct Both { var gold = 0, squad: Squad?, other: Squad? }
  @Archivable(name: "Inn") struct Inn { var bard: Bard? }
  @Archivable(name: "Inn") struct BardlessInn { var bard: Fighter? }
  @Archivable(name: "Crate") struct Crate { var box: Fighter? }

  final class Log { var hps: [Int] = [] }

  final class Bard: Archivable {
    var foe: Fighter?
    init() {}
    static var archiveName: String { "Bard" }
    static var archiveSubclasses: [any Archivable.Type] { [Fighter.self] }
    func encode(to writer: inout ArchiveWriter) throws {}
    convenience init(from reader: inout ArchiveReader) throws { self.init() }
    func encodeReferences(to writer: inout ArchiveWriter) throws { try writer.encode(foe, forKey: "foe") }
    func decodeReferences(from reader: inout ArchiveReader) throws {
      foe = try reader.decode(Fighter?.self, forKey: "foe")
    }
  }

  struct Chronicle: Archivable {
    var year: Int
    static var archiveName: String { "Chronicle" }
    static var archiveSubclasses: [any Archivable.Type] { [Fighter.self] }
    func encode(to writer: inout ArchiveWriter) throws { try writer.encode(year, forKey: "year") }
    init(from reader: inout ArchiveReader) throws { year = try reader.decode(Int.self, forKey: "year") }
  }

  struct Careless: Archivable {
    static var archiveName: String { "Chronicle" }
    static var archiveSubclasses: [any Archivable.Type] { [Fighter.self] }
    func encode(to writer: inout ArchiveWriter) throws {}
    init(from reader: inout ArchiveReader) throws { _ = try? reader.decode([Fighter].self, forKey: "heroes") }
  }
}

/// A castle's fighters. `release` takes the cycles apart.
private struct Garrison {
  let champion = Saved.Fighter()
  let first = Saved.Fighter()
  let second = Saved.Fighter()
  let knight = Saved.Knight()

  /// The first fighter's foe is the second; whose foe is the knight; whose foe is the champion.
  init() {
    (champion.hp, first.hp, second.hp) = (1, 2, 3)
    (first.foe, second.foe, knight.foe) = (second, knight, champion)
  }

  var castle: Saved.Castle { Saved.Castle(fighters: [first, second, knight], champion: champion) }

  func release() {
    for fighter in [champion, first, second, knight] { (fighter.foe, fighter.squad) = (nil, nil) }
  }
}

@Suite struct UnknownClassTests {
  private func error<V: Archivable>(_ type: V.Type, from data: Data) -> ArchiveError? {
    #expect(throws: ArchiveError.self) { try Archive.decode(type, from: data) }
  }

  @Test("a property that was removed, or isn't saved any more, is skipped with its objects, whose classes are gone")
  func removed() throws {
    let garrison = Garrison()
    defer { garrison.release() }
    garrison.knight.squad = Saved.Squad(leader: garrison.knight)
    var castle = garrison.castle
    castle.squad = garrison.knight.squad
    let bytes = try Archive.encode(castle)
    let gone = try Archive.decode(Gone.Castle.self, from: bytes)
    #expect(gone.gold == 5 && gone.name == "Stirling")
    let unsaving = try Archive.decode(Gone.Unsaving.self, from: bytes)
    #expect(unsaving.gold == 5 && unsaving.fighters.isEmpty && unsaving.name == "Stirling")
    #expect(try Archive.decode(Gone.Migrated.self, from: bytes).gold == 500)
    #expect(try Archive.decode([String: [Gone.Castle]].self, from: Archive.encode(["a": [castle]]))["a"]?.count == 1)
  }

  @Test("an object's properties that were removed are skipped with objects whose classes are gone")
  func removedFromAClass() throws {
    let garrison = Garrison()
    defer { garrison.release() }
    let (keep, next) = (Saved.Keep(), Saved.Keep())
    (keep.guards, keep.guest, keep.next) = ([garrison.knight, garrison.first], garrison.champion, next)
    (next.guest, next.name) = (garrison.second, "next")
    let copy = try Archive.decode(Gone.Keep.self, from: Archive.encode(keep))
    #expect(copy.floors == 3 && copy.name == "keep" && copy.next?.name == "next" && copy.next?.next == nil)
  }

  @Test("what only removed properties lead to may refer to an object whose class is gone, and gets no didDecode")
  func knownObjects() throws {
    let garrison = Garrison()
    defer { garrison.release() }
    let log = Later.Log()
    let castle = try Archive.decode(Later.Champion.self, from: Archive.encode(garrison.castle), context: log)
    #expect(castle.champion?.hp == 1 && castle.champion?.foe == nil && castle.name == "Stirling")
    #expect(log.hps == [1])
  }

  @Test("an object that the program still refers to must have a class that it has, however long the way is")
  func referredTo() throws {
    let garrison = Garrison()
    defer { garrison.release() }
    let direct = error(Later.Castle.self, from: try Archive.encode(garrison.castle))
    #expect(direct?.code == .unknownClass && direct?.type == "Castle" && direct?.field == "fighters")
    garrison.champion.foe = garrison.first
    let indirect = error(Later.Champion.self, from: try Archive.encode(garrison.castle))
    #expect(indirect?.code == .unknownClass && indirect?.type == "Fighter")
    #expect(indirect?.message.contains("objects of the class Knight,") == true)
    let optional = error(Later.Champion.self, from: try Archive.encode(Saved.Castle(champion: garrison.knight)))
    #expect(optional?.code == .unknownClass && optional?.field == "champion", "an optional isn't left empty")
    let elements = error([Later.Fighter].self, from: try Archive.encode([garrison.champion, garrison.knight]))
    #expect(elements?.code == .unknownClass && elements?.type == "[Fighter]")
  }

  @Test("an object that can't be built for want of another is left out, and the objects after it are read as ever")
  func unbuilt() throws {
    let garrison = Garrison()
    defer { garrison.release() }
    let (squad, other) = (Saved.Squad(leader: garrison.knight), Saved.Squad(leader: garrison.champion))
    (squad.members, other.members) = ([garrison.champion, garrison.champion], [garrison.champion])
    let bytes = try Archive.encode(Saved.Castle(squad: squad, other: other))
    let castle = try Archive.decode(Later.Other.self, from: bytes)
    #expect(castle.other?.members.map(\.hp) == [1] && castle.other?.members.first === castle.other?.leader)
    #expect(castle.name == "Stirling")
    let refused = error(Later.Both.self, from: bytes)
    #expect(refused?.code == .unknownClass && refused?.field == "squad")
  }

  @Test("a hand-written value is read without what it no longer requests; an error that it catches is one nevertheless")
  func handWritten() throws {
    let garrison = Garrison()
    defer { garrison.release() }
    let chronicle = try Archive.encode(Saved.Chronicle(heroes: [garrison.first]))
    #expect(try Archive.decode(Later.Chronicle.self, from: chronicle).year == 1314)
    #expect(error(Later.Careless.self, from: chronicle)?.code == .unknownClass)
    let caught = error(Later.Careless.self, from: try Archive.encode(Saved.Chronicle(heroes: [garrison.knight])))
    #expect(caught?.code == .unknownClass && caught?.type == "Chronicle")
    let inn = Saved.Inn(gone: Saved.Bard(foe: garrison.knight), bard: Saved.Bard(foe: garrison.champion))
    #expect(try Archive.decode(Later.Inn.self, from: Archive.encode(inn)).bard?.foe?.hp == 1)
    let kept = error(Later.Inn.self, from: try Archive.encode(Saved.Inn(bard: Saved.Bard(foe: garrison.knight))))
    #expect(kept?.code == .unknownClass)
  }

  @Test("a hook that asks for an object whose class is gone gets an error, and the object if a struct lists the class")
  func hooks() throws {
    let garrison = Garrison()
    defer { garrison.release() }
    let bytes = try Archive.encode(garrison.castle)
    #expect(error(Asking.Castle.self, from: bytes)?.code == .unknownClass)
    #expect(error(Asking.Catching.self, from: bytes)?.code == .unknownClass)
    #expect(try Archive.decode(Asking.Castle.self, from: bytes, classes: [Saved.Fighter.self]).count == 3)
    #expect(try Archive.decode(Asking.Listing.self, from: bytes).count == 3)
  }

  @Test("the hook of an object counts only if something that is read leads to the object")
  func hooksOfObjects() throws {
    let keep = Saved.Keep()
    keep.guards = [Saved.Knight()]
    let bytes = try Archive.encode(Saved.Town(keep: keep))
    #expect(error(Asking.Town.self, from: bytes)?.code == .unknownClass)
    let ruin = try Archive.decode(Asking.Ruin.self, from: bytes)
    #expect(ruin.gold == 4 && ruin.tower == nil)
  }

  @Test("an unowned reference between skipped objects is no error; one of an object that is kept is")
  func unowned() throws {
    var home = Saved.Home(clan: Saved.Clan(Parent()))
    #expect(try Archive.decode(Gone.Home.self, from: Archive.encode(home)).gold == 3)
    home.child = home.clan?.child
    #expect(error(Gone.Orphanage.self, from: try Archive.encode(home))?.code == .unbuildable)
  }

  @Test("the error says how to declare a renamed class and where to list one, in words that compile")
  func message() throws {
    let knight = error([Later.Fighter].self, from: try Archive.encode([Saved.Knight()] as [Saved.Fighter]))
    #expect(
      knight?.message == """
        The archive has objects of the class Knight, which the program doesn't list. If the class was renamed, declare \
        its old name with @Archivable(name: "Knight"); if it is a subclass, add it to its superclass's subclasses:; if \
        only migrate(_:) or hand-written code reads it, add it to the archiveSubclasses of a struct, or to classes:
        """)
    let box = error(Later.Crate.self, from: try Archive.encode(Saved.Crate(box: Saved.Box(1))))
    #expect(box?.code == .unknownClass && box?.message.contains("@Archivable(name: \"Box\");") == true)
    let bard = error(Later.BardlessInn.self, from: try Archive.encode(Saved.Inn(bard: Saved.Bard(foe: nil))))
    #expect(bard?.message.contains("old name with archiveName; if it is a subclass") == true)
    #expect(bard?.message.contains("superclass's archiveSubclasses;") == true)
  }

  @Test("an altered archive whose classes are gone is an error or a value, and takes no more memory than it may")
  func damage() throws {
    let garrison = Garrison()
    defer { garrison.release() }
    var castle = garrison.castle
    castle.squad = Saved.Squad(leader: garrison.knight)
    let good = try Archive.encode(castle)
    var random = Seeded(11)
    for index in 16..<good.count - 8 {
      for _ in 0..<4 {
        var bad = good
        bad[index] = .random(in: 0...255, using: &random)
        bad = Archive.resealed(bad)
        do {
          _ = try Archive.decode(Later.Champion.self, from: bad)
          _ = try Archive.decode(Later.Other.self, from: bad)
        } catch {
          #expect(error is ArchiveError, "byte \(index): \(error)")
        }
      }
    }
    // An array of 20,000 references takes 160,000 bytes, and recording them more than twice as much.
    let many = Saved.Squad(leader: garrison.champion)
    many.members = Array(repeating: garrison.champion, count: 20_000)
    let bytes = try Archive.encode(Saved.Castle(fighters: [garrison.knight], other: many))
    var limits = ArchiveLimits()
    limits.memoryBytes = 300_000
    let refused = #expect(throws: ArchiveError.self) {
      try Archive.decode(Later.Other.self, from: bytes, limits: limits)
    }
    #expect(refused?.code == .limit)
    #expect(try Archive.decode(Later.Other.self, from: bytes).other?.members.count == 20_000)
  }
}
