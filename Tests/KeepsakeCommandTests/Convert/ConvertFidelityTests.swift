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
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Conversions keep what real programs' files contain, and comparisons show every difference to a person.
@Suite struct ConvertFidelityTests {
  private let folder = TemporaryFolder.url("fidelity")

  private func cleaning(_ body: () throws -> Void) throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }  // A leftover folder does no harm.
    try body()
  }

  private func path(_ name: String) -> String { folder.appendingPathComponent(name).path }
  private func bytes(_ name: String) throws -> Data { try Data(contentsOf: folder.appendingPathComponent(name)) }
  private func put(_ list: PropertyList, _ name: String) throws {
    try list.encoded(as: .binary).write(to: folder.appendingPathComponent(name))
  }

  @discardableResult private func convert(_ input: String, _ output: String, _ options: String...) throws
    -> ConvertCommand.Answer
  {
    try ConvertCommand.parse([path(input), path(output)] + options).convert()
  }

  private func failure(_ body: () throws -> Void) -> CommandFailure? {
    do {
      try body()
      return nil
    } catch {
      return CommandFailure(error)
    }
  }

  private func keyed(_ objects: [PropertyList]) -> PropertyList {
    [
      "$version": 100_000, "$archiver": "NSKeyedArchiver", "$top": ["root": .uid(1)],
      "$objects": .array(["$null"] + objects),
    ]
  }

  private func type(_ names: String...) -> PropertyList {
    ["$classname": .string(names[0]), "$classes": .array((names + ["NSObject"]).map { .string($0) })]
  }

  private func difference(_ old: PropertyList, _ new: PropertyList) throws -> String {
    try put(old, "old.bplist")
    try put(new, "new.bplist")
    return try DiffCommand.parse([path("old.bplist"), path("new.bplist")]).difference().text()
  }

  @Test("fields without a key, or whose key begins with a $, survive a conversion to JSON and back")
  func dollars() throws {
    try cleaning {
      try put(keyed([["$0": .uid(2), "$1": 7, "$$user": 3, "$class": .uid(3)], "Ada", type("Player")]), "a.archive")
      #expect(try convert("a.archive", "a.json").losses.isEmpty)
      try convert("a.json", "b.archive")
      let objects = try #require(PropertyList(bytes("b.archive"))["$objects"]?.array)
      let player = try #require(objects.first { $0["$1"] != nil })
      #expect(player["$1"] == 7 && player["$$user"] == 3 && player["$0"]?.uid != nil)
      #expect(try KeyedArchive(bytes("b.archive")).tree() == KeyedArchive(bytes("a.archive")).tree())
    }
  }

  @Test("Foundation's objects come back from JSON with their classes and fields, also where values are in other places")
  func otherClasses() throws {
    try cleaning {
      let place: PropertyList = ["NS.special": 1, "NS.pointval": .uid(6), "$class": .uid(7)]
      let color: PropertyList = ["NSRGB": .data(Data("1 0 0\0".utf8)), "NSColorSpace": 1, "$class": .uid(9)]
      let hero: PropertyList = [
        "spot": .uid(3), "lives": .uid(4), "list": .uid(5), "tint": .uid(10), "name": "Ada", "nothing": .uid(11),
        "half": .float(0.5), "odd": [.uid(3), 7, "text", ["key": .uid(3)]], "$class": .uid(2),
      ]
      try put(
        keyed([
          hero, type("Hero"), place, 3,
          ["NS.objects": [.uid(3), .uid(4), .uid(3)], "$class": .uid(8)], "{1, 2}", type("NSValue"),
          type("NSMutableArray", "NSArray"), type("NSColor"), color, ["$class": .uid(12)], type("NSNull"),
        ]), "a.archive")
      #expect(try convert("a.archive", "a.json").losses.isEmpty)
      try convert("a.json", "b.archive")
      let objects = try #require(PropertyList(bytes("b.archive"))["$objects"]?.array)
      let again = try #require(objects.first { $0["half"] != nil })
      #expect(again["half"] == .float(0.5) && again["name"] == "Ada" && again["lives"]?.uid != nil)
      #expect(again["odd"]?.array?.map { $0.uid == nil } == [false, true, true, true])
      #expect(objects.contains { $0["NSRGB"] == color["NSRGB"] && $0["NSColorSpace"] == 1 })
      #expect(objects.contains { $0["NS.special"] == 1 })
      #expect(objects.contains { $0["$classname"] == "NSMutableArray" })
      // The JSON shows the same as the archive, and further conversions lose nothing.
      #expect(try DiffCommand.parse([path("a.archive"), path("a.json")]).difference().text().isEmpty)
      #expect(try convert("b.archive", "b.json").losses.isEmpty)
      #expect(try bytes("b.json") == bytes("a.json"))
    }
  }

  @Test("what a keyed archive loses in an archive is reported by class; the order of a dictionary's keys is no loss")
  func archived() throws {
    try cleaning {
      func losses(of object: Any) throws -> [PlainForm.Loss] {
        try NSKeyedArchiver.archivedData(withRootObject: object, requiringSecureCoding: false)
          .write(to: folder.appendingPathComponent("original.archive"))
        return try convert("original.archive", "new.keepsake", "--force", "--lossy").losses
      }
      #expect(try losses(of: ["b": 1, "a": "text", "c": [2, 3]] as NSDictionary).isEmpty)
      let lost = try losses(of: ["path": NSIndexPath(index: 3), "set": NSOrderedSet(array: [1])] as NSDictionary)
      #expect(Set(lost.map { $0.what.prefix { $0 != "," } }) == ["NSIndexPath", "NSOrderedSet"], "\(lost)")
    }
  }

  @Test("objects that several others refer to are never written under a class with fields that it doesn't have")
  func ownFields() throws {
    try cleaning {
      // As an index path and an attributed text are shown.
      let text = """
        {"$keepsake": "keyed archive 1", "top": {"root": {"$ref": 0}}, "classes": [
          {"name": "Hero", "classes": ["Hero", "NSObject"]},
          {"name": "NSIndexPath", "classes": ["NSIndexPath", "NSObject"]},
          {"name": "NSAttributedString", "classes": ["NSAttributedString", "NSObject"]}],
          "objects": [{"$id": 0, "$class": "Hero", "a": {"$ref": 1}, "b": {"$ref": 2}},
          {"$id": 1, "$class": "NSIndexPath", "NS.objects": [1, 2]},
          {"$id": 2, "$class": "NSAttributedString", "text": "hi", "runs": []}]}
        """
      try Data(text.utf8).write(to: folder.appendingPathComponent("a.json"))
      try convert("a.json", "b.archive")
      let objects = try #require(PropertyList(bytes("b.archive"))["$objects"]?.array)
      let names = objects.compactMap { $0["$classname"]?.string }
      #expect(Set(names) == ["Hero", "NSArray", "NSDictionary"], "\(names)")
    }
  }

  @Test("an archive whose dates have fractions of a second is refused as XML, but not as binary")
  func fractions() throws {
    try cleaning {
      let date = PropertyList.date(Date(timeIntervalSinceReferenceDate: 0.5))
      try put(keyed([["when": date, "$class": .uid(2)], type("Diary")]), "a.archive")
      #expect(failure { try convert("a.archive", "a.xml") }?.message.contains("fractions of a second") == true)
      #expect(!FileManager.default.fileExists(atPath: path("a.xml")))
      try convert("a.archive", "a.bplist")
    }
  }

  @Test("--force replaces a file's contents but keeps links and permissions, and refuses anything that isn't a file")
  func force() throws {
    try cleaning {
      try put([1, 2], "a.bplist")
      try put([3], "mine.plist")
      #expect(chmod(path("mine.plist"), 0o600) == 0)
      try FileManager.default.createSymbolicLink(atPath: path("link.plist"), withDestinationPath: path("mine.plist"))
      try convert("a.bplist", "link.plist", "--force")
      #expect(try PropertyList(bytes("mine.plist")) == [1, 2])
      let attributes = try FileManager.default.attributesOfItem(atPath: path("mine.plist"))
      #expect(attributes[.posixPermissions] as? Int == 0o600)
      #expect(try FileManager.default.destinationOfSymbolicLink(atPath: path("link.plist")) == path("mine.plist"))
      try FileManager.default.createSymbolicLink(atPath: path("lost.plist"), withDestinationPath: path("nowhere"))
      #expect(failure { try convert("a.bplist", "lost.plist", "--force") }?.kind == .data)
      #expect(mkfifo(path("pipe.plist"), 0o600) == 0)
      #expect(
        failure { try convert("a.bplist", "pipe.plist", "--force") }?.message.contains("not a regular file") == true)
      #expect(
        try FileManager.default.attributesOfItem(atPath: path("pipe.plist"))[.type] as? FileAttributeType
          != .typeRegular)
    }
  }

  @Test("unexpected keys in a tagged file, and decimal numbers with too many digits, are errors")
  func edited() throws {
    try cleaning {
      let digits = "1." + String(repeating: "7", count: 44)
      for text in [
        #"{"$keepsake": "values 1", "value": 1, "gold": 2}"#,
        #"{"$keepsake": "values 1", "value": {"$decimal": "\#(digits)"}}"#,
        #"{"$keepsake": "keyed archive 1", "classes": [], "top": {}, "objects": [], "gold": 2}"#,
      ] {
        try Data(text.utf8).write(to: folder.appendingPathComponent("a.json"))
        #expect(failure { try convert("a.json", "a.archive") }?.kind == .data, "\(text)")
      }
    }
  }

  @Test("32-bit numbers that aren't finite are refused in JSON, and reported as losses with --lossy")
  func notFinite() throws {
    try cleaning {
      try put(["speed": .float(.infinity)], "a.bplist")
      #expect(
        failure { try convert("a.bplist", "a.json") }?.message.contains("speed: JSON has no numbers that aren't finite")
          == true)
      #expect(try convert("a.bplist", "a.json", "--lossy").losses.map(\.count) == [1])
    }
  }

  @Test("an archive nested as data in a property list is shown and compared by its contents")
  func nested() throws {
    try cleaning {
      func settings(_ level: PropertyList) throws -> PropertyList {
        let save = keyed([["level": level, "name": .uid(3), "$class": .uid(2)], type("Player"), "Ada"])
        return [
          "volume": 0.8, "save": .data(try save.encoded(as: .binary)),
          "list": .data(try (["a": [1]] as PropertyList).encoded(as: .xml)),
        ]
      }
      try put(settings(7), "settings.bplist")
      guard case .archive(let inspection) = try InspectCommand.look(at: path("settings.bplist")) else {
        Issue.record("no values")
        return
      }
      let text = inspection.text()
      #expect(text.contains("save: #0 Player") && text.contains("level: 7") && text.contains("a: [1]"), "\(text)")
      #expect(try difference(settings(7), settings(8)).contains("save.level: 7 -> 8"))
      // A conversion leaves the data unchanged.
      try convert("settings.bplist", "again.bplist")
      #expect(try PropertyList(bytes("again.bplist"))["save"] == settings(7)["save"])
      // Referred to so often that the expanded contents would be many times the size of the file.
      let bomb = PropertyList.array(Array(repeating: try settings(7)["save"] ?? .null, count: 2_000))
      let opened = NestedFiles.opened(ObjectGraph(bomb), byteCount: 2_500)
      #expect((1..<100).contains(opened.objects.count))
    }
  }

  @Test("two values that would be shown alike are shown where they differ")
  func contrast() throws {
    try cleaning {
      let long = String(repeating: "x", count: 300)
      #expect(
        try difference([.string(long + "1")], [.string(long + "2")]).contains(#"..."xxxxxxxxxx1" -> ..."xxxxxxxxxx2""#))
      let data = Data(repeating: 0x61, count: 100)
      #expect(
        try difference([.data(data + [1])], [.data(data + [2])])
          .contains("101 bytes, from byte 100 on 01 -> 101 bytes, from byte 100 on 02"))
      let dates = [0.25, 0.2501].map { PropertyList.date(Date(timeIntervalSinceReferenceDate: $0)) }
      #expect(try difference([dates[0]], [dates[1]]).contains("0.25 s -> 0.2501 s"))
      // One letter in two forms of Unicode.
      #expect(try difference(["caf\u{E9}"], ["cafe\u{301}"]).contains("with U+E9"))
      let same = try difference(["a"], ["a"])
      #expect(same.isEmpty)
    }
  }

  @Test("expanding a small file with many references to a long text or data is refused", arguments: [true, false])
  func namedManyTimes(isText: Bool) throws {
    try cleaning {
      let long: PropertyList =
        isText ? .string(String(repeating: "y", count: 1 << 20)) : .data(Data(repeating: 7, count: 1 << 20))
      let many = PropertyList.array(Array(repeating: .uid(3), count: 2_000))
      try put(keyed([["NS.objects": many, "$class": .uid(2)], type("NSArray"), long]), "a.archive")
      for (output, options) in [
        ("a.json", ["--tagged"]), ("a.json", ["--lossy"]), ("a.keepsake", []), ("a.plist", ["--tagged"]),
      ] {
        let told = failure { _ = try ConvertCommand.parse([path("a.archive"), path(output)] + options).convert() }
        #expect(
          told?.message.contains("referred to many times") == true, "\(output) \(options): \(String(describing: told))")
      }
      #expect(
        failure { _ = try DiffCommand.parse([path("a.archive"), path("a.archive")]).difference() }?.kind == .data)
      // Unexpanded, it is converted.
      try convert("a.archive", "b.bplist")
    }
  }

  @Test("a file is read as JSON5 because of its name")
  func json5() throws {
    try cleaning {
      try Data("// Ours\n{lives: +3, names: ['Ada',], }".utf8).write(to: folder.appendingPathComponent("a.json5"))
      try convert("a.json5", "a.plist")
      #expect(try PropertyList(bytes("a.plist")) == ["lives": 3, "names": ["Ada"]])
      _ = try InspectCommand.look(at: path("a.json5"))
      try Data("{lives: }".utf8).write(to: folder.appendingPathComponent("a.json5"))
      #expect(failure { try convert("a.json5", "b.plist") }?.message.contains("line 1") == true)
    }
  }

  @Test("an error names the file that it is about", arguments: ["jbad.json", "cut.bplist"])
  func fileNamed(name: String) throws {
    try cleaning {
      try put([1], "good.bplist")
      try Data(#"{"a": }"#.utf8).write(to: folder.appendingPathComponent("jbad.json"))
      try bytes("good.bplist").dropLast(3).write(to: folder.appendingPathComponent("cut.bplist"))
      let told = failure { _ = try DiffCommand.parse([path("good.bplist"), path(name)]).difference() }
      #expect(told?.message.hasPrefix(path(name)) == true, "\(String(describing: told))")
      #expect(failure { _ = try InspectCommand.look(at: path(name)) }?.message.hasPrefix(path(name)) == true)
    }
  }
}
#endif
