import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

/// Records as servers store them.
@Suite("Packed records") struct PackedRecordTests {
  private static func record(_ random: inout SeededGenerator) -> VersionRecord {
    func few() -> Int { Int(random.next() % 4) }
    var metadata = SaveMetadata()
    if random.next() % 2 == 0 { metadata.title = ["", "Höhle\u{0}", "e\u{301}"][Int(random.next() % 3)] }
    if random.next() % 2 == 0 { metadata.playtime = Double(random.next() % 1_000) / 7 }
    if random.next() % 2 == 0 { metadata.progress = -0.25 }
    if random.next() % 2 == 0 { metadata.thumbnail = Data((0..<few()).map { UInt8($0) }) }
    if random.next() % 2 == 0 { metadata.custom = ["": "x", "difficulty": "hard", "\u{1F480}": ""] }
    return VersionRecord(
      id: VersionID(using: &random), slot: "main", covers: (0..<few()).map { _ in VersionID(using: &random) },
      contents: (0..<few()).map { ContentHash(of: Data([UInt8($0)])) },
      length: Int(random.next() % 1_000_000) * (random.next() % 5 == 0 ? -1 : 1), metadata: metadata,
      savedAtMilliseconds: [Int64.min, -1, 0, 1_800_000_000_000, .max][Int(random.next() % 5)],
      writer: WriterID(using: &random), provisional: random.next() % 2 == 0, tombstone: random.next() % 2 == 0)
  }

  @Test("a record is read as it was packed, whatever it has, and takes few bytes")
  func roundTrips() throws {
    var random = SeededGenerator(seed: 5)
    for _ in 0..<500 {
      let record = Self.record(&random)
      let packed = PackedRecord(record)
      #expect(try packed.record(id: record.id, slot: record.slot) == record)
      #expect(try PackedRecord(packed.record(id: record.id, slot: "other")) == packed)
    }
    let autosave = VersionRecord(
      id: VersionID(high: 1, low: 1), slot: "main", covers: [VersionID(high: 1, low: 2)],
      contents: [ContentHash(of: Data())], length: 40_000, savedAtMilliseconds: 1_800_000_000_000,
      writer: WriterID(.max), provisional: false)
    #expect(PackedRecord(autosave).bytes.count <= 72)
  }

  @Test("the form stays: a record that was packed by the first release of the form")
  func golden() throws {
    let hex =
      "0105" + "01" + "00000000000000010000000000000002" + "01" + String(repeating: "ab", count: 32)
      + "e807" + "02" + "0000000000000009" + "03616263"
    let bytes = Data(
      stride(from: 0, to: hex.count, by: 2).map { offset in
        let start = hex.index(hex.startIndex, offsetBy: offset)
        return UInt8(hex[start..<hex.index(start, offsetBy: 2)], radix: 16) ?? 0
      })
    let record = try PackedRecord(bytes: bytes).record(id: VersionID(high: 7, low: 7), slot: "s")
    #expect(record.covers == [VersionID(high: 1, low: 2)] && record.contents.count == 1)
    #expect(record.length == 1_000 && record.savedAtMilliseconds == 1 && record.writer == WriterID(9))
    #expect(record.provisional && !record.tombstone && record.metadata == SaveMetadata(title: "abc"))
    #expect(PackedRecord(record).bytes == bytes)
  }

  @Test("bytes that no packing gives are an error: truncated, with more behind them, altered, and counts without items")
  func damaged() throws {
    var random = SeededGenerator(seed: 6)
    func read(_ bytes: Data) throws -> VersionRecord {
      try PackedRecord(bytes: bytes).record(id: VersionID(high: 1, low: 1), slot: "main")
    }
    for _ in 0..<50 {
      let bytes = PackedRecord(Self.record(&random)).bytes
      for count in 0..<bytes.count {
        #expect(throws: PackedRecord.Damaged.self) { try read(bytes.prefix(count)) }
      }
      #expect(throws: PackedRecord.Damaged.self) { try read(bytes + [0]) }
      for _ in 0..<200 {
        var altered = bytes
        altered[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
        // Whatever it says, it is read or refused.
        _ = try? read(altered)
      }
    }
    let huge = Data([255, 255, 255, 255, 255, 255, 255, 255, 127])
    for start in [Data([1, 0]), Data([1, 0, 0])] {
      #expect(throws: PackedRecord.Damaged.self) { try read(start + huge + Data(count: 64)) }
    }
    #expect(throws: PackedRecord.Damaged.self) { try read(Data([1, 0]) + Data(repeating: 255, count: 40)) }
    #expect(throws: PackedRecord.Damaged.self) { try read(Data([2, 0, 0, 0, 0, 0]) + Data(count: 8)) }
    #expect(throws: PackedRecord.Damaged.self) { try read(Data([1, 128, 0, 0, 0, 0]) + Data(count: 8)) }
  }
}
