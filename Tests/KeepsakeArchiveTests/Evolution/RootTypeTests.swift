import Foundation
import Testing

@testable import ArchiveWorlds
@testable import KeepsakeArchive

/// Every field has a default, so nothing but the name tells these structs apart.
@Archivable private struct Level: Hashable { var number = 1 }
@Archivable private struct Sound: Hashable { var volume = 0.5 }
@Archivable private enum Mode { case calm, wild }
@Archivable private enum Theme {
  case dark
  @Fallback case other
}

/// `Level` in later programs.
private enum Renamed {
  @Archivable(name: "Level") struct Stage { var number = 0, added = 2 }
  @Archivable struct Scene {
    static var archiveFormerNames: [String] { ["Stage", "Level"] }
    var number = 0
  }
  @Archivable(name: "Level") struct Other { var position = 3 }
  @Archivable(name: "Level", version: 2) struct Migrated {
    var position = 3
    mutating func migrate(_ saved: inout ArchiveMigration) throws {
      position = try saved.decode(Int.self, forKey: "number")
    }
  }
  @Archivable(name: "Level") struct Bare {}
}

@Archivable private struct Cask<Value> { var value: Value? }
@Archivable(name: "Cask") private struct LaterCask<Value> { var value: Value?, added = 1 }

@Archivable(name: "Animal", subclasses: [Dog.self]) private class Animal { var name = "animal" }
@Archivable(name: "Dog") private final class Dog: Animal { var tricks = 3 }
/// `Dog` after a class was put between.
@Archivable(name: "Mammal", subclasses: [LaterDog.self]) private class Mammal {
  var name = ""
}
@Archivable(name: "Dog") private final class LaterDog: Mammal { var tricks = 0 }
@Archivable(name: "Weed") private final class Weed { var name = "weed" }

@Suite struct RootTypeTests {
  private func error<V: Archivable>(_ type: V.Type, from data: Data) -> ArchiveError? {
    #expect(throws: ArchiveError.self) { try Archive.decode(type, from: data) }
  }

  @Test("an archive isn't read as a type of another name, whose fields would all have their defaults")
  func otherName() throws {
    let level = try Archive.encode(Level(number: 7))
    let refused = error(Sound.self, from: level)
    #expect(refused?.code == .mismatch && refused?.type == "Sound")
    #expect(refused?.message.contains("contains Level, and Sound was asked for") == true)
    #expect(refused?.message.contains("@Archivable(name:)") == true)
    #expect(error(Mode.self, from: level)?.code == .mismatch)
    #expect(error(Theme.self, from: try Archive.encode(Mode.wild))?.code == .mismatch, "the fallback isn't for this")
    #expect(error(Sound?.self, from: level)?.code == .mismatch)
    #expect(error(Sound.self, from: try Archive.encode(Level?.some(Level())))?.code == .mismatch)
  }

  @Test("lists, dictionaries and optionals are compared by what they contain, even if they are empty")
  func containers() throws {
    #expect(error([Sound].self, from: try Archive.encode([Level]()))?.code == .mismatch)
    #expect(error([String: [Sound]].self, from: try Archive.encode([String: [Level]]()))?.code == .mismatch)
    #expect(error([Sound: Int].self, from: try Archive.encode([Level: Int]()))?.code == .mismatch)
    #expect(error(Sound?.self, from: try Archive.encode(Level?.none))?.code == .mismatch)
    #expect(error([String].self, from: try Archive.encode([Int]()))?.code == .mismatch)
    #expect(error(String?.self, from: try Archive.encode(Int?.none))?.code == .mismatch)
    #expect(try Archive.decode([Renamed.Stage].self, from: Archive.encode([Level(number: 4)])).map(\.number) == [4])
  }

  @Test("numbers at the root are read as other numbers, and everything as an optional of its type")
  func conversions() throws {
    #expect(try Archive.decode(Int64.self, from: Archive.encode(UInt8(5))) == 5)
    #expect(try Archive.decode([Double].self, from: Archive.encode([Int]())) == [])
    #expect(try Archive.decode(Double?.self, from: Archive.encode(Int?.none)) == nil)
    #expect(try Archive.decode(Level?.self, from: Archive.encode(Level(number: 3)))?.number == 3)
    #expect(try Archive.decode(Level.self, from: Archive.encode(Level?.some(Level(number: 3)))).number == 3)
  }

  @Test("a renamed type is read by its old name, or by one of several that it had")
  func renamed() throws {
    let level = try Archive.encode(Level(number: 7))
    let stage = try Archive.decode(Renamed.Stage.self, from: level)
    #expect(stage.number == 7 && stage.added == 2)
    #expect(try Archive.decode(Renamed.Scene.self, from: level).number == 7)
    #expect(try Archive.decode([String: Renamed.Scene?].self, from: Archive.encode(["a": Level()]))["a"]??.number == 1)
    #expect(error(Renamed.Scene.self, from: try Archive.encode(Sound()))?.code == .mismatch)
  }

  @Test("types of the same name and version that have no field in common aren't the same type")
  func noCommonField() throws {
    let level = try Archive.encode(Level(number: 7))
    let refused = error(Renamed.Other.self, from: level)
    #expect(refused?.code == .mismatch && refused?.message.contains("no field in common") == true)
    #expect(try Archive.decode(Renamed.Migrated.self, from: level).position == 7, "a migration may replace all fields")
    _ = try Archive.decode(Renamed.Bare.self, from: level)
    #expect(try Archive.decode(Level.self, from: Archive.encode(Renamed.Bare())).number == 1)
  }

  @Test("a generic type's arguments aren't part of the comparison")
  func generic() throws {
    let box = try Archive.decode(LaterCask<Int>.self, from: Archive.encode(Cask<Int8>(value: 5)))
    #expect(box.value == 5 && box.added == 1)
    #expect(error(Cask<Int>.self, from: try Archive.encode(1..<2))?.code == .mismatch)
  }

  @Test("an object is read as its class, as a superclass that it had or has, and as a subclass if it is one")
  func classes() throws {
    let dog = try Archive.encode(Dog())
    #expect(try (Archive.decode(Animal.self, from: dog) as? Dog)?.tricks == 3)
    #expect(try Archive.decode(Dog.self, from: Archive.encode(Dog() as Animal)).tricks == 3)
    #expect(error(Dog.self, from: try Archive.encode(Animal()))?.code == .unknownClass)
    #expect(try (Archive.decode(Mammal.self, from: dog) as? LaterDog)?.tricks == 3)
    let refused = error(Weed.self, from: dog)
    #expect(refused?.code == .mismatch && refused?.message.contains("contains Dog, and Weed was asked for") == true)
    #expect(error(Weed?.self, from: try Archive.encode(Animal?.none))?.code == .mismatch)
  }

  @Test("a hand-written type is compared by its name, too")
  func handWritten() throws {
    let bytes = try Archive.encode(HandKeyed(text: "a", number: 2))
    #expect(error(Level.self, from: bytes)?.code == .mismatch)
    #expect(error(HandKeyed.self, from: try Archive.encode(Level()))?.code == .mismatch)
    #expect(try Archive.decode(Old.Keyed.self, from: bytes).number == 2)
  }

  @Test("the check of bytes without decoding them agrees with decoding, and leaves other errors to it")
  func withoutDecoding() throws {
    let level = try Archive.encode(Level())
    #expect(try Archive.rootMismatch(with: Sound.self, in: level)?.code == .mismatch)
    #expect(try Archive.rootMismatch(with: Level.self, in: level) == nil)
    #expect(try Archive.rootMismatch(with: Renamed.Migrated.self, in: level) == nil)
    #expect(try Archive.rootMismatch(with: Sound.self, in: Data("no archive".utf8)) == nil)
    #expect(try Archive.rootType(of: Archive.encode(["a": [Level()]])) == "[string: [Level]]")
  }
}
