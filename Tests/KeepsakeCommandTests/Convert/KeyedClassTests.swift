#if Cloud
import ArgumentParser
import Foundation
import KeepsakeArchive
import KeepsakeInspection
import KeepsakeInterchange
import TestSupport
import Testing

@testable import KeepsakeCommand

/// The classes of a keyed archive's objects are shown, compared if that is asked for, and never lost in silence.
@Suite struct KeyedClassTests: InspectsFiles {
  let folder = TemporaryFolder.url("classes")

  private func put(_ list: PropertyList, _ name: String) throws { try write(list.encoded(as: .binary), name) }

  /// A keyed archive of these objects, which are numbered from 1; the first one is the root.
  private func keyed(_ objects: [PropertyList]) -> PropertyList {
    [
      "$version": 100_000, "$archiver": "NSKeyedArchiver", "$top": ["root": .uid(1)],
      "$objects": .array(["$null"] + objects),
    ]
  }

  private func type(_ names: String...) -> PropertyList {
    ["$classname": .string(names[0]), "$classes": .array((names + ["NSObject"]).map { .string($0) })]
  }

  /// A hero with a list of a class.
  private func hero(_ list: String..., superclass: String = "Actor", count: Int = 2) -> PropertyList {
    keyed([
      ["items": .uid(3), "$class": .uid(2)],
      ["$classname": "Hero", "$classes": ["Hero", .string(superclass), "NSObject"]],
      ["NS.objects": .array(Array(repeating: .uid(5), count: count)), "$class": .uid(4)],
      ["$classname": .string(list[0]), "$classes": .array((list + ["NSObject"]).map { .string($0) })], "sword",
    ])
  }

  private func difference(_ old: String, _ new: String, _ options: String...) throws -> ArchiveDifference {
    try DiffCommand.parse([path(old), path(new)] + options).difference()
  }

  private func object(_ data: Data) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
  }

  @Test("diff --classes counts another class, or another list of superclasses, as a difference; diff alone doesn't")
  func compared() async throws {
    try await cleaning {
      try put(hero("NSMutableArray", "NSArray"), "a.archive")
      try put(hero("NSArray"), "b.archive")
      try put(hero("NSArray", superclass: "Thing"), "c.archive")
      try put(hero("NSArray", count: 3), "d.archive")
      _ = try ConvertCommand.parse([path("a.archive"), path("a.json")]).convert()
      #expect(await status(of: DiffCommand.self, [path("a.archive"), path("b.archive")]) == 0)
      #expect(await status(of: DiffCommand.self, [path("a.archive"), path("b.archive"), "--classes"]) == 1)
      #expect(await status(of: DiffCommand.self, [path("a.archive"), path("a.json"), "--classes"]) == 0)
      #expect(await status(of: DiffCommand.self, [path("a.json"), path("b.archive"), "--classes"]) == 1)
      let classes = try difference("a.archive", "b.archive", "--classes")
      #expect(classes.text() == "classes\n    items: class NSMutableArray -> NSArray\n")
      let members = try object(classes.json())
      #expect(members["equal"] as? Bool == false)
      let change = try #require((members["classes"] as? [[String: Any]])?.first)
      #expect(change["path"] as? String == "items")
      #expect((change["old"] as? [String: Any])?["class"] as? String == "NSMutableArray")
      #expect((change["new"] as? [String: Any])?["superclasses"] as? [String] == ["NSObject"])
      #expect(try object(difference("a.archive", "b.archive").json())["classes"] == nil)
      let above = try difference("b.archive", "c.archive", "--classes").text()
      #expect(above == "classes\n    root: class Hero (Actor, NSObject) -> Hero (Thing, NSObject)\n")
      // Elements that are only on one side are differences of contents.
      #expect(try difference("b.archive", "d.archive", "--classes").classes == [])
    }
  }

  @Test("diff --classes compares an object of Foundation's with a dictionary, also one of a file without classes")
  func plain() async throws {
    try await cleaning {
      try put(
        keyed([
          ["UIRed": 0.5, "UIGreen": 0.5, "UIBlue": 0.5, "UIAlpha": 1.0, "$class": .uid(2)], type("UIColor"),
        ]), "color.archive")
      _ = try ConvertCommand.parse([path("color.archive"), path("color.json"), "--lossy"]).convert()
      #expect(try difference("color.archive", "color.json").isEmpty)
      let text = try difference("color.archive", "color.json", "--classes").text()
      #expect(text == "classes\n    root: class UIColor -> none\n")
      // Foundation's plain classes are what such a file stands for.
      let list: PropertyList = ["a": [1, "x"], "when": .date(Date(timeIntervalSinceReferenceDate: 5))]
      try put(list, "list.bplist")
      _ = try ConvertCommand.parse([path("list.bplist"), path("list.archive")]).convert()
      #expect(try difference("list.bplist", "list.archive", "--classes").isEmpty)
    }
  }

  @Test("inspect --json lists each object whose class its value doesn't show, once, with its superclasses")
  func listed() async throws {
    try await cleaning {
      try put(hero("NSMutableArray", "NSArray"), "a.archive")
      let classes = try #require(try object(inspection("a.archive").json())["classes"] as? [[String: Any]])
      #expect(classes.map { $0["path"] as? String } == ["root", "items"])
      #expect(classes.map { $0["class"] as? String } == ["Hero", "NSMutableArray"])
      #expect(classes.map { $0["superclasses"] as? [String] } == [["Actor", "NSObject"], ["NSArray", "NSObject"]])
      try put(keyed([["NS.objects": [.uid(3)], "$class": .uid(2)], type("NSArray"), "a"]), "plain.archive")
      #expect((try object(inspection("plain.archive").json())["classes"] as? [Any])?.isEmpty == true)
      try put(["a": 1], "list.bplist")
      #expect(try object(inspection("list.bplist").json())["classes"] == nil)
    }
  }

  @Test("a list that contains itself, and a chain of many objects, have their classes listed and compared")
  func cycles() async throws {
    try await cleaning {
      try put(
        keyed([["NS.objects": [.uid(1)], "$class": .uid(2)], type("NSMutableArray", "NSArray")]), "self.archive")
      #expect(try difference("self.archive", "self.archive", "--classes").isEmpty)
      let links = (0..<5_000).map { index -> PropertyList in
        ["next": .uid(index == 4_999 ? 0 : UInt64(index) + 3), "$class": .uid(2)]
      }
      try put(keyed([links[0], type("Link")] + links.dropFirst()), "chain.archive")
      let classes = try #require(try object(inspection("chain.archive").json())["classes"] as? [[String: Any]])
      #expect(classes.count == 5_000)
      #expect(classes.allSatisfy { ($0["path"] as? String ?? "").count <= 210 })
    }
  }

  @Test(
    "--lossy reports each class that doesn't come back, whatever the format, also below an object",
    arguments: [
      "a.json", "a.plist", "a.bplist", "a.keepsake",
    ])
  func lossy(name: String) async throws {
    try await cleaning {
      try put(hero("NSMutableArray", "NSArray"), "a.archive")
      let losses = try ConvertCommand.parse([path("a.archive"), path(name), "--lossy"]).convert().losses
      let classes = losses.map { String($0.what.prefix { $0 != "," }) }
      #expect(Set(classes) == ["Hero", "NSMutableArray"], "\(losses)")
      #expect(losses.allSatisfy { $0.count == 1 }, "\(losses)")
      // Below an object that comes back as another one entirely.
      try put(
        keyed([
          ["NS.count": 1, "NS.object0": .uid(3), "NS.count0": 2, "$class": .uid(2)],
          type("NSCountedSet", "NSMutableSet", "NSSet"), ["NS.string": "x", "$class": .uid(4)],
          type("NSMutableString", "NSString"),
        ]), "set.archive")
      let told = try ConvertCommand.parse([path("set.archive"), path(name), "--lossy", "--force"]).convert().losses
      for lost in ["NSCountedSet", "NSMutableString"] {
        #expect(told.contains { $0.what.hasPrefix(lost + ",") }, "\(told)")
      }
    }
  }

  @Test("a keyed archive whose classes an archive doesn't keep is refused without --lossy, and nothing is written")
  func refused() async throws {
    try await cleaning {
      try put(hero("NSMutableArray", "NSArray"), "a.archive")
      let error = try #require(throws: CommandFailure.self) {
        _ = try ConvertCommand.parse([path("a.archive"), path("a.keepsake")]).convert()
      }
      #expect(error.kind == .data && error.message.contains("1 NSMutableArray, which comes back as NSArray"))
      #expect(error.next?.contains("--lossy") == true)
      #expect(!FileManager.default.fileExists(atPath: path("a.keepsake")))
      #expect(await status(of: ConvertCommand.self, [path("a.archive"), path("a.keepsake")]) == 65)
      #expect(await status(of: ConvertCommand.self, [path("a.archive"), path("a.keepsake"), "--lossy"]) == 0)
    }
  }
}
#endif
