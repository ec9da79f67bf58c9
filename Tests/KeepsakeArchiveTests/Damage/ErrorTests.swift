import Foundation
import KeepsakeArchive
import KeepsakeInspection
import TestSupport
import Testing

@testable import ArchiveWorlds

@Archivable final class Egg {
  let hen: Hen
  init(hen: Hen) { self.hen = hen }
}
@Archivable final class Hen {
  let egg: Egg?
  var eggs: [Egg] = []
  init(egg: Egg?) { self.egg = egg }
}
@Archivable struct ToEnd { var end: LoopEnd? }
@Archivable struct ToLoop { var loop: Loop? }
@Archivable final class Loop {
  var to: ToEnd
  init() { to = ToEnd(end: nil) }
}
@Archivable final class LoopEnd {
  var to: ToLoop
  init() { to = ToLoop(loop: nil) }
}
struct Chest: Archivable {
  var node: Node
  init(node: Node) { self.node = node }
  func encode(to writer: inout ArchiveWriter) throws { try writer.encode(node, forKey: "node") }
  init(from reader: inout ArchiveReader) throws { node = try reader.decode(Node.self, forKey: "node") }
}

@Archivable indirect enum Deep {
  case end
  case more(Deep)
}

@Archivable final class Hooked {
  var next: Hooked?
  @Unsaved var heard: String?
  func didDecode(context: Any?) throws {
    heard = "\(context ?? "-"), next \(next == nil ? "missing" : "there")"
  }
}

@Suite struct ErrorTests {
  func sample() throws -> Data {
    let boss = Boss(type: 5, name: "boss")
    let hero = Creature(type: 1, name: "hero")
    hero.inventory = [Item(kind: 3)]
    hero.target = boss
    boss.friends = [hero, boss]
    let world = World(
      creatures: [hero, boss, Minion(master: boss)], events: [.both(.idle, .said("x", 1)), .moved(to: [1, 2])])
    return try Archive.encode(Pair<World, [String: Set<Int>]>(first: world, second: ["a": [1, 2], "b": []]))
  }

  func read(_ data: Data) throws { _ = try Archive.decode(Pair<World, [String: Set<Int>]>.self, from: data) }

  @Test func nothingOtherFilesAndDamageAreDifferentAnswers() throws {
    #expect(throws: ArchiveError.self) { try read(Data()) }
    func code(_ data: Data) -> ArchiveError.Code? {
      do { try read(data) } catch { return (error as? ArchiveError)?.code }
      return nil
    }
    #expect(code(Data()) == .missing)
    #expect(code(Data("{\"a\": 1}".utf8)) == .notAnArchive)
    let good = try sample()
    #expect(code(good) == nil)
    #expect(code(good.dropLast()) == .damaged)
    #expect(code(good + [0]) == .damaged)
  }

  @Test func anyFlippedByteAndAnyCutIsDamageAndNeverACrash() throws {
    let good = try sample()
    for index in good.indices {
      for bit in [UInt8(1), 0x80] {
        var bad = good
        bad[index] ^= bit
        let error = #expect(throws: ArchiveError.self, "byte \(index)") { try read(bad) }
        #expect(error?.code == (index < 8 ? .notAnArchive : .damaged), "byte \(index)")
      }
      #expect(throws: ArchiveError.self, "cut at \(index)") { try read(good.prefix(index)) }
    }
  }

  /// Recomputes the checksum after each change, so that the code behind the check is tested.
  @Test func altersThatPassTheChecksumNeverCrash() throws {
    let good = try sample()
    var random = Seeded(7)
    var read = 0
    for index in 16..<good.count - 8 {
      for _ in 0..<8 {
        var bad = good
        bad[index] = .random(in: 0...255, using: &random)
        if Bool.random(using: &random) {
          bad[.random(in: 16..<good.count - 8, using: &random)] ^= .random(in: 1...255, using: &random)
        }
        do {
          try self.read(Archive.resealed(bad))
          read += 1
        } catch {
          #expect(error is ArchiveError, "seed 7, byte \(index): \(error)")
        }
      }
    }
    #expect(read > 0)
  }

  /// Reads altered archives into changed types, which takes other paths through the reader than unchanged types.
  @Test func altersReadByAChangedProgramNeverCrash() throws {
    let rounds = TestDepth.alteredArchives
    let (robot, tank) = (Old.Robot(), Old.Tank(gun: 88))
    (robot.next, tank.next, tank.removed) = (tank, robot, tank)
    let stage = Stage(name: "castle")
    let samples: [(Data, (Data) throws -> Void)] = [
      (try Archive.encode(Old.Hero(kind: .mage(1, mana: 2))), { _ = try Archive.decode(New.Hero.self, from: $0) }),
      (
        try Archive.encode(Old.Army(robots: [robot, tank]), classes: [Old.Tank.self]),
        { _ = try Archive.decode(New.Army.self, from: $0) }
      ),
      (try Archive.encode(Campaign(level: stage)), { _ = try Archive.decode(Campaign.self, from: $0) }),
      (try Archive.encode([HandKeyed(text: "a", number: 9)]), { _ = try Archive.decode([Old.Keyed].self, from: $0) }),
      (try Archive.encode([Old.Keyed()]), { _ = try Archive.decode([HandKeyed].self, from: $0) }),
      (try Archive.encode(Everything()), { _ = try Archive.decode(Everything.self, from: $0) }),
    ]
    for (sample, (good, read)) in samples.enumerated() {
      var random = Seeded(UInt64(sample))
      try read(good)
      for index in 16..<good.count - 8 {
        for _ in 0..<rounds {
          var bad = good
          bad[index] = .random(in: 0...255, using: &random)
          for _ in 0..<Int.random(in: 0..<3, using: &random) {
            bad[.random(in: 16..<good.count - 8, using: &random)] ^= .random(in: 1...255, using: &random)
          }
          do { try read(Archive.resealed(bad)) } catch {
            #expect(error is ArchiveError, "sample \(sample), byte \(index): \(error)")
          }
        }
      }
    }
  }

  @Test func aShorterBodyThatPassesTheChecksumNeverCrashes() throws {
    let good = try sample()
    for cut in 16..<good.count - 16 {
      var bad = good
      bad.remove(at: cut)
      do { try read(Archive.resealed(bad)) } catch { #expect(error is ArchiveError, "byte \(cut): \(error)") }
    }
  }

  @Test func anUnlistedClassIsRefusedBeforeItIsWritten() throws {
    let error = #expect(throws: ArchiveError.self) { try Archive.encode([Unlisted(type: 1, name: "x") as Creature]) }
    #expect(error?.code == .unlistedClass && error?.message.contains("Unlisted") == true)
    #expect(!Archive.canEncode([Unlisted(type: 1, name: "x") as Creature]))
    #expect(Archive.canEncode([Creature(type: 1, name: "x")]))
  }

  @Test func aClassThatOnlyAHandWrittenValueLeadsToMustBeListed() throws {
    let error = #expect(throws: ArchiveError.self) { try Archive.encode(Chest(node: Node(3))) }
    #expect(error?.code == .unlistedClass && error?.message.contains("Node") == true)
    let bytes = try Archive.encode(Chest(node: Node(3)), classes: [Node.self])
    #expect(try Archive.decode(Chest.self, from: bytes, classes: [Node.self]).node.value == 3)
    #expect(throws: ArchiveError.self) { try Archive.decode(Chest.self, from: bytes) }
  }

  /// Subclasses that a listed class lists are listed with it, whichever of their objects is encoded first.
  @Test(arguments: [false, true]) func classesThatAListedClassListsAreListed(isBaseFirst: Bool) throws {
    let giant = Giant()
    giant.height = 9
    let robots: [Old.Robot] = isBaseFirst ? [Walker(), giant] : [giant, Walker()]
    #expect(throws: ArchiveError.self) { try Archive.encode(Old.Army(robots: robots)) }
    let bytes = try Archive.encode(Old.Army(robots: robots), classes: [Walker.self])
    let copy = try Archive.decode(Old.Army.self, from: bytes, classes: [Walker.self])
    #expect(copy.robots.compactMap { ($0 as? Giant)?.height } == [9])
    #expect(copy.robots.count { $0 is Walker } == 2)
  }

  @Test func aSubclassWithoutTheMacroIsRefusedEvenIfListed() throws {
    let creature: Creature = Unlisted(type: 1, name: "x")
    let error = #expect(throws: ArchiveError.self) { try Archive.encode(creature, classes: [Unlisted.self]) }
    #expect(error?.code == .unlistedClass && error?.message.contains("mark it @Archivable") == true)
  }

  @Test func whatIsOnlyReferredToWeaklyIsNotSaved() throws {
    let (hero, target) = (Creature(type: 1, name: "hero"), Creature(type: 2, name: "target"))
    hero.target = target
    let bytes = try Archive.encode(hero)
    let inspection = try ArchiveInspection(of: bytes)
    #expect(inspection.objects.count == 2 && inspection.objects[1] == nil)
    #expect(try Archive.decode(Creature.self, from: bytes).target == nil)
    let level = Stage(name: "castle")
    level.hero = hero
    #expect(try ArchiveInspection(of: Archive.encode(level)).objects.compactMap { $0 }.count == 1)
  }

  @Test func aClassTheProgramNoLongerListsIsNamed() throws {
    let bytes = try Archive.encode(Old.Army(robots: [Old.Tank(gun: 1)]), classes: [Old.Tank.self])
    let error = #expect(throws: ArchiveError.self) { try Archive.decode(Old.Army.self, from: bytes) }
    #expect(error?.code == .unknownClass && error?.message.contains("Tank") == true)
    let army = try Archive.decode(Old.Army.self, from: bytes, classes: [Old.Tank.self])
    #expect((army.robots[0] as? Old.Tank)?.gun == 1)
  }

  @Test func objectsThatNeedEachOtherAreRefusedWithTheirNames() throws {
    let (loop, end) = (Loop(), LoopEnd())
    loop.to.end = end
    end.to.loop = loop
    let error = #expect(throws: ArchiveError.self) { try Archive.encode(end) }
    #expect(error?.code == .unbuildable)
    #expect(
      error?.message.contains("Loop -> LoopEnd -> Loop") == true
        || error?.message.contains("LoopEnd -> Loop -> LoopEnd") == true)
    let hen = Hen(egg: nil)
    hen.eggs = [Egg(hen: hen)]
    let copy = try Archive.decode(Hen.self, from: Archive.encode(hen))
    #expect(copy.eggs[0].hen === copy)
    for loop in [hen, copy] { loop.eggs = [] }
    loop.to.end = nil
  }

  @Test func anUnownedReferenceToSomethingUnsavedIsRefused() throws {
    let parent = Parent()
    let error = #expect(throws: ArchiveError.self) { try Archive.encode(Child(parent: parent, name: "x")) }
    #expect(error?.code == .unbuildable)
  }

  @Test func nestingAndSizeAreLimited() throws {
    var deep = Deep.end
    for _ in 0..<200 { deep = .more(deep) }
    #expect(throws: ArchiveError.self) { try Archive.encode(deep) }
    var limits = ArchiveLimits()
    limits.depth = 300
    let bytes = try Archive.encode(deep, limits: limits)
    let error = #expect(throws: ArchiveError.self) { try Archive.decode(Deep.self, from: bytes) }
    #expect(error?.code == .limit)
    limits.archiveBytes = 40
    #expect(throws: ArchiveError.self) { try Archive.encode([1, 2, 3], limits: limits) }
    #expect(throws: ArchiveError.self) { try Archive.decode([Int].self, from: bytes, limits: limits) }
    limits = ArchiveLimits()
    limits.stringBytes = 3
    #expect(throws: ArchiveError.self) { try Archive.decode(String.self, from: Archive.encode("four"), limits: limits) }
    #expect(throws: ArchiveError.self) { try Archive.encode("four", limits: limits) }
    limits = ArchiveLimits()
    limits.objects = 2
    #expect(throws: ArchiveError.self) { try Archive.encode((0..<3).map { Node($0) }, limits: limits) }
  }

  @Test func theDeepestAllowedNestingFitsOnASmallStack() {
    let result = onSmallStack {
      var deep = Deep.end
      for _ in 1..<ArchiveLimits.standard.depth { deep = .more(deep) }
      do {
        _ = try Archive.decode(Deep.self, from: Archive.encode(deep))
        return "read"
      } catch {
        return "\(error)"
      }
    }
    #expect(result == "read")
  }

  @Test func hooksSeeTheContextAndTheWholeGraph() throws {
    let (a, b) = (Hooked(), Hooked())
    (a.next, b.next) = (b, a)
    let copy = try Archive.decode(Hooked.self, from: Archive.encode(a), context: "levels")
    #expect(copy.heard == "levels, next there" && copy.next?.heard == "levels, next there")
    for object in [a, copy] { object.next = nil }
  }
}

@Archivable(subclasses: [Giant.self]) private class Walker: Old.Robot {
  var legs = 2
}

@Archivable private final class Giant: Walker {
  var height = 1
}
