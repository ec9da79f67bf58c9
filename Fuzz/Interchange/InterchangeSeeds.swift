import Foundation

/// The first inputs: something of everything, small.
enum InterchangeSeeds {
  private static let plain: PropertyList = [
    "integers": [0, 255, 256, 70_000, -1, .integer(Int128(UInt64.max))], "number": 2.5, "yes": true, "no": false,
    "texts": ["", "plain", "Ünal 👾", "<&>"], "when": .date(Date(timeIntervalSinceReferenceDate: 86_400)),
    "data": .data(Data(0...20)),
    "list": [[[1], []], ["inner": [:]]], "uid": .uid(300), "many": .array((0..<20).map { .integer($0) }),
  ]
  private static let more: PropertyList = [
    "null": .null, "float": .float(0.5), "set": .set([1, "two"]), "wide": .integer(.min), "control": "\u{1}",
  ]

  /// One with a class of each kind.
  private static var archive: PropertyList {
    func name(_ names: String...) -> PropertyList {
      ["$classname": .string(names[0]), "$classes": .array(names.map { .string($0) })]
    }
    return [
      "$version": 100_000, "$archiver": "NSKeyedArchiver", "$top": ["root": .uid(1)],
      "$objects": [
        "$null",
        [
          "NS.objects": [.uid(3), .uid(5), .uid(7), .uid(9), .uid(11), .uid(13), .uid(15), .uid(17)], "$class": .uid(2),
        ],
        name("NSArray"), ["NS.keys": [.uid(19)], "NS.objects": [.uid(0)], "$class": .uid(4)], name("NSDictionary"),
        ["NS.data": .data(Data([1])), "$class": .uid(6)], name("NSData"), ["NS.time": 1.5, "$class": .uid(8)],
        name("NSDate"),
        ["NS.base": .uid(0), "NS.relative": .uid(19), "$class": .uid(10)], name("NSURL"),
        ["NS.uuidbytes": .data(Data(1...16)), "$class": .uid(12)], name("NSUUID"),
        ["NS.rectval": "{{1, 2}, {3, 4}}", "$class": .uid(14)], name("NSValue"),
        [
          "NS.exponent": 1, "NS.length": 1, "NS.negative": false, "NS.mantissa.bo": 1,
          "NS.mantissa": .data(Data(repeating: 1, count: 16)),
          "$class": .uid(16),
        ],
        name("NSDecimalNumber"), ["next": .uid(17), "values": .uid(3), "$class": .uid(18)], name("B", "NSObject"),
        "text",
      ],
    ]
  }

  static func all() throws -> [(String, Data)] {
    let text = #"""
      <?xml version='1.0' encoding='ISO-8859-1'?><!--c--><!DOCTYPE plist SYSTEM 'x'><plist a="b"><dict>\#
      <key>a&#65;</key><string><![CDATA[x]]>&amp;&#xe9;</string><key>h</key><integer>0x1F</integer>\#
      <key>r</key><real>nan</real></dict></plist>
      """#
    return [
      ("plain.bplist", try plain.encoded(as: .binary)), ("plain.xml", try plain.encoded(as: .xml)),
      ("archive.bplist", try archive.encoded(as: .binary)), ("archive.xml", try archive.encoded(as: .xml)),
      ("more.bplist", try more.encoded(as: .binary)), ("text.xml", Data(text.utf8)),
      (
        "wide.xml",
        Data([0xFE, 0xFF]) + Data("<plist><true/></plist>".utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] })
      ),
    ]
  }
}
