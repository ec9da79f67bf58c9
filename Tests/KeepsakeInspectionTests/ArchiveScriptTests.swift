import Foundation
import TestSupport
import Testing

@testable import ArchiveWorlds
@testable import KeepsakeArchive
@testable import KeepsakeInspection

/// An archive that was converted to a script and edited must become one that the game reads. Without edits, it must be
/// the same to the last byte.
@Suite struct ArchiveScriptTests {
  @Archivable struct Corners: Equatable {
    var doubly: [Int??] = [nil, .some(nil), 3]
    var floats: [Float] = [0.1, -0.0, .infinity]
    var doubles = [1.5, 0.1, -0.0, 1e300, 140_737_488_355.328]
    var single = 0.001
    var minus = -0.0
    var decimal = Decimal(string: "-12345678901234567890.125") ?? 0
    var wide = Int128.max
    var blocks: [[Int]] = [[], [1], [-129], [70_000], [.min]]
    var flags = [true, false]
    var bytes: [UInt8] = [0, 255]
    var unsigned: [UInt32] = [256, 70_000]
    var byName: [Int: String] = [3: "c", 1: "a"]
    var empty = Nothing()
    var date = Date(timeIntervalSinceReferenceDate: 0.25)
    @Coded var coded: [String: Mixed?] = [
      "a": Mixed(float: 0.1, double: 0.1, digits: 12), "b": nil,
    ]
  }
  @Archivable struct Nothing: Equatable {}
  struct Mixed: Codable, Equatable {
    var float: Float
    var double: Double
    var digits: Decimal
    var date = Date(timeIntervalSinceReferenceDate: 1e9)
    var data = Data([1, 2])
    var url = URL(string: "https://example.com")
    var id = UUID(uuid: (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16))
  }

  static func archives() throws -> [(String, Data)] {
    let hero = Creature(type: 1, name: "hero")
    let stage = Stage(name: "cellar")
    stage.hero = hero
    stage.linked = stage
    let elsewhere = Stage(name: "attic")
    let stranger = Creature(type: 2, name: "nobody's")
    elsewhere.hero = stranger
    var archives = [
      ("corners", try Archive.encode(Corners())), ("by hand", try Archive.encode([HandKeyed(text: "a", number: 3)])),
      ("class by hand", try Archive.encode(Campaign(level: stage, heroes: [hero]), classes: [Creature.self])),
      ("weak", try Archive.encode(elsewhere, classes: [Creature.self])), ("empty", try Archive.encode([Int]())),
      ("objects in sets", try Archive.encode(Tokens(set: [Token(1), Token(2)], counts: [Token(3): "x"]))),
      ("nothing", try Archive.encode(Int?.none)),
    ]
    for seed in 1...UInt64(20) { archives.append(("seed \(seed)", try Archive.encode(RandomWorld.make(seed: seed)))) }
    for name in ["world-v1", "coded-v1"] {
      let file = Repository.root.appending(path: "Tests/KeepsakeArchiveTests/Fixtures/\(name).keepsake")
      archives.append((name, try Data(contentsOf: file)))
    }
    return withExtendedLifetime(stranger) { archives }
  }

  @Test("an archive that is converted to a script and back has the same bytes")
  func sameBytes() throws {
    for (name, bytes) in try Self.archives() {
      let again = try ArchiveScript(of: bytes).encoded()
      #expect(again == bytes, "\(name)")
    }
  }

  @Test("a value that was changed in the script is decoded by the game")
  func edited() throws {
    var script = try ArchiveScript(of: Archive.encode(Item(kind: 3, count: 7, durability: 0.5)))
    guard case .structure(let type, var fields) = script.root else {
      Issue.record("no struct")
      return
    }
    for index in fields.indices where fields[index].key == "count" { fields[index].value = .integer(900) }
    // An integer, as people write it; and the fields are in another order.
    for index in fields.indices where fields[index].key == "durability" { fields[index].value = .integer(1) }
    script.root = .structure(type: type, fields.reversed())
    #expect(try Archive.decode(Item.self, from: script.encoded()) == Item(kind: 3, count: 900, durability: 1))
  }

  @Test("a value of the wrong type is an error with its path")
  func misfits() throws {
    let script = try ArchiveScript(of: Archive.encode(["a": [Item(kind: 3)]]))
    func error(_ value: ArchiveValue, key: String = "kind") throws -> ArchiveError? {
      var changed = script
      guard case .dictionary(var pairs) = script.root, case .array(let items) = pairs[0].value,
        case .structure(let type, var fields) = items[0]
      else { return nil }
      for index in fields.indices where fields[index].key == "kind" { fields[index] = .init(key: key, value: value) }
      pairs[0].value = .array([.structure(type: type, fields)])
      changed.root = .dictionary(pairs)
      do {
        _ = try changed.encoded()
        return nil
      } catch { return error as? ArchiveError }
    }
    #expect(try error(.integer(4)) == nil)
    let text = try error(.string("ten"))
    #expect(text?.code == .mismatch && text?.field == "a[0].kind", "\(String(describing: text))")
    #expect(try error(.number(0.5))?.code == .mismatch)
    #expect(
      try error(.integer(4), key: "sort")?.code == .mismatch || error(.integer(4), key: "sort")?.code == .missingField)
    #expect(try error(.reference(9))?.code == .mismatch)
  }

  @Test("a script whose parts contradict each other is a typed error, and never an archive")
  func contradictions() throws {
    let script = try ArchiveScript(of: Archive.encode(GoldenWorld.make()))
    let changes: [(inout ArchiveScript) -> Void] = [
      { $0.objectCount = 1 }, { $0.objects[0].number = 99 }, { $0.objects[0].type = 0 }, { $0.objects[0].type = -4 },
      { $0.fixedTypes = 99 },
      { $0.rootType = .named(99) }, { $0.rootType = .scalar("int65") }, { $0.objects.append($0.objects[0]) },
      { $0.types[0].version = -1 },
      { $0.rootType = .vector("string", 2) }, { $0.objects.removeLast() }, { $0.objects[1].fields.removeLast() },
    ]
    for (index, change) in changes.enumerated() {
      var bad = script
      change(&bad)
      // An object that is missing while the count is unchanged is one that is only referred to; this is valid.
      if index == 10 {
        #expect(throws: Never.self) { try bad.encoded() }
      } else {
        #expect(throws: ArchiveError.self, "change \(index)") { try bad.encoded() }
      }
    }
  }

  @Test("a script becomes an archive only if readers with the same limits read it")
  func limits() throws {
    let script = try ArchiveScript(of: Archive.encode(GoldenWorld.make()))
    var limits = ArchiveLimits()
    limits.archiveBytes = try script.encoded().count
    #expect(throws: Never.self) { try script.encoded(limits: limits) }
    limits.archiveBytes -= 1
    #expect { try script.encoded(limits: limits) } throws: { ($0 as? ArchiveError)?.code == .limit }
  }
}
