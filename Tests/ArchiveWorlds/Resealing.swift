import Foundation

@testable import KeepsakeArchive

extension Archive {
  /// The archive with its checksum made good, as whoever alters it on purpose would do.
  static func resealed(_ data: Data) -> Data {
    var bytes = [UInt8](data.dropLast(8))
    let sum = bytes.withUnsafeBytes { Checksum.xxh64($0) }
    withUnsafeBytes(of: sum.littleEndian) { bytes.append(contentsOf: $0) }
    return Data(bytes)
  }

  static func checksum(_ bytes: [UInt8]) -> UInt64 { bytes.withUnsafeBytes { Checksum.xxh64($0) } }
}
