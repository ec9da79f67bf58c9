import Foundation
import KeepsakeReplication
import KeepsakeSimulation

/// Versions, contents and groups for tests of the values that an engine consists of.
enum Samples {
  static func bytes(_ number: Int, count: Int = 10) -> Data {
    Data("\(number) ".utf8) + Data(repeating: UInt8(truncatingIfNeeded: number), count: count)
  }

  static func hash(_ number: Int, count: Int = 10) -> ContentHash { ContentHash(of: bytes(number, count: count)) }

  static func content(_ number: Int, base: Int? = nil) -> EncodedContent {
    let bytes = bytes(number)
    return EncodedContent(hash: hash(number), length: bytes.count, base: base.map { hash($0) }, bytes: bytes)
  }

  static func id(_ number: UInt64) -> VersionID { VersionID(high: 0, low: number) }

  static func record(
    _ number: UInt64, slot: String = "main", covers: [UInt64] = [], contents: [ContentHash] = [], length: Int = 100
  ) -> VersionRecord {
    VersionRecord(
      id: id(number), slot: slot, covers: covers.map(id), contents: contents, length: length, savedAtMilliseconds: 0,
      writer: WriterID(1), provisional: false)
  }

  static func change(_ record: VersionRecord, seq: UInt64 = 1) -> CloudChange {
    CloudChange(seq: seq, item: .version(record))
  }

  static func group(_ id: Int64, versions: [UInt64] = [], refusals: [Refusal] = [], isPiece: Bool = false)
    -> OutboxGroup
  {
    OutboxGroup(id: id, versions: versions.map(Self.id), refusals: refusals, isPiece: isPiece)
  }
}

extension SimulatedDevice {
  /// Keeps a version; one of this device's own, which the cloud doesn't have yet, unless it is acknowledged.
  mutating func keep(_ record: VersionRecord, isAcknowledged: Bool = false) {
    putVersion(StoredVersion(record: record, acknowledged: isAcknowledged, offered: isAcknowledged))
    for id in record.covers { markCovered(id) }
  }
}
