#if Cloud
import Crypto
import Foundation

/// The SHA-256 of rows, and how many they are.
struct MovedDigest: Equatable, Sendable {
  private(set) var rows = 0
  private(set) var bytes = 0
  private(set) var hash = Data()
  private var hasher = SHA256()

  static func == (one: Self, other: Self) -> Bool { one.rows == other.rows && one.hash == other.hash }

  mutating func begin(_ table: MovedTable) { hasher.update(data: Data([0xFF]) + Data(table.name.utf8) + Data([0])) }

  mutating func add(_ row: MovedRow) {
    var data = Data([1])
    for value in row {
      switch value {
      case .null: data.append(0)
      case .number(let number):
        data.append(1)
        data.append(Self.bytes(UInt64(bitPattern: number)))
      case .bytes(let bytes):
        data.append(2)
        data.append(Self.bytes(UInt64(bytes.count)))
        data.append(bytes)
      }
    }
    hasher.update(data: data)
    rows += 1
    bytes += data.count
  }

  mutating func finish() { hash = Data(hasher.finalize()) }

  private static func bytes(_ number: UInt64) -> Data { withUnsafeBytes(of: number.bigEndian) { Data($0) } }

  // MARK: Of an owner

  /// Copies all rows of an owner, in place of those that are there, and returns the digest of what was read.
  static func copying(
    _ owner: Data, _ tables: [MovedTable], from reader: some MovedReader, to writer: inout some MovedWriter
  ) throws -> MovedDigest {
    var digest = MovedDigest()
    try writer.begin(owner, tables)
    for table in tables {
      digest.begin(table)
      try reader.rows(of: table, owner) { row in
        digest.add(row)
        try writer.add(row, to: table, owner)
      }
    }
    try writer.finish(owner)
    digest.finish()
    return digest
  }

  /// Returns the digest of all rows of an owner.
  static func of(_ owner: Data, _ tables: [MovedTable], in reader: some MovedReader) throws -> MovedDigest {
    var digest = MovedDigest()
    for table in tables {
      digest.begin(table)
      try reader.rows(of: table, owner) { digest.add($0) }
    }
    digest.finish()
    return digest
  }
}
#endif
