#if Cloud
import Foundation
import KeepsakeReplication

/// The values of a write set as they are stored, encoded before the writer's turn comes.
struct EncodedRows: Sendable {
  private(set) var cells: [CellKey: Data] = [:]
  private(set) var records: [VersionID: Data] = [:]
  private(set) var bank: Data?
  /// In the order of the write set's.
  private(set) var decisions: [Data] = []
  private(set) var orders: [Data] = []
  private(set) var parts: [Data] = []

  init(_ writes: WriteSet) throws {
    for (key, cell) in writes.cells { cells[key] = try Self.encode(cell.update.state) }
    for (id, version) in writes.versions { records[id] = PackedRecord(version.version.record).bytes }
    for (id, version) in writes.rewritten { records[id] = PackedRecord(version.record).bytes }
    bank = try writes.bank.map(Self.encode)
    decisions = try writes.decisions.map { try Self.encode($0.operation) }
    orders = try writes.orders.map { try Self.encode($0.order) }
    parts = try writes.parts.map { try Self.encode($0.items) }
  }

  static func encode(_ value: some Encodable) throws -> Data {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return try encoder.encode(value)
  }
}
#endif
