import Foundation
import TestSupport
import Testing

@testable import KeepsakeInterchange

/// Which texts are valid JSON doesn't depend on the platform's reader.
@Suite struct JSONReadingTests {
  /// Decodes any value.
  struct Anything: Decodable {
    init(from decoder: any Decoder) throws {
      if var list = try? decoder.unkeyedContainer() {
        while !list.isAtEnd { _ = try list.decode(Anything.self) }
      } else if let dictionary = try? decoder.container(keyedBy: Name.self) {
        for key in dictionary.allKeys { _ = try dictionary.decode(Anything.self, forKey: key) }
      } else {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() { return }
        if (try? value.decode(Bool.self)) != nil || (try? value.decode(String.self)) != nil { return }
        _ = try value.decode(Double.self)
      }
    }

    struct Name: CodingKey {
      var stringValue: String
      var intValue: Int? { nil }
      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }
  }

  /// The folder `json` of real files, from other projects; the test is skipped without it.
  private static let files = RealFiles.folder?.appending(path: "json")

  private func code(_ bytes: Data, _ format: StructuredFile.Format = .json) throws -> StructuredFileError.Code? {
    do {
      _ = try StructuredFile.decode(Anything.self, from: bytes, as: format)
      return nil
    } catch let error as StructuredFileError {
      return error.code
    }
  }

  @Test(
    "valid JSON files are read, also as JSON5; invalid ones are refused; the rest give a value or a typed error",
    .needsRealFiles)
  func wholeCorpus() throws {
    let folder = try #require(Self.files)
    var counts: [String: Int] = [:]
    for file in try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil) {
      let name = file.lastPathComponent
      guard let kind = name.firstMatch(of: /__([yni])_/)?.1 else { continue }
      // Anything but a typed error fails the test.
      let code = try code(Data(contentsOf: file))
      switch kind {
      // JSON, in which one of two values is lost: a mistake in a file that a person writes.
      case "y" where name.contains("duplicated_key"):
        #expect(code == .malformed, "\(name)")
        #expect(throws: Never.self) { try JSONReader.read(Data(contentsOf: file)) }
      case "y": #expect(code == nil, "\(name) is JSON")
      case "n": #expect(code == .malformed, "\(name) isn't JSON")
      default: break
      }
      // Every JSON file is also JSON5, and so are some files that aren't JSON.
      let loose = try self.code(Data(contentsOf: file), .json5)
      if kind == "y" { #expect(loose == code, "\(name) is JSON5") }
      counts["\(kind) \(code == nil ? "read" : "refused")", default: 0] += 1
    }
    print("json: " + counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))
    #expect(counts["y read", default: 0] > 0 && counts["n refused", default: 0] > 0)
  }

  @Test("escapes and surrogate pairs are decoded; large integers, the order of names and repeated names are kept")
  func values() throws {
    guard
      case .object(let members) = try JSONReader.read(
        Data(#" {"b":"\u00e9\ud83d\ude00\/\n","a":[1e3,-0,12345678901234567890123],"a":null} "#.utf8)),
      members.count == 3, case .string(let text) = members[0].value, case .array(let numbers) = members[1].value,
      case .null = members[2].value
    else {
      Issue.record("the tree is different")
      return
    }
    #expect(members.map(\.name) == ["b", "a", "a"] && text == "é😀/\n")
    guard case .number(1_000) = numbers[0], case .number(let zero) = numbers[1], zero == 0, zero.sign == .minus,
      case .integer(12_345_678_901_234_567_890_123) = numbers[2]
    else {
      Issue.record("the numbers are different: \(numbers)")
      return
    }
    #expect(throws: Never.self) { try JSONReader.check(Data("[[],{},\"\",0,[{\"\":[]}]]".utf8)) }
  }

  @Test(
    "nested lists don't overflow the stack: 500 levels are read, and a million are refused",
    arguments: [StructuredFile.Format.json, .json5])
  func deep(format: StructuredFile.Format) throws {
    #expect(
      try code(Data((String(repeating: "[", count: 500) + String(repeating: "]", count: 500)).utf8), format) == nil)
    #expect(try code(Data(String(repeating: "[", count: 1_000_000).utf8), format) == .malformed)
    #expect(try code(Data(String(repeating: "{\"a\":[", count: 1_000_000).utf8), format) == .malformed)
  }

  @Test("JSON in UTF-16 and UTF-32 is read in either byte order, and refused if it is malformed")
  func otherEncodings() throws {
    struct File: Codable, Equatable { var name: String }
    for encoding in [
      String.Encoding.utf16, .utf16BigEndian, .utf16LittleEndian, .utf32, .utf32BigEndian, .utf32LittleEndian,
    ] {
      let bytes = try #require(#"{"name":"Ünal 🗡️"}"#.data(using: encoding))
      #expect(try StructuredFile.decode(File.self, from: bytes, as: .json).name == "Ünal 🗡️", "\(encoding)")
      let bad = try #require(#"{"name":"a",}"#.data(using: encoding))
      #expect(try code(bad) == .malformed, "\(encoding)")
    }
  }

  @Test("only JSON5 allows comments and trailing commas; it reports mismatches with their path, and is written as JSON")
  func json5() throws {
    struct Level: Codable, Equatable {
      var title: String
      var sizes: [Int]
    }
    let text = "// The first level.\n{title: 'Caves', /* in tiles */ sizes: [0x10, +2, 3,],}"
    #expect(
      try StructuredFile.decode(Level.self, from: Data(text.utf8), as: .json5)
        == Level(title: "Caves", sizes: [16, 2, 3]))
    #expect(try code(Data(text.utf8), .json) == .malformed)
    let wrong = #expect(throws: StructuredFileError.self) {
      try StructuredFile.decode(Level.self, from: Data("{title: 'Caves', sizes: [1, 'ten'],}".utf8), as: .json5)
    }
    #expect(wrong?.description == #"sizes[1]: expected a whole number, found "ten""#)
    #expect(StructuredFile.Format(URL(fileURLWithPath: "level.JSON5")) == .json5)
    let written = try StructuredFile.encode(Level(title: "a", sizes: [1]), as: .json5)
    #expect(try written == StructuredFile.encode(Level(title: "a", sizes: [1]), as: .json))
  }

  @Test(
    "numbers, comments, commas and whitespace that only JSON5 allows are read",
    arguments: [
      ("[.5, 5., +1, -.25, 0x1F, 1e2, 5.e1]", [0.5, 5, 1, -0.25, 31, 100, 50]), ("[1,/* a */2, // b\n3,]", [1, 2, 3]),
      ("[]", []),
      ("\u{FEFF}[\u{A0}1\u{B}\u{2028}]", [1]), ("[\u{3000}1, // a\u{2028}2]", [1, 2]),
      ("[-0x10, 0xfFfFfFfF]", [-16, 4_294_967_295]),
    ])
  func looseNumbers(text: String, numbers: [Double]) throws {
    #expect(try StructuredFile.decode([Double].self, from: Data(text.utf8), as: .json5) == numbers)
  }

  @Test("strings, escapes and unquoted names that only JSON5 allows are read")
  func looseTexts() throws {
    let text = #"{a: 'it\'s "x"', $b_1: "\x41\v\0\q", 'c d': 'one\\#ntwo', ü: '\u00e9', true: null,}"#
    let found = try StructuredFile.decode([String: String?].self, from: Data(text.utf8), as: .json5)
    #expect(found == ["a": "it's \"x\"", "$b_1": "A\u{B}\u{0}q", "c d": "onetwo", "ü": "é", "true": nil])
  }

  @Test(
    "text that isn't JSON5 either is a typed error, even where it crashes Foundation's reader",
    arguments: [
      "[+]", "[-]", "[.]", "[+.]", "[1,,]", "[,]", "[,1]", "{,}", "{a:1,,}", "/* x", "[1] /", "'a", "'a\nb'", "[0x]",
      "[0x10000000000000000]", "[1e]", "[Infinity]", "[-Infinity]",
      "[NaN]", "{a b:1}", "[01]", "['\\1']", "['\\x4']", "\\", "[1 2]", "[1\u{A0}2]", "[1\u{2028}2]", "[1\u{C}2]",
      "{'a'}", "[--1]",
      "[+-1]", "", "//", "{a:}",
    ])
  func noJSON5(text: String) throws {
    #expect(try code(Data(text.utf8), .json5) == .malformed)
  }
}
