import Foundation
import KeepsakeArchive
import Testing

/// The one layout of JSON that tools print.
@Suite struct JSONWriterTests {
  private func laidOut(_ json: String, isOnOneLine: Bool = false) -> String {
    var writer = JSONWriter(isOnOneLine: isOnOneLine)
    writer.value(json: Data(json.utf8))
    return String(decoding: writer.take(), as: UTF8.self)
  }

  @Test("JSON of any layout gets the writer's, on several lines or on one, and keeps its values as they are written")
  func layout() {
    let json = #"{ "a":[1,-2.50e+3 ,true,null, "x"],"b" : {}, "c":[ ],"d":{"e":[[]]}}"#
    let long = """
      {
        "a": [
          1,
          -2.50e+3,
          true,
          null,
          "x"
        ],
        "b": {},
        "c": [],
        "d": {
          "e": [
            []
          ]
        }
      }
      """
    let short = #"{"a":[1,-2.50e+3,true,null,"x"],"b":{},"c":[],"d":{"e":[[]]}}"#
    #expect(laidOut(json) == long && laidOut(long) == long && laidOut(short) == long)
    #expect(laidOut(json, isOnOneLine: true) == short && laidOut(long, isOnOneLine: true) == short)
    for value in ["1", "true", "null", "\"\"", "[]", "{}"] { #expect(laidOut(value) == value) }
  }

  @Test("texts mean the same however they were escaped; only what a terminal could take for a command is escaped")
  func texts() throws {
    let texts = [
      "", "a/b", "\"\\", "\u{0}\u{8}\u{9}\u{A}\u{C}\u{D}\u{1F}", "\u{7F}\u{85}\u{202E}\u{2028}", "é 🙂 花", "a\\u0041",
      "]}[{,:\"",
    ]
    for text in texts {
      for options: JSONEncoder.OutputFormatting in [[], [.withoutEscapingSlashes], [.prettyPrinted]] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = options
        let encoded = try encoder.encode([text: [text]])
        var writer = JSONWriter()
        writer.value(json: encoded)
        let again = writer.take()
        #expect(try JSONDecoder().decode([String: [String]].self, from: again) == [text: [text]], "\(text)")
        let shown = String(decoding: again, as: UTF8.self)
        #expect(!shown.contains("\\/") && !shown.unicodeScalars.contains { $0 == "\u{7F}" || $0 == "\u{202E}" })
      }
    }
    #expect(laidOut(#"["\u00e9\ud83d\ude42\/\u202e"]"#, isOnOneLine: true) == #"["é🙂/\u202e"]"#)
  }

  @Test("a piece that was taken isn't written again, and what follows continues it")
  func pieces() {
    var writer = JSONWriter()
    writer.beginArray()
    writer.value(1)
    var text = String(decoding: writer.take(), as: UTF8.self)
    writer.value(json: Data("[2]".utf8))
    writer.end()
    text += String(decoding: writer.take(), as: UTF8.self)
    #expect(text == "[\n  1,\n  [\n    2\n  ]\n]" && writer.take().isEmpty)
  }

  @Test("the members of an object are in the order of their names, whatever order its fields have")
  func order() {
    func field(_ key: String, _ value: ArchiveValue = .integer(1)) -> ArchiveValue.Field {
      .init(key: key, value: value)
    }
    let pairs = ["b", "a", "Z", "é", "aB", "aa"].map { ArchiveValue.Pair(key: .string($0), value: .none) }
    var writer = JSONWriter(isOnOneLine: true)
    writer.beginArray()
    writer.value(
      .structure(type: 0, [field("z"), field("a", .structure(type: 0, [field("y"), field("x")])), field("m")]))
    writer.value(.dictionary(pairs))
    writer.value(.enumeration(type: 0, case: "said", [field("_1"), field("_0")]))
    // Keys that aren't texts have no names, and keep their order.
    writer.value(.dictionary([.init(key: .integer(2), value: .none), .init(key: .string("a"), value: .none)]))
    writer.object(3, "Boss", [field("rage"), field("#"), field("$a")])
    writer.end()
    #expect(
      String(decoding: writer.take(), as: UTF8.self)
        == """
        [{"a":{"x":1,"y":1},"m":1,"z":1},{"Z":null,"a":null,"aB":null,"aa":null,"b":null,"é":null},\
        {"$case":"said","_0":1,"_1":1},[[2,null],["a",null]],{"#":1,"$a":1,"$id":3,"$type":"Boss","rage":1}]
        """)
  }
}
