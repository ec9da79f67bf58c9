#if Cloud
import ArgumentParser
import Foundation
import Keepsake
import KeepsakeArchive
import KeepsakeInspection
import KeepsakeInterchange
import TestSupport
import Testing

@testable import KeepsakeCommand

@Archivable private struct Hero {
  var name = "Ada"
  var level = 3
  var items = ["sword"]
}

/// Support can inspect any file that a player sends, and compare any two files.
@Suite struct ForeignFileTests: InspectsFiles {
  let folder = TemporaryFolder.url("foreign")

  private func difference(_ old: String, _ new: String) throws -> String {
    try DiffCommand.parse([path(old), path(new)]).difference().text()
  }

  /// A keyed archive of two friends who refer to each other and share one bag.
  private static func friends(level: Int128 = 7) -> PropertyList {
    [
      "$version": 100_000, "$archiver": "NSKeyedArchiver", "$top": ["root": .uid(1)],
      "$objects": [
        "$null", ["name": .uid(2), "level": .integer(level), "friend": .uid(4), "bag": .uid(6), "$class": .uid(3)],
        "Ada",
        ["$classname": "GameObject", "$classes": ["GameObject", "NSObject"]],
        ["name": .uid(5), "level": 1, "friend": .uid(1), "bag": .uid(6), "$class": .uid(3)], "Bob",
        ["NS.objects": [.uid(7)], "$class": .uid(8)], "sword",
        ["$classname": "NSMutableArray", "$classes": ["NSMutableArray", "NSArray", "NSObject"]],
      ],
    ]
  }

  @Test("a keyed archive is shown as objects, each once, with their classes and fields and without UIDs")
  func keyed() async throws {
    try await cleaning {
      try write(Self.friends().encoded(as: .binary), "friends")
      try write(Self.friends().encoded(as: .xml), "friends.xml")
      let text = try inspection("friends").text()
      let bytes = try Data(contentsOf: folder.appendingPathComponent("friends")).count
      #expect(
        text == """
          keyed archive, \(bytes) bytes, 3 objects

          classes
            GameObject  2 saved
            NSMutableArray  1 saved

          root
            #0 GameObject

          #0 GameObject
            name: "Ada"
            level: 7
            friend: #1 GameObject
            bag: #2 NSMutableArray

          #1 GameObject
            name: "Bob"
            level: 1
            friend: #0 GameObject
            bag: #2 NSMutableArray

          #2 NSMutableArray
            NS.objects: ["sword"]

          """, "\(text)")
      #expect(try inspection("friends.xml").text().hasPrefix("keyed archive as XML property list, "))
      let json = try JSONSerialization.jsonObject(with: inspection("friends").json()) as? [String: Any]
      let objects = try #require(json?["objects"] as? [[String: Any]])
      #expect(
        objects.count == 3 && objects[1]["name"] as? String == "Bob" && objects[1]["$type"] as? String == "GameObject")
      #expect((json?["header"] as? [String: Any])?["format"] as? String == "keyed archive")
    }
  }

  @Test("property lists and JSON are shown in their order, with unprintable characters escaped and long text cut")
  func plain() async throws {
    try await cleaning {
      let list: PropertyList = [
        "b": [1, 2.5, true], "a\u{1B}[2J": "x\u{202E}", "id": .uid(7),
        "long": .string(String(repeating: "y", count: 10_000)),
      ]
      try write(list.encoded(as: .binary), "list")
      let text = try inspection("list").text()
      #expect(
        text.hasPrefix("binary property list, ") && text.contains("b: [1, 2.5, true]\n")
          && text.contains("id: UID(number: 7)\n"), "\(text)"
      )
      #expect(text.contains("a\\u{1b}[2J: \"x\\u{202e}\"") && !text.contains("\u{1B}") && text.count < 1_000)
      try write(Data(#"{"z": null, "a": {"deep": [[], {}]}}"#.utf8), "x.json")
      let json = try inspection("x.json").text()
      #expect(json.hasPrefix("JSON, ") && json.contains("z: nil") && json.contains("a: (deep: [[], ()])"), "\(json)")
    }
  }

  @Test("the difference between two keyed archives is shown by field, also between binary and XML")
  func differenceOfKeyed() async throws {
    try await cleaning {
      try write(Self.friends().encoded(as: .binary), "a")
      try write(Self.friends(level: 8).encoded(as: .xml), "b")
      #expect(try difference("a", "b") == "values\n    level: 7 -> 8\n")
      #expect(try difference("a", "a").isEmpty)
    }
  }

  @Test("equal values are equal in every pair of formats, and a difference is shown in every pair")
  func pairs() async throws {
    try await cleaning {
      let list: PropertyList = ["name": "Ada", "level": 3, "items": ["sword"]]
      try Archive.write(Hero(), to: folder.appendingPathComponent("hero.keepsake"))
      try write(list.encoded(as: .binary), "hero.bplist")
      try write(list.encoded(as: .xml), "hero.plist")
      try write(Data(#"{"name": "Ada", "level": 3, "items": ["sword"]}"#.utf8), "hero.json")
      _ = try ConvertCommand.parse([path("hero.json"), path("hero.archive")]).convert()
      _ = try ConvertCommand.parse([path("hero.keepsake"), path("tagged.json")]).convert()
      try write(Data(#"{"name": "Ada", "level": 4, "items": ["sword", "bow"]}"#.utf8), "other.json")
      let names = ["hero.keepsake", "hero.bplist", "hero.plist", "hero.json", "hero.archive", "tagged.json"]
      for one in names {
        for other in names { #expect(try difference(one, other).isEmpty, "\(one) and \(other)") }
        #expect(try difference(one, "other.json") == "values\n    level: 3 -> 4\n  + items[1]: \"bow\"\n", "\(one)")
        #expect(!(try difference("other.json", one)).isEmpty)
      }
    }
  }

  @Test("objects are compared with the nested values of another format, and cycles terminate")
  func objectsBeside() async throws {
    try await cleaning {
      try write(Self.friends().encoded(as: .binary), "a")
      try write(
        Data(#"{"name": "Ada", "level": 9, "friend": {"name": "Bob", "level": 1, "friend": {"name": "Ada"}}}"#.utf8),
        "b.json")
      let text = try difference("a", "b.json")
      #expect(
        text.contains("level: 7 -> 9") && text.contains("- friend.friend.level: 7") && text.contains("- bag"), "\(text)"
      )
      #expect(!text.contains("\nobjects\n"))
    }
  }

  @Test("the exit status shows whether files are equal, different or unreadable")
  func exitStatus() async throws {
    try await cleaning {
      try write(Self.friends().encoded(as: .binary), "a")
      try write(Data("{}".utf8), "b.json")
      try write(Data("{,}".utf8), "bad.json")
      try write(Data("bplist00x".utf8), "bad.plist")
      func diff(_ names: String...) async -> Int32 { await status(of: DiffCommand.self, names.map(path)) }
      func inspect(_ name: String) async -> Int32 { await status(of: InspectCommand.self, [path(name), "--json"]) }
      #expect(await diff("a", "a") == 0)
      #expect(await diff("a", "b.json") == 1)
      #expect(await diff("a", "bad.json") == 65)
      #expect(await diff("bad.plist", "a") == 65)
      #expect(await inspect("a") == 0)
      #expect(await inspect("bad.json") == 65)
      #expect(await inspect("bad.plist") == 65)
    }
  }

  @Test("a JSON file that a game tracks is shown by its name, with its history, and exported like a save")
  func exported() async throws {
    try await cleaning {
      let store = folder.appendingPathComponent("store")
      let game = try GameData.open("com.example.foreign", at: store)
      let file = folder.appendingPathComponent("level.json")
      try Data(#"{"level": 12}"#.utf8).write(to: file)
      _ = try game.files.track(file)
      try game.close()
      guard case .store(let report) = try InspectCommand.look(at: store.path) else {
        Issue.record("no store")
        return
      }
      // By the name that people know.
      #expect(
        report.slots.map(\.slot) == ["tracked:level.json"] && report.text.contains("\ntracked:level.json\n"),
        "\(report.text)")
      #expect(report.text.unicodeScalars.allSatisfy { $0.value != 0xE000 && ($0.value >= 0x20 || $0 == "\n") })
      guard case .archive(let inspection) = try InspectCommand.look(at: store.path, slot: "tracked:level.json") else {
        Issue.record("no file")
        return
      }
      #expect(inspection.root["level"] == .integer(12))
      #expect(await status(of: HistoryCommand.self, [store.path, "tracked:level.json"]) == 0)
      #expect(await status(of: HistoryCommand.self, [store.path, "level.json"]) == 66)
      #expect(await status(of: ExportCommand.self, [store.path, "tracked:level.json", path("export")]) == 0)
      guard case .save(_, let saved?) = try InspectCommand.look(at: path("export")) else {
        Issue.record("no save")
        return
      }
      #expect(saved.root["level"] == .integer(12))
    }
  }

  @Test("a small file whose lists expand to millions of values is refused instead of filling the memory")
  func expanding() async throws {
    try await cleaning {
      // Each list contains the next one twice; 22 of them expand to four million values.
      var bytes = Data("bplist00".utf8)
      let count = 23
      var offsets: [UInt8] = []
      for index in 0..<count - 1 {
        offsets.append(UInt8(bytes.count))
        bytes += [0xA2, UInt8(index + 1), UInt8(index + 1)]
      }
      offsets.append(UInt8(bytes.count))
      bytes += [0x09]
      let table = bytes.count
      bytes += offsets
      bytes += [0, 0, 0, 0, 0, 0, 1, 1] + [0, 0, 0, 0, 0, 0, 0, UInt8(count)] + [UInt8](repeating: 0, count: 8)
      bytes += [0, 0, 0, 0, 0, 0, 0, UInt8(table)]
      try write(bytes, "bomb")
      // Well formed, and within the limits of the property list reader.
      #expect(try PropertyList(bytes).array?.count == 2)
      #expect(await status(of: InspectCommand.self, [path("bomb")]) == 65)
      #expect(await status(of: ConvertCommand.self, [path("bomb"), path("bomb.json")]) == 65)
    }
  }

  @Test(
    "a tagged file with invalid references, numbers or classes is refused",
    arguments: [
      #"""
      {"$keepsake":"keyed archive \#
      1","classes":[{"name":"A","classes":["A"]}],"top":{},"objects":[{"$id":9223372036854775807,"$class":"A"}]}
      """#,
      #"""
      {"$keepsake":"keyed archive \#
      1","classes":[{"name":"A","classes":["A"]}],"top":{},"objects":[{"$id":0,"$class":"A"},{"$id":0,"$class":"A"}]}
      """#,
      #"""
      {"$keepsake":"keyed archive \#
      1","classes":[{"name":"A","classes":["A",7]}],"top":{},"objects":[{"$id":0,"$class":"A"}]}
      """#,
      #"{"$keepsake":"keyed archive 1","classes":[],"top":{"root":{"$ref":0}},"objects":[]}"#,
      #"{"$keepsake":"values 1","value":{"a":{"$ref":7}}}"#,
      #"{"$keepsake":"values 1","value":[{"$ref":-1}]}"#,
      #"""
      {"$keepsake":"archive \#
      1","types":[],"fixedTypes":0,"rootType":"bool","root":true,"keys":[],"keyedTypes":[{"vector":["float",-1]}],\#
      "objectCount":0,"objects":[]}
      """#,
    ])
  func leadsNowhere(text: String) async throws {
    try await cleaning {
      try write(Data(text.utf8), "tagged.json")
      try write(Data(#"{"a":{"b":1}}"#.utf8), "other.json")
      #expect(await status(of: InspectCommand.self, [path("tagged.json")]) == 65)
      #expect(await status(of: DiffCommand.self, [path("tagged.json"), path("other.json")]) == 65)
      #expect(await status(of: ConvertCommand.self, [path("tagged.json"), path("out.plist")]) == 65)
      #expect(!FileManager.default.fileExists(atPath: path("out.plist")))
    }
  }

  @Test("a local slot is reported under its own name, and as staying on this device")
  func localSlots() async throws {
    try await cleaning {
      let store = folder.appendingPathComponent("store")
      let game = try GameData.open("com.example.foreign", at: store)
      try game.saves.keepLocal("secret", cloudCopy: .removed)
      try await game.saves.save(Hero(), to: Slot<Hero>("secret"))
      try game.close()
      guard case .store(let report) = try InspectCommand.look(at: store.path) else {
        Issue.record("no store")
        return
      }
      let slot = try #require(report.slots.first { $0.local })
      #expect(slot.slot == "secret" && report.text.contains("secret  stays on this device"), "\(report.text)")
      #expect(await status(of: HistoryCommand.self, [store.path, "secret"]) == 0)
      #expect(Verification.run(on: [store.path], progress: { _ in }, each: { _ in }).unsound == 0)
    }
  }
}
#endif
