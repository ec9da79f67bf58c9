#if Cloud && PostgreSQL
import Foundation
import KeepsakePostgreSQL
import KeepsakeReplication

// The cloud's values in rows.
extension PostgreSQLRow {
  func unsigned(_ index: Int) throws -> UInt64 { UInt64(bitPattern: try int(index)) }

  func text(_ index: Int) throws -> String { String(decoding: try bytes(index), as: UTF8.self) }

  func identifier<Kind>(_ index: Int) throws -> Identifier<Kind> {
    let bytes = try bytes(index)
    guard let identifier = Identifier<Kind>(bytes: bytes) else {
      throw ServerError(.damaged, "An identifier in the database has \(bytes.count) bytes instead of 16.")
    }
    return identifier
  }

  func hash(_ index: Int) throws -> ContentHash {
    guard let hash = try optionalHash(index) else { throw ServerError(.damaged, "A content's hash is missing.") }
    return hash
  }

  func optionalHash(_ index: Int) throws -> ContentHash? {
    guard let bytes = try optionalBytes(index) else { return nil }
    guard let hash = ContentHash(bytes: bytes) else {
      throw ServerError(.damaged, "A content's hash in the database has \(bytes.count) bytes instead of 32.")
    }
    return hash
  }

  func verdict(_ index: Int) throws -> WalletDecision.Verdict {
    guard let verdict = WalletDecision.Verdict(rawValue: try text(index)) else {
      throw ServerError(.damaged, "A decision of a container's bank can't be read.")
    }
    return verdict
  }

  /// Reads id, seq, slot and record, and the seq with which it was accepted behind whether it is a head.
  func version(hasAccepted: Bool) throws -> SequencedVersion {
    let record = try record(id: 0, slot: 2, record: 3)
    var version = SequencedVersion(record: record, seq: try unsigned(1))
    if hasAccepted, let accepted = try optionalInt(5) { version.accepted = UInt64(bitPattern: accepted) }
    return version
  }

  private func record(id: Int, slot: Int, record: Int) throws -> VersionRecord {
    do {
      return try PackedRecord(bytes: bytes(record)).record(id: identifier(id), slot: text(slot))
    } catch let error as PackedRecord.Damaged {
      throw ServerError(.damaged, "A row of the database can't be read.", cause: error)
    }
  }

  /// Reads seq, mark, whether it is a head (-1 for a cell), and the item.
  func change() throws -> CloudChange {
    guard try int(2) < 0 else {
      return CloudChange(seq: try unsigned(0), item: .version(try record(id: 3, slot: 4, record: 5)))
    }
    let key = CellKey(collection: try text(3), key: try text(4))
    return CloudChange(
      seq: try unsigned(0), item: .cell(CellUpdate(key: key, state: try decoded(CellState.self, bytes(5)))))
  }
}
#endif
