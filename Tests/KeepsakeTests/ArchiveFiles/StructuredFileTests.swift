import Foundation
import Keepsake
import TestSupport
import Testing

/// Files that people edit: errors say what has to be corrected, and no content crashes the game.
@Suite struct StructuredFileTests {
  struct Quest: Codable, Equatable {
    var name: String
    var reward: Int
    var isDone = false
  }
  struct Level: Codable, Equatable {
    var title = "Caves"
    var quests = [Quest(name: "Rats", reward: 5), Quest(name: "Dragon", reward: 500)]
    var gravity = 9.81
    var opens: Date? = Date(timeIntervalSince1970: 1_000_000)
    var notes = ["a b": "x/y"]
  }

  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func error(_ body: () throws -> Void) -> StructuredFileError? {
    do {
      try body()
      return nil
    } catch {
      return error as? StructuredFileError
    }
  }

  @Test(
    "a value is read back from JSON and from a property list, and is written as the same bytes each time",
    arguments: ["level.json", "LEVEL.PLIST"])
  func roundTrips(name: String) throws {
    let url = folder.url.appendingPathComponent(name)
    #expect(try StructuredFile.read(Level.self, from: url) == nil)
    try StructuredFile.write(Level(), to: url)
    #expect(try StructuredFile.read(Level.self, from: url) == Level())
    let bytes = try Data(contentsOf: url)
    try StructuredFile.write(Level(), to: url)
    #expect(try Data(contentsOf: url) == bytes)
    let text = String(decoding: bytes, as: UTF8.self)
    #expect(text.contains("Rats") && text.contains("\n") && text.contains("x/y"))
  }

  struct Mistake: CustomTestStringConvertible, Sendable {
    var json: String
    var code: StructuredFileError.Code
    var description: String
    var testDescription: String { description }
  }

  static let mistakes = [
    Mistake(
      json: #"{"quests":[{"name":"a","reward":1,"isDone":true},{"name":"b","reward":"ten","isDone":true}]}"#,
      code: .mismatch,
      description: #"quests[1].reward: expected a whole number, found "ten""#),
    Mistake(
      json: #"{"quests":[{"name":7,"reward":1,"isDone":true}]}"#, code: .mismatch,
      description: "quests[0].name: expected text, found 7"),
    Mistake(
      json: #"{"quests":[{"name":"a","reward":1,"isDone":1}]}"#, code: .mismatch,
      description: "quests[0].isDone: expected true or false, found 1"),
    Mistake(
      json: #"""
        {"quests":[{"reward":1,"isDone":true}]}
        """#, code: .missingValue, description: "quests[0].name: is missing"),
    Mistake(
      json: #"{"quests":[{"name":null,"reward":1}]}"#, code: .missingValue,
      description: "quests[0].name: expected text, found null"),
    Mistake(
      json: #"{"quests":{"name":"a"}}"#, code: .mismatch, description: "quests: expected a list, found a dictionary"),
    Mistake(json: "[1,2]", code: .mismatch, description: "expected a dictionary, found a list of 2"),
  ]

  @Test("a value that doesn't fit is reported with its path, what was expected and what was found", arguments: mistakes)
  func mismatches(_ mistake: Mistake) throws {
    struct File: Codable { var quests: [Quest] }
    let found = error { _ = try StructuredFile.decode(File.self, from: Data(mistake.json.utf8), as: .json) }
    #expect(found?.description == mistake.description && found?.code == mistake.code)
  }

  @Test("errors have the right path for a number out of range, a key with a space, and a property list")
  func others() throws {
    struct File: Codable { var sizes: [String: Int8] }
    let large = error {
      _ = try StructuredFile.decode(File.self, from: Data(#"{"sizes":{"a b":300}}"#.utf8), as: .json)
    }
    #expect(large?.description == #"sizes["a b"]: expected a whole number from -128 to 127, found 300"#)
    let text = error { _ = try StructuredFile.decode(File.self, from: Data(#"{"sizes":{"a b":"x"}}"#.utf8), as: .json) }
    #expect(text?.path == #"sizes["a b"]"#, "\(String(describing: text))")
    let list =
      #"""
      <?xml version="1.0"?><plist \#
      version="1.0"><dict><key>sizes</key><dict><key>a</key><string>ten</string></dict></dict></plist>
      """#
    let found = error { _ = try StructuredFile.decode(File.self, from: Data(list.utf8), as: .propertyList) }
    #expect(found?.description == #"sizes.a: expected a whole number, found "ten""#)
  }

  struct Sizes: Codable {
    struct Point: Codable { var x: Int }
    var most: UInt64 = .max
    var ratio: Float = 1
    var levels: [Point] = [Point(x: 1)]
  }

  @Test(
    "a number that doesn't fit into its type is reported with its path, what fits, and what was found",
    arguments: [
      (#"{"most":1,"ratio":1,"levels":[{"x":4.5}]}"#, "levels[0].x: expected a whole number, found 4.5"),
      (
        #"{"most":18446744073709551615,"ratio":1,"levels":[{"x":1},{"x":9223372036854775808}]}"#,
        """
        levels[1].x: expected a whole number from -9223372036854775808 to 9223372036854775807, found \
        9223372036854775808
        """
      ),
      (
        #"{"most":-1,"ratio":1,"levels":[]}"#,
        "most: expected a whole number from 0 to 18446744073709551615, found -1"
      ),
    ])
  func unfitNumbers(json: String, description: String) {
    for format in [StructuredFile.Format.json, .json5] {
      let found = error { _ = try StructuredFile.decode(Sizes.self, from: Data(json.utf8), as: format) }
      #expect(found?.description == description && found?.code == .mismatch, "\(format)")
    }
  }

  @Test(
    "a missing value names what is like it and isn't known, in JSON and in a property list; never a name that is known",
    arguments: [
      (["reward": "Titel", "titel": "Rats"], #"name: is missing, but there is "titel", which isn't known"#),
      (["nmae": "Rats", "a": "", "zzzzzz": ""], #"name: is missing, but there is "nmae", which isn't known"#),
      (["reward": "Rats"], "name: is missing"),
    ])
  func misspelt(members: [String: String], description: String) throws {
    for format in [StructuredFile.Format.json, .propertyList] {
      let bytes = try StructuredFile.encode(members, as: format)
      let found = error { _ = try StructuredFile.decode(Quest.self, from: bytes, as: format) }
      #expect(found?.description == description && found?.code == .missingValue, "\(format)")
    }
  }

  @Test("an empty file is only called empty, since a person may just have made it")
  func empty() {
    for format in StructuredFile.Format.allCases {
      #expect(
        error { _ = try StructuredFile.decode(Level.self, from: Data(), as: format) }?.description
          == "the file is empty")
    }
  }

  @Test(
    "bytes that aren't a file of the format throw a typed error instead of crashing",
    arguments: ["", "{", "{]", "= nonsense {", "<plist>", "bplist00garbage", String(repeating: "[", count: 200_000)])
  func malformed(text: String) throws {
    for format in StructuredFile.Format.allCases {
      let found = error { _ = try StructuredFile.decode(Level.self, from: Data(text.utf8), as: format) }
      #expect(found?.code == .malformed, "\(format): \(String(describing: found))")
    }
  }

  @Test("100,000 nested lists are refused before Foundation's parser overflows the stack; 200 are parsed")
  func deep() throws {
    func list(_ depth: Int) -> Data {
      Data(
        (#"<?xml version="1.0"?><plist version="1.0">"# + String(repeating: "<array>", count: depth)
          + String(repeating: "</array>", count: depth) + "</plist>").utf8)
    }
    #expect(
      error { _ = try StructuredFile.decode(Level.self, from: list(100_000), as: .propertyList) }?.code == .malformed)
    #expect(error { _ = try StructuredFile.decode(Level.self, from: list(200), as: .propertyList) }?.code == .mismatch)
  }

  @Test(
    "deep nesting is refused even if comments, CDATA or an encoding disguise where elements begin and end",
    arguments: [
      "<array><!--</array>-->", "<array><string><![CDATA[</array>]]></string>", "<array><?a </array>?>",
      "<dict><key>a</key>",
      "<array ><!-- > -->", "<array>\n<!---->",
    ])
  func hiddenDepth(piece: String) throws {
    let head = #"<?xml version="1.0"?><plist version="1.0">"#
    let utf8 = Data((head + String(repeating: piece, count: 100_000)).utf8)
    #expect(error { _ = try StructuredFile.decode(Level.self, from: utf8, as: .propertyList) }?.code == .malformed)
    let text = head + String(repeating: piece, count: 100_000)
    for encoding in [String.Encoding.utf16, .utf16BigEndian, .utf16LittleEndian, .utf32] {
      let bytes = try #require(text.data(using: encoding))
      #expect(
        error { _ = try StructuredFile.decode(Level.self, from: bytes, as: .propertyList) }?.code == .malformed,
        "\(encoding)")
    }
  }

  @Test("comments, CDATA and the usual DOCTYPE are read; a DOCTYPE with its own entities is refused")
  func ordinaryXML() throws {
    struct File: Codable { var sizes: [String] }
    func file(_ doctype: String) -> Data {
      Data(
        #"""
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \#
        "http://www.apple.com/DTDs/PropertyList-1.0.dtd"\#(doctype)>
        <plist version="1.0"><dict><!-- <array> --><key>sizes</key><array>\#
        <string><![CDATA[<array>]]></string><string/></array></dict></plist>
        """#.utf8)
    }
    #expect(try StructuredFile.decode(File.self, from: file(""), as: .propertyList).sizes == ["<array>", ""])
    let found = error {
      _ = try StructuredFile.decode(File.self, from: file(#" [<!ENTITY a "x">]"#), as: .propertyList)
    }
    #expect(found?.code == .malformed)
  }

  @Test("a value that can't be encoded is detected before anything is written, and the old file is unchanged")
  func unencodable() throws {
    struct Weather: Codable {
      var days: [Double]
    }
    let url = folder.url.appendingPathComponent("weather.json")
    try StructuredFile.write(Weather(days: [1]), to: url)
    let storm = Weather(days: [1, .nan])
    #expect(StructuredFile.canEncode(Weather(days: [1]), as: .json) && !StructuredFile.canEncode(storm, as: .json))
    #expect(StructuredFile.canEncode(storm, as: .propertyList))
    let found = error { try StructuredFile.write(storm, to: url) }
    #expect(found?.code == .unencodable && found?.path == "days[1]", "\(String(describing: found))")
    #expect(try StructuredFile.read(Weather.self, from: url)?.days == [1])
    #expect(!StructuredFile.canEncode(7, as: .propertyList))
  }

  @Test("an unknown extension, a folder at the path, an unwritable path and a huge file throw typed errors")
  func places() throws {
    let unknown = error { try StructuredFile.write(1, to: folder.url.appendingPathComponent("level.txt")) }
    #expect(
      unknown?.code == .unknownFormat
        && unknown?.message == "level.txt is neither .json, .json5 nor .plist: pass its format, such as `as: .json`")
    try StructuredFile.write(Level(), to: folder.url.appendingPathComponent("level.txt"), as: .json)
    let blocked = folder.url.appendingPathComponent("folder.json")
    try FileManager.default.createDirectory(at: blocked, withIntermediateDirectories: true)
    #expect(throws: StoreError.self) { try StructuredFile.write(Level(), to: blocked) }
    #expect(throws: StoreError.self) { try StructuredFile.read(Level.self, from: blocked) }
    #expect(throws: StoreError.self) {
      try StructuredFile.write(Level(), to: URL(fileURLWithPath: "/proc/nowhere/level.json"))
    }
    let huge = folder.url.appendingPathComponent("huge.json")
    #expect(FileManager.default.createFile(atPath: huge.path, contents: nil))
    let handle = try FileHandle(forWritingTo: huge)
    try handle.truncate(atOffset: UInt64(StructuredFile.maximumBytes) + 1)
    try handle.close()
    #expect(error { _ = try StructuredFile.read(Level.self, from: huge) }?.code == .tooLarge)
  }
}
