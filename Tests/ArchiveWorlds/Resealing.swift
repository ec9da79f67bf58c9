import Foundation

@testable import KeepsakeArchive

extension Archive {
  /// The archive with a recomputed checksum, as after a deliberate change.
  static func resealed(_ data: Data) -> Data {
    var bytes = [UInt8](data.dropLast(8))
    let sum = bytes.withUnsafeBytes { Checksum.xxh64($0) }
    withUnsafeBytes(of: sum.littleEndian) { bytes.append(contentsOf: $0) }
    return Data(bytes)
  }

  static func checksum(_ bytes: [UInt8]) -> UInt64 { bytes.withUnsafeBytes { Checksum.xxh64($0) } }
}
