#if Cloud
import ArgumentParser
import Foundation
import Keepsake
import KeepsakeArchive
import KeepsakeInterchange
import TestSupport
import Testing

@testable import KeepsakeCommand

@Archivable private final class Pal {
  var name: String
  var friend: Pal?
  init(_ name: String) { self.name = name }
}

@Archivable private struct Party {
  var gold = 40
  var luck: Float = 0.1
  var started = Date(timeIntervalSinceReferenceDate: 700_000_000.25)
  var icon = Data([1, 2, 3])
  var names: Set<String> = ["a", "b"]
  var nothing: Int?
  var doors: [Int: Bool] = [7: true]
  var pals: [Pal] = []
}

private struct Settings: Codable, Equatable {
  var volume = 0.5
  var lives = 3
  var names = ["Ada", "Ünal"]
  var isHard = true
  var levels = ["one": [1, 2], "two": []]
}

private struct Prices: Codable, Equatable {
  var gold: Decimal = 5
  var none: Decimal = 0
  var gems: Decimal = -12.5
  var large: Decimal
}

/// A conversion keeps every value, or reports what the format can't represent before anything is written.
@Suite struct ConvertTests {
  private let folder = TemporaryFolder.url("convert")

  /// Removes the folder after a test; a leftover folder does no harm.
  private func cleaning(_ body: () async throws -> Void) async throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body()
  }

  private func path(_ name: String) -> String { folder.appendingPathComponent(name).path }
  private func bytes(_ name: String) throws -> Data { try Data(contentsOf: folder.appendingPathComponent(name)) }

  @discardableResult private func convert(_ input: String, _ output: String, _ options: String...) throws
    -> ConvertCommand.Answer
  {
    try ConvertCommand.parse([path(input), path(output)] + options).convert()
  }

  private func failure(_ input: String, _ output: String, _ options: String...) -> CommandFailure? {
    do {
      _ = try ConvertCommand.parse([path(input), path(output)] + options).convert()
      return nil
    } catch {
      return CommandFailure(error)
    }
  }

  private func status(_ arguments: String...) async -> Int32 {
    await KeepsakeCommandTests.status(of: ConvertCommand.self, arguments)
  }

  private func writeParty() throws -> Data {
    let (one, two) = (Pal("one"), Pal("two"))
    (one.friend, two.friend) = (two, one)
    try Archive.write(
      Party(pals: [one, two, one]), to: folder.appendingPathComponent("party.keepsake"), compression: .none)
    return try bytes("party.keepsake")
  }

  @Test(
    "an archive that is converted to JSON or a property list and back has the same bytes",
    arguments: ["json", "xml", "bplist"])
  func archiveAndBack(name: String) async throws {
    try await cleaning {
      let original = try writeParty()
      #expect(try convert("party.keepsake", "party.\(name)").form == .tagged)
      try convert("party.\(name)", "again.keepsake")
      #expect(try bytes("again.keepsake") == original)
    }
  }

  @Test("a value edited in the JSON of an archive is in the archive that the game loads; a mismatch is an error")
  func edited() async throws {
    try await cleaning {
      _ = try writeParty()
      try convert("party.keepsake", "party.json")
      let text = String(decoding: try bytes("party.json"), as: UTF8.self)
      #expect(text.contains("\"gold\": 40"))
      try Data(text.replacingOccurrences(of: "\"gold\": 40", with: "\"gold\": 99").utf8).write(
        to: folder.appendingPathComponent("party.json"))
      try convert("party.json", "rich.keepsake")
      let party = try #require(try Archive.read(Party.self, from: folder.appendingPathComponent("rich.keepsake")))
      #expect(party.gold == 99 && party.pals[0] === party.pals[2] && party.pals[0].friend?.friend === party.pals[0])
      try Data(text.replacingOccurrences(of: "\"gold\": 40", with: "\"gold\": \"much\"").utf8).write(
        to: folder.appendingPathComponent("bad.json"))
      let wrong = failure("bad.json", "bad.keepsake")
      #expect(wrong?.kind == .data && wrong?.message.contains("gold") == true, "\(String(describing: wrong))")
      #expect(!FileManager.default.fileExists(atPath: path("bad.keepsake")))
    }
  }

  @Test("JSON is converted to an archive, property lists and a keyed archive, and back, without loss")
  func plain() async throws {
    try await cleaning {
      let settings = folder.appendingPathComponent("settings.json")
      try StructuredFile.write(Settings(), to: settings)
      let original = try JSONFile.read(bytes("settings.json"))
      for name in ["settings.keepsake", "settings.plist", "settings.bplist", "settings.archive"] {
        #expect(try convert("settings.json", name).losses.isEmpty)
      }
      let archive = try bytes("settings.keepsake")
      #expect(try Archive.decode(Settings.self, from: archive) == Settings())
      #expect(try PropertyListDecoder().decode(Settings.self, from: bytes("settings.plist")) == Settings())
      #expect(try PropertyListDecoder().decode(Settings.self, from: bytes("settings.bplist")) == Settings())
      for name in ["settings.plist", "settings.bplist"] {
        try convert(name, name + ".json")
        #expect(try JSONFile.read(bytes(name + ".json")) == original, "\(name)")
      }
      // Without --lossy, these would be written with tags; with it, nothing is lost either.
      for name in ["settings.keepsake", "settings.archive"] {
        #expect(try convert(name, name + ".json", "--lossy").losses.isEmpty)
        #expect(try JSONFile.read(bytes(name + ".json")) == original, "\(name)")
      }
    }
  }

  @Test("Foundation's unarchiver reads a keyed archive made from JSON; one made from an archive keeps its objects")
  func keyed() async throws {
    try await cleaning {
      try StructuredFile.write(Settings(), to: folder.appendingPathComponent("settings.json"))
      try convert("settings.json", "settings.archive")
      let settings = try NSKeyedUnarchiver.unarchivedObject(
        ofClasses: [NSDictionary.self, NSArray.self, NSString.self, NSNumber.self], from: bytes("settings.archive"))
      let dictionary = try #require(settings as? [String: Any])
      #expect(dictionary["names"] as? [String] == ["Ada", "Ünal"] && (dictionary["lives"] as? NSNumber)?.intValue == 3)
      try Data("[null, 1]".utf8).write(to: folder.appendingPathComponent("null.json"))
      try convert("null.json", "null.archive")
      let list = try NSKeyedUnarchiver.unarchivedObject(
        ofClasses: [NSArray.self, NSNull.self, NSNumber.self], from: bytes("null.archive"))
      #expect((list as? [Any])?.first is NSNull)
      _ = try writeParty()
      try convert("party.keepsake", "party.archive")
      // The cycle and the shared object are kept.
      let tree = try KeyedArchive(bytes("party.archive")).tree()
      #expect(tree.objects.count == 2 && tree.classes.map(\.name) == ["Pal"])
      guard case .dictionary = tree.top["root"], case .array(let pals) = tree.top["root"]?["pals"] else {
        Issue.record("no dictionary with a list")
        return
      }
      #expect(pals.count == 3 && pals[0] == pals[2] && pals[0] != pals[1])
      #expect(tree.top["root"]?["started"] == .date(Date(timeIntervalSinceReferenceDate: 700_000_000.25)))
      #expect(tree.top["root"]?["icon"] == .data(Data([1, 2, 3])))
    }
  }

  @Test("a keyed archive keeps its objects, cycles and classes when converted to XML, or to JSON and back")
  func keyedAndBack() async throws {
    try await cleaning {
      _ = try writeParty()
      try convert("party.keepsake", "party.archive")
      let tree = try KeyedArchive(bytes("party.archive")).tree()
      try convert("party.archive", "party.plist")
      #expect(try KeyedArchive(bytes("party.plist")).tree() == tree)
      #expect(try convert("party.archive", "party.json").form == .tagged)
      #expect(String(decoding: try bytes("party.json"), as: UTF8.self).contains("\"$class\": \"Pal\""))
      try convert("party.json", "again.archive")
      #expect(try KeyedArchive(bytes("again.archive")).tree() == tree)
    }
  }

  @Test("decimal numbers, with fractions or without, are kept in JSON, XML and archives")
  func decimals() async throws {
    try await cleaning {
      let prices = Prices(large: try #require(Decimal(string: "123456789012345678901234567890")))
      try KeyedArchive.encode(prices).write(to: folder.appendingPathComponent("prices.archive"))
      let tree = try KeyedArchive(bytes("prices.archive")).tree()
      for name in ["prices.json", "prices.plist"] {
        try convert("prices.archive", name, "--tagged")
        try convert(name, "again.archive", "--force")
        #expect(try KeyedArchive(bytes("again.archive")).tree() == tree, "\(name)")
      }
      try convert("prices.archive", "prices.keepsake")
      #expect(try Archive.decode(Prices.self, from: bytes("prices.keepsake")) == prices)
      try convert("prices.keepsake", "coded.json")
      try convert("coded.json", "coded.keepsake")
      #expect(try bytes("coded.keepsake") == bytes("prices.keepsake"))
    }
  }

  @Test("a value that the format lacks is an error with its path and a suggestion, and nothing is written")
  func refused() async throws {
    try await cleaning {
      let list: PropertyList = [
        "when": .date(Date(timeIntervalSinceReferenceDate: 0.5)), "levels": [["icon": .data(Data([1]))]],
      ]
      try list.encoded(as: .binary).write(to: folder.appendingPathComponent("list.bplist"))
      let date = failure("list.bplist", "list.json")
      #expect(
        date?.kind == .data && date?.message.contains("when: JSON has no dates") == true, "\(String(describing: date))")
      #expect(date?.next?.contains("--tagged") == true && date?.next?.contains("--lossy") == true)
      #expect(
        failure("list.bplist", "list.xml")?.message.contains("when: XML property list has no fractions of seconds")
          == true)
      #expect(!FileManager.default.fileExists(atPath: path("list.json")))
      try Data(#"{"a": [1, null]}"#.utf8).write(to: folder.appendingPathComponent("null.json"))
      #expect(failure("null.json", "null.plist")?.message.contains("a[1]: XML property list has no nulls") == true)
      #expect(try convert("null.json", "null.keepsake").losses.isEmpty)
      try Data(#"{"a": 1e999}"#.utf8).write(to: folder.appendingPathComponent("large.json"))
      #expect(failure("large.json", "large.plist")?.kind == .data)
      _ = try writeParty()
      let circle = failure("party.keepsake", "coded.json", "--lossy")
      #expect(circle?.message.contains("leads back to itself") == true, "\(String(describing: circle))")
      #expect(failure("party.keepsake", "tags.keepsake", "--tagged")?.kind == .data)
    }
  }

  @Test("--lossy reports each kind of loss with its count and first path; --tagged loses nothing")
  func lossy() async throws {
    try await cleaning {
      let list: PropertyList = [
        "when": [
          .date(Date(timeIntervalSinceReferenceDate: 0.5)), .date(Date(timeIntervalSinceReferenceDate: 86_400)),
        ],
        "icon": .data(Data([1, 2, 3])), "u": .uid(7), "nan": .number(.nan), "f": .float(0.1), "n": 3, "$x": ["$y": 1],
      ]
      try list.encoded(as: .binary).write(to: folder.appendingPathComponent("list.bplist"))
      let answer = try convert("list.bplist", "list.json", "--lossy")
      #expect(answer.losses.map(\.count) == [2, 1, 1, 1] && answer.losses[0].path == "when[0]")
      let json = try JSONFile.read(bytes("list.json"))
      #expect(
        json["when"] == ["2001-01-01T00:00:00.500Z", "2001-01-02T00:00:00Z"] && json["icon"] == "AQID" && json["u"] == 7
      )
      #expect(json["nan"] == "nan" && json["f"] == .number(Double(Float(0.1))) && json["n"] == 3)
      for name in ["tagged.json", "tagged.xml", "tagged2.bplist"] {
        #expect(try convert("list.bplist", name, "--tagged").losses.isEmpty)
        try convert(name, name + ".bplist")
        #expect(try PropertyList(bytes(name + ".bplist")) == list, "\(name)")
      }
    }
  }

  @Test("sets and nulls survive from one binary property list to another, and are an error in other formats")
  func binaryKinds() async throws {
    try await cleaning {
      let list: PropertyList = ["tags": .set(["a", .set([7])]), "list": .array([.null, 1]), "none": .null]
      try list.encoded(as: .binary).write(to: folder.appendingPathComponent("list.bplist"))
      #expect(try convert("list.bplist", "again.bplist").losses.isEmpty)
      #expect(try PropertyList(bytes("again.bplist")) == list)
      #expect(try convert("list.bplist", "lossy.bplist", "--lossy").losses.isEmpty)
      #expect(try PropertyList(bytes("lossy.bplist")) == list)
      #expect(failure("list.bplist", "list.plist")?.kind == .data)
      #expect(failure("list.bplist", "list.json")?.kind == .data)
    }
  }

  @Test("what is lost is counted in English")
  func counted() {
    func words(_ count: Int, _ what: String) -> String { PlainForm.Loss(what: what, count: count, path: "a").counted }
    #expect(words(1, "URLs, as text") == "1 URL, as text" && words(2, "URLs, as text") == "2 URLs, as text")
    #expect(words(1, "sets, as lists") == "1 set, as a list" && words(2, "sets, as lists") == "2 sets, as lists")
    let copies = "references to an object that is written elsewhere, as copies of it"
    #expect(words(1, copies) == "1 reference to an object that is written elsewhere, as a copy of it")
    #expect(words(2, copies) == "2 " + copies)
    #expect(words(1, "dates, as text") == "1 date, as text" && words(1, "nulls, left out") == "1 null, left out")
    #expect(words(2, "value of the class Hero") == "2 values of the class Hero")
    #expect(words(3, "data, as base64") == "3 data, as base64")
  }

  @Test("--lossy writes a set as a list of all its elements, also of one that is part of a keyed archive")
  func lossySets() async throws {
    try await cleaning {
      let list: PropertyList = ["tags": .set(["a", "b", "c"]), "one": .set([7]), "none": .set([])]
      try list.encoded(as: .binary).write(to: folder.appendingPathComponent("list.bplist"))
      #expect(failure("list.bplist", "list.json")?.message.contains("JSON has no sets") == true)
      for name in ["list.json", "list.plist"] {
        let answer = try convert("list.bplist", name, "--lossy")
        #expect(answer.losses == [.init(what: "sets, as lists", count: 3, path: "tags")], "\(name)")
        let written = name == "list.json" ? try JSONFile.read(bytes(name)) : try PropertyList(bytes(name))
        #expect(written == ["tags": ["a", "b", "c"], "one": [7], "none": []], "\(name)")
      }
      try KeyedArchive.encode(["tags": Set(["a", "b", "c"])]).write(to: folder.appendingPathComponent("set.archive"))
      try convert("set.archive", "set.json", "--lossy")
      let tags = try JSONFile.read(bytes("set.json"))["tags"]?.array?.compactMap(\.string)
      #expect(tags?.sorted() == ["a", "b", "c"])
    }
  }

  @Test("an existing file is replaced only with --force, and is unchanged if the conversion fails")
  func existing() async throws {
    try await cleaning {
      try Data("[1]".utf8).write(to: folder.appendingPathComponent("a.json"))
      try Data("mine".utf8).write(to: folder.appendingPathComponent("b.plist"))
      #expect(await status(path("a.json"), path("b.plist")) == 73)
      #expect(String(decoding: try bytes("b.plist"), as: UTF8.self) == "mine")
      try Data("[null]".utf8).write(to: folder.appendingPathComponent("null.json"))
      #expect(await status(path("null.json"), path("b.plist"), "--force") == 65)
      #expect(String(decoding: try bytes("b.plist"), as: UTF8.self) == "mine")
      #expect(await status(path("a.json"), path("b.plist"), "--force") == 0)
      #expect(try PropertyList(bytes("b.plist")) == [1])
      // The output replaces the input.
      #expect(await status(path("a.json"), path("a.json"), "--to", "binary", "--force") == 0)
      #expect(try PropertyList(bytes("a.json")) == [1])
      try FileManager.default.createSymbolicLink(atPath: path("link.plist"), withDestinationPath: path("nowhere"))
      #expect(await status(path("a.json"), path("link.plist")) == 73)
    }
  }

  @Test("the exit status identifies the kind of failure")
  func exitStatus() async throws {
    try await cleaning {
      try Data("[1]".utf8).write(to: folder.appendingPathComponent("a.json"))
      try Data("once upon a time".utf8).write(to: folder.appendingPathComponent("text"))
      try Data().write(to: folder.appendingPathComponent("empty"))
      try Data(#"{"$keepsake": "values 9"}"#.utf8).write(to: folder.appendingPathComponent("newer.json"))
      #expect(await status(path("a.json"), path("b")) == 64)
      #expect(await status(path("a.json"), path("b"), "--to", "yaml") == 64)
      #expect(await status(path("a.json"), path("b.json"), "--lossy", "--tagged") == 64)
      #expect(await status(path("a.json"), "-", "--to", "json", "--json") == 64)
      #expect(await status(path("none"), path("b.json")) == 66)
      for name in ["text", "empty"] { #expect(await status(path(name), path("b.json")) == 65, "\(name)") }
      #expect(await status(path("newer.json"), path("b.plist")) == 78)
      #expect(await status(path("a.json"), path("no/such/folder.plist")) == 66)
      #expect(await status(path("a.json"), path("b"), "--to", "xml") == 0)
    }
  }

  @Test("an altered tagged file is an error, and is never converted to an archive that no game reads")
  func alteredTags() async throws {
    try await cleaning {
      _ = try writeParty()
      try convert("party.keepsake", "party.json")
      let text = String(decoding: try bytes("party.json"), as: UTF8.self)
      for (old, new) in [
        ("\"$ref\": 1", "\"$ref\": 17"), ("\"$ref\": 1", "\"$ref\": -1"), ("\"$id\": 1", "\"$id\": 0"),
        ("\"$class\": \"Pal\"", "\"$class\": \"Nobody\""),
        ("\"int64\"", "\"int65\""), ("\"fixedTypes\": 2", "\"fixedTypes\": 200"),
        ("\"objectCount\": 2", "\"objectCount\": -2"),
        ("\"$data\": \"AQID\"", "\"$data\": 3"), ("\"$date\"", "\"$time\""), ("\"root\"", "\"trunk\""),
      ] {
        #expect(text.contains(old), "\(old)")
        try Data(text.replacingOccurrences(of: old, with: new).utf8).write(
          to: folder.appendingPathComponent("bad.json"))
        #expect(failure("bad.json", "bad.keepsake", "--force")?.kind == .data, "\(new)")
      }
    }
  }

  @Test("the format of an output file is determined by its name")
  func names() {
    #expect(
      FileFormat(path: "a.keepsake") == .archive && FileFormat(path: "a.JSON") == .json
        && FileFormat(path: "x/a.plist") == .xml)
    #expect(
      FileFormat(path: "a.bplist") == .binary && FileFormat(path: "a.archive") == .keyed
        && FileFormat(path: "a.save") == nil)
  }
}
#endif
