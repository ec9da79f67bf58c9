import Foundation
import KeepsakeSimulation
import Testing

@testable import KeepsakeReplication

/// Records as JSON, written and read without an encoder: the same as with one.
@Suite struct PlainRecordTests {
  private static let encoder: JSONEncoder = {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }()

  private static func record(
    _ source: inout SeededGenerator, slot: String = "file:a/b.sav", metadata: SaveMetadata = SaveMetadata()
  ) -> VersionRecord {
    func list<Element>(_ element: (inout SeededGenerator) -> Element) -> [Element] {
      (0..<Int(source.next() % 3)).map { _ in element(&source) }
    }
    let lengths = [0, 1, 12_345, Int.max]
    let times: [Int64] = [0, 1, -5, 1_900_000_000_000, 999_999_999_999_999_999, .max, .min]
    return VersionRecord(
      id: VersionID(using: &source), slot: slot, covers: list { VersionID(using: &$0) },
      contents: list { ContentHash(of: Data("\($0.next())".utf8)) },
      length: lengths[Int(source.next() % 4)], metadata: metadata,
      savedAtMilliseconds: times[Int(source.next() % 7)], writer: WriterID(using: &source),
      provisional: source.next() % 2 == 0, tombstone: source.next() % 2 == 0)
  }

  /// Each with whether it is plain text.
  private static let texts: [(text: String, isPlain: Bool)] = [
    ("", true), ("main", true), ("a/b", true), ("é😀\u{FFFD}\u{2028}", true), ("cafe\u{301}", true), ("it's", true),
    ("a\"b", false), ("a\\b", false), ("a\nb", false), ("\u{0}", false), ("\u{1F}", false), ("\u{7F}", false),
  ]

  @Test("plain records have the bytes that an encoder gives, and others are left to it")
  func written() throws {
    var source = SeededGenerator(seed: 1)
    for _ in 0..<200 {
      for (text, isPlain) in Self.texts {
        for metadata in [
          SaveMetadata(), SaveMetadata(title: text), SaveMetadata(custom: ["device": text]),
          SaveMetadata(title: "title", custom: [text: text]),
        ] {
          let record = Self.record(&source, slot: text.isEmpty ? "x" : text, metadata: metadata)
          let whole = try Self.encoder.encode(record)
          let json = PlainRecord.json(of: record)
          try #require((json != nil) == (isPlain || json == whole), "\(text.debugDescription)")
          if let json {
            try #require(json == whole, "\(String(decoding: json, as: UTF8.self))")
            // Larger numbers than are read here are left to a decoder, too.
            if let read = PlainRecord.record(in: json) { try #require(read == record) }
          }
          let change = CloudChange(seq: source.next() >> (source.next() % 64), item: .version(record))
          if let json = PlainRecord.json(of: change) {
            try #require(try json == Self.encoder.encode(change))
            if let read = PlainRecord.change(in: json) { try #require(read == change) }
          }
        }
      }
    }
    for metadata in [
      SaveMetadata(playtime: 1), SaveMetadata(progress: 0.5), SaveMetadata(thumbnail: Data([1])),
      SaveMetadata(custom: ["a": "b", "c": "d"]),
    ] { #expect(PlainRecord.json(of: Self.record(&source, metadata: metadata)) == nil) }
    let cell = CellUpdate(key: CellKey(collection: "c", key: "k"), state: CellState(value: .max(.int(1))))
    #expect(PlainRecord.json(of: CloudChange(seq: 1, item: .cell(cell))) == nil)
  }

  @Test("a record has no field of which the quick form doesn't know")
  func fields() {
    var source = SeededGenerator(seed: 4)
    let record = Self.record(&source)
    #expect(
      Mirror(reflecting: record).children.compactMap(\.label) == [
        "id", "slot", "covers", "contents", "length", "metadata", "savedAtMilliseconds", "writer", "provisional",
        "tombstone",
      ])
    #expect(
      Set(Mirror(reflecting: record.metadata).children.compactMap(\.label)) == [
        "title", "playtime", "progress", "thumbnail", "custom",
      ])
  }

  @Test("most records are read without a decoder")
  func read() throws {
    var source = SeededGenerator(seed: 2)
    for metadata in [SaveMetadata(), SaveMetadata(title: "T", custom: ["device": "laptop"])] {
      var record = Self.record(&source, metadata: metadata)
      (record.savedAtMilliseconds, record.length) = (1_900_000_000_000, 1)
      let json = try #require(PlainRecord.json(of: record))
      #expect(PlainRecord.record(in: json) == record)
      let change = CloudChange(seq: 7, item: .version(record))
      #expect(PlainRecord.change(in: try #require(PlainRecord.json(of: change))) == change)
    }
  }

  @Test("altered JSON is read as a decoder reads it, or left to it")
  func altered() throws {
    var source = SeededGenerator(seed: 3)
    var record = Self.record(&source, metadata: SaveMetadata(title: "T", custom: ["device": "laptop"]))
    (record.savedAtMilliseconds, record.length, record.provisional, record.tombstone) = (17, 1, true, true)
    (record.covers, record.contents) = ([VersionID(using: &source)], [ContentHash(of: Data())])
    let json = try #require(PlainRecord.json(of: record))
    var readAltered = 0
    for index in json.indices {
      for byte in Array("\"\\{}[],:-0a F\u{0}".utf8) + [0x80, 0xC3, 0xFF] {
        for isInserted in [false, true] {
          var bytes = json
          if isInserted { bytes.insert(byte, at: index) } else { bytes[index] = byte }
          guard let read = PlainRecord.record(in: bytes) else { continue }
          readAltered += 1
          try #require(
            try read == JSONDecoder().decode(VersionRecord.self, from: bytes),
            "\(String(decoding: bytes, as: UTF8.self))")
        }
      }
      #expect(PlainRecord.record(in: json.prefix(index)) == nil)
    }
    #expect(readAltered > 100)
    // As a slice, whose first index isn't 0.
    #expect(PlainRecord.record(in: (Data([0, 0]) + json).dropFirst(2)) == record)
  }
}
