import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import TestSupport
import Testing

@testable import KeepsakeStore

extension TemporaryFolder {
  var store: URL { url.appendingPathComponent("store") }
}

/// The same random numbers and bytes for a seed, in every run.
struct SeededRandom: RandomNumberGenerator {
  private var generator: SeededGenerator

  init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  mutating func next() -> UInt64 { generator.next() }

  mutating func bytes(_ count: Int) -> Data { Data((0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }) }

  /// The same for megabytes; eight bytes at a time.
  mutating func noise(_ count: Int) -> Data {
    var words: [UInt64] = []
    words.reserveCapacity(count / 8)
    for _ in 0..<count / 8 { words.append(next()) }
    return words.withUnsafeBytes { Data($0) }
  }
}

func id(_ number: UInt64) -> VersionID { VersionID(high: 0, low: number) }

func record(
  _ number: UInt64, slot: String = "main", covers: [UInt64] = [], contents: [ContentHash] = [], length: Int = 0,
  metadata: SaveMetadata = SaveMetadata(), savedAt: Int64? = nil
) -> VersionRecord {
  VersionRecord(
    id: id(number), slot: slot, covers: covers.map(id), contents: contents, length: length, metadata: metadata,
    savedAtMilliseconds: savedAt ?? Int64(number), writer: WriterID(1), provisional: false)
}

extension StoreTransaction {
  /// A save that replaces one other, as a device's commit would write it, without an outbox.
  mutating func put(
    _ number: UInt64, slot: String = "main", covers: [UInt64] = [], _ kept: [PreparedSave] = [],
    acknowledged: Bool = true, savedAt: Int64? = nil
  ) throws {
    let record = record(
      number, slot: slot, covers: covers, contents: kept.flatMap(\.hashes), length: kept.reduce(0) { $0 + $1.length },
      savedAt: savedAt)
    try putVersion(StoredVersion(record: record, acknowledged: acknowledged, offered: acknowledged))
    for covered in covers { try markCovered(id(covered)) }
  }
}

extension Store {
  /// Saves `bytes` in a slot as version `number`, which replaces `number - 1`, and waits for it.
  func save(
    _ bytes: Data, as number: UInt64, slot: String = "main", acknowledged: Bool = true, savedAt: Int64? = nil
  ) throws {
    try submit([(slot: slot, bytes: bytes)]) { transaction, kept in
      try transaction.put(
        number, slot: slot, covers: number > 1 ? [number - 1] : [], kept, acknowledged: acknowledged, savedAt: savedAt)
    }.wait()
  }
}

/// SQL for a row's `body` with another byte at `byte`, counted from 1. A random byte changes in any case, too.
func bodyAltered(at byte: Int) -> String {
  """
  CAST(substr(body, 1, \(byte - 1)) || CASE substr(body, \(byte), 1) WHEN x'00' THEN x'01' ELSE x'00' END
  || substr(body, \(byte + 1)) AS BLOB)
  """
}

func errorCode(_ body: () throws -> Void) -> StoreError.Code? {
  do {
    try body()
    return nil
  } catch let error as StoreError {
    return error.code
  } catch {
    Issue.record("an untyped error: \(error)")
    return nil
  }
}
