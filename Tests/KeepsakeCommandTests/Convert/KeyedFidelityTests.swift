#if Cloud
import ArgumentParser
import Foundation
import KeepsakeInspection
import KeepsakeInterchange
import TestSupport
import Testing

@testable import KeepsakeCommand

/// Whatever a conversion of a keyed archive gives up is in its report, also of files that no archiver would write.
@Suite struct KeyedFidelityTests: InspectsFiles {
  let folder = TemporaryFolder.url("reports")

  /// An archive with a Hero that has these fields as its root, which is object 1, and more objects from 3 on.
  private func hero(_ fields: [PropertyList.Entry], _ more: [PropertyList] = []) -> PropertyList {
    keyed([.dictionary(fields + [.init("$class", .uid(2))]), type("Hero")] + more)
  }

  private func keyed(_ objects: [PropertyList], top: PropertyList = ["root": .uid(1)]) -> PropertyList {
    [
      "$version": 100_000, "$archiver": "NSKeyedArchiver", "$top": top, "$objects": .array(["$null"] + objects),
    ]
  }

  private func type(_ names: String...) -> PropertyList {
    ["$classname": .string(names[0]), "$classes": .array((names + ["NSObject"]).map { .string($0) })]
  }

  /// Converts an archive, and returns the report: how often each loss occurs, by what it is.
  private func report(_ list: PropertyList, _ output: String, _ options: String...) throws -> [String: Int] {
    try write(list.encoded(as: .binary), "a.archive")
    return try report("a.archive", output, options)
  }

  private func report(_ input: String, _ output: String, _ options: [String] = []) throws -> [String: Int] {
    let losses = try ConvertCommand.parse([path(input), path(output), "--force"] + options).convert().losses
    return Dictionary(losses.map { ($0.what, $0.count) }, uniquingKeysWith: +)
  }

  private func objects(_ name: String) throws -> [PropertyList] {
    try PropertyList(Data(contentsOf: folder.appendingPathComponent(name)))["$objects"]?.array ?? []
  }

  @Test("data that can be changed stays one object for all that refer to it, or is reported")
  func sharedData() async throws {
    try await cleaning {
      let list = hero(
        [.init("a", .uid(3)), .init("b", .uid(3))],
        [["NS.data": .data(Data([1])), "$class": .uid(4)], type("NSMutableData", "NSData")])
      #expect(try report(list, "a.json").isEmpty)
      #expect(try report("a.json", "b.archive").isEmpty)
      let again = try #require(objects("b.archive").first { $0["a"] != nil })
      #expect(again["a"] == again["b"] && again["a"]?.uid != nil)
      let several = "NSMutableData, which comes back as several objects"
      for name in ["b.plist", "b.bplist", "b.keepsake"] {
        #expect(try report(list, name, "--lossy")[several] == 1, "\(name)")
      }
      // A point is a value there, and written at each place.
      let point: PropertyList = ["NS.pointval": .uid(5), "NS.special": 1, "$class": .uid(4)]
      let points = hero([.init("a", .uid(3)), .init("b", .uid(3))], [point, type("NSValue"), "{1, 2}"])
      #expect(try report(points, "b.json", "--lossy")["NSValue, which comes back as several objects"] == 1)
    }
  }

  @Test("objects that are data or 32-bit numbers themselves come back as such from JSON")
  func plainObjects() async throws {
    try await cleaning {
      let list = hero(
        [.init("data", .uid(3)), .init("half", .uid(4)), .init("list", .uid(5))],
        [
          .data(Data([7])), .float(0.5), ["NS.objects": [.uid(3), .uid(4), .uid(7)], "$class": .uid(6)],
          type("NSArray"), .number(0.5),
        ])
      #expect(try report(list, "a.json").isEmpty)
      #expect(try report("a.json", "b.archive").isEmpty)
      let again = try objects("b.archive")
      #expect(again.filter { $0 == .data(Data([7])) }.count == 1)
      let elements = try #require(again.first { $0["NS.objects"] != nil }?["NS.objects"]?.array).compactMap(\.uid)
      #expect(elements.map { again[Int($0)] } == [.data(Data([7])), .float(0.5), .number(0.5)])
    }
  }

  @Test("every bit of a number comes back from JSON and binary; what XML doesn't keep is reported")
  func bits() async throws {
    try await cleaning {
      let patterns: [UInt64] = [
        0x7FF8_0000_0000_0123, 0xFFF8_0000_0000_0000, 0x7FF0_0000_0000_0001, 0x7FFC_0000_0000_0000,
        (-0.0).bitPattern, 1, Double.infinity.bitPattern,
      ]
      let entries = patterns.enumerated().map { index, bits in
        PropertyList.Entry("n\(index)", .number(Double(bitPattern: bits)))
      }
      let list = hero(
        entries + [.init("f", .float(0.1)), .init("d", .uid(3))],
        [
          ["NS.time": .number(Double(bitPattern: 0x7FF0_0000_0000_0002)), "$class": .uid(4)], type("NSDate"),
        ])
      for name in ["a.json", "a.bplist"] {
        #expect(try report(list, name).isEmpty, "\(name)")
        #expect(try report(name, "b.archive").isEmpty, "\(name)")
        let again = try objects("b.archive")
        let hero = try #require(again.first { $0["n0"] != nil })
        #expect(patterns.indices.map { hero["n\($0)"]?.number?.bitPattern } == patterns, "\(name)")
        let date = try #require(again.first { $0["NS.time"] != nil })
        #expect(date["NS.time"]?.number?.bitPattern == 0x7FF0_0000_0000_0002, "\(name)")
      }
      let xml = try report(list, "a.plist")
      #expect(xml == ["value of the class number": 5, "numbers of 32 bits, which come back with 64": 1], "\(xml)")
    }
  }

  @Test("several values at the top, and one under a key of its own, are compared below, and their keys reported")
  func top() async throws {
    try await cleaning {
      let map: PropertyList = ["NS.keys": [], "NS.objects": [], "$class": .uid(2)]
      let classes = type("NSMutableDictionary", "NSDictionary")
      let several = keyed([map, classes, "x"], top: ["root": .uid(1), "info": .uid(1), "text": .uid(3)])
      #expect(try report(several, "a.json").isEmpty)
      let told = try report(several, "a.json", "--lossy")
      #expect(told["values at the top, which come back in a dictionary"] == 3)
      #expect(told["NSMutableDictionary, which comes back as NSDictionary"] == 2)
      let single = try report(keyed([map, classes], top: ["data": .uid(1)]), "a.json", "--lossy")
      #expect(
        single == [
          "key at the top, which comes back as root": 1, "NSMutableDictionary, which comes back as NSDictionary": 1,
        ], "\(single)")
    }
  }

  @Test("what nothing refers to, and what stands beside an archive and its classes, is reported")
  func beside() async throws {
    try await cleaning {
      let list: PropertyList = [
        "$version": 100_000, "$archiver": "Another", "$top": ["root": .uid(1)], "more": 1,
        "$objects": [
          "zero", ["x": 1, "$class": .uid(2)],
          ["$classname": "Hero", "$classes": ["Actor"], "$classhints": ["Actor"], "more": 2],
          ["x": 2, "$class": .uid(2)], "lost",
        ],
      ]
      let told = try report(list, "a.json")
      #expect(
        told == [
          "name of another archiver": 1, "keys beside those of the archive itself": 1, "object in the place of nil": 1,
          "list of the classes above Hero": 1, "hints naming substitute classes": 1, "keys beside those of a class": 1,
          "objects that nothing refers to": 2,
        ], "\(told)")
      // A property list has all of it.
      #expect(try report(list, "a.bplist").isEmpty)
      #expect(try report(list, "a.plist").isEmpty)
    }
  }

  @Test("a field of a program's own object that has no counterpart is reported, and so is one that wasn't there")
  func fields() throws {
    func losses(_ old: PropertyList, _ new: PropertyList, _ form: KeyedFidelity.Form) throws -> [String: Int] {
      let losses = try KeyedFidelity.losses(from: old, to: new, as: form)
      return Dictionary(losses.map { ($0.what, $0.count) }, uniquingKeysWith: +)
    }
    let old = hero([.init("a", 1), .init("b", .uid(3)), .init("c", -0.0)], ["text"])
    let other = hero([.init("a", 1), .init("c", 0.0), .init("d", 1)])
    #expect(
      try losses(old, other, .objects) == [
        "fields that aren't shown": 1, "fields that weren't there": 1, "value of the class number": 1,
      ])
    let values = keyed([
      ["NS.keys": [.uid(3), .uid(4), .uid(5)], "NS.objects": [.uid(6), .uid(7), .uid(8)], "$class": .uid(2)],
      type("NSDictionary"), "$class", "a", "d", "Hero", 1, 2,
    ])
    #expect(
      try losses(old, values, .values) == [
        "Hero, which comes back as NSDictionary": 1, "text, which is left out": 1, "number, which is left out": 1,
        "fields that weren't there": 1,
      ])
    // One object that became two, and two that became one.
    let shared = hero([.init("a", .uid(3)), .init("b", .uid(3))], [["x": 1, "$class": .uid(2)]])
    let apart = hero(
      [.init("a", .uid(3)), .init("b", .uid(4))], [["x": 1, "$class": .uid(2)], ["x": 1, "$class": .uid(2)]])
    #expect(try losses(shared, apart, .objects) == ["Hero, which comes back as several objects": 1])
    #expect(try losses(apart, shared, .objects) == ["Hero, which comes back as one with another": 1])
  }

  @Test("keys that become the same are reported, and the pairs of a dictionary are compared by their keys")
  func keys() async throws {
    try await cleaning {
      let strings: [PropertyList] = [
        10, 9, "9", ["NS.string": "a", "$class": .uid(8)], type("NSMutableString", "NSString"),
      ]
      func map(_ keys: [PropertyList], _ values: [PropertyList]) -> PropertyList {
        hero(
          [.init("map", .uid(3))],
          [["NS.keys": .array(keys), "NS.objects": .array(values), "$class": .uid(9)]] + strings.prefix(3)
            + [strings[3], strings[4], type("NSDictionary")])
      }
      // An archive has its keys in another order.
      let list = map([.uid(5), .uid(4)], [.uid(7), .uid(6)])
      let told = try report(list, "a.keepsake", "--lossy")
      #expect(told["NSMutableString, which comes back as text"] == 1 && told["value of the class text"] == nil)
      #expect(told["NSNumber, which comes back as text"] == 2, "\(told)")
      let twice = try report(map([.uid(5), .uid(6)], [.uid(7), .uid(4)]), "a.json", "--lossy")
      #expect(twice["keys that occur twice, of which most readers use the last"] == 1, "\(twice)")
      let own = try report(hero([.init("$$class", 1)]), "a.json", "--lossy")
      #expect(own["keys that occur twice, of which most readers use the last"] == 1, "\(own)")
      // One letter in two forms of Unicode is two keys.
      #expect(try report(hero([.init("caf\u{E9}", 1), .init("cafe\u{301}", 2)]), "a.json").isEmpty)
      let numbered: [PropertyList.Entry] = ["$0", "$$0", "$$$0", "$$0a", "", "$$"].enumerated().map {
        .init($1, .integer(Int128($0)))
      }
      #expect(try report(hero(numbered), "a.json").isEmpty)
      #expect(try report("a.json", "b.archive").isEmpty)
      #expect(try objects("b.archive").contains { object in numbered.allSatisfy { object[$0.key] == $0.value } })
      // Without nulls, one of two keys that are the same is left out, and the other isn't taken for it.
      let nils = try report(map([.uid(6), .uid(6)], [.uid(0), .uid(4)]), "a.plist", "--lossy")
      #expect(nils["NSNumber, which is left out"] == 1 && nils["nil, which comes back as NSNumber"] == 1, "\(nils)")
    }
  }

  @Test("what a file in tagged form asks for, and Foundation couldn't read, is reported where it is written otherwise")
  func asked() async throws {
    try await cleaning {
      let text = """
        {"$keepsake": "keyed archive 1", "top": {"root": {"$ref": 0}}, "classes": [
          {"name": "Hero", "classes": ["Hero", "NSObject"]},
          {"name": "NSIndexPath", "classes": ["NSIndexPath", "NSObject"]},
          {"name": "NSValue", "classes": ["NSValue", "NSObject"]}],
          "objects": [{"$id": 0, "$class": "Hero", "a": {"$ref": 1}, "b": {"$ref": 2}},
          {"$id": 1, "$class": "NSIndexPath", "NS.objects": [1, 2]},
          {"$id": 2, "$class": "NSValue", "NS.special": 1, "x": 1}, {"$id": 3, "$class": "Hero"}]}
        """
      try write(Data(text.utf8), "a.json")
      let expected = [
        "NSIndexPath, which comes back as NSArray": 1, "NSValue, which comes back as NSDictionary": 1,
        "objects that nothing refers to": 1,
      ]
      for name in ["b.archive", "b.plist", "b.bplist", "b.json"] { #expect(try report("a.json", name) == expected) }
      #expect(await status(of: ConvertCommand.self, [path("a.json"), path("b.keepsake")]) == 65)
    }
  }

  @Test("UIDs in a property list that isn't a keyed archive are refused in one, or reported as numbers")
  func uids() async throws {
    try await cleaning {
      let list: PropertyList = ["a": [["b": .uid(7)]], "c": .set([.uid(8)]), "d": .uid(UInt64.max)]
      try write(list.encoded(as: .binary), "a.bplist")
      let error = try #require(throws: CommandFailure.self) { try report("a.bplist", "a.archive") }
      #expect(error.kind == .data && error.message.contains("a[0].b: keyed archive has no UIDs"))
      #expect(try report("a.bplist", "a.archive", ["--lossy"]) == ["UIDs, as numbers": 3])
      #expect(await status(of: ConvertCommand.self, [path("a.bplist"), path("b.archive")]) == 65)
    }
  }

  @Test("values of every kind, also hundreds of levels deep, are compared with the keyed archive made of them")
  func values() async throws {
    try await cleaning {
      let nested = (0..<300).reduce("-0.0") { inner, level in
        level.isMultiple(of: 2) ? "[\(inner)]" : #"{"k": \#(inner), "": null}"#
      }
      let text = """
        {"$keepsake": "values 1", "value": {"nested": \(nested), "set": {"$set": [[1], {"$set": []}]},
        "pairs": {"$pairs": [[1, "a"], [{"$date": 0.5}, {}]]}, "named": {"$pairs": [["a", 1]]}, "some": {"$some": 1},
        "none": {"$case": "none"}, "moved": {"$case": "moved", "to": 1}, "float": {"$float": 0.1},
        "many": 340282366920938463463374607431768211, "decimal": {"$decimal": "1.50"},
        "nan": {"$number": "nan:0x7ff0000000000001"},
        "url": {"$url": "file:///a"}, "text": "$null", "data": {"$data": "AQID"}, "no": false}}
        """
      try write(Data(text.utf8), "a.json")
      #expect(try report("a.json", "b.archive").isEmpty)
      let graph = try SavedFile(Data(text.utf8), named: "a.json").graph()
      #expect(
        try KeyedValues.areSame(
          graph, SavedFile(Data(contentsOf: folder.appending(path: "b.archive")), named: "b").graph()))
      for (one, other) in [
        ("0.0", "-0.0"), (#"{"a": 1}"#, #"{"b": 1}"#), ("[1]", "[1, 1]"), ("[1]", "[2]"), ("1", "1.0"),
      ] {
        let (a, b) = try (
          SavedFile(Data(one.utf8), named: "a").graph(), SavedFile(Data(other.utf8), named: "b").graph()
        )
        #expect(!KeyedValues.areSame(a, b) && KeyedValues.areSame(a, a))
      }
    }
  }

  @Test("lists that contain each other, and chains of thousands of them, come back from JSON")
  func deep() async throws {
    try await cleaning {
      let mutable = type("NSMutableArray", "NSArray")
      let cycle = keyed([
        ["NS.objects": [.uid(3), .uid(1)], "$class": .uid(2)], mutable,
        ["NS.keys": [.uid(5)], "NS.objects": [.uid(1)], "$class": .uid(4)],
        type("NSMutableDictionary", "NSDictionary"), "k",
      ])
      let count = TestDepth.nestedLists
      let last = UInt64(count)
      func chain(_ type: PropertyList) -> PropertyList {
        let links = (1..<last).map { ["NS.objects": [.uid($0 + 1)], "$class": .uid(last + 1)] as PropertyList }
        return keyed(links + ["end", type])
      }
      for list in [cycle, chain(mutable), chain(type("NSArray"))] {
        let told = try (report(list, "a.json"), report("a.json", "b.archive"))
        #expect(told.0.isEmpty && told.1.isEmpty)
        // No other format can express that.
        for name in ["c.json", "c.keepsake"] {
          #expect(await status(of: ConvertCommand.self, [path("a.archive"), path(name), "--lossy"]) == 65)
        }
      }
    }
  }

  @Test("a file whose references or classes lead nowhere is an error of the file for each format")
  func damaged() async throws {
    try await cleaning {
      let damaged: [PropertyList] = [
        hero([.init("x", .uid(99))]), hero([.init("x", .uid(UInt64.max))]), keyed([], top: ["root": .uid(7)]),
        hero([.init("x", .uid(3))], [.uid(1)]),
        keyed([["x": 1, "$class": .uid(2)], ["$classes": ["Hero", "NSObject"]]]),
        keyed([["x": 1, "$class": .uid(2)], "Hero"]), keyed([["x": 1, "$class": "Hero"]]),
        keyed([["x": 1, "$class": .uid(0)]]),
      ]
      for list in damaged {
        try write(list.encoded(as: .binary), "a.archive")
        for options in [["a.json"], ["a.json", "--lossy"], ["a.plist"], ["a.bplist"], ["a.keepsake", "--lossy"]] {
          let error = try #require(throws: CommandFailure.self) {
            try report("a.archive", options[0], Array(options.dropFirst()))
          }
          #expect(error.kind == .data && error.message.contains("damaged"), "\(error)")
        }
      }
    }
  }
}
#endif
