import Foundation
import KeepsakeInterchange
import Testing

struct XMLPropertyListTests {
  private static func file(_ content: String) -> Data {
    Data("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\">\n\(content)\n</plist>\n".utf8)
  }

  private static func read(_ content: String) throws -> PropertyList { try PropertyList(file(content)) }

  @Test("every value survives a round trip through an XML file, and equal trees give equal bytes")
  func roundTrip() throws {
    let bytes = try Samples.plain.encoded(as: .xml)
    let again = try PropertyList(bytes)
    let isSame = again == Samples.plain
    #expect(isSame)
    let second = try again.encoded(as: .xml)
    let isStable = second == bytes
    #expect(isStable)
  }

  @Test("a file has the usual form of an XML property list")
  func text() throws {
    let list: PropertyList = ["name": "a<b", "list": [1, 2.5, true], "none": [:], "uid": .uid(7)]
    let expected = """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">
      <dict>
      \t<key>name</key>
      \t<string>a&lt;b</string>
      \t<key>list</key>
      \t<array>
      \t\t<integer>1</integer>
      \t\t<real>2.5</real>
      \t\t<true/>
      \t</array>
      \t<key>none</key>
      \t<dict/>
      \t<key>uid</key>
      \t<dict>
      \t\t<key>CF$UID</key>
      \t\t<integer>7</integer>
      \t</dict>
      </dict>
      </plist>

      """
    #expect(try String(decoding: list.encoded(as: .xml), as: UTF8.self) == expected)
    #expect(try PropertyList(Data(expected.utf8)) == list)
  }

  @Test("numbers, dates, data, strings and UIDs are read in every spelling")
  func spellings() throws {
    #expect(try Self.read("<integer> 0x1F </integer>") == 31)
    #expect(try Self.read("<integer>-0x10</integer>") == -16)
    #expect(try Self.read("<integer>+7</integer>") == 7)
    #expect(try Self.read("<integer>18446744073709551616</integer>") == .integer(Int128(UInt64.max) + 1))
    #expect(try Self.read("<real>nan</real>") == .number(.nan))
    #expect(try Self.read("<real>-infinity</real>") == .number(-.infinity))
    #expect(try Self.read("<real>1e-3</real>") == 0.001)
    #expect(try Self.read("<date>2001-01-02T00:00:01Z</date>") == .date(Date(timeIntervalSinceReferenceDate: 86_401)))
    #expect(try Self.read("<date>2004-02Z</date>") == .date(Date(timeIntervalSinceReferenceDate: 97_286_400)))
    #expect(try Self.read("<data>\n\tAAEC\n\tAw==\n</data>") == .data(Data([0, 1, 2, 3])))
    #expect(try Self.read("<string>a<![CDATA[<b>&amp;]]>&#65;&lt;</string>") == "a<b>&amp;A<")
    #expect(try Self.read("<string>&#8;&#0;</string>") == "\u{8}\u{0}", "Foundation reads such files, too")
    #expect(try Self.read("<string><!-- note -->x<!-- y -->z</string>") == "xz")
    #expect(try Self.read("<string>   </string>") == "   ")
    #expect(try Self.read("<string/>") == "")
    #expect(try Self.read("<dict><key>CF$UID</key><integer>5</integer></dict>") == .uid(5))
    #expect(try Self.read("<dict><key>CF$UID</key><integer>-5</integer></dict>") == ["CF$UID": -5])
    #expect(try Self.read("<dict><key>CF$UID</key><integer>5</integer><key>b</key><true/></dict>")["CF$UID"] == 5)
    #expect(
      try PropertyList(Data("  \n<dict><key>a</key><true/></dict>".utf8)) == ["a": true], "a file without <plist>")
  }

  @Test("UTF-16 in either byte order, UTF-8 with a byte order mark and Latin-1 are read")
  func encodings() throws {
    let text = "<?xml version=\"1.0\" encoding=\"UTF-16\"?>\n<plist><string>Ünal 日 👾</string></plist>"
    let big = text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }
    let little = text.utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] }
    for bytes in [[0xFE, 0xFF] + big, big, [0xFF, 0xFE] + little, little] {
      #expect(try PropertyList(Data(bytes)) == "Ünal 日 👾")
    }
    #expect(throws: PropertyListError.self) { try PropertyList(Data([0xFF, 0xFE] + little.dropLast())) }
    #expect(try PropertyList(Data([0xEF, 0xBB, 0xBF]) + Self.file("<string>ü</string>")) == "ü")
    let latin =
      "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><plist><string>".utf8 + [0xFC] + "</string></plist>".utf8
    #expect(try PropertyList(Data(latin)) == "ü")
  }

  @Test("entity definitions, undefined entities and unsupported encodings are refused")
  func definitions() throws {
    let laughs = """
      <?xml version="1.0"?>
      <!-- <!DOCTYPE is no type here --><!DOCTYPE plist [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
      <plist><string>&b;</string></plist>
      """
    let file =
      "<!DOCTYPE plist SYSTEM \"a[b\" [<!ENTITY x SYSTEM \"file:///etc/hostname\">]><plist><string>&x;</string></plist>"
    let undefined = "<plist><string>&x;</string></plist>"
    for (text, code) in [(laughs, .unsupported), (file, .unsupported), (undefined, .damaged)]
      as [(String, PropertyListError.Code)]
    {
      let error = #expect(throws: PropertyListError.self) { try PropertyList(Data(text.utf8)) }
      #expect(error?.code == code, "\(text)")
    }
    let seven = "<?xml version=\"1.0\" encoding=\"UTF-7\"?><plist><string>a</string></plist>"
    #expect(throws: PropertyListError.self) { try PropertyList(Data(seven.utf8)) }
    #expect(
      try PropertyList(Data("<!DOCTYPE plist SYSTEM \"file:///etc/[hostname]\"><plist><true/></plist>".utf8)) == true)
  }

  @Test(
    "a malformed file is an error with the line of the mistake",
    arguments: [
      ("<dict>\n<string>a</string></dict>", 4), ("<dict>\n<key>a</key></dict>", 4),
      ("<array>\n\n<integer>1x</integer></array>", 5),
      ("<integer/>", 3), ("<real>one</real>", 3), ("<date>2001-13-01T00:00:00Z</date>", 3), ("<data>#</data>", 3),
      ("<foo/>", 3),
      ("<array>text</array>", 3), ("<string><true/></string>", 3), ("<key>a</key>", 3), ("<true/>\n<true/>", 4),
      ("<true>x</true>", 3),
      ("<array>\n<true/>", 5), ("<array>\n</dict>", 4), ("<true a=1/>", 3), ("<true a='<'/>", 3),
      ("<string>&#xD800;</string>", 3),
      ("<string>\u{1}</string>", 3), ("<!DOCTYPE plist>", 3),
      ("<integer>340282366920938463463374607431768211456</integer>", 3),
      ("<dict><key>a</key>\n<key>b</key></dict>", 4), ("", 4), ("<date>2026-02-30T00:00:00Z</date>", 3),
      ("<date>２０２６Z</date>", 3),
    ])
  func errors(content: String, line: Int) throws {
    let error = #expect(throws: PropertyListError.self) { try Self.read(content) }
    #expect(error?.line == line, "\(String(describing: error))")
  }

  @Test("an error has its path in the tree")
  func path() throws {
    let error = #expect(throws: PropertyListError.self) {
      try Self.read(
        "<dict><key>quests</key><array><true/><dict><key>reward</key><integer>ten</integer></dict></array></dict>")
    }
    #expect(error?.path == "quests[1].reward")
  }

  @Test("lists nested up to the limit are read, and deeper ones are refused")
  func depth() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "<array>", count: depth) + String(repeating: "</array>", count: depth)
    }
    // <plist> counts as a level, too.
    var tree = try Self.read(nested(255))
    var depth = 1
    while let inner = tree.array?.first { (tree, depth) = (inner, depth + 1) }
    #expect(depth == 255)
    for depth in [256, 100_000] {
      let error = #expect(throws: PropertyListError.self) { try Self.read(nested(depth)) }
      #expect(error?.code == .limit)
    }
  }

  @Test("values that XML can't represent are refused with their path; floats and line ends are kept")
  func unwritable() throws {
    let values: [PropertyList] = [
      .null, .set([1]), "\u{1}", .date(Date(timeIntervalSinceReferenceDate: 1e13)),
      .date(Date(timeIntervalSinceReferenceDate: .nan)),
    ]
    for value in values {
      let error = #expect(throws: PropertyListError.self) { try (["a": [1, value]] as PropertyList).encoded(as: .xml) }
      #expect(error?.code == .unwritable)
      #expect(error?.path == "a[1]")
    }
    #expect(throws: PropertyListError.self) { try PropertyList.dictionary([.init("\u{2}", 1)]).encoded(as: .xml) }
    // Found by fuzzing: a float was written with other digits than the number that is read from them.
    let float = try PropertyList.float(123_456_792).encoded(as: .xml)
    #expect(try PropertyList(float).encoded(as: .xml) == float)
    // It is read as the same number with 64 bits, which isn't the number 0.1.
    #expect(try PropertyList(PropertyList.float(0.1).encoded(as: .xml)) == .number(Double(Float(0.1))))
    #expect(try PropertyList(PropertyList.string("a\rb\r\nc").encoded(as: .xml)) == "a\rb\r\nc")
  }

  @Test("every truncated file is a typed error, and every altered byte gives a value or a typed error")
  func damage() throws {
    let list: PropertyList = [
      "name": "Ünal", "list": [1, -2.5, true, .data(Data([1, 2]))], "when": .date(Samples.dates[3]),
    ]
    let bytes = try list.encoded(as: .xml)
    // The last line feed isn't required.
    for count in 0..<bytes.count - 1 {
      #expect(throws: PropertyListError.self) { try PropertyList(bytes.prefix(count)) }
    }
    for index in bytes.indices {
      for value in [0, 0x3C, 0x3E, 0x26, 0x80, 0xFF, bytes[index] ^ 1] {
        var altered = bytes
        altered[index] = value
        do {
          _ = try PropertyList(altered)
        } catch is PropertyListError {
          continue
        }
      }
    }
  }

  @Test("a file with more values than the limit is refused, and long texts count by their length")
  func values() throws {
    var limits = PropertyListLimits()
    limits.values = 10
    let nine = PropertyList.array((0..<9).map { .integer($0) })
    for format in PropertyList.Format.allCases {
      #expect(try PropertyList(nine.encoded(as: format), limits: limits) == nine)
      for list in [[nine, 1], ["a": nine], [.string(String(repeating: "x", count: 640))]] as [PropertyList] {
        let error = #expect(throws: PropertyListError.self) {
          try PropertyList(list.encoded(as: format), limits: limits)
        }
        #expect(error?.code == .limit)
      }
    }
  }

  @Test("29 February is a date in leap years only, and is written as itself")
  func leapDays() throws {
    for year in [2024, 2000, 1600] {
      let date = try Self.read("<date>\(year)-02-29T12:00:00Z</date>")
      let text = String(decoding: try date.encoded(as: .xml), as: UTF8.self)
      #expect(text.contains("<date>\(year)-02-29T12:00:00Z</date>"), "\(year)")
      if year == 2024 { #expect(date == .date(Date(timeIntervalSince1970: 1_709_208_000))) }
    }
    for year in [2023, 2100, 1900] {
      #expect(throws: PropertyListError.self, "\(year)") { try Self.read("<date>\(year)-02-29T12:00:00Z</date>") }
    }
  }

  @Test("the distant past is read and written as a day of the year 0, as other programs do")
  func distantPast() throws {
    let text = "<plist><date>0000-12-30T00:00:00Z</date></plist>"
    #expect(try PropertyList(Data(text.utf8)) == .date(.distantPast))
    #expect(
      String(decoding: try PropertyList.date(.distantPast).encoded(as: .xml), as: UTF8.self).contains(
        "<date>0000-12-30T00:00:00Z</date>"))
  }

  @Test(
    "writing a date that no calendar has is an error, also for the earliest date of all",
    arguments: [-0x1p63, 0x1p63, .infinity, .nan, -1e15])
  func impossibleDates(seconds: Double) {
    #expect(throws: PropertyListError.self) {
      try PropertyList.date(Date(timeIntervalSinceReferenceDate: seconds)).encoded(as: .xml)
    }
  }
}
