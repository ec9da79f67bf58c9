import Foundation
import Testing

@testable import KeepsakeInterchange

/// What an error in a file written by hand says, and where.
@Suite struct JSONErrorTests {
  private func message(_ bytes: Data, _ format: StructuredFile.Format) -> String? {
    let error = #expect(throws: StructuredFileError.self) {
      try StructuredFile.decode(JSONReadingTests.Anything.self, from: bytes, as: format)
    }
    #expect(error?.code == .malformed && error?.path == "")
    return error?.message
  }

  @Test(
    "text that only some readers accept is refused as JSON, with line, column, what was expected and what was found",
    arguments: [
      ("[1,]", "1, column 4: expected a value, found \"]\""),
      ("{\"a\":1,}", "1, column 8: expected a name in double quotation marks, found \"}\""),
      ("[01]", "1, column 3: expected no further digit after a zero at the beginning of a number, found \"1\""),
      ("[1.]", "1, column 4: expected a digit after the decimal point, found \"]\""),
      ("[.5]", "1, column 2: expected a value or \"]\", found \".\""),
      ("[+1]", "1, column 2: expected a value or \"]\", found \"+\""),
      ("[1e]", "1, column 4: expected a digit of the exponent, found \"]\""),
      ("[NaN]", "1, column 2: expected a value or \"]\", found \"NaN\"; numbers that aren't finite aren't supported"),
      ("// x\n1", "1, column 1: expected a value, found \"/\""),
      ("{a:1}", "1, column 2: expected a name in double quotation marks or \"}\", found \"a\""),
      ("['a']", "1, column 2: expected a value or \"]\", found a single quotation mark"),
      ("[1] 2", "1, column 5: expected the end of the file after the value, found \"2\""),
      (
        "[\n  \"a\tb\"]",
        """
        2, column 5: expected the end of the string, found a tab, which must be escaped; the string begins at line 2, \
        column 3
        """
      ),
      (
        "[\"\\x\"]",
        "1, column 4: expected an escape sequence after the backslash, one of \" \\ / b f n r t u, found \"x\""
      ),
      (
        "[\"\\ud800\"]",
        "1, column 9: expected \\u with the second half of a surrogate pair, found a double quotation mark"
      ),
      ("[\"\\udc00\"]", "1, column 3: expected a character, or the first half of a surrogate pair, found \"\\udc00\""),
      ("{\"a\" 1}", "1, column 6: expected a colon after the name, found \"1\""),
      ("[1 2]", "1, column 4: expected a comma or \"]\", found \"2\""),
      (
        "[1",
        "1, column 3: expected a comma or \"]\", found the end of the file; "
          + "the list that begins at line 1, column 1 isn't closed"
      ),
      (
        "\n{",
        """
        2, column 2: expected a name in double quotation marks or "}", found the end of the file; the object that \
        begins at line 2, column 1 isn't closed
        """
      ),
      ("[1}", "1, column 3: expected a comma or \"]\", found \"}\""),
      ("tru", "1, column 4: expected true, found the end of the file"),
      ("[none]", "1, column 3: expected null, found \"none\""),
      ("-", "1, column 2: expected a digit after the sign, found the end of the file"),
      (
        "\"a",
        "1, column 3: expected the end of the string, found the end of the file; the string begins at line 1, column 1"
      ),
      (" ", "1, column 2: expected a value, found the end of the file"),
    ])
  func json(text: String, message: String) {
    #expect(self.message(Data(text.utf8), .json) == "line \(message)")
  }

  @Test(
    "an error in JSON5 has the file's own line, column and characters",
    arguments: [
      ("{ title: 'Rats' reward: 5 }", "1, column 17: expected a comma or \"}\", found \"reward\""),
      ("// Rats\n{ title: 'Rats', /* gold\n */ reward: }", "3, column 13: expected a value, found \"}\""),
      ("{\n  a: 'one\\\n two', b 1}", "3, column 10: expected a colon after the name, found \"1\""),
      ("{\r\n  a: 1\r\n  b: 2}", "3, column 3: expected a comma or \"}\", found \"b\""),
      ("{\r  a: 1\r  b: 2}", "3, column 3: expected a comma or \"}\", found \"b\""),
      ("\t{\t?", "1, column 4: expected a name or \"}\", found \"?\""),
      ("{ü: 'é👨‍👩‍👧e\u{301}' 5}", "1, column 11: expected a comma or \"}\", found \"5\""),
      ("['\\u00e9\\ud83d\\ude00\\x41' 5]", "1, column 27: expected a comma or \"]\", found \"5\""),
      ("\u{FEFF}{a 1}", "1, column 4: expected a colon after the name, found \"1\""),
      ("[1,,]", "1, column 4: expected a value or \"]\", found \",\""),
      ("[“a”]", "1, column 2: expected a value or \"]\", found \"“\" (U+201C)"),
      ("[1\u{200B}]", "1, column 3: expected a comma or \"]\", found U+200B"),
      ("{😀: 1}", "1, column 2: expected a name or \"}\", found \"😀\" (U+1F600)"),
      ("{\\u0020: 1}", "1, column 2: expected a character that a name can have, found \"\\u0020\""),
      (
        "[-Infinity]",
        "1, column 3: expected a digit after the sign, found \"Infinity\"; numbers that aren't finite aren't supported"
      ),
      ("[.]", "1, column 3: expected a digit after the decimal point, found \"]\""),
      ("[0x]", "1, column 4: expected a hexadecimal digit after 0x, found \"]\""),
      (
        "[\n 0x10000000000000000]",
        "2, column 2: expected a hexadecimal number of at most 64 bits, found \"0x10000000000000000\""
      ),
      ("['\\x4']", "1, column 6: expected two hexadecimal digits after \\x, found a single quotation mark"),
      ("['\\1']", "1, column 4: expected an escape sequence after the backslash, found \"1\""),
      ("['\\01']", "1, column 5: expected no digit after \\0, found \"1\""),
      (
        "['a\nb']",
        """
        1, column 4: expected the end of the string, found a line break, which must be escaped; the string begins at \
        line 1, column 2
        """
      ),
      (
        "\n[1 /* x",
        "2, column 8: expected \"*/\", found the end of the file; "
          + "the comment that begins at line 2, column 4 isn't closed"
      ),
      ("[1] /", "1, column 6: expected \"/\" or \"*\", which begin a comment, found the end of the file"),
    ])
  func json5(text: String, message: String) {
    #expect(self.message(Data(text.utf8), .json5) == "line \(message)")
  }

  @Test(
    "a number out of range is an error with the position of its first character, in JSON and in JSON5",
    arguments: [
      ("1e999", "expected a number between -1.8e308 and 1.8e308"),
      ("-1e999", "expected a number between -1.8e308 and 1.8e308"),
      ("1" + String(repeating: "0", count: 309), "expected a number between -1.8e308 and 1.8e308"),
      ("12.5e-999", "expected zero, or a number that is not nearer to it than 5e-324"),
    ])
  func range(number: String, message: String) throws {
    for format in [StructuredFile.Format.json, .json5] {
      let found = try #require(self.message(Data("{\"a\": [\n  1,\n  \(number)]}".utf8), format))
      #expect(found.hasPrefix("line 3, column 3: \(message), found \"\(number.prefix(40))"))
    }
    for number in ["1e308", "5e-324", "0e-999", "0.0e999", "1" + String(repeating: "0", count: 308)] {
      #expect(throws: Never.self) {
        try StructuredFile.decode([Double].self, from: Data("[\(number)]".utf8), as: .json)
      }
    }
  }

  @Test("an integer of more than 128 bits is an error with its position where integers keep all digits")
  func integers() throws {
    let largest = "\(Int128.max)"
    guard case .array(let values) = try JSONReader.read(Data("[\(largest)]".utf8)), case .integer(.max) = values[0]
    else {
      Issue.record("the largest integer is different")
      return
    }
    let error = #expect(throws: StructuredFileError.self) { try JSONReader.readJSON5(Data("[\n\(largest)0]".utf8)) }
    #expect(
      error?.message == """
        line 2, column 1: expected an integer of at most 128 bits, found "\(largest)0"; put it in quotation marks to \
        make it a string
        """)
    #expect(throws: Never.self) { try JSONReader.check(Data("[\(largest)0]".utf8)) }
  }

  @Test("a byte that isn't UTF-8 is an error with its position, in a string, a comment, a name and between values")
  func invalidUTF8() {
    for (before, after) in [("['é", "']"), ("[1 // é", "\n]"), ("[1 /* é", "*/]"), ("{é", ":1}"), ("[", "]")] {
      for bytes in [[0xFF], [0xC3], [0xE2, 0x80], [0xED, 0xA0, 0x80]] as [[UInt8]] {
        let found = message(Data(before.utf8) + bytes + Data(after.utf8), .json5)
        let byte = String(bytes[0], radix: 16, uppercase: true)
        #expect(
          found?.hasPrefix("line 1, column \(before.count + 1): expected ") == true, "\(String(describing: found))")
        #expect(found?.hasSuffix("found the byte 0x\(byte), which isn't UTF-8") == true, "\(String(describing: found))")
      }
    }
    #expect(message(Data("[\"é".utf8) + [0xFF] + Data("\"]".utf8), .json)?.hasPrefix("line 1, column 4:") == true)
  }

  @Test(
    "a name that an object has twice is an error with the positions of both, in a file that a person writes",
    arguments: [
      ("{\"name\": 1,\n \"name\": 2}", "2, column 2: expected another name, found \"name\"", "1, column 2"),
      ("[{\"a\": {}, \"\\u0061\": 2}]", "1, column 12: expected another name, found \"\\u0061\"", "1, column 3"),
      ("{\"\": {\"\": 1}, \"\": 2}", "1, column 15: expected another name, found \"\"", "1, column 2"),
    ])
  func repeatedNames(text: String, message: String, first: String) throws {
    for format in [StructuredFile.Format.json, .json5] {
      #expect(
        self.message(Data(text.utf8), format)
          == "line \(message); the object has this name already, at line \(first)", "\(format)")
    }
    #expect(throws: Never.self) { try JSONReader.read(Data(text.utf8)) }
  }

  @Test("a name that an object has twice is found in JSON5 in whatever way it is written; other objects may have it")
  func repeatedLooseNames() throws {
    #expect(
      message(Data("{\n  name: 'a',\n  'name': 'b'}".utf8), .json5) == """
        line 3, column 3: expected another name, found "name"; the object has this name already, at line 2, column 3
        """)
    let text = Data("{a: {a: 1}, b: [{a: 1}, {a: 2}], c: {b: 1}}".utf8)
    #expect(throws: Never.self) {
      _ = try StructuredFile.decode(JSONReadingTests.Anything.self, from: text, as: .json5)
      _ = try JSONReader.readJSON5(Data("{a: 1, a: 2}".utf8))
    }
  }

  @Test("the position in UTF-16 and UTF-32 counts characters, as in UTF-8")
  func otherEncodings() throws {
    for encoding in [String.Encoding.utf16, .utf16BigEndian, .utf16LittleEndian, .utf32BigEndian, .utf32LittleEndian] {
      let bytes = try #require("{ü: '🗡️',\r\n b 1}".data(using: encoding))
      #expect(message(bytes, .json5) == "line 2, column 4: expected a colon after the name, found \"1\"", "\(encoding)")
    }
  }

  @Test("lists and objects that are nested too deeply are an error at the one that is too deep")
  func depth() {
    let found = message(Data(("\n" + String(repeating: "[", count: 600)).utf8), .json5)
    #expect(found == "line 2, column 513: expected lists and objects at most 512 deep, found one more")
  }
}
