import Foundation
import KeepsakeArchive
import Testing

@testable import ArchiveWorlds

private enum V1 {
  @Archivable struct Hero {
    var name = "Ada Lovelace"
    var health = 40
    var removed = ["x": [1, 2]]
    var level: Int8 = 3
    var title: String? = "Dr"
    var item = Thing()
    var place: [Int] = [3, 4]
  }
  @Archivable struct Thing { var weight = 2 }
  @Archivable enum Mood {
    case happy(Int, why: String)
    case gone(String)
    case plain
  }
  @Archivable struct Moods { var all = [Mood.happy(5, why: "sun"), .plain, .gone("far")] }
  @Archivable(name: "Being", subclasses: [Beast.self, Wolf.self]) class Being {
    var name = "being"
    var friend: Being?
    var enemies: [Being] = []
  }
  @Archivable(name: "Beast") class Beast: Being {
    var teeth = 12
    var prey: Being?
  }
  @Archivable(name: "Wolf") final class Wolf: Beast { var howl = "ooo" }
  @Archivable(name: "Ring") struct Ring { var owner: Being? }
}

private enum V2 {
  @Archivable(version: 2) struct Hero: Equatable {
    var firstName = "", lastName = ""
    var health = 1.0
    var level = 0
    var title = "none"
    var item = Thing()
    var place: SIMD2<Int>? = nil
    @Unsaved var seen: [String] = []
    @Unsaved var context: String?

    mutating func migrate(_ saved: inout ArchiveMigration) throws {
      let words = try saved.decode(String.self, forKey: "name", default: "").split(separator: " ", maxSplits: 1)
      firstName = words.first.map(String.init) ?? ""
      lastName = words.count > 1 ? String(words[1]) : ""
      health = level == 3 ? Double(try saved.decode(Int.self, forKey: "health")) / 100 : -1
      let numbers = try saved.decode([Int].self, forKey: "place")
      place = SIMD2(numbers[0], numbers[1])
      seen = ["\(saved.version)"] + saved.keys
      #expect(try saved.decode([String: [Int64]].self, forKey: "removed") == ["x": [1, 2]])
      #expect(try saved.decode(Int.self, forKey: "level") == 3)
      #expect(try saved.decodeIfPresent(Int.self, forKey: "never") == nil)
      #expect(throws: ArchiveError.self) { try saved.decode(Int.self, forKey: "never") }
      context = saved.context as? String
    }
  }
  @Archivable(version: 3) struct Thing: Equatable {
    var grams = 0
    mutating func migrate(_ saved: inout ArchiveMigration) throws {
      grams = try saved.decode(Int.self, forKey: "weight", default: 0) * 1000
    }
  }
  /// The fields have other types, and nothing reads the saved values.
  @Archivable(name: "Hero", version: 2) struct Careless { var health = 1.0, name = 5 }
  /// The field has another type, and no value before the hook runs.
  @Archivable(name: "Hero", version: 2) struct Eager {
    var name: Int
    mutating func migrate(_ saved: inout ArchiveMigration) throws {
      name = try saved.decode(String.self, forKey: "name").count
    }
  }
  @Archivable(name: "Hero") struct Unversioned { var name = 5 }

  @Archivable(version: 2) enum Mood: Equatable {
    case plain
    case happy(Double, why: String)
    @Fallback case other(String)
    mutating func migrate(_ saved: inout ArchiveMigration) throws {
      switch saved.caseKey {
      case "happy":
        self = .happy(
          try saved.decode(Double.self, forKey: "0") * 10, why: try saved.decode(String.self, forKey: "why"))
      case "gone": self = .other(try saved.decode(String.self, forKey: "0"))
      default: break
      }
    }
  }
  @Archivable struct Moods { var all: [Mood] = [] }

  @Archivable(name: "Being", version: 2, subclasses: [Beast.self, Wolf.self]) class Being {
    var title = ""
    var friend: Being?
    var friendsName = 0
    @Unsaved var log: [String] = []
    func migrate(_ saved: inout ArchiveMigration) throws {
      title = try saved.decode(String.self, forKey: "name").uppercased()
      log.append(
        "Being \(saved.version) of \(type(of: self)), friend \(friend?.title ?? "-"), keys \(saved.keys.count)")
      // References can be read: every object exists.
      #expect(try saved.decode([Being].self, forKey: "enemies").first === (friend == nil ? nil : self))
    }
    func didDecode(context: Any?) throws { log.append("decoded") }
  }
  @Archivable(name: "Beast") class Beast: Being { var teeth: Int64 = 0 }
  @Archivable(name: "Wolf", version: 4) final class Wolf: Beast {
    var voice = ""
    override func migrate(_ saved: inout ArchiveMigration) throws {
      voice = try saved.decode(String.self, forKey: "howl")
      let prey = try saved.decode(Being?.self, forKey: "prey")
      log.append("Wolf \(saved.version), prey \(prey === self)")
    }
  }
  @Archivable(name: "Ring", version: 2) struct Ring {
    var owner: Being?
    @Unsaved var ownerName: String?
    mutating func migrate(_ saved: inout ArchiveMigration) throws { ownerName = owner?.title }
  }
}

@Archivable(name: "HandKeyed", version: 2) private struct Generated {
  var text = ""
  var number = 0
  mutating func migrate(_ saved: inout ArchiveMigration) throws {
    text += " " + (try saved.decode([Double].self, forKey: "extra")).description + " \(saved.version)"
  }
}

private enum Retyped {
  @Archivable(name: "Soldier") final class Old {
    var number = 0
    var leader: Old?
  }
  @Archivable(name: "Soldier", version: 2) final class New {
    var leader = ""
    var number = ""
    func migrate(_ saved: inout ArchiveMigration) throws {
      number = "\(try saved.decode(Int.self, forKey: "number"))"
      leader = try saved.decodeIfPresent(New.self, forKey: "leader").map { _ in "somebody" } ?? "nobody"
    }
  }
  @Archivable(name: "Soldier", version: 2) final class Silent {
    var number = 0
    var leader = ""
  }
}

/// The example of the documentation.
private enum Documented {
  @Archivable(name: "Hero", version: 1) struct Before { var name = "Ada King Lovelace", health = 40 }
  @Archivable(version: 2) struct Hero {
    var firstName = "", lastName = ""
    var health = 1.0

    mutating func migrate(_ saved: inout ArchiveMigration) throws {
      let words = try saved.decode(String.self, forKey: "name", default: "").split(separator: " ", maxSplits: 1)
      firstName = words.first.map(String.init) ?? ""
      lastName = words.count > 1 ? String(words[1]) : ""
      health = Double(try saved.decode(Int.self, forKey: "health", default: 100)) / 100
    }
  }
}

private enum Defaulted {
  @Archivable(name: "Purse") struct Old { var coins = "900", owner = "ada" }
  @Archivable(name: "Purse") struct Absent { var owner = "ada" }
  @Archivable(name: "Purse", version: 2) struct New {
    var gold = 0, owner = ""
    mutating func migrate(_ saved: inout ArchiveMigration) throws {
      gold = try saved.decode(Int.self, forKey: "coins", default: 7)
    }
  }
}

/// A class and its superclass, of which only one has a later version.
private enum Partly {
  enum Older {
    @Archivable(name: "Vehicle", subclasses: [Boat.self]) class Vehicle { var speed = 1 }
    @Archivable(name: "Boat") final class Boat: Vehicle { var sails = 2 }
  }
  enum Newer {
    @Archivable(name: "Vehicle", subclasses: [Boat.self]) class Vehicle {
      var speed = 0
      @Unsaved var calls: [String] = []
      func migrate(_ saved: inout ArchiveMigration) throws { calls.append("vehicle") }
    }
    @Archivable(name: "Boat", version: 2) final class Boat: Vehicle {
      var sails = 0
      override func migrate(_ saved: inout ArchiveMigration) throws { calls.append("boat") }
    }
  }
  enum Above {
    @Archivable(name: "Vehicle", version: 2, subclasses: [Boat.self]) class Vehicle {
      var speed = 0
      @Unsaved var calls: [String] = []
      func migrate(_ saved: inout ArchiveMigration) throws { calls.append("vehicle") }
    }
    @Archivable(name: "Boat") final class Boat: Vehicle {
      var sails = 0
      override func migrate(_ saved: inout ArchiveMigration) throws { calls.append("boat") }
    }
  }
}

private enum Lists {
  @Archivable(name: "Lists") struct Numbers { var all: [Int] = [] }
  @Archivable(name: "Lists") struct Texts { var all: [String] = [] }
  @Archivable(name: "Lists") struct Bytes { var all: [Int8] = [] }
}

@Suite struct MigrationTests {
  @Test func theExampleOfTheDocumentationBringsAnOldHeroUpToDate() throws {
    let hero = try Archive.decode(Documented.Hero.self, from: Archive.encode(Documented.Before()))
    #expect(hero.firstName == "Ada" && hero.lastName == "King Lovelace" && hero.health == 0.4)
  }

  @Test func anOldHeroIsRebuiltFromWhateverWasSaved() throws {
    let hero = try Archive.decode(V2.Hero.self, from: Archive.encode(V1.Hero()), context: "levels")
    #expect(hero.firstName == "Ada" && hero.lastName == "Lovelace" && hero.health == 0.4 && hero.level == 3)
    #expect(hero.title == "Dr" && hero.place == SIMD2(3, 4) && hero.item.grams == 2000 && hero.context == "levels")
    #expect(hero.seen == ["1", "name", "health", "removed", "level", "title", "item", "place"])
  }

  @Test func aHookIsNotCalledOnceTheSaveIsUpToDate() throws {
    var hero = V2.Hero()
    hero.firstName = "Bo"
    let copy = try Archive.decode(V2.Hero.self, from: Archive.encode(hero))
    #expect(copy == hero)
    // Also in mapped decoding, because another type in the archive has changed.
    let pair = try Archive.decode(
      Pair<V2.Hero, V2.Thing>.self, from: Archive.encode(Pair(first: hero, second: V1.Thing(weight: 3))))
    #expect(pair.first == hero && pair.second?.grams == 3000)
  }

  @Test func everyElementIsMigratedWhereverItStands() throws {
    let things = ["a": [V1.Thing(weight: 1)], "b": [V1.Thing(weight: 2), V1.Thing(weight: 3)]]
    let copy = try Archive.decode([String: [V2.Thing]].self, from: Archive.encode(things))
    #expect(copy["a"]?.map(\.grams) == [1000] && copy["b"]?.map(\.grams) == [2000, 3000])
    let optional = try Archive.decode(V2.Thing?.self, from: Archive.encode(V1.Thing(weight: 4)))
    #expect(optional?.grams == 4000)
  }

  @Test func aRetypedFieldThatNobodyReadsIsAnErrorInsteadOfALoss() throws {
    for attempt in [
      { _ = try Archive.decode(V2.Careless.self, from: Archive.encode(V1.Hero())) },
      { _ = try Archive.decode(V2.Eager.self, from: Archive.encode(V1.Hero())) },
      { _ = try Archive.decode(V2.Unversioned.self, from: Archive.encode(V1.Hero())) },
    ] as [() throws -> Void] {
      let error = #expect(throws: ArchiveError.self) { try attempt() }
      #expect(error?.code == .mismatch && error?.field == "name", "\(String(describing: error))")
    }
  }

  @Test(
    "the error for a field whose type changed within a version suggests migrate(_:); for a number out of range, not")
  func aRetypedFieldOfTheSameVersion() throws {
    func error(_ body: () throws -> Void) -> ArchiveError? { #expect(throws: ArchiveError.self, performing: body) }
    let other = error { _ = try Archive.decode(V2.Unversioned.self, from: Archive.encode(V1.Hero())) }
    let advice = ": raise the type's version, and read the saved value in migrate(_:)"
    #expect(other?.message == "The archive has string where Int is expected" + advice)
    let inside = error { _ = try Archive.decode(Lists.Texts.self, from: Archive.encode(Lists.Numbers(all: [1]))) }
    #expect(inside?.message.hasSuffix(advice) == true && inside?.field == "all")
    let outside = error { _ = try Archive.decode(Lists.Bytes.self, from: Archive.encode(Lists.Numbers(all: [300]))) }
    #expect(outside?.code == .mismatch && outside?.message.contains("migrate") == false)
    let root = error { _ = try Archive.decode(String.self, from: Archive.encode(1)) }
    #expect(root?.message == "The archive has int64 where string is expected")
  }

  @Test("a default in a hook is for a value that is absent; one of another type is an error and not lost")
  func defaultsInHooks() throws {
    #expect(try Archive.decode(Defaulted.New.self, from: Archive.encode(Defaulted.Absent())).gold == 7)
    let error = #expect(throws: ArchiveError.self) {
      try Archive.decode(Defaulted.New.self, from: Archive.encode(Defaulted.Old()))
    }
    #expect(error?.code == .mismatch && error?.field == "coins")
  }

  @Test("the hook of a class that is up to date isn't called when that of another class of the object is")
  func onlyOlderClasses() throws {
    let copy = try Archive.decode(Partly.Newer.Boat.self, from: Archive.encode(Partly.Older.Boat()))
    #expect(copy.calls == ["boat"])
    let above = try Archive.decode(Partly.Above.Boat.self, from: Archive.encode(Partly.Older.Boat()))
    #expect(above.calls == ["vehicle"])
  }

  @Test func enumsAreMigratedByTheirSavedCase() throws {
    let moods = try Archive.decode(V2.Moods.self, from: Archive.encode(V1.Moods()))
    #expect(moods.all == [.happy(50, why: "sun"), .plain, .other("far")])
  }

  @Test func eachClassOfAnObjectSeesItsOwnVersion() throws {
    let (being, beast, wolf) = (V1.Being(), V1.Beast(), V1.Wolf())
    being.name = "b"
    wolf.friend = being
    wolf.enemies = [wolf, being]
    wolf.prey = wolf
    beast.teeth = 7
    let copy = try Archive.decode([V2.Being].self, from: Archive.encode([being, beast, wolf]))
    let newWolf = try #require(copy[2] as? V2.Wolf)
    #expect(copy[0].log == ["Being 1 of Being, friend -, keys 3", "decoded"])
    #expect(copy[1].log == ["Being 1 of Beast, friend -, keys 5", "decoded"] && (copy[1] as? V2.Beast)?.teeth == 7)
    #expect(newWolf.log == ["Being 1 of Wolf, friend B, keys 6", "Wolf 1, prey true", "decoded"])
    #expect(newWolf.voice == "ooo" && newWolf.title == "BEING" && newWolf.friend === copy[0])
    let again = try Archive.decode([V2.Being].self, from: Archive.encode(copy))
    #expect(again.map(\.title) == ["B", "BEING", "BEING"] && again.allSatisfy { $0.log == ["decoded"] })
    (wolf.prey, wolf.enemies) = (nil, [])
  }

  @Test func aRetypedReferenceOfAClassIsLeftToItsHook() throws {
    let (leader, follower) = (Retyped.Old(), Retyped.Old())
    leader.number = 7
    follower.leader = leader
    let copy = try Archive.decode([Retyped.New].self, from: Archive.encode([follower, leader]))
    #expect(copy.map(\.leader) == ["somebody", "nobody"] && copy.map(\.number) == ["0", "7"])
    let error = #expect(throws: ArchiveError.self) {
      try Archive.decode([Retyped.Silent].self, from: Archive.encode([leader]))
    }
    #expect(error?.code == .mismatch && error?.field == "leader")
  }

  @Test func theRootSeesObjectsThatAreUpToDate() throws {
    let ring = try Archive.decode(V2.Ring.self, from: Archive.encode(V1.Ring(owner: V1.Being())))
    #expect(ring.ownerName == "BEING")
  }

  @Test func aHandWrittenSaveIsMigratedIntoAGeneratedType() throws {
    let copy = try Archive.decode(Generated.self, from: Archive.encode(HandKeyed(text: "t", number: 9)))
    #expect(copy.text == "t [1.5] 1" && copy.number == 9)
  }

  @Test func aDamagedOldSaveIsAnErrorAndNeverACrash() throws {
    let samples: [(Data, (Data) throws -> Void)] = [
      (try Archive.encode(V1.Moods()), { _ = try Archive.decode(V2.Moods.self, from: $0) }),
      (try Archive.encode(V1.Ring(owner: V1.Wolf())), { _ = try Archive.decode(V2.Ring.self, from: $0) }),
      (try Archive.encode([V1.Thing(), V1.Thing()]), { _ = try Archive.decode([V2.Thing].self, from: $0) }),
    ]
    for (sample, (good, read)) in samples.enumerated() {
      var random = Seeded(UInt64(sample))
      try read(good)
      for index in 16..<good.count - 8 {
        for _ in 0..<4 {
          var bad = good
          bad[index] = .random(in: 0...255, using: &random)
          do { try read(Archive.resealed(bad)) } catch {
            #expect(error is ArchiveError, "sample \(sample), byte \(index): \(error)")
          }
        }
      }
    }
  }
}
